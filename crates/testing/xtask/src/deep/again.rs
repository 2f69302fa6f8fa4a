//! The gate's tests ten times, to find tests that fail in one run of twenty, before one fails in
//! the judgement of an unrelated change.

use std::collections::BTreeMap;

use super::Outcome;
use super::parts::Deadline;
use crate::suite::{self, LoadSample, Log, reason, run_limited};

/// Number of tests at a time, by round: tests that share a process, or the machine, meet in
/// different ways.
const WIDTHS: [&str; 10] = ["6", "2", "32", "8", "1", "64", "4", "16", "3", "6"];

/// Runs the tests once for each width, without repetition. Tests that the machine lacks something
/// for are skipped.
///
/// # Errors
/// If cargo cannot be run.
pub(super) fn run(deadline: Deadline) -> anyhow::Result<Outcome> {
    let programs = suite::test_programs(&[])?;
    let mut outcome = Outcome::default();
    let mut failed: BTreeMap<String, usize> = BTreeMap::new();
    let mut rounds = 0;
    for width in WIDTHS {
        if deadline.left().is_zero() {
            println!("the time is up after {rounds} of {} rounds", WIDTHS.len());
            break;
        }
        rounds += 1;
        let load = LoadSample::now();
        let mut cargo = crate::cargo();
        cargo.args([
            "test",
            "--workspace",
            "--no-fail-fast",
            "--lib",
            "--bins",
            "--tests",
        ]);
        let tests = cargo
            .env("RUST_TEST_THREADS", width)
            .current_dir(suite::root());
        let ended = run_limited(tests, deadline.left())?;
        let log = Log::parse(&ended.output);
        println!(
            "round {rounds}, {width} at a time: {} ({})",
            ended.verdict(),
            load.until_now()
        );
        for failure in &log.failures {
            let package = failure
                .program_among(&programs)
                .map_or("?", |program| program.package.as_str());
            let name = format!("{package}::{}", failure.test);
            println!("{name}\n{}", reason(&failure.output));
            *failed.entry(name).or_default() += 1;
        }
        log.others.iter().for_each(|line| println!("{line}"));
        // The round failed without a failed test: a test hangs, or a program broke off.
        if log.failures.is_empty() {
            outcome.add(&format!("round {rounds}"), ended.succeeded());
        }
    }
    outcome.failed.extend(
        failed
            .into_iter()
            .map(|(test, times)| format!("{test} (in {times} of {rounds} rounds)")),
    );
    Ok(outcome)
}
