//! Walks copied stacks by the unwind tables of the process's files (`.eh_frame`), which compilers write for code without
//! frame pointers too.

use std::ops::Range;
use std::time::{Duration, Instant};

use bpf_codegen::delay::layout::event::DEPTH;
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use host::{Pid, Process};
use kernel_delay::{CopiedStack, Stack, StackEnd};
use object::elf::PF_X;
use object::{Object as _, ObjectSection as _, ObjectSegment as _, SegmentFlags};
use probes::maps::Mapping;

use crate::user_symbols::is_vdso;

#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{
    CacheAarch64 as Cache, PtrAuthMask, UnwindRegsAarch64 as Registers, UnwinderAarch64 as Unwinder,
};
#[cfg(target_arch = "x86_64")]
use framehop::x86_64::{CacheX86_64 as Cache, UnwindRegsX86_64 as Registers, UnwinderX86_64 as Unwinder};

/// How often the process is asked what it has mapped, at most.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// A process's unwind tables.
pub(super) struct StackWalker {
    pid: u32,
    unwinder: Unwinder<Vec<u8>>,
    cache: Cache,
    /// How many bytes of a stack are copied, where it has as many.
    copied: u32,
    /// Where its files are mapped: start, end, and the file's name with its inode.
    known: Vec<(Range<u64>, u64)>,
    asked: Instant,
}

/// How far from the innermost function's stack pointer a caller's frame can be: what is further is no stack's.
const DEEPEST: u64 = 64 << 20;

impl StackWalker {
    /// Reads what the process has mapped now; what it maps later is read when an address of it comes.
    pub(super) fn new(pid: u32, copied: u32) -> Self {
        let (unwinder, cache, asked) = (Unwinder::new(), Cache::new(), Instant::now());
        let mut walker = Self { pid, unwinder, cache, copied, known: Vec::new(), asked };
        walker.ask();
        walker
    }

    /// The addresses of a stack, the innermost first.
    pub(super) fn walk(&mut self, stack: CopiedStack<'_>) -> Stack {
        let [ip, sp, ..] = stack.registers;
        if !self.known.iter().any(|(range, _)| range.contains(&ip)) && self.asked.elapsed() > ASK_EVERY {
            self.ask();
        }
        // A stack whose copy is shorter was copied to its last byte.
        let is_cut = stack.bytes.len() >= self.copied as usize;
        let mut beyond = false;
        let mut read = |address: u64| {
            let at = address.checked_sub(sp).ok_or(())?;
            let word = usize::try_from(at).ok().and_then(|at| stack.bytes.get(at..at.checked_add(8)?));
            beyond = word.is_none() && at < DEEPEST;
            word.ok_or(())?.try_into().map(u64::from_ne_bytes).map_err(|_| ())
        };
        let mut frames = self.unwinder.iter_frames(ip, registers(stack.registers), &mut self.cache, &mut read);
        let mut addresses = Vec::new();
        let mut end = StackEnd::TooDeep;
        while addresses.len() < DEPTH as usize {
            match frames.next() {
                Ok(Some(frame)) => addresses.push(frame.address()),
                // What was found until then is right.
                last => {
                    end = if last.is_ok() { StackEnd::Whole } else { StackEnd::Unknown };
                    break;
                }
            }
        }
        if end == StackEnd::Unknown && beyond && is_cut {
            end = StackEnd::NotCopied(self.copied);
        }
        Stack { addresses, end }
    }

    /// Adds the files that are mapped and not known yet.
    fn ask(&mut self) {
        self.asked = Instant::now();
        let Ok(process) = Process::open(Pid(self.pid)) else { return };
        self.ask_for_vdso(&process);
        for place in std::iter::once(process.program()).chain(process.libraries()) {
            let code = process.maps().all().iter().filter(|mapping| mapping.permissions.execute);
            let code: Vec<_> = code.filter(|mapping| mapping.file() == Some(place.path())).collect();
            let known = |mapping: &&Mapping| {
                self.known.iter().any(|(range, inode)| range.start == mapping.start.0 && *inode == mapping.inode)
            };
            let new: Vec<&Mapping> = code.into_iter().filter(|mapping| !known(mapping)).collect();
            // Programs may map anything as code: what is no ELF file is walked over by frame pointers.
            let Some(file) = Some(&place).filter(|_| !new.is_empty()).and_then(|place| place.load().ok()) else {
                continue;
            };
            let Ok(image) = file.image() else { continue };
            for mapping in new {
                let range = mapping.start.0..mapping.end.0;
                self.add(&file.path().display().to_string(), image.data(), range.clone(), mapping.offset.0);
                self.known.push((range, mapping.inode));
            }
        }
    }

