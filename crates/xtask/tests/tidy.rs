//! What must be so in the sources, and no compiler checks.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use testkit::sources;

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
const OPENERS: &[(&str, &str)] = &[
    ("bt-engine/src/lookups.rs", "/etc/passwd of our own root"),
    ("dptrace/src/capture/folder.rs", "the files of a capture, which it makes itself"),
    ("dptrace/src/demo/late.rs", "what the processes that it started itself wrote into a folder of its own"),
    ("dptrace/src/demo/mod.rs", "the trace of the target that it started itself"),
    ("dptrace/src/input.rs", "traces of applications in /dev/shm, as regular files"),
    ("dptrace/src/run/events.rs", "what a script names: cat()"),
    ("dptrace/src/serve/parquet/shelf.rs", "the folder for tables that the user named, to lock it"),
    ("dptrace/src/whole_file.rs", "what the user names for output: new files in their folders"),
    ("host/src/busy.rs", "/proc/PID, /proc/stat, /proc/irq"),
    ("host/src/capabilities.rs", "/proc/self"),
    ("host/src/cgroups.rs", "/proc/self, /proc/PID/cgroup, cgroupfs"),
    ("host/src/control.rs", "/proc/PID/net/unix (sockets are opened in `foreign`)"),
    ("host/src/cpus.rs", "/sys/devices"),
    ("host/src/foreign/mod.rs", "what is reached through a process, and ELF files that the user names"),
    ("host/src/foreign/walk.rs", "the same on kernels without openat2"),
    ("host/src/interrupts.rs", "/sys/kernel/irq"),
    ("host/src/kernel_btf.rs", "the kernel's BTF"),
    ("host/src/kernel_symbols.rs", "/proc/kallsyms"),
    ("host/src/machine.rs", "/proc/sys, /proc/cmdline, /sys/devices"),
    ("host/src/memory.rs", "/proc/PID/mem, if process_vm_readv is refused"),
    ("host/src/perf_map.rs", "/proc/PID/status: whose the process is (its file of names is opened in `foreign`)"),
    ("host/src/perf_source.rs", "/sys/bus/event_source"),
    ("host/src/proc.rs", "/proc/PID: what the kernel says of it"),
    ("host/src/settings/process.rs", "/proc/PID/numa_maps: what the kernel says of it"),
    ("host/src/settings/root.rs", "/proc and /sys, or a tree that a test has made"),
    ("host/src/system.rs", "/proc/sys, /sys/kernel, /proc/self"),
    ("host/src/tracefs.rs", "tracefs"),
    ("host/src/user_file.rs", "what the user names: traces, recordings, specs, scripts"),
    ("host/src/vdso.rs", "/proc/self"),
    ("sys/src/cpus.rs", "/sys/devices: how many values a per-CPU map has"),
];

/// The files outside of `host` that name a path of `/proc` or `/sys`, and why.
const NAMERS: &[(&str, &str)] = &[
    ("cpu-settings/src/boot.rs", "findings name settings; nothing is opened"),
    ("cpu-settings/src/devices.rs", "findings name settings; nothing is opened"),
    ("cpu-settings/src/hardware.rs", "findings name settings; nothing is opened"),
    ("cpu-settings/src/memory.rs", "findings name settings; nothing is opened"),
    ("cpu-settings/src/processes.rs", "findings name settings; nothing is opened"),
    ("cpu-settings/src/scheduling.rs", "findings name settings; nothing is opened"),
    ("dptrace/src/manual/facts.rs", "man pages name them; nothing is opened"),
    ("sys/src/cpus.rs", "the calls of sys would be unsound with a wrong number of CPUs"),
];

/// The files of the program's own crates, by name, with their code: no comments, and nothing that is only for tests.
fn product() -> Vec<(String, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let is_built_in = |path: &PathBuf| path.strip_prefix(crates).unwrap().iter().nth(1).unwrap() == "src";
    let mut files = Vec::new();
    for path in sources(crates).into_iter().filter(is_built_in) {
        let name = path.strip_prefix(crates).unwrap().to_str().unwrap().to_owned();
        // Tools of this project's own, which look at no process of others.
        let is_tool =
            ["xtask/", "testkit/", "spdk-trace-writer/", "demo-target/"].iter().any(|start| name.starts_with(start));
        if is_tool || name.ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        // What is only tested may open what it likes.
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let code: Vec<_> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        files.push((name, code.join("\n")));
    }
    files
}

