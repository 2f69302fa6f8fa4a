//! Tests of unwinding our own threads.

use super::*;

/// Our own process, as if it had opened everything after the first read.
#[test]
fn libraries_opened_later_are_kept_for_names() {
    let mut tables = UnwindTables::new(crate::ignore());
    let mut walker = StackWalker::new(std::process::id(), 0x1000, &mut tables);
    assert!(walker.take_seen().is_empty());
    let nowhere = [0x10, 0x7fff_f000, 0, 0];
    walker.code.clear();
    walker.walk(nowhere, &[0; 64], &mut tables);
    let seen = walker.take_seen();
    assert_eq!(
        seen.iter().map(Process::pid).collect::<Vec<_>>(),
        [Pid(std::process::id())]
    );
    // Nothing is new so far.
    let mut readings = 0;
    while walker.early > 0 {
        walker.walk(nowhere, &[0; 64], &mut tables);
        readings += 1;
    }
    assert!(readings < 10 && walker.seen.len() < MAX_SEEN, "{readings}");
}

/// Two frames of code without unwind tables, each with the address of the next one and the signed address of the call.
#[cfg(target_arch = "aarch64")]
#[test]
fn signed_return_addresses_are_addresses() {
    const STACK: u64 = 0x7fff_f000;
    const SIGNATURE: u64 = 0x7a << 48;
    let words = [STACK + 16, SIGNATURE | 0x40_0100, 0, SIGNATURE | 0x40_0200];
    let bytes: Vec<u8> = words
        .iter()
        .flat_map(|word: &u64| word.to_ne_bytes())
        .collect();
    let registers = [0x10, STACK, STACK, SIGNATURE | 0x40_0300];
    let mut tables = UnwindTables::new(crate::ignore());
    let stack = StackWalker::new(std::process::id(), 0x1000, &mut tables).walk(
        registers,
        &bytes,
        &mut tables,
    );
    assert_eq!(stack.addresses, [0x10, 0x40_0100, 0x40_0200]);
}
