//! Walks copied stacks by the unwind tables of the process's files (`.eh_frame`), which compilers write for code without
//! frame pointers too.

mod code;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use elf::ElfImage;
use framehop::{FrameAddress, Module, Unwinder as _};
use host::{Pid, Process};
use kernel_text::maps::Mapping;
use typeinfo::FrameSections;

use crate::Warning;
use crate::unwind_tables::{TableId, UnwindTables};
use crate::user::is_vdso;
use crate::warning::printable;

use crate::unwind::code::{code_base, code_of, sections};
#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{
    CacheAarch64 as Cache, PtrAuthMask, UnwindRegsAarch64 as Registers, UnwinderAarch64 as Unwinder,
};
#[cfg(target_arch = "x86_64")]
use framehop::x86_64::{
    CacheX86_64 as Cache, UnwindRegsX86_64 as Registers, UnwinderX86_64 as Unwinder,
};

/// Limit on the addresses that are found of a stack.
pub const MAX_ADDRESSES: usize = 64;
/// Shortest time between two reads of the process's mappings.
const READ_INTERVAL: Duration = Duration::from_millis(100);
/// Number of first reads without that pause: a process that has just started has not mapped its
/// libraries yet.
const EARLY_READS: u8 = 8;
/// Limit on the reads that are kept for names.
const MAX_SEEN: usize = 32;
/// Limit on the distance of a caller's frame from the innermost function's stack pointer, in bytes:
/// a larger one leaves the stack.
const MAX_STACK_BYTES: u64 = 64 << 20;
/// Limit on the cost of walking one stack, in bytes of unwind instructions: 64 functions of
/// compilers' output have some 3,000, and the longest entry of all has 20,064.
const MAX_COST: u32 = 128 << 10;
/// Limit on places of code in a process. Browsers have some hundred.
const MAX_PLACES: usize = 4096;

/// Walks the stacks of one process by its code.
pub(crate) struct StackWalker {
    pid: u32,
    unwinder: Unwinder<Arc<[u8]>>,
    cache: Cache,
    /// Limit on the bytes copied of a stack.
    copied: u32,
    /// Places where its files are mapped, by the first address.
    known: BTreeMap<u64, CodeMapping>,
    /// All its mappings of code, in order; empty if they can't be read.
    code: Vec<Range<u64>>,
    /// Inodes of these mappings.
    inodes: Vec<u64>,
    /// Time of the last read of the process's mappings.
    last_read: Instant,
    /// Number of reads that are left without a pause.
    early: u8,
    /// Process after each read that found other code, except the first one: see
    /// [`Self::take_seen`].
    seen: Vec<Process>,
}

/// Addresses of a stack, and the reason why there are no more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WalkedStack {
    /// Addresses, the innermost first; the others are return addresses.
    pub addresses: Vec<u64>,
    /// Reason why there are no more.
    pub end: StackEnd,
}

/// Reason why a stack has no more addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StackEnd {
    /// The stack is complete: the thread began in its last function.
    Whole,
    /// The stack goes on beyond the copied bytes.
    NotCopied,
    /// The stack has more than [`MAX_ADDRESSES`].
    TooDeep,
    /// The caller of its last function is not known.
    Unknown,
    /// The unwind information of its last function can't be followed in bounded time.
    Refused,
}

/// A place where code of a file is mapped.
struct CodeMapping {
    end: u64,
    inode: u64,
    name: Arc<str>,
    /// Address of the file's address 0 in the process, and its table; `None` if it has none.
    table: Option<(u64, TableId)>,
}

impl StackWalker {
    /// Reads the present mappings of the process; later ones are read at their first address.
    /// `copied` is the limit on the bytes copied of a stack.
    pub(crate) fn new(pid: u32, copied: u32, tables: &mut UnwindTables) -> Self {
        let mut walker = Self {
            pid,
            unwinder: Unwinder::new(),
            cache: Cache::new(),
            copied,
            known: BTreeMap::new(),
            code: Vec::new(),
            inodes: Vec::new(),
            last_read: Instant::now(),
            early: EARLY_READS,
            seen: Vec::new(),
        };
        walker.read_mappings(tables);
        walker
    }

    /// Returns true if the process has the same code at the same places as when it was read.
    pub(crate) fn is_current(&self) -> bool {
        Process::open(Pid(self.pid))
            .is_ok_and(|process| code_of(&process) == (self.code.clone(), self.inodes.clone()))
    }

