//! Every example of README, `docs/` and all `--help` texts is run as written, and must behave as
//! shown.
//!
//! Output is compared in kind: the exit status, and the shape of the lines ([`shape`]), since
//! numbers, names and times differ from run to run. An example that can't run here is listed in
//! [`NOT_RUN`], with the reason; no other is left out. `tests/it/docs.rs` compares the examples on
//! the built-in sample letter by letter.

mod extract;
mod programs;
mod scene;
mod shape;
mod shell;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Instant;

use crate::common::kernel::PROGRAM;
use crate::docs::shell_words;
use extract::Example;
use scene::{Scene, Stage};

/// Examples that can't run in a test, by a part of the command, with the reasons.
const NOT_RUN: &[(&str, &str)] = &[
    (
        "cargo ",
        "CI builds and tests this repository in steps of its own",
    ),
    ("scripts/bpftrace.sh ", "it is a part of SPDK's sources"),
    (
        "bpftrace -p PID",
        "bpftrace's own scripts are run by `tests/it/generate.rs`",
    ),
    ("build/bin/nvmf_tgt ", "it is SPDK's target"),
    (
        "dptrace objects -p ",
        "the target for tests has SPDK's structures only if it is asked for them",
    ),
    (
        "dptrace inspect -p ",
        "its program is one that `tests/it/inspect` compiles",
    ),
    (
        "dptrace cpus ",
        "`tests/it/cpus.rs` and `tests/it/cpus_audit.rs` run it: what it finds is this machine's",
    ),
    (
        "dptrace pmd",
        "it needs Open vSwitch with DPDK, which `tests/it/pmd` starts",
    ),
    (
        "dptrace report CAPTURE",
        "the captures of `tests/report` are of a target that delays itself",
    ),
    (
        "dptrace top",
        "`tests/it/top` runs it, on a terminal and on none",
    ),
    (
        "dptrace serve",
        "it runs until it is ended: `tests/serve` asks it for its pages",
    ),
    (
        " --tpoint 'lib.ethdev.*'",
        "a DPDK program makes its folder: `tests/it/dpdk.rs` runs one",
    ),
    (
        " --slow ",
        "it waits for a slow request: `tests/it/watch` makes some",
    ),
    ("dpif_run", "it is a function of ovs-vswitchd"),
    (
        " sem",
        "docs/dev/usdt.md explains the program that it compiles",
    ),
];

/// Exit statuses of examples that may fail here, with the reasons.
const STATUS: &[(&str, &[i32], &str)] = &[
    (
        "dptrace kernel-delay",
        &[0, 2],
        "where ovs-vswitchd does not run, it lists the busiest processes",
    ),
    (
        "dptrace kernel-delay -p ngnix",
        &[1],
        "nothing has that name",
    ),
    (
        "dptrace run --check -e 'tracepoint:syscalls:sys_enter_openat { @[comm] = coutn(); }'",
        &[2],
        "the script has a mistake",
    ),
];

/// Lines that are not printed here, with the reasons.
const NOT_PRINTED: &[(&str, &str)] = &[
    (
        "objects found alive",
        "the target for tests has SPDK's structures only if it is asked for them",
    ),
    ("  nginx: ", "only a real nginx changes its command line"),
    (
        "loop [",
        "nobody stops the target for tests, and another program takes its CPU only on a loaded machine",
    ),
];

