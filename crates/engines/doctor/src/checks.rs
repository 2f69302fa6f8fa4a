//! The list of checks: to add one, add a row.

use bpf_session::Answer;
use bpf_session::features::trials;
use host::Capability;
use uapi::Arch;

use super::facts;

/// Requirements of fentry and fexit. On aarch64, kernel functions can call programs since "arm64:
/// ftrace: Add direct call support".
const FENTRY: &str = if matches!(Arch::HOST, Arch::Aarch64) {
    "Linux 6.4 with CONFIG_DEBUG_INFO_BTF=y and CONFIG_FUNCTION_TRACER=y; lockdown off"
} else {
    "Linux 5.5 with CONFIG_DEBUG_INFO_BTF=y and CONFIG_FUNCTION_TRACER=y; lockdown off"
};

/// Placeholder for the advice on missing rights in [`Check::how`].
pub const GRANT: &str = "rights";

/// Feature that this machine may have.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Heading in the report.
    pub group: &'static str,
    /// Name of the feature.
    pub name: &'static str,
    /// Functions that need it.
    pub needed_for: &'static str,
    /// Means to get it: a kernel's version and configuration, or a command.
    pub how: &'static str,
    /// Trial of the feature.
    pub ask: fn() -> Answer,
}

/// Returns all checks, in the order of the report.
pub fn all() -> impl Iterator<Item = &'static Check> {
    CHECKS.iter()
}

/// Creates a row: group, name, dependent functions, means to get it, and the trial.
const fn check(
    group: &'static str,
    name: &'static str,
    needed_for: &'static str,
    how: &'static str,
    ask: fn() -> Answer,
) -> Check {
    Check {
        group,
        name,
        needed_for,
        how,
        ask,
    }
}

const BPF: &str = "BPF";
const USER: &str = "Processes";
const KERNEL: &str = "Kernel";
const RIGHTS: &str = "Rights";
const SETTINGS: &str = "Settings";

