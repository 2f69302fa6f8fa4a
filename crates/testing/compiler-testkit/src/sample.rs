//! A made-up kernel and process: probes of every kind, with the types of `facts/facts.c`.

use bt_compiler::KernelFacts;
use uapi::Arch;

use crate::target::{FakeTarget, Names};

/// Path of the process's file.
pub const FILE: &str = "/bin/a";
const FUNCTIONS: [&str; 4] = ["main", "f", "vfs_read", "ns::name(int)"];
const KERNEL_FUNCTIONS: [&str; 4] = ["vfs_read", "vfs_open", "no_args", "f"];

/// Arguments of USDT probes on x86-64, one text per location.
const X86_PROBES: [(&str, &[&str]); 4] = [
    (
        "probe",
        &["8@%rdi 4@-4(%rbp) -2@$-5", "8@%rsi 4@8(%rbp) -2@%ax"],
    ),
    ("two", &["-4@%edi 8@-1200(%rsp)"]),
    ("none", &[""]),
    ("odd", &["1@%dil -1@global(%rip) 8@8(%rax,%rbx,4) 4f@%xmm0"]),
];
/// Arguments of the same probes on aarch64.
const ARM_PROBES: [(&str, &[&str]); 4] = [
    (
        "probe",
        &["8@x0 4@[x29, -4] -2@-5", "8@x1 4@[x29, 8] -2@w2"],
    ),
    ("two", &["-4@w0 8@[sp, 1200]"]),
    ("none", &[""]),
    ("odd", &["1@w3 8@[x0, x1] 4f@s0"]),
];

const FORMATS: [(&str, &str, &str); 3] = [
    (
        "raw_syscalls",
        "sys_enter",
        "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\
         \tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n",
    ),
    (
        "sched",
        "sched_switch",
        "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
         \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
         \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
         \tfield:struct task_struct * next;\toffset:40;\tsize:8;\tsigned:0;\n",
    ),
    (
        "net",
        "odd",
        "\tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;\n\
         \tfield:__rel_loc u8[] bytes;\toffset:12;\tsize:4;\tsigned:0;\n\
         \tfield:bool flag;\toffset:16;\tsize:1;\tsigned:0;\n\
         \tfield:enum state state;\toffset:20;\tsize:4;\tsigned:1;\n",
    ),
];

/// Types of the kernel, as BTF.
pub const BTF: &[u8] = include_bytes!("../facts/facts.btf");
/// Types of the kernel, as DWARF.
pub const DEBUG: &[u8] = include_bytes!("../facts/facts.so");

/// Returns the target with an x86-64 machine.
pub fn target() -> FakeTarget {
    on(Arch::X86_64)
}

/// Returns the target with a machine of this architecture.
pub fn on(arch: Arch) -> FakeTarget {
    let mut target = FakeTarget {
        btf: Some(BTF),
        debug: vec![(FILE.to_owned(), DEBUG)],
        raw_tracepoints: Names::these(&["sched_switch", "sys_enter"]),
        kernel_functions: Names::these(&KERNEL_FUNCTIONS),
        cgroup: Some(77),
        params: ["12", "text", "main"].map(str::to_owned).into(),
        cpus: (8, 4),
        start_time: 1_000_000,
        allows_unsafe: true,
        ..FakeTarget::new(arch)
    };
    for (name, number) in FUNCTIONS.into_iter().zip(1..) {
        target = target.with_function(FILE, name, number * 0x1000);
    }
    for (name, places) in if arch == Arch::X86_64 {
        X86_PROBES
    } else {
        ARM_PROBES
    } {
        target = target.with_usdt(FILE, "provider", name, places);
    }
    for (category, name, fields) in FORMATS {
        target = target.with_tracepoint(category, name, fields);
    }
    target
}

/// Returns one of a few targets; set bits remove or change features.
pub fn chosen(bits: usize) -> FakeTarget {
    let has = |bit: u32| bits & (1 << bit) == 0;
    let mut target = on(if has(1) { Arch::X86_64 } else { Arch::Aarch64 });
    if !has(0) {
        target.kernel = KernelFacts {
            exchange: false,
            large_keys: false,
            sleepable: false,
            allocation: false,
        };
    }
    if !has(2) {
        target.btf = None;
    }
    if !has(3) {
        (target.pid, target.child) = (Some(4711), Some(4711));
        target.pid_namespace = Some((4, 4_026_531_836));
        (target.reports_reads, target.allows_unsafe) = (true, false);
    }
    target
}