/// Compares the files that do something with the table of those that may.
fn check(found: &[String], table: &[(&str, &str)], what: &str) {
    let unknown: Vec<_> = found.iter().filter(|name| !table.iter().any(|(known, _)| known == name)).collect();
    let gone: Vec<_> = table.iter().filter(|(known, _)| !found.iter().any(|name| name == known)).collect();
    assert!(unknown.is_empty(), "these {what}, and are not in the table of this test: {unknown:#?}");
    assert!(gone.is_empty(), "these are in the table of this test, and no longer {what}: {gone:#?}");
}

/// Files that are reached through a process belong to whoever runs it: nothing but `host::foreign` opens such a path. Who adds
/// a file to the table has thought of that.
#[test]
fn files_are_opened_where_it_is_known_that_they_are() {
    let opens = |code: &str| OPENING.iter().any(|call| code.contains(call));
    let found: Vec<_> = product().into_iter().filter(|(_, code)| opens(code)).map(|(name, _)| name).collect();
    check(&found, OPENERS, "open files");
}

/// Whether the code has a text that is a path of `/proc` or `/sys`. Messages name such paths, too, in sentences.
fn names_kernel_files(code: &str) -> bool {
    code.split('"').any(|text| {
        let path = text.strip_prefix("/proc").or_else(|| text.strip_prefix("/sys"));
        path.is_some_and(|rest| (rest.is_empty() || rest.starts_with('/')) && !rest.contains(char::is_whitespace))
    })
}

/// One room reads what the kernel says of the machine, so that each fact is read in one way, with the rights that it needs.
#[test]
fn only_host_reads_the_files_of_the_kernel() {
    assert!(names_kernel_files(r#"read("/proc/self/maps")"#) && names_kernel_files(r#"new("/sys")"#));
    assert!(!names_kernel_files(r#"no("there is no /proc/kallsyms")"#) && !names_kernel_files(r#"("/proc is gone")"#));
    let found = product().into_iter().filter(|(name, code)| !name.starts_with("host/") && names_kernel_files(code));
    let found: Vec<_> = found.map(|(name, _)| name).collect();
    check(&found, NAMERS, "name files of /proc or /sys");
}

/// Which machine this is compiled for is known by `Arch::HOST`. What exists on one machine only, such as an instruction in
/// assembler text, has an attribute of its own.
#[test]
fn the_machine_is_asked_for_in_one_place() {
    let found = product().into_iter().filter(|(_, code)| code.contains("cfg!(target_arch"));
    let found: Vec<_> = found.map(|(name, _)| name).collect();
    check(&found, &[("uapi/src/arch.rs", "Arch::HOST")], "ask which machine they are compiled for");
}

/// How many words to avoid may still be in the sources, and in the tests. These numbers may only become smaller: if you removed
/// some, lower them.
const STILL_IN_SOURCES: usize = 5;
const STILL_IN_TESTS: usize = 66;

/// The words to avoid in a text (`CONTRIBUTING.md`, "Words"), also as parts of names.
fn words_to_avoid(text: &str) -> usize {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(str::to_ascii_lowercase).collect();
    let single = words.iter().filter(|word| matches!(word.as_str(), "tell" | "tells" | "told" | "untold")).count();
    single + words.windows(2).filter(|pair| pair[0] == "so" && pair[1] == "many").count()
}

/// The texts of the folder's own files with one of these extensions.
fn texts(folder: &Path, extensions: &[&str]) -> Vec<(String, String)> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let wanted = |path: &PathBuf| path.extension().is_some_and(|it| extensions.iter().any(|known| it == *known));
    paths.filter(wanted).map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap())).collect()
}

#[test]
fn documents_and_scripts_use_plain_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["", "docs", "docs/dev", "benches", "fuzz", "scripts", "objects"];
    let mut found = Vec::new();
    for (name, text) in folders.iter().flat_map(|folder| texts(&root.join(folder), &["md", "sh", "bt", "toml"])) {
        // The glossary names the words; kernels.md has the names of tests.
        let is_exempt = ["CONTRIBUTING.md", "kernels.md"].iter().any(|exempt| name.ends_with(exempt));
        if words_to_avoid(&text) > 0 && !is_exempt {
            found.push(name);
        }
    }
    assert!(found.is_empty(), "these have words that CONTRIBUTING.md asks to avoid: {found:#?}");
}

