//! Files that are opened or named, and the crates that may do so.

use super::{check, product};

/// Calls that open a file.
const OPENING: [&str; 12] = [
    "fs::open(",
    "File::open",
    "File::options",
    "OpenOptions",
    "fs::read(",
    "fs::read_to_string",
    "proc::text(",
    "openat(",
    "openat2(",
    "Mmap",
    "memmap2",
    "Loader::new",
];

/// Files that open some, and which. Only `foreign` opens files that are reached through a process.
const OPENERS: &[(&str, &str)] = &[
    ("bt-engine/src/lookups.rs", "/etc/passwd of our own root"),
    (
        "capture-recorder/src/folder.rs",
        "the files of a capture, which it makes itself",
    ),
    (
        "console/src/own_process.rs",
        "what a process that it started itself writes into a folder of its own",
    ),
    (
        "dptrace/src/demo/late.rs",
        "what the processes that it started itself wrote into a folder of its own",
    ),
    (
        "dptrace/src/demo/mod.rs",
        "the trace of the target that it started itself",
    ),
    ("dptrace/src/run/events.rs", "what a script names: cat()"),
    (
        "serve/src/parquet/shelf.rs",
        "the folder for tables that the user named, to lock it",
    ),
    (
        "watch/src/shelf.rs",
        "the folder for captures that it just created, to give it to whoever ran sudo",
    ),
    ("host/src/busy.rs", "/proc/PID, /proc/stat, /proc/irq"),
    ("host/src/capabilities.rs", "/proc/self"),
    (
        "host/src/cgroups.rs",
        "/proc/self, /proc/PID/cgroup, cgroupfs",
    ),
    (
        "host/src/control.rs",
        "/proc/PID/net/unix (sockets are opened in `foreign`)",
    ),
    ("host/src/cpus.rs", "/sys/devices"),
    (
        "host/src/foreign/mod.rs",
        "what is reached through a process, and ELF files that the user names",
    ),
    (
        "host/src/foreign/walk.rs",
        "the same on kernels without openat2",
    ),
    ("host/src/interrupts.rs", "/sys/kernel/irq"),
    ("host/src/kernel_btf.rs", "the kernel's BTF"),
    ("host/src/kernel_symbols.rs", "/proc/kallsyms"),
    (
        "host/src/machine.rs",
        "/proc/sys, /proc/cmdline, /sys/devices",
    ),
    (
        "host/src/memory.rs",
        "/proc/PID/mem, if process_vm_readv is refused",
    ),
    (
        "host/src/perf_map.rs",
        "/proc/PID/status: whose the process is (its file of names is opened in `foreign`)",
    ),
    ("host/src/perf_source.rs", "/sys/bus/event_source"),
    (
        "host/src/proc/mod.rs",
        "/proc/PID: what the kernel says of it",
    ),
    (
        "host/src/proc/names.rs",
        "/proc/PID: command lines and names",
    ),
    ("host/src/proc/stat.rs", "/proc/PID: states and counters"),
    (
        "host/src/settings/process.rs",
        "/proc/PID/numa_maps: what the kernel says of it",
    ),
    (
        "host/src/settings/root.rs",
        "/proc and /sys, or a tree that a test has made",
    ),
    ("host/src/system.rs", "/proc/sys, /sys/kernel, /proc/self"),
    ("host/src/tracefs.rs", "tracefs"),
    (
        "host/src/user_file.rs",
        "what the user names: traces, recordings, specs, scripts",
    ),
    ("host/src/vdso.rs", "/proc/self"),
    (
        "trace-source/src/file.rs",
        "traces of applications in /dev/shm, as regular files",
    ),
    (
        "whole-file/src/lib.rs",
        "what the user names for output: new files in their folders",
    ),
    (
        "sys/src/cpus.rs",
        "/sys/devices: how many values a per-CPU map has",
    ),
];

/// Files outside of `host` that name a path of `/proc` or `/sys`, and the reason.
const NAMERS: &[(&str, &str)] = &[
    (
        "cpus/src/settings/boot.rs",
        "findings name settings; nothing is opened",
    ),
    (
        "cpus/src/settings/devices.rs",
        "findings name settings; nothing is opened",
    ),
    (
        "cpus/src/settings/hardware.rs",
        "findings name settings; nothing is opened",
    ),
    (
        "cpus/src/settings/memory.rs",
        "findings name settings; nothing is opened",
    ),
    (
        "cpus/src/settings/processes.rs",
        "findings name settings; nothing is opened",
    ),
    (
        "cpus/src/settings/scheduling.rs",
        "findings name settings; nothing is opened",
    ),
    (
        "dptrace/src/manual.rs",
        "man pages name them; nothing is opened",
    ),
    (
        "sys/src/cpus.rs",
        "the calls of sys would be unsound with a wrong number of CPUs",
    ),
];

/// Files that are reached through a process belong to whoever runs it: only `host::foreign` opens
/// such a path. A new entry in the table needs that consideration.
#[test]
fn files_are_opened_where_it_is_known_that_they_are() {
    let opens = |code: &str| OPENING.iter().any(|call| code.contains(call));
    let found: Vec<_> = product()
        .into_iter()
        .filter(|(_, code)| opens(code))
        .map(|(name, _)| name)
        .collect();
    check(&found, OPENERS, "open files");
}

/// Returns whether the code has a text that is a path of `/proc` or `/sys`. Messages also name such
/// paths, in sentences.
fn names_kernel_files(code: &str) -> bool {
    code.split('"').any(|text| {
        let path = text
            .strip_prefix("/proc")
            .or_else(|| text.strip_prefix("/sys"));
        path.is_some_and(|rest| {
            (rest.is_empty() || rest.starts_with('/')) && !rest.contains(char::is_whitespace)
        })
    })
}

/// One crate reads the kernel's files about the machine, so that each fact is read in one way, with
/// the rights that it needs.
#[test]
fn only_host_reads_the_files_of_the_kernel() {
    assert!(
        names_kernel_files(r#"read("/proc/self/maps")"#) && names_kernel_files(r#"new("/sys")"#)
    );
    assert!(
        !names_kernel_files(r#"no("there is no /proc/kallsyms")"#)
            && !names_kernel_files(r#"("/proc is gone")"#)
    );
    let found = product()
        .into_iter()
        .filter(|(name, code)| !name.starts_with("host/") && names_kernel_files(code));
    let found: Vec<_> = found.map(|(name, _)| name).collect();
    check(&found, NAMERS, "name files of /proc or /sys");
}
