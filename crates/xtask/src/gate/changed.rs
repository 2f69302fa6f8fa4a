//! Tests that a change adds or edits run 20 times without repetition, so that flaky tests do not get in.

use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::suite::{self, LoadSample, changed_tests, run_test, test_programs};

/// How often each test runs.
const TIMES: u32 = 20;
/// Time for all of them: what does not fit into it is listed.
const TOTAL_LIMIT: Duration = Duration::from_mins(4);
/// Longest time of one run.
const RUN_LIMIT: Duration = Duration::from_mins(2);

/// Runs the changed tests.
pub(super) fn run() -> anyhow::Result<()> {
    let changed = changed_tests(suite::root())?;
    if changed.is_empty() {
        println!("no test was added or edited");
        return Ok(());
    }
    let mut packages: Vec<&str> = changed.iter().map(|(package, _)| package.as_str()).collect();
    packages.dedup();
    let (since, load) = (Instant::now(), LoadSample::now());
    let (mut runs, mut failed, mut left_out) = (0, Vec::new(), Vec::new());
    let mut tests = Vec::new();
    for program in test_programs(&packages)? {
        let ignored = program.tests(true)?;
        let is_changed = |name: &String| {
            !ignored.contains(name) && changed.contains(&(program.package.clone(), suite::function_of(name).to_owned()))
        };
        let names: Vec<String> = program.tests(false)?.into_iter().filter(is_changed).collect();
        tests.extend(names.into_iter().map(|name| (program.clone(), name)));
    }
    // Round by round, so that if the time is up each has run about as often.
    for round in 0..TIMES {
        for (program, name) in &tests {
            if since.elapsed() > TOTAL_LIMIT {
                left_out.push((round, name));
                continue;
            }
            let ended = run_test(program, name, RUN_LIMIT)?;
            runs += 1;
            if !ended.succeeded() {
                println!(
                    "{}::{name} {} in round {round}:\n{}",
                    program.package,
                    ended.verdict(),
                    ended.output.trim_end()
                );
                failed.push(format!("{}::{name}", program.package));
            }
        }
    }
    println!("{} tests were added or edited: {runs} runs ({})", tests.len(), load.until_now());
    if let Some((round, _)) = left_out.first() {
        println!("{} runs did not fit into {} min, from round {round} on", left_out.len(), TOTAL_LIMIT.as_secs() / 60);
    }
    failed.sort();
    failed.dedup();
    ensure!(failed.is_empty(), "failed at least once in {TIMES} runs: {}", failed.join(", "));
    Ok(())
}
