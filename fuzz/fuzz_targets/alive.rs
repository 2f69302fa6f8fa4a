//! Any bytes as the memory of an SPDK target of some version, in which every address leads somewhere: the built-in object specs
//! look for objects there. What is read is bounded, and two readings of the same memory agree.
#![no_main]

use dptrace_fuzz::within_more;
use libfuzzer_sys::fuzz_target;
use live_memory::{Cause, LimitedMemory, Limits, Memory, MemoryError, define_types};
use live_objects::alive::{Addresses, Program, agree, compile};
use objects::ObjectSpec;
use objects::layouts::{SpdkVersion, layout_text, versions};
use std::cell::Cell;
use std::sync::OnceLock;
use typeinfo::{Arch, TypeStore};

/// The bytes, again and again, at all addresses but those with this bit and the first page.
struct Everywhere<'b>(&'b [u8]);

const UNMAPPED: u64 = 1 << 63;
const FIRST_PAGE: u64 = 4096;

impl Memory for Everywhere<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        if address & UNMAPPED != 0 || address < FIRST_PAGE || self.0.is_empty() {
            return Err(MemoryError::new(address, into.len(), Cause::NotMapped));
        }
        for (at, byte) in into.iter_mut().enumerate() {
            *byte = self.0[(address.wrapping_add(at as u64) % self.0.len() as u64) as usize];
        }
        Ok(())
    }
}

fn specs() -> &'static [ObjectSpec] {
    static SPECS: OnceLock<Vec<ObjectSpec>> = OnceLock::new();
    SPECS.get_or_init(|| objects::built_in().expect("the built-in specs are valid"))
}

/// Where all roots lie: at a page and from that on, by the length of their names.
type Roots = (u64, u64);

thread_local! {
    static ROOTS: Cell<Roots> = const { Cell::new((0, 0)) };
    /// A program for each version; making one takes longer than a walk.
    static PROGRAMS: Vec<Program<'static>> = versions().into_iter().map(program).collect();
}

static GLOBALS: Addresses<fn(&str) -> Option<u64>> = Addresses(root);

fn root(name: &str) -> Option<u64> {
    let (from, step) = ROOTS.get();
    Some(FIRST_PAGE * from + name.len() as u64 * 8 * step + FIRST_PAGE)
}

fn program(version: SpdkVersion) -> Program<'static> {
    let mut types = TypeStore::new(Arch::X86_64);
    define_types(&mut types, &layout_text(version)).expect("the built-in layouts are valid");
    Program::new(types, &GLOBALS)
}

fuzz_target!(|bytes: &[u8]| {
    let [version, from, to, memory @ ..] = bytes else {
        return;
    };
    // All roots lie somewhere in the bytes.
    ROOTS.set((u64::from(*from), u64::from(*to)));
    let memory = Everywhere(memory);
    let limits = Limits {
        bytes: 4 << 20,
        reads: 20_000,
    };
    PROGRAMS.with(|programs| {
        let program = &programs[usize::from(*version) % programs.len()];
        within_more(bytes.len(), 64, 64 << 20, || {
            specs()
                .iter()
                .for_each(|spec| walk(spec, program, &memory, limits))
        });
    });
});

fn walk(spec: &ObjectSpec, program: &Program<'_>, memory: &Everywhere<'_>, limits: Limits) {
    let Ok(compiled) = compile(spec, program) else {
        return;
    };
    let limited = LimitedMemory::new(memory, limits);
    let reading = compiled.read(&limited);
    let spent = limited.spent();
    assert!(
        spent.bytes <= limits.bytes && spent.reads <= limits.reads,
        "{spent:?}"
    );
    let found = agree(&reading, compiled.read(&LimitedMemory::new(memory, limits)));
    assert_eq!((found.objects.len(), found.counts.torn), (reading.len(), 0));
    assert!(
        found
            .objects
            .iter()
            .all(|object| object.values.len() == compiled.names().len())
    );
    for object in found.objects.iter().take(10) {
        let _ = object
            .values
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>();
    }
}
