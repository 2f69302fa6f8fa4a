//! What must be so in the sources, and no compiler checks.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

#[path = "common/sources.rs"]
mod sources;

use std::fs;
use std::path::Path;

use sources::sources;

/// What opens a file.
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

/// The files that open some, and what. None of that is reached through a process but in `foreign`.
const OPENERS: [(&str, &str); 24] = [
    ("bpf-session/src/features/kernel_btf.rs", "the kernel's BTF"),
    ("bpf-session/src/features/place.rs", "/proc/self"),
    ("dptrace/src/application.rs", "/proc/PID/maps"),
    ("dptrace/src/demo.rs", "the trace of the target that it started itself"),
    ("dptrace/src/input.rs", "traces of applications in /dev/shm, as regular files"),
    ("dptrace/src/run/events.rs", "what a script names: cat()"),
    ("dptrace/src/run/facts/kernel.rs", "the kernel's BTF, tracefs, /proc/sys"),
    ("dptrace/src/run/facts/mod.rs", "/sys/devices"),
    ("dptrace/src/run/lookups.rs", "/etc/passwd of our own root"),
    ("dptrace/src/user_file.rs", "what the user names: traces, recordings, specs, scripts"),
    ("host/src/capabilities.rs", "/proc/self"),
    ("host/src/cgroups.rs", "/proc/self, /proc/PID/cgroup, cgroupfs"),
    ("host/src/foreign/mod.rs", "what is reached through a process, and ELF files that the user names"),
    ("host/src/foreign/walk.rs", "the same on kernels without openat2"),
    ("host/src/kernel_symbols.rs", "/proc/kallsyms"),
    ("host/src/perf_source.rs", "/sys/bus/event_source"),
    ("host/src/proc.rs", "/proc/PID: what the kernel says of it"),
    ("host/src/process.rs", "/proc/PID/maps"),
    ("host/src/system.rs", "/proc/sys, /sys/kernel, /proc/self"),
    ("host/src/tracefs.rs", "tracefs"),
    ("host/src/vdso.rs", "/proc/self"),
    ("kernel-delay/src/live/facts.rs", "the kernel's BTF"),
    ("kernel-delay/src/live/proc_thread.rs", "/proc/PID, /sys/kernel/irq"),
    ("sys/src/bpf/map.rs", "/sys/devices"),
];

/// Files that are reached through a process belong to whoever runs it: nothing but `host::foreign` opens such a path. Who adds
/// a file to the table has thought of that.
#[test]
fn files_are_opened_where_it_is_known_that_they_are() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut openers = Vec::new();
    let is_built_in = |path: &std::path::PathBuf| path.strip_prefix(crates).unwrap().iter().nth(1).unwrap() == "src";
    for path in sources(crates).into_iter().filter(is_built_in) {
        let text = fs::read_to_string(&path).unwrap();
        // What is only tested may open what it likes.
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let opens = code.filter(|line| OPENING.iter().any(|call| line.contains(call))).count() > 0;
        let name = path.strip_prefix(crates).unwrap().to_str().unwrap().to_owned();
        // Tools of this project's own, which look at no process of others.
        let is_ours =
            ["xtask/", "testkit/", "spdk-trace-writer/", "demo-target/"].iter().any(|start| name.starts_with(start));
        if opens && !is_ours && !name.ends_with("tests.rs") {
            openers.push(name);
        }
    }
    let unknown: Vec<_> = openers.iter().filter(|name| !OPENERS.iter().any(|(known, _)| known == name)).collect();
    let gone: Vec<_> = OPENERS.iter().filter(|(known, _)| !openers.iter().any(|name| name == known)).collect();
    assert!(unknown.is_empty(), "these open files, and are not in the table of this test: {unknown:#?}");
    assert!(gone.is_empty(), "these open no files any more: {gone:#?}");
}