/// Checks that dptrace accepts each example: its command, its options and their values. `--help`
/// after the options prevents any work.
#[test]
fn every_example_is_understood() {
    let examples = extract::all();
    assert!(
        examples.len() > 80,
        "only {} examples were found",
        examples.len()
    );
    let failures: Vec<String> = examples.iter().flat_map(not_understood).collect();
    assert!(
        failures.is_empty(),
        "{} examples:\n\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}

/// Returns the errors of each use of dptrace in an example.
fn not_understood(example: &Example) -> Vec<String> {
    let words = shell_words(&without_substitutions(example.without_remark()));
    let uses = words.split(|word| ["|", "&&", ";", "&", "$", "sudo"].contains(&word.as_str()));
    let ours = uses.filter_map(|words| {
        words
            .split_first()
            .filter(|(program, _)| *program == "dptrace")
    });
    ours.filter_map(|(_, words)| {
        // Redirections, and the command to be traced with its own options, are not checked.
        let is_end = |word: &String| word == "--" || word.trim_start_matches('2').starts_with('>');
        let end = words.iter().position(is_end).unwrap_or(words.len());
        let words = words[..end]
            .iter()
            .map(|word| if word == "PID" { "1" } else { word });
        let output = testkit::command(PROGRAM)
            .args(words)
            .arg("--help")
            .output()
            .expect("it runs");
        let message = String::from_utf8_lossy(&output.stderr);
        (!output.status.success()).then(|| format!("{example}: {message}"))
    })
    .collect()
}

/// Returns a command with a number in place of each `$(..)`.
fn without_substitutions(command: &str) -> String {
    let (mut text, mut rest) = (String::new(), command);
    while let Some((before, behind)) = rest.split_once("$(") {
        text.push_str(before);
        text.push('1');
        rest = behind.split_once(')').map_or("", |(_, rest)| rest);
    }
    text + rest
}

/// Number of examples that run at a time; they wait more than they compute.
const CONCURRENT_EXAMPLES: usize = 4;
/// Number of tries. On a loaded machine an example may not show its effect: a client may come too
/// late to wait for another, for instance.
const MAX_TRIES: usize = 3;

#[test]
#[ignore = "deep truth: examples must print what is shown within 0.6 s, in one of three tries"]
fn every_example_runs() {
    let Some(_alone) = crate::common::kernel::kernel() else {
        return;
    };
    let examples = extract::all();
    assert!(
        examples.len() > 80,
        "only {} examples were found",
        examples.len()
    );
    let unused = NOT_RUN.iter().filter(|(part, _)| {
        !examples
            .iter()
            .any(|example| example.command.contains(part))
    });
    let unused: Vec<String> = unused
        .map(|(part, reason)| format!("no example has {part:?} ({reason})"))
        .collect();
    let (mut left_out, mut to_run): (Vec<_>, Vec<_>) = examples.iter().partition(|example| {
        NOT_RUN
            .iter()
            .any(|(part, _)| example.command.contains(part))
    });
    let mut scene = Scene::set(&examples);
    to_run.retain(|example| !scene::is_set(example));
    if !scene.has_database() {
        let (database, rest): (Vec<_>, Vec<_>) = to_run
            .into_iter()
            .partition(|example| scene::uses_database(example));
        left_out.extend(database);
        to_run = rest;
    }
    let mut seen = BTreeSet::new();
    to_run.retain(|example| !example.shown.is_empty() || seen.insert(example.without_remark()));
    let failures = Mutex::new(unused);
    let (of_service, others) = to_run
        .into_iter()
        .partition(|example| scene::uses_service(example));
    run_all(of_service, &scene, &failures);
    scene.end_services();
    run_all(others, &scene, &failures);
    let failures = failures.into_inner().expect("nobody panicked");
    assert!(
        failures.is_empty(),
        "{} examples:\n\n{}",
        failures.len(),
        failures.join("\n\n")
    );
    println!(
        "{} examples, {} of them not run",
        examples.len(),
        left_out.len()
    );
}

/// Runs examples, some at a time; adds their failures to `failures`.
fn run_all(mut examples: Vec<&Example>, scene: &Scene, failures: &Mutex<Vec<String>>) {
    // The longest first.
    examples.sort_by_key(|example| example.shown.is_empty());
    let (stage, target) = (scene.stage(), scene.target());
    let commands: Vec<_> = examples
        .into_iter()
        .map(|example| (example, scene.command(example)))
        .collect();
    let queue = Mutex::new(commands.into_iter());
    // `doctor` attaches to one place of the program with and without a semaphore, and the kernel
    // refuses two at once.
    let doctor = Mutex::new(());
    let work = || {
        loop {
            let next = queue.lock().expect("nobody panicked").next();
            let Some((example, command)) = next else {
                break;
            };
            let began = Instant::now();
            let _turn = command
                .contains("doctor")
                .then(|| doctor.lock().expect("nobody panicked"));
            // Another run of this test may have begun: then a name stands for two processes.
            let again = scene::by_number(&command, target);
            let result = check(example, &command, &stage);
            let result = (1..MAX_TRIES).fold(result, |done, _| {
                done.or_else(|_| check(example, &again, &stage))
            });
            println!("{:6.2} s  {example}", began.elapsed().as_secs_f64());
            failures
                .lock()
                .expect("nobody panicked")
                .extend(result.err());
        }
    };
    std::thread::scope(|threads| {
        for _ in 0..CONCURRENT_EXAMPLES {
            threads.spawn(work);
        }
    });
}

/// Runs an example; returns its failure.
fn check(example: &Example, command: &str, stage: &Stage) -> Result<(), String> {
    let done = shell::run(example, command, stage);
    let wanted = STATUS
        .iter()
        .find(|(command, ..)| *command == example.command);
    let wanted = wanted.map_or(&[0][..], |(_, statuses, _)| statuses);
    let beginning = |text: &str| {
        text.lines()
            .take(40)
            .flat_map(|line| [line, "\n"])
            .collect::<String>()
    };
    let said = format!(
        "{example}\nas: {}\n{}{}",
        done.command,
        beginning(&done.stdout),
        beginning(&done.stderr)
    );
    if !done.status.is_some_and(|status| wanted.contains(&status)) {
        return Err(format!("{:?} in place of {wanted:?}: {said}", done.status));
    }
    let printed: Vec<&str> = done.stdout.lines().chain(done.stderr.lines()).collect();
    let missing: Vec<&str> = example
        .shown
        .iter()
        .map(String::as_str)
        .filter(|line| !is_left_out(line) && !shape::fits(line, &printed))
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "nothing like\n{}\nwas printed: {said}",
            missing.join("\n")
        ))
    }
}

fn is_left_out(line: &str) -> bool {
    NOT_PRINTED.iter().any(|(part, _)| line.contains(part))
}
