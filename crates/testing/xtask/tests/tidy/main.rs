//! Rules for the sources that no compiler checks.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod english;
mod house;
mod rooms;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use testkit::sources;

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
    ("host/src/proc.rs", "/proc/PID: what the kernel says of it"),
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
        "dptrace/src/manual/facts.rs",
        "man pages name them; nothing is opened",
    ),
    (
        "sys/src/cpus.rs",
        "the calls of sys would be unsound with a wrong number of CPUs",
    ),
];

/// Folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .canonicalize()
        .unwrap()
}

/// Returns the folders of all crates.
fn crates() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        let inside = fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path());
        // A removed crate may leave a folder without a manifest.
        found.extend(inside.filter(|path| path.join("Cargo.toml").exists()));
    }
    found.sort();
    found
}

/// Returns all sources of all crates.
fn all_sources() -> Vec<PathBuf> {
    sources(&root().join("crates"))
}

/// Returns the name of a source: its crate and its path within it.
fn name_of(path: &Path) -> String {
    let mut inside = path
        .strip_prefix(root().join("crates"))
        .unwrap()
        .components();
    inside.next();
    inside.as_path().to_str().unwrap().to_owned()
}

/// Returns the files of the program's own crates, by name, with their code: without comments and
/// code that is only for tests.
fn product() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for path in all_sources() {
        let name = name_of(&path);
        if name.split('/').nth(1) != Some("src") {
            continue;
        }
        // Tools of this project, which look at no foreign process.
        let is_tool = ["xtask/", "testkit/", "spdk-trace-writer/", "demo-target/"]
            .iter()
            .any(|start| name.starts_with(start));
        if is_tool || name.ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        // Code that is only for tests may open any file.
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let code: Vec<_> = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect();
        files.push((name, code.join("\n")));
    }
    files
}

/// Compares the files that do something with the table of the permitted ones.
fn check(found: &[String], table: &[(&str, &str)], what: &str) {
    let unknown: Vec<_> = found
        .iter()
        .filter(|name| !table.iter().any(|(known, _)| known == name))
        .collect();
    let gone: Vec<_> = table
        .iter()
        .filter(|(known, _)| !found.iter().any(|name| name == known))
        .collect();
    assert!(
        unknown.is_empty(),
        "these {what}, and are not in the table of this test: {unknown:#?}"
    );
    assert!(
        gone.is_empty(),
        "these are in the table of this test, and no longer {what}: {gone:#?}"
    );
}

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

/// `Arch::HOST` alone knows the machine that this is compiled for. Code that exists on one machine
/// only, such as an instruction in assembler text, has an attribute of its own.
#[test]
fn the_machine_is_asked_for_in_one_place() {
    let found = product()
        .into_iter()
        .filter(|(_, code)| code.contains("cfg!(target_arch"));
    let found: Vec<_> = found.map(|(name, _)| name).collect();
    check(
        &found,
        &[("uapi/src/arch.rs", "Arch::HOST")],
        "ask which machine they are compiled for",
    );
}

/// A module with files of its own is `name/mod.rs`, so that all of it is in its folder. Folders of
/// data have no Rust files.
#[test]
fn modules_with_folders_are_in_them() {
    let all = all_sources();
    let has_folder = |path: &&PathBuf| {
        all.iter()
            .any(|other| other.parent() == Some(&path.with_extension("")))
    };
    let found: Vec<_> = all.iter().filter(has_folder).collect();
    assert!(
        found.is_empty(),
        "these are beside a folder of their name, and should be mod.rs in it: {found:#?}"
    );
}

/// Limit on the lines of a source file. A longer file must be split where its subject changes.
const LONGEST_FILE: usize = 400;
/// Number of files that are still longer, since the format with 100 columns. No file may join them.
const STILL_LONGER: usize = 48;

#[test]
fn files_are_short() {
    let lines = |path: PathBuf| (fs::read_to_string(&path).unwrap().lines().count(), path);
    let found: Vec<_> = all_sources()
        .into_iter()
        .map(lines)
        .filter(|(count, _)| *count > LONGEST_FILE)
        .collect();
    assert!(
        found.len() <= STILL_LONGER,
        "more than {STILL_LONGER} files have more than {LONGEST_FILE} lines: {found:#?}"
    );
}

