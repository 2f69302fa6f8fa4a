//! Facts about this machine, for tests.

use std::sync::OnceLock;

use bpf_session::Features;
use bt_compiler::KernelFacts;
use compiler_testkit::{FakeTarget, Names};
use uapi::Arch;

/// Returns true if this kernel lets user probes' programs wait for memory.
pub(crate) fn can_wait() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| Features::detect().is_ok_and(Features::sleepable_uprobes))
}

/// Returns this machine's kernel as a target that knows all names and nothing else to probe.
pub(crate) fn live() -> FakeTarget {
    static BTF: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    static FEATURES: OnceLock<Features> = OnceLock::new();
    let features = FEATURES.get_or_init(|| Features::detect().unwrap_or(Features::none()));
    let cpus = sys::cpus::possible().unwrap() as u32;
    FakeTarget {
        kernel: KernelFacts {
            exchange: features.exchange,
            large_keys: features.large_keys,
            allocation: features.allocation,
            sleepable: can_wait(),
        },
        btf: BTF
            .get_or_init(|| std::fs::read("/sys/kernel/btf/vmlinux").ok())
            .as_deref(),
        raw_tracepoints: Names::Any,
        kernel_functions: Names::Any,
        cgroup: Some(1),
        cpus: (cpus, cpus),
        ..FakeTarget::new(Arch::HOST)
    }
}