    /// The kernel's own library, which may make a call, too: `clock_gettime` of a clock that it can't read by itself.
    fn ask_for_vdso(&mut self, process: &Process) {
        let Some(mapping) = process.maps().all().iter().find(|mapping| is_vdso(mapping)) else { return };
        let range = mapping.start.0..mapping.end.0;
        if self.known.iter().any(|(known, _)| *known == range) {
            return;
        }
        if let Some(bytes) = host::vdso() {
            self.add(host::VDSO, &bytes, range.clone(), 0);
        }
        self.known.push((range, mapping.inode));
    }

    fn add(&mut self, name: &str, bytes: &[u8], range: Range<u64>, offset: u64) {
        // A 32-bit process's stack has other words than we read.
        let Some(elf) = object::File::parse(bytes).ok().filter(object::File::is_64) else { return };
        // A mapping begins at a page, which the end of the segment before may share: only that of code counts.
        let code = |segment: &object::Segment<'_, '_>| {
            let (start, length) = segment.file_range();
            let executable = matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & PF_X != 0);
            executable && start < offset + (range.end - range.start) && offset < start + length
        };
        let Some(segment) = elf.segments().find(code) else { return };
        // Where the file's address 0 is in the process.
        let base =
            range.start.wrapping_sub(offset).wrapping_add(segment.file_range().0).wrapping_sub(segment.address());
        let section = |name: &str| elf.section_by_name(name);
        let span = |name: &str| section(name).map(|it| it.address()..it.address() + it.size());
        let bytes = |name: &str| section(name).and_then(|it| it.data().ok().map(<[u8]>::to_vec));
        let sections = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: span(".text"),
            eh_frame_svma: span(".eh_frame"),
            eh_frame: bytes(".eh_frame"),
            eh_frame_hdr_svma: span(".eh_frame_hdr"),
            eh_frame_hdr: bytes(".eh_frame_hdr"),
            got_svma: span(".got"),
            ..Default::default()
        };
        self.unwinder.add_module(Module::new(name.to_owned(), range, base, sections));
    }
}

#[cfg(target_arch = "x86_64")]
fn registers([ip, sp, fp, _]: [u64; 4]) -> Registers {
    Registers::new(ip, sp, fp)
}

/// Return addresses may be signed, in the bits above those that a process's addresses have: it gets none above the 48th but
/// by asking for them (Documentation/arch/arm64/memory.rst, pointer-authentication.rst).
#[cfg(target_arch = "aarch64")]
fn registers([_, sp, fp, lr]: [u64; 4]) -> Registers {
    const ADDRESS: PtrAuthMask = PtrAuthMask((1 << 48) - 1);
    Registers::new_with_ptr_auth_mask(ADDRESS, lr, sp, fp)
}

#[cfg(all(test, target_arch = "aarch64"))]
mod tests {
    use super::*;

    /// Two frames of code that no table tells of, each where the next one is and the signed address of the call.
    #[test]
    fn signed_return_addresses_are_addresses() {
        const STACK: u64 = 0x7fff_f000;
        const SIGNATURE: u64 = 0x7a << 48;
        let words = [STACK + 16, SIGNATURE | 0x40_0100, 0, SIGNATURE | 0x40_0200];
        let bytes: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_ne_bytes()).collect();
        let registers = [0x10, STACK, STACK, SIGNATURE | 0x40_0300];
        let stack = StackWalker::new(std::process::id(), 0x1000).walk(CopiedStack { registers, bytes: &bytes });
        assert_eq!(stack.addresses, [0x10, 0x40_0100, 0x40_0200]);
    }
}
