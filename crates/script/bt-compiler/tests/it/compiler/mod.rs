//! Tests of the compiler without a kernel and without root: refused scripts, emitted code, and
//! programs run on the interpreter.

mod aarch64;
mod accepted;
mod diagnostics;
mod expect;
mod listings;
mod machines;
// The same files run on the kernel, in bpf-session's tests.
#[path = "../../../../../bpf/bpf-session/tests/it/scripts/language.rs"]
mod language;
#[path = "../../../../../bpf/bpf-session/tests/it/scripts/memory.rs"]
mod memory;
mod random;
mod truth;
mod usdt;

use compiler_testkit::{FakeTarget, Session, sample};
use facts::live;
use uapi::Arch;

/// Machines that scripts are compiled for.
const MACHINES: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];

/// Replacement for the kernel, for the files that also run there.
mod facts {
    use compiler_testkit::{FakeTarget, sample};

    pub(crate) fn live() -> FakeTarget {
        FakeTarget {
            params: Vec::new(),
            allows_unsafe: false,
            ..sample::target()
        }
    }
}

/// Events that a script sent.
pub(crate) struct Outcome {
    pub(crate) events: Vec<String>,
}

/// Allows every test to run.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the kernel's has nothing where a test may not run"
)]
fn allowed() -> Option<()> {
    Some(())
}

/// Runs a script's `begin` and `end` probes.
#[track_caller]
#[expect(
    clippy::unnecessary_wraps,
    reason = "the kernel's has nothing where the kernel is too old"
)]
fn run_with(source: &str, target: &FakeTarget) -> Option<Outcome> {
    Some(Outcome {
        events: Session::new(source, target).begin_and_end(),
    })
}

/// Returns the output of a script's `begin` and `end` probes.
#[track_caller]
fn printed(source: &str, arch: Arch) -> Vec<String> {
    Session::new(source, &FakeTarget { arch, ..live() }).begin_and_end()
}

/// Checks a script's output on both machines, one event a line.
#[track_caller]
fn prints(source: &str, expected: &[&str]) {
    for arch in MACHINES {
        assert_eq!(printed(source, arch), expected, "{arch}: {source}");
    }
}

/// Checks the contents of a script's map at the end.
#[track_caller]
fn holds(source: &str, name: &str, expected: &[&str]) {
    for arch in MACHINES {
        let mut session = Session::new(source, &sample::on(arch));
        session.begin_and_end();
        assert_eq!(session.map(name), expected, "{arch}: {source}");
    }
}