    /// Walks a stack: its registers (instruction pointer, stack pointer, frame pointer, link
    /// register where there is one) and its bytes from the stack pointer on.
    pub(crate) fn walk(
        &mut self,
        stack_registers: [u64; 4],
        bytes: &[u8],
        tables: &mut UnwindTables,
    ) -> WalkedStack {
        let [ip, sp, ..] = stack_registers;
        if self.place(ip).is_none() {
            self.read_again(tables);
        }
        // A shorter copy has the stack's last byte.
        let is_cut = bytes.len() >= self.copied as usize;
        let mut beyond = false;
        let mut read = |address: u64| {
            let at = address.checked_sub(sp).ok_or(())?;
            let word = usize::try_from(at)
                .ok()
                .and_then(|at| bytes.get(at..at.checked_add(8)?));
            beyond = word.is_none() && at < MAX_STACK_BYTES;
            word.ok_or(())?
                .try_into()
                .map(u64::from_ne_bytes)
                .map_err(|_| ())
        };
        let mut registers = registers(stack_registers);
        let mut addresses = vec![ip];
        let mut at = FrameAddress::from_instruction_pointer(ip);
        let mut left = MAX_COST;
        let mut end = loop {
            if addresses.len() >= MAX_ADDRESSES {
                break StackEnd::TooDeep;
            }
            // The addresses up to here are right.
            if let Err(refused) = self.charge(at.address_for_lookup(), &mut left, tables) {
                tables.report(refused);
                break StackEnd::Refused;
            }
            match self
                .unwinder
                .unwind_frame(at, &mut registers, &mut self.cache, &mut read)
            {
                Ok(Some(caller)) => match FrameAddress::from_return_address(caller) {
                    // Frame pointers lead anywhere in code that does not keep them.
                    Some(caller) if self.is_code(caller.address_for_lookup(), tables) => {
                        addresses.push(caller.address());
                        at = caller;
                    }
                    _ => break StackEnd::Unknown,
                },
                Ok(None) => break StackEnd::Whole,
                Err(_) => break StackEnd::Unknown,
            }
        };
        if end == StackEnd::Unknown && beyond && is_cut {
            end = StackEnd::NotCopied;
        }
        WalkedStack { addresses, end }
    }

    /// Returns the place that holds an address.
    fn place(&self, address: u64) -> Option<(u64, &CodeMapping)> {
        let (start, known) = self.known.range(..=address).next_back()?;
        (address < known.end).then_some((*start, known))
    }

    /// Returns true if the process has code at an address, or its code is unknown.
    fn is_code(&mut self, address: u64, tables: &mut UnwindTables) -> bool {
        let holds = |code: &[Range<u64>]| {
            let above = code.partition_point(|range| range.start <= address);
            code[..above]
                .last()
                .is_some_and(|range| range.contains(&address))
        };
        if !holds(&self.code) {
            self.read_again(tables);
        }
        self.code.is_empty() || holds(&self.code)
    }

    /// Deducts the cost of finding the caller of this address; returns an error if that may not be
    /// done.
    fn charge(
        &self,
        address: u64,
        left: &mut u32,
        tables: &mut UnwindTables,
    ) -> Result<(), Warning> {
        let Some((
            _,
            CodeMapping {
                name,
                table: Some((base, table)),
                ..
            },
        )) = self.place(address)
        else {
            return Ok(());
        };
        let Some(table) = tables.get(table) else {
            return Ok(());
        };
        let cost = table.cost(address.wrapping_sub(*base));
        let cost = cost.map_err(|source| Warning::Entry {
            file: name.to_string(),
            source,
        })?;
        *left = left.checked_sub(cost).ok_or_else(|| Warning::CostlyTable {
            file: name.to_string(),
        })?;
        Ok(())
    }

    /// Reads the mappings again: libraries that were opened meanwhile, or another program. Not
    /// often, since it costs time, and a missing mapping may never come.
    fn read_again(&mut self, tables: &mut UnwindTables) {
        if self.early == 0 && self.last_read.elapsed() <= READ_INTERVAL {
            return;
        }
        self.early = self.early.saturating_sub(1);
        let before = (self.code.clone(), self.inodes.clone());
        let process = self.read_mappings(tables);
        if before != (self.code.clone(), self.inodes.clone()) && self.seen.len() < MAX_SEEN {
            self.seen.extend(process);
        }
    }