#[test]
fn sources_use_plain_words() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut in_sources, mut in_tests) = (Vec::new(), Vec::new());
    for path in sources(crates) {
        let name = path.strip_prefix(crates).unwrap();
        let count = words_to_avoid(&fs::read_to_string(&path).unwrap());
        // This file names the words.
        if count > 0 && !name.ends_with("tests/tidy.rs") {
            let group = if name.iter().nth(1).unwrap() == "src" { &mut in_sources } else { &mut in_tests };
            group.push((count, name.to_owned()));
        }
    }
    for (found, still) in [(in_sources, STILL_IN_SOURCES), (in_tests, STILL_IN_TESTS)] {
        let total: usize = found.iter().map(|(count, _)| count).sum();
        assert!(
            total <= still,
            "{total} words that CONTRIBUTING.md asks to avoid, at most {still} may be left: {found:#?}"
        );
    }
}

/// A module with files of its own is `name/mod.rs`, so that all of it is in its folder. Folders of data have no Rust files.
#[test]
fn modules_with_folders_are_in_them() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let all = sources(crates);
    let has_folder = |path: &&PathBuf| all.iter().any(|other| other.parent() == Some(&path.with_extension("")));
    let found: Vec<_> = all.iter().filter(has_folder).collect();
    assert!(found.is_empty(), "these are beside a folder of their name, and should be mod.rs in it: {found:#?}");
}

/// The crates that each crate of ours depends on, of ours, by its `Cargo.toml`; not those that only its tests use.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(crates).unwrap() {
        let path = entry.unwrap().path().join("Cargo.toml");
        // A crate that was removed may leave a folder without a manifest.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let manifest: toml::Table = text.parse().unwrap();
        let name = manifest["package"]["name"].as_str().unwrap().to_owned();
        assert!(!manifest.contains_key("target"), "{}: this test does not know the table `target`", path.display());
        let sections = ["dependencies", "build-dependencies"].iter().filter_map(|section| manifest.get(*section));
        let used: BTreeSet<_> = sections.flat_map(|section| section.as_table().unwrap().keys().cloned()).collect();
        all.insert(name, used);
    }
    let ours: BTreeSet<_> = all.keys().cloned().collect();
    for used in all.values_mut() {
        used.retain(|name| ours.contains(name));
    }
    all
}

/// What ARCHITECTURE.md says of a crate.
struct Room {
    is_for_tests: bool,
    /// None if it may use all crates.
    uses: Option<BTreeSet<String>>,
}

/// A text without what it has in parentheses.
fn without_remarks(text: &str) -> String {
    let mut depth = 0;
    let outside = text.chars().filter(|c| {
        depth += i32::from(*c == '(');
        let is_outside = depth == 0;
        depth -= i32::from(*c == ')');
        is_outside
    });
    outside.collect::<String>().trim().to_owned()
}

/// The names in backquotes.
fn quoted(text: &str) -> BTreeSet<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn architecture() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md")).unwrap()
}

