//! Tests that a change adds or edits, run 20 times without repetition, to keep flaky tests out.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};

use crate::suite::{self, LoadSample, TestProgram, changed_tests, reason, run_test, test_programs};

/// Number of runs of each test.
const RUNS: usize = 20;
/// Number of runs at the same time: tests wait more than they compute.
const WORKERS: usize = 6;
/// Time limit for all runs; runs that do not fit into it are counted.
const TOTAL_LIMIT: Duration = Duration::from_mins(3);
/// Longest time of one run.
const RUN_LIMIT: Duration = Duration::from_mins(2);

/// Runs the changed tests.
pub(super) fn run() -> anyhow::Result<()> {
    let tests = changed()?;
    if tests.is_empty() {
        println!("no test was added or edited");
        return Ok(());
    }
    let load = LoadSample::now();
    let (begun, failed) = run_rounds(&tests)?;
    let all = tests.len() * RUNS;
    println!(
        "{} tests were added or edited: {begun} runs ({})",
        tests.len(),
        load.until_now()
    );
    if begun < all {
        println!(
            "{} runs did not fit into {} min",
            all - begun,
            TOTAL_LIMIT.as_secs() / 60
        );
    }
    let failed: Vec<String> = failed
        .into_iter()
        .map(|(test, reason)| format!("{test}\n{reason}"))
        .collect();
    ensure!(
        failed.is_empty(),
        "failed at least once in {begun} runs:\n  {}",
        failed.join("\n  ")
    );
    Ok(())
}

/// Runs the tests round by round. Returns the number of runs that were begun, and the reason of a
/// failure by test.
fn run_rounds(
    tests: &[(TestProgram, String)],
) -> anyhow::Result<(usize, BTreeMap<String, String>)> {
    let since = Instant::now();
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    // Round by round, so that each test has about as many runs when the time is up.
    let work = || -> anyhow::Result<()> {
        while since.elapsed() < TOTAL_LIMIT {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let (round, Some((program, name))) =
                (number / tests.len(), tests.get(number % tests.len()))
            else {
                break;
            };
            if round >= RUNS {
                break;
            }
            let ended = run_test(program, name, RUN_LIMIT, None)?;
            if !ended.succeeded() {
                let (package, output) = (&program.package, ended.output.trim_end());
                println!(
                    "{package}::{name} {} in round {round}:\n{output}",
                    ended.verdict()
                );
                failed
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(format!("{package}::{name}"), reason(output));
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .unwrap_or_else(|_| bail!("a worker broke off"))
        })
    })?;
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((next.into_inner().min(tests.len() * RUNS), failed))
}

/// Returns the tests of the gate that HEAD added or edited, with their programs.
fn changed() -> anyhow::Result<Vec<(TestProgram, String)>> {
    let changed = changed_tests(suite::root())?;
    let mut packages: Vec<&str> = changed
        .iter()
        .map(|(package, _)| package.as_str())
        .collect();
    packages.dedup();
    let mut tests = Vec::new();
    for program in if packages.is_empty() {
        Vec::new()
    } else {
        test_programs(&packages)?
    } {
        let ignored = program.tests(true)?;
        let is_changed = |name: &String| {
            !ignored.contains(name)
                && changed.contains(&(program.package.clone(), suite::function_of(name).to_owned()))
        };
        let names: Vec<String> = program
            .tests(false)?
            .into_iter()
            .filter(is_changed)
            .collect();
        tests.extend(names.into_iter().map(|name| (program.clone(), name)));
    }
    Ok(tests)
}