/// A release is the first one in which Linux had the feature. Each feature is tried, so backports
/// to older kernels are found.
#[rustfmt::skip]
const CHECKS: &[Check] = &[
    // First, because the trials raise the limit if it is too low for them.
    check(BPF, "RLIMIT_MEMLOCK", "the ring buffer before Linux 5.11",
        "ulimit -l unlimited, or CAP_SYS_RESOURCE", facts::locked_memory),
    check(BPF, "bpf() programs", "record, run: everything",
        "Linux 4.1 with CONFIG_BPF_SYSCALL=y and CONFIG_BPF_EVENTS=y", trials::bpf_call),
    check(BPF, "ring buffer", "record, run: everything that is printed per event",
        "Linux 5.8", trials::ring_buffer),
    check(BPF, "JIT compiler", "cheap probes: without it, programs are interpreted",
        "CONFIG_BPF_JIT=y; sysctl net.core.bpf_jit_enable=1", trials::jit),
    check(BPF, "map keys over 512 bytes", "run: strings of the default 1,024 bytes as keys; without it, of 240",
        "Linux 5.11", trials::large_keys),
    check(BPF, "atomic exchange", "kernel-delay: one mark for each thread; without it, three",
        "Linux 5.12", trials::exchange),
    check(BPF, "attach cookies", "one program for many probes; without it, one for each probe",
        "Linux 5.15", trials::attach_cookies),
    check(BPF, "bpf_loop", "run: loops whose length is not known in advance",
        "Linux 5.17", trials::loops),
    check(BPF, "reading kernel memory", "run: fields of kernel structures, kernel strings",
        "lockdown off, or in integrity mode", trials::kernel_memory),
    check(USER, "uprobes", "record; run: usdt, uprobe, uretprobe",
        "Linux 4.17 with CONFIG_UPROBES=y", trials::uprobes),
    check(USER, "USDT semaphores", "probes that work only while someone listens (PostgreSQL's)",
        "Linux 4.20", trials::semaphores),
    check(USER, "uprobe_multi", "hundreds of places attached in milliseconds; without it, one by one",
        "Linux 6.6", trials::uprobe_multi),
    check(USER, "uprobe_multi PID filter", "uprobe_multi with -p: for all threads of the process",
        "Linux 6.10, 6.9.4 or 6.6.33", trials::uprobe_multi_filter),
    check(USER, "sleepable uprobes", "strings that the process has not read yet",
        "Linux 6.0", trials::sleepable_uprobes),
    check(KERNEL, "tracepoints", "run: tracepoint",
        "tracefs (below), and a kernel with CONFIG_TRACEPOINTS=y and CONFIG_PERF_EVENTS=y", trials::tracepoints),
    check(KERNEL, "raw tracepoints", "run: rawtracepoint",
        "Linux 4.17", trials::raw_tracepoints),
    check(KERNEL, "typed tracepoints (tp_btf)", "run: rawtracepoint with the arguments' types",
        "Linux 5.5 with CONFIG_DEBUG_INFO_BTF=y", trials::btf_tracepoints),
    check(KERNEL, "kprobes", "run: kprobe, kretprobe",
        "CONFIG_KPROBES=y and CONFIG_KPROBE_EVENTS=y", trials::kprobes),
    check(KERNEL, "kprobe_multi", "run: kprobe with a pattern, attached at once",
        "Linux 5.18 with CONFIG_FPROBE=y", trials::kprobe_multi),
    check(KERNEL, "fentry", "run: fentry",
        FENTRY, trials::fentry),
    check(KERNEL, "fexit", "run: fexit",
        FENTRY, trials::fexit),
    check(KERNEL, "perf links", "cookies for perf events; without it, the event holds the program",
        "Linux 5.15", trials::perf_links),
    check(KERNEL, "perf software events", "run: interval, profile, software",
        "CONFIG_PERF_EVENTS=y", trials::software_events),
    check(KERNEL, "perf hardware events", "run: hardware",
        "a processor with counters; in a virtual machine they must be enabled (QEMU: -cpu host,pmu=on)", trials::hardware_events),
    check(KERNEL, "BTF", "kernel types in scripts; typed tracepoints, fentry, fexit",
        "CONFIG_DEBUG_INFO_BTF=y", trials::kernel_types),
    check(KERNEL, "tracefs", "list --tracepoints; run: tracepoint",
        "as root: mount -t tracefs tracefs /sys/kernel/tracing", trials::tracefs),
    check(RIGHTS, "CAP_BPF", "loading programs, creating maps: record, run",
        GRANT, || facts::has(Capability::Bpf)),
    check(RIGHTS, "CAP_PERFMON", "attaching probes: record, run",
        GRANT, || facts::has(Capability::Perfmon)),
    check(RIGHTS, "CAP_SYS_PTRACE", "processes of other users: list -p, record -p",
        GRANT, || facts::has(Capability::SysPtrace)),
    check(RIGHTS, "CAP_SYS_ADMIN", "tracefs if it is not mounted; BPF before Linux 5.8",
        "run as root", || facts::has(Capability::SysAdmin)),
    check(RIGHTS, "the machine's user namespace", "BPF at all",
        "run outside of the container, or in one that shares the machine's user namespace", facts::first_user_namespace),
    check(RIGHTS, "the machine's PID namespace", "the machine's own PIDs",
        "run outside of the container, or in one with --pid=host", facts::first_pid_namespace),
    check(SETTINGS, "kernel release", "the features above", "", facts::release),
    check(SETTINGS, "lockdown off", "fentry, fexit, kprobes; in confidentiality mode, everything that reads memory",
        "boot without Secure Boot and without lockdown=; to see the state: mount -t securityfs securityfs /sys/kernel/security",
        facts::lockdown),
    check(SETTINGS, "BPF without rights", "nothing in dptrace: probes need CAP_BPF in any case",
        "leave it off", facts::unprivileged_bpf),
    check(SETTINGS, "perf_event_paranoid", "perf events of other processes and of the kernel",
        "CAP_PERFMON, or: sysctl kernel.perf_event_paranoid=-1", facts::perf_paranoid),
    check(SETTINGS, "kernel addresses", "run: names in kernel stacks",
        "CAP_SYSLOG with kernel.kptr_restrict at 1 or 0, or: sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1", facts::kernel_addresses),
    check(SETTINGS, "ptrace_scope", "nothing in dptrace, which does not use ptrace; other tools",
        "CAP_SYS_PTRACE, or: sysctl kernel.yama.ptrace_scope=0", facts::ptrace_scope),
];