/// The rows of ARCHITECTURE.md's table of crates.
fn rooms() -> BTreeMap<String, Room> {
    let text = architecture();
    let (_, table) = text.split_once("| crate | holds | may use |\n|---|---|---|\n").unwrap();
    let mut rooms = BTreeMap::new();
    for row in table.lines().take_while(|line| line.starts_with('|')) {
        let columns: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, holds, may_use] = columns[..] else { panic!("not three columns: {row}") };
        let uses = match &*without_remarks(may_use) {
            "all" => None,
            "nothing of ours" => Some(BTreeSet::new()),
            names => Some(quoted(names)),
        };
        assert!(uses.as_ref().is_none_or(|uses| !uses.is_empty() || may_use == "nothing of ours"), "no crates: {row}");
        let room = Room { is_for_tests: holds.contains("for tests only"), uses };
        assert!(rooms.insert(name.trim_matches('`').to_owned(), room).is_none(), "two rows for {name}");
    }
    rooms
}

/// The table of ARCHITECTURE.md is neither too wide nor too narrow: who adds an arrow writes it there.
#[test]
fn crates_use_what_the_table_allows() {
    let (mut rooms, mut found) = (rooms(), Vec::new());
    let test_crates: BTreeSet<_> =
        rooms.iter().filter(|(_, room)| room.is_for_tests).map(|(name, _)| name.clone()).collect();
    for (name, used) in dependencies() {
        let Some(room) = rooms.remove(&name) else {
            found.push(format!("{name} has no row"));
            continue;
        };
        let allowed = room.uses.as_ref().unwrap_or(&used);
        let forbidden =
            used.difference(allowed).map(|other| format!("{name} uses {other}, which its row does not have"));
        let unused = allowed.difference(&used).map(|other| format!("{name} does not use {other}, which its row has"));
        let for_tests = used.intersection(&test_crates).filter(|_| !room.is_for_tests);
        let for_tests = for_tests.map(|other| format!("{name} uses {other}, which is for tests only"));
        found.extend(forbidden.chain(unused).chain(for_tests));
    }
    found.extend(rooms.keys().map(|name| format!("{name} has a row and is no crate")));
    assert!(found.is_empty(), "ARCHITECTURE.md's table of crates and crates/*/Cargo.toml differ: {found:#?}");
}

/// The picture of ARCHITECTURE.md has each crate once, above all that it uses. So there is no cycle either.
#[test]
fn crates_stand_above_what_they_use() {
    let text = architecture();
    let (_, picture) = text.split_once("\n## The tree of crates\n").unwrap();
    let picture = picture.split("\n## ").next().unwrap();
    let dependencies = dependencies();
    let mut levels = BTreeMap::new();
    for (level, line) in picture.lines().enumerate().filter(|(_, line)| line.starts_with("    ")) {
        for name in line.split_whitespace().filter(|word| dependencies.contains_key(*word)) {
            assert!(levels.insert(name, level).is_none(), "the tree of ARCHITECTURE.md has {name} twice");
        }
    }
    let mut found = Vec::new();
    for (name, used) in &dependencies {
        let Some(level) = levels.get(&**name) else {
            found.push(format!("{name} is not there"));
            continue;
        };
        // One that is not there has its own line.
        let above = used.iter().filter(|other| levels.get(&***other).is_some_and(|other| other <= level));
        found.extend(above.map(|other| format!("{name} is not above {other}, which it uses")));
    }
    assert!(found.is_empty(), "the tree of crates in ARCHITECTURE.md: {found:#?}");
}

/// The most lines of a source file. Who needs more splits the file where its subject changes.
const LONGEST_FILE: usize = 500;

#[test]
fn files_are_short() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let lines = |path: PathBuf| (fs::read_to_string(&path).unwrap().lines().count(), path);
    let found: Vec<_> = sources(crates).into_iter().map(lines).filter(|(count, _)| *count > LONGEST_FILE).collect();
    assert!(found.is_empty(), "files of more than {LONGEST_FILE} lines: {found:#?}");
}

