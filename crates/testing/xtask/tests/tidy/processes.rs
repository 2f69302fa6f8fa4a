//! Processes that tests start, and their scheduling classes.

use std::fs;
use std::path::PathBuf;

use super::{all_sources, check, is_test_module, name_of};

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
    ("cpus/src/settings/tests/threads.rs", "findings"),
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
        .filter(|name| name != "xtask/tests/tidy/processes.rs")
        .collect();
    check(&found, REAL_TIME, "name a real-time class");
}

/// Returns the code of a source that only tests and benches have.
fn test_code(name: &str, text: &str) -> String {
    let is_built_in = name.split('/').nth(1) == Some("src");
    if !is_built_in || is_test_module(name) {
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
