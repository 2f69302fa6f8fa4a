//! Calls of the 32-bit interface, which are counted separately. The program of known truth makes
//! them by hand: x86-64 programs can, aarch64 programs can't.
#![cfg(target_arch = "x86_64")]

use super::target::{Sampling, Target, adds_up, call, number, thread};
use super::truth::{named, say, wait_for_go};

/// Number of 32-bit calls.
const NARROW: u64 = 500;
/// Number of other calls of the same thread.
const WIDE: u64 = 123;

/// Number of `getppid` in `arch/x86/entry/syscalls/syscall_32.tbl`.
const GETPPID_32: u32 = 64;

/// Makes a call through the 32-bit interface, which 64-bit programs may use too.
fn narrow_call(number: u32) -> u32 {
    let result: u32;
    // SAFETY: the kernel keeps all registers but the result's, and clears r8 to r11 on some
    // versions; getppid touches no memory.
    unsafe {
        std::arch::asm!(
            "int 0x80", inlateout("eax") number => result,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    result
}

/// The part: 32-bit calls between 64-bit ones.
pub(super) fn narrow() {
    wait_for_go();
    let thread = named("narrow", || {
        for _ in 0..NARROW {
            let _ = narrow_call(GETPPID_32);
        }
        for _ in 0..WIDE {
            let _ = rustix::process::getppid();
        }
    });
    thread.join().unwrap();
    say("done");
}

#[test]
fn calls_of_the_32_bit_interface_are_counted_apart() {
    let mut target = Target::start("narrow");
    let pid = target.child.id().to_string();
    let Some(sampling) = Sampling::start(&[
        "-p",
        &pid,
        "--sample-time",
        "60",
        "-s",
        "--stack-trace-size",
        "0",
    ]) else {
        return;
    };
    target.go();
    // Kernels without the 32-bit interface (CONFIG_IA32_EMULATION) end the program for it.
    if !target.says("done") {
        testkit::kernel::skip_if_permitted("32-bit calls", "this kernel has no 32-bit calls");
        return;
    }
    let (sample, notes) = sampling.end();
    adds_up(&sample);
    let thread = thread(&sample, "narrow");
    let counted = |name: &str| &call(thread, &thread["syscalls"], name)["count"];
    assert_eq!(
        (counted("32-bit calls"), counted("getppid")),
        (&NARROW.into(), &WIDE.into()),
        "{notes}"
    );
    // In the 64-bit table the number means another call: 64 is semget.
    let others = thread["syscalls"]
        .as_array()
        .unwrap()
        .iter()
        .any(|call| call["name"] == "semget");
    assert!(
        !others && call(thread, &thread["syscalls"], "32-bit calls")["number"].is_null(),
        "{thread:#}"
    );
    assert!(
        number(&call(thread, &thread["budget"]["calls"], "32-bit calls")["cpu_ns"]) > 0,
        "{thread:#}"
    );
    let events = sample["syscall_events"]["events"].as_array().unwrap();
    assert_eq!(
        events
            .iter()
            .filter(|event| event["syscall"] == "32-bit calls")
            .count() as u64,
        NARROW,
        "{notes}"
    );
}