/// The files that name a real-time class, and why. Whoever uses one on a small machine stops what keeps it alive.
const REAL_TIME: &[(&str, &str)] = &[
    ("bt-compiler/src/headers.rs", "constants for scripts"),
    ("cpu-audit/src/model.rs", "reports"),
    ("cpu-audit/tests/it/common/mod.rs", "in guests only, which it asserts"),
    ("cpu-audit/tests/it/injected.rs", "reasons for the deep check"),
    ("cpu-settings/src/pollers.rs", "findings"),
    ("cpu-settings/src/scheduling.rs", "findings"),
    ("cpu-settings/src/tests.rs", "findings"),
    ("demo-target/src/inject/schedule.rs", "bursts with bounds"),
    ("dptrace/src/cpus/audit.rs", "reports"),
    ("host/src/machine.rs", "names of policies"),
    ("host/src/settings/tests.rs", "names of policies"),
    ("sys/src/sched.rs", "the call"),
    ("xtask/src/bin/vm-init/starve.rs", "in guests only, which it asserts"),
    ("xtask/src/vm/build.rs", "names a check"),
    ("xtask/src/vm/checks/cpus.rs", "names a check"),
    ("xtask/src/vm/mod.rs", "names a check"),
];

#[test]
fn real_time_classes_are_used_where_they_are_bounded() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let uses = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let code: Vec<_> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let words = ["SCHED_FIFO", "SCHED_RR", "SCHED_DEADLINE", "run_first", "sched_setscheduler", "chrt "];
        words.iter().any(|word| code.iter().any(|line| line.contains(word)))
    };
    let found = sources(crates).into_iter().filter(uses);
    let found = found.map(|path| path.strip_prefix(crates).unwrap().to_str().unwrap().to_owned());
    let found: Vec<_> = found.filter(|name| name != "xtask/tests/tidy.rs").collect();
    check(&found, REAL_TIME, "name a real-time class");
}

/// The code of a source that only tests and benches have.
fn test_code(name: &str, text: &str) -> String {
    let is_built_in = name.split('/').nth(1) == Some("src");
    if !is_built_in || name.ends_with("tests.rs") {
        return text.to_owned();
    }
    text.split_once("#[cfg(test)]\nmod tests {").map(|(_, tests)| tests.to_owned()).unwrap_or_default()
}

/// `testkit::command` makes a child that ends with its test, whatever becomes of that.
#[test]
fn tests_start_processes_in_one_way() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for path in sources(crates) {
        let name = path.strip_prefix(crates).unwrap().to_str().unwrap().to_owned();
        // `sys` and `testkit` hold the one way; `xtask` runs tests.
        let is_exempt = ["sys/", "testkit/", "xtask/", "dptrace/build.rs"].iter().any(|start| name.starts_with(start));
        let code = test_code(&name, &fs::read_to_string(&path).unwrap());
        // Who becomes another program starts none.
        let starts =
            |line: &str| line.contains("Command::new(") && !line.contains("clap::") && !line.contains(".exec()");
        if !is_exempt && code.lines().any(starts) {
            found.push(name);
        }
    }
    assert!(found.is_empty(), "these start processes with Command::new in place of testkit::command: {found:#?}");
}

/// Programs of integration tests beside `tests/it`, and why.
const MORE_PROGRAMS: &[(&str, &str)] = &[
    ("dptrace/tests/kernel_delay", "its own threads are measured"),
    ("dptrace/tests/processes.rs", "its own processes are found by name"),
    ("dptrace/tests/run_bundled.rs", "it has the functions that scripts know"),
    ("dptrace/tests/run_bundled_loads", "it has the functions that scripts know"),
];

/// A program of tests is linked with all that is tested: seconds and megabytes for each.
#[test]
fn a_crate_has_one_program_of_integration_tests() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut more = Vec::new();
    for folder in fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path().join("tests")) {
        let paths = fs::read_dir(&folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        let is_program =
            |path: &PathBuf| path.extension().is_some_and(|it| it == "rs") || path.join("main.rs").exists();
        let mut programs: Vec<_> = paths.filter(is_program).collect();
        programs.sort();
        let is_one = programs.len() == 1;
        programs.retain(|path| !is_one && !path.ends_with("it"));
        more.extend(programs.iter().map(|path| path.strip_prefix(crates).unwrap().to_str().unwrap().to_owned()));
    }
    check(&more, MORE_PROGRAMS, "are programs of tests beside another one");
}
