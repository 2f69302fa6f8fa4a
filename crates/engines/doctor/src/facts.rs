//! Checks that read `/proc` and `/sys`: settings, rights, namespaces.

use bpf_session::Answer;
use bpf_session::features::trials;
use host::{Capabilities, Capability, system};

/// Checks a capability, such as `CAP_SYS_ADMIN`.
pub(crate) fn has(capability: Capability) -> Answer {
    let own = Capabilities::own();
    match (own.has(capability), own.has_itself(capability)) {
        (true, true) => Answer::YES,
        (true, false) => Answer::Yes("by CAP_SYS_ADMIN".into()),
        (false, _) => Answer::no("this process does not have it"),
    }
}

pub(crate) fn release() -> Answer {
    system::kernel_release().map_or_else(
        || Answer::Unknown("/proc is not mounted".into()),
        Answer::Yes,
    )
}

pub(crate) fn lockdown() -> Answer {
    match system::lockdown().as_deref() {
        Some("none") => Answer::YES,
        Some(mode) => Answer::no(format!("the kernel is locked down, mode {mode}")),
        None => Answer::Unknown("/sys/kernel/security/lockdown can't be read".into()),
    }
}

pub(crate) fn unprivileged_bpf() -> Answer {
    match system::setting("unprivileged_bpf_disabled") {
        Some(0) => Answer::Yes("= 0".into()),
        Some(set) => Answer::no(format!("kernel.unprivileged_bpf_disabled is {set}")),
        None => Answer::Unknown("there is no kernel.unprivileged_bpf_disabled".into()),
    }
}

/// Checks `perf_event_paranoid`. From 2 on users may not count the kernel, from 1 on not the
/// machine as a whole, from 0 on no raw tracepoints (Documentation/admin-guide/sysctl/kernel.rst).
pub(crate) fn perf_paranoid() -> Answer {
    match system::setting("perf_event_paranoid") {
        Some(set) if set < 0 => Answer::Yes(format!("= {set}")),
        Some(set) if Capabilities::own().has(Capability::Perfmon) => {
            Answer::Yes(format!("= {set}, irrelevant with CAP_PERFMON"))
        }
        Some(set) => Answer::no(format!("kernel.perf_event_paranoid is {set}")),
        None => Answer::no("the kernel has no perf events"),
    }
}

pub(crate) fn kernel_addresses() -> Answer {
    match system::sees_kernel_addresses() {
        Some(true) => Answer::YES,
        Some(false) => match system::setting("kptr_restrict") {
            Some(set) => Answer::no(format!(
                "they are printed as 0; kernel.kptr_restrict is {set}"
            )),
            None => Answer::no("they are printed as 0"),
        },
        None => Answer::no("there is no /proc/kallsyms"),
    }
}

/// Checks `ptrace_scope`. 1 lets a process be read by its parents only, 2 by `CAP_SYS_PTRACE`, 3 by
/// nobody (admin-guide/LSM/Yama.rst).
pub(crate) fn ptrace_scope() -> Answer {
    match system::setting("yama/ptrace_scope") {
        None => Answer::Yes("no Yama".into()),
        Some(0) => Answer::Yes("= 0".into()),
        Some(set @ 1..=2) if Capabilities::own().has(Capability::SysPtrace) => {
            Answer::Yes(format!("= {set}, irrelevant with CAP_SYS_PTRACE"))
        }
        Some(set) => Answer::no(format!("kernel.yama.ptrace_scope is {set}")),
    }
}

/// Checks the limit on locked memory. The limit itself means little: since Linux 5.11 BPF's memory
/// does not count, and before that dptrace raises the limit.
pub(crate) fn locked_memory() -> Answer {
    // Read before the trial, which may raise it.
    let limit = system::lockable_memory().map_or("unlimited".to_owned(), |bytes| {
        format!("{} KiB", bytes >> 10)
    });
    match trials::ring_buffer() {
        Answer::Yes(_) => Answer::Yes(format!("{limit} at first")),
        Answer::No { why, denied: true } if Capabilities::own().has(Capability::Bpf) => {
            Answer::no(format!("the limit is {limit}: {why}"))
        }
        _ => Answer::Unknown(format!(
            "the limit is {limit}; there is no ring buffer to try it with"
        )),
    }
}

pub(crate) fn first_pid_namespace() -> Answer {
    match system::in_first_pid_namespace() {
        Some(true) => Answer::YES,
        Some(false) => Answer::no("this is a container with its own PIDs"),
        None => Answer::Unknown("/proc/self/ns/pid can't be read".into()),
    }
}

pub(crate) fn first_user_namespace() -> Answer {
    match system::in_first_user_namespace() {
        Some(true) => Answer::YES,
        Some(false) => Answer::no(
            "its root is not the root of the machine, and its capabilities do not allow BPF",
        ),
        None => Answer::Unknown("/proc/self/ns/user can't be read".into()),
    }
}
