//! One repetition, in the open: a live-kernel test that failed is run once more, alone. A test that
//! only computes is never repeated.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::suite::{self, Failure, LoadSample, Log, reason, run_test};

/// Limit on flaky tests: more of them fail the run.
const MAX_FLAKY: usize = 2;
/// Longest time of a repetition.
const REPEAT_LIMIT: Duration = Duration::from_mins(3);

/// Judges a run of `cargo test`: it is good if all tests passed, or if the few failed ones use the
/// kernel and pass alone.
pub(super) fn run(log: &Path) -> anyhow::Result<()> {
    let text = fs::read(log).with_context(|| format!("reading {}", log.display()))?;
    let log = Log::parse(&String::from_utf8_lossy(&text));
    ensure!(log.programs > 0, "no test ran");
    let noted = fs::read_to_string(super::kernel_tests()).unwrap_or_default();
    let mut failed = log.others.clone();
    let mut flaky = Vec::new();
    for failure in &log.failures {
        let is_repeated = super::used_the_kernel(&noted, &failure.program, &failure.test);
        if is_repeated && flaky.len() < MAX_FLAKY && passes_alone(failure)? {
            flaky.push(failure);
        } else {
            failed.push(format!(
                "{} {}\n{}",
                failure.program.display(),
                failure.test,
                reason(&failure.output)
            ));
        }
    }
    println!(
        "{} test programs: {} tests failed, {} of these are flaky",
        log.programs,
        log.failures.len(),
        flaky.len()
    );
    for failure in &flaky {
        println!(
            "FLAKY {} {}: add a line to docs/dev/flaky.md",
            failure.program.display(),
            failure.test
        );
    }
    ensure!(failed.is_empty(), "failed:\n  {}", failed.join("\n  "));
    Ok(())
}

/// Runs the test once more, and prints both outputs; returns whether it passed.
fn passes_alone(failure: &Failure) -> anyhow::Result<bool> {
    let programs = suite::test_programs(&[])?;
    let path = failure.program.display();
    let program = failure
        .program_among(&programs)
        .with_context(|| format!("cargo makes no program {path}"))?;
    let load = LoadSample::now();
    let again = run_test(program, &failure.test, REPEAT_LIMIT, None)?;
    println!("\n{} failed:\n{}", failure.test, failure.output.trim_end());
    println!(
        "alone it {} ({}):\n{}",
        again.verdict(),
        load.until_now(),
        again.output.trim_end()
    );
    Ok(again.succeeded())
}
