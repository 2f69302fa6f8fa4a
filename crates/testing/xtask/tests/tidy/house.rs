//! Limits on the program: engines do the work, commands connect them.

use std::collections::BTreeSet;
use std::fs;

use super::{all_sources, name_of, product, root};

/// Limit on the lines of the program's own sources. Code beyond parsing options, connecting engines
/// and printing belongs in an engine.
const MAX_PROGRAM_LINES: usize = 12_000;

#[test]
fn the_program_is_small() {
    let own = all_sources()
        .into_iter()
        .filter(|path| name_of(path).starts_with("dptrace/src/"));
    let lines: usize = own
        .map(|path| fs::read_to_string(path).unwrap().lines().count())
        .sum();
    assert!(
        lines <= MAX_PROGRAM_LINES,
        "the program has {lines} lines, and at most {MAX_PROGRAM_LINES} are permitted"
    );
}

/// Returns the names of the modules that hold a command: those whose arguments the command line
/// has.
fn commands() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("crates/app/dptrace/src/cli.rs")).unwrap();
    let imports = text
        .lines()
        .filter_map(|line| line.strip_prefix("use crate::"));
    let found: BTreeSet<_> = imports
        .filter_map(|rest| Some(rest.split_once("::")?.0.to_owned()))
        .collect();
    assert!(
        found.len() > 15,
        "these are all commands of cli.rs: {found:?}"
    );
    found
}

/// Code that two commands need is in an engine, or in a module that is no command.
#[test]
fn no_command_uses_another_one() {
    let commands = commands();
    let mut found = Vec::new();
    for (name, code) in product()
        .into_iter()
        .filter(|(name, _)| name.starts_with("dptrace/src/"))
    {
        let module = name.split('/').nth(2).unwrap().trim_end_matches(".rs");
        if !commands.contains(module) {
            continue;
        }
        let others = commands.iter().filter(|other| *other != module);
        let uses = |other: &&String| {
            let path = format!("crate::{other}::");
            code.contains(&path) || code.contains(&format!("use crate::{other};"))
        };
        found.extend(
            others
                .filter(uses)
                .map(|other| format!("{name} uses {other}")),
        );
    }
    assert!(found.is_empty(), "these commands use others: {found:#?}");
}

/// An engine returns values and hands notes to its observer. It prints nothing, knows no command
/// line, and keeps no global state.
#[test]
fn engines_print_nothing_and_keep_no_global() {
    const FORBIDDEN: [&str; 7] = [
        "println!",
        "eprintln!",
        "print!(",
        "eprint!(",
        "stdout()",
        "stderr()",
        "clap::",
    ];
    const STATE: [&str; 4] = ["Mutex", "RwLock", "Atomic", "OnceLock"];
    let engines: Vec<String> = all_sources()
        .into_iter()
        .filter(|path| path.starts_with(root().join("crates/engines")))
        .map(|path| name_of(&path))
        .collect();
    let mut found = Vec::new();
    for (name, code) in product()
        .into_iter()
        .filter(|(name, _)| engines.contains(name))
    {
        found.extend(
            FORBIDDEN
                .iter()
                .filter(|word| code.contains(**word))
                .map(|word| format!("{name} has {word}")),
        );
        let statics = code
            .lines()
            .map(str::trim_start)
            .filter(|line| line.starts_with("static ") || line.contains(" static "));
        let globals = statics.filter(|line| STATE.iter().any(|word| line.contains(word)));
        found.extend(globals.map(|line| format!("{name} has {line}")));
    }
    assert!(found.is_empty(), "engines: {found:#?}");
}

/// One tracker alone knows when an object of a trace begins and ends, and whether its time counts.
/// A second one gave other verdicts on five of eight real traces.
#[test]
fn only_the_tracker_follows_objects() {
    let is_above = |name: &str| {
        let crates = ["engines", "app/dptrace"].map(|folder| root().join("crates").join(folder));
        all_sources().iter().any(|path| {
            name_of(path) == name && crates.iter().any(|folder| path.starts_with(folder))
        })
    };
    let follows =
        |(name, code): &(String, String)| code.contains("Object::Known") && is_above(name);
    let found: Vec<String> = product()
        .into_iter()
        .filter(follows)
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        found,
        ["requests/src/tracker/mod.rs"],
        "objects are followed by `requests::ObjectTracker` alone"
    );
}

/// A quantile has one definition, and one histogram counts times. Other functions with such names
/// must call these.
#[test]
fn quantiles_are_defined_once() {
    const ASK: [&str; 8] = [
        "stats/src/histogram.rs",
        "stats/src/interval.rs",
        "stats/src/quantile.rs",
        "metrics/src/histogram.rs",
        "kernel-delay/src/percentile.rs",
        "kernel-delay/src/sample.rs",
        // A chart and a part of a page, which show a histogram's answer.
        "page/src/chart/percentiles.rs",
        "serve/src/page.rs",
    ];
    let defines = |line: &str| {
        let name = line
            .split("fn ")
            .nth(1)
            .and_then(|rest| rest.split(['(', '<']).next());
        name.is_some_and(|name| name.contains("quantile") || name.contains("percentile"))
    };
    let all = product()
        .into_iter()
        .filter(|(_, code)| code.lines().any(defines));
    let mut found: Vec<String> = all.map(|(name, _)| name).collect();
    let mut expected = ASK.map(str::to_owned).to_vec();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(
        found, expected,
        "`stats` defines quantiles, and all others ask it"
    );
}

/// Shares, sizes and grouped digits look alike in all reports: `screen` formats them.
#[test]
fn numbers_are_formatted_in_one_place() {
    // Whole percents from files of the kernel; widths of a drawing.
    const OTHERS: [&str; 2] = ["cpus/src/settings/", "page/src/page/"];
    let formats = |line: &str| {
        let is_share = ["}%\"", "}% ", "}%)", "} %"]
            .iter()
            .any(|end| line.contains(end));
        is_share || line.contains("is_multiple_of(3)")
    };
    let mut found = Vec::new();
    for (name, code) in product() {
        if !OTHERS.iter().any(|start| name.starts_with(start)) && code.lines().any(formats) {
            found.push(name);
        }
    }
    assert_eq!(
        found,
        ["screen/src/numbers.rs"],
        "use `screen::percent`, `screen::grouped`"
    );
}