/// Files that name a real-time class, and the reason. A real-time thread on a small machine stops
/// the processes that keep the machine alive.
const REAL_TIME: &[(&str, &str)] = &[
    ("bt-compiler/src/headers.rs", "constants for scripts"),
    ("cpus/src/audit/model.rs", "reports"),
    (
        "cpus/tests/it/common/mod.rs",
        "in guests only, which it asserts",
    ),
    ("cpus/tests/it/injected.rs", "reasons for the deep check"),
    ("cpus/src/settings/pollers.rs", "findings"),
    ("cpus/src/settings/scheduling.rs", "findings"),
    ("cpus/src/settings/tests.rs", "findings"),
    ("demo-target/src/inject/schedule.rs", "bursts with bounds"),
    ("cpus/src/audit/names.rs", "reports"),
    ("host/src/machine.rs", "names of policies"),
    ("host/src/settings/tests.rs", "names of policies"),
    ("sys/src/sched.rs", "the call"),
    (
        "xtask/src/bin/vm-init/starve.rs",
        "in guests only, which it asserts",
    ),
    ("xtask/src/vm/build.rs", "names a check"),
    ("xtask/src/vm/checks/cpus.rs", "names a check"),
    ("xtask/src/vm/mod.rs", "names a check"),
];

#[test]
fn real_time_classes_are_used_where_they_are_bounded() {
    let uses = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let code: Vec<_> = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect();
        let words = [
            "SCHED_FIFO",
            "SCHED_RR",
            "SCHED_DEADLINE",
            "run_first",
            "sched_setscheduler",
            "chrt ",
        ];
        words
            .iter()
            .any(|word| code.iter().any(|line| line.contains(word)))
    };
    let found = all_sources().into_iter().filter(uses);
    let found = found.map(|path| name_of(&path));
    let found: Vec<_> = found
        .filter(|name| name != "xtask/tests/tidy/main.rs")
        .collect();
    check(&found, REAL_TIME, "name a real-time class");
}

/// Returns the code of a source that only tests and benches have.
fn test_code(name: &str, text: &str) -> String {
    let is_built_in = name.split('/').nth(1) == Some("src");
    if !is_built_in || name.ends_with("tests.rs") {
        return text.to_owned();
    }
    text.split_once("#[cfg(test)]\nmod tests {")
        .map(|(_, tests)| tests.to_owned())
        .unwrap_or_default()
}

/// `testkit::command` makes a child that ends with its test in any case.
#[test]
fn tests_start_processes_in_one_way() {
    let mut found = Vec::new();
    for path in all_sources() {
        let name = name_of(&path);
        // `sys` and `testkit` hold the one way; `xtask` runs tests.
        let is_exempt = ["sys/", "testkit/", "xtask/", "dptrace/build.rs"]
            .iter()
            .any(|start| name.starts_with(start));
        let code = test_code(&name, &fs::read_to_string(&path).unwrap());
        // A program that becomes another one starts none.
        let starts = |line: &str| {
            line.contains("Command::new(") && !line.contains("clap::") && !line.contains(".exec()")
        };
        if !is_exempt && code.lines().any(starts) {
            found.push(name);
        }
    }
    assert!(
        found.is_empty(),
        "these start processes with Command::new in place of testkit::command: {found:#?}"
    );
}

/// Programs of integration tests beside `tests/it`, and the reason.
const MORE_PROGRAMS: &[(&str, &str)] = &[
    ("dptrace/tests/kernel_delay", "its own threads are measured"),
    (
        "dptrace/tests/processes.rs",
        "its own processes are found by name",
    ),
    (
        "dptrace/tests/run_bundled.rs",
        "it has the functions that scripts know",
    ),
    (
        "dptrace/tests/run_bundled_loads",
        "it has the functions that scripts know",
    ),
];

/// Each program of tests is linked with all tested code, which takes seconds and megabytes.
#[test]
fn a_crate_has_one_program_of_integration_tests() {
    let mut more = Vec::new();
    for folder in crates().iter().map(|folder| folder.join("tests")) {
        let paths = fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path());
        let is_program = |path: &PathBuf| {
            path.extension().is_some_and(|it| it == "rs") || path.join("main.rs").exists()
        };
        let mut programs: Vec<_> = paths.filter(is_program).collect();
        programs.sort();
        let is_one = programs.len() == 1;
        programs.retain(|path| !is_one && !path.ends_with("it"));
        more.extend(programs.iter().map(|path| name_of(path)));
    }
    check(
        &more,
        MORE_PROGRAMS,
        "are programs of tests beside another one",
    );
}