    /// Returns the process as it was when it had opened something, for names of functions in that:
    /// it may have ended by now.
    pub(crate) fn take_seen(&mut self) -> Vec<Process> {
        std::mem::take(&mut self.seen)
    }

    /// Adds the files that are mapped and not known yet; `None` if the process is gone.
    fn read_mappings(&mut self, tables: &mut UnwindTables) -> Option<Process> {
        self.last_read = Instant::now();
        let process = Process::open(Pid(self.pid)).ok()?;
        (self.code, self.inodes) = code_of(&process);
        self.read_vdso(&process, tables);
        let mut new: HashMap<&Path, Vec<&Mapping>> = HashMap::new();
        for mapping in process
            .maps()
            .all()
            .iter()
            .filter(|mapping| mapping.permissions.execute)
        {
            let known = self
                .known
                .get(&mapping.start.0)
                .is_some_and(|known| known.inode == mapping.inode);
            if let Some(path) = mapping.file().filter(|_| !known) {
                new.entry(path).or_default().push(mapping);
            }
        }
        for place in std::iter::once(process.program()).chain(process.libraries()) {
            let Some(mappings) = new.remove(place.path()) else {
                continue;
            };
            // Programs may map anything as code: stacks in a file that is not ELF are walked by
            // frame pointers.
            let Ok(file) = place.load_unwinding() else {
                continue;
            };
            if let Ok(image) = file.image() {
                let ranges: Vec<_> = mappings
                    .iter()
                    .map(|it| (it.start.0..it.end.0, it.offset.0, it.inode))
                    .collect();
                self.add(&printable(file.path()), &image, &ranges, tables);
            }
        }
        Some(process)
    }

    /// Adds the kernel's own library, which may make a call, too: `clock_gettime` of a clock that
    /// it can't read by itself.
    fn read_vdso(&mut self, process: &Process, tables: &mut UnwindTables) {
        let Some(mapping) = process.maps().all().iter().find(|mapping| is_vdso(mapping)) else {
            return;
        };
        let range = mapping.start.0..mapping.end.0;
        if self.known.contains_key(&range.start) {
            return;
        }
        let bytes = host::vdso();
        if let Some(image) = bytes.as_ref().and_then(|bytes| ElfImage::parse(bytes).ok()) {
            self.add(host::VDSO, &image, &[(range, 0, mapping.inode)], tables);
        }
    }

    /// Adds a file that is mapped at these places: the addresses, the file's offset there, its
    /// inode. A 32-bit process's stack has other words than we read, and its files are no
    /// [`ElfImage`].
    fn add(
        &mut self,
        name: &str,
        image: &ElfImage<'_>,
        places: &[(Range<u64>, u64, u64)],
        tables: &mut UnwindTables,
    ) {
        let table =
            FrameSections::find(image.data()).and_then(|sections| tables.add(name, &sections));
        let name: Arc<str> = name.into();
        for (range, offset, inode) in places {
            if self.known.len() >= MAX_PLACES {
                tables.report(Warning::ManyPlaces(MAX_PLACES));
                return;
            }
            let base = code_base(image, range, *offset);
            let table = base.zip(table.clone());
            if let Some((base, table)) = &table
                && let Some(table) = tables.get(table)
            {
                self.unwinder.add_module(Module::new(
                    name.to_string(),
                    range.clone(),
                    *base,
                    sections(table),
                ));
            }
            self.known.insert(
                range.start,
                CodeMapping {
                    end: range.end,
                    inode: *inode,
                    name: Arc::clone(&name),
                    table,
                },
            );
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn registers([ip, sp, fp, _]: [u64; 4]) -> Registers {
    Registers::new(ip, sp, fp)
}

/// Return addresses may be signed, in the bits above those of process addresses: a process has none
/// above the 48th bit unless it asks for them (Documentation/arch/arm64/memory.rst,
/// pointer-authentication.rst).
#[cfg(target_arch = "aarch64")]
fn registers([_, sp, fp, lr]: [u64; 4]) -> Registers {
    const ADDRESS: PtrAuthMask = PtrAuthMask((1 << 48) - 1);
    Registers::new_with_ptr_auth_mask(ADDRESS, lr, sp, fp)
}

#[cfg(test)]
mod tests;
