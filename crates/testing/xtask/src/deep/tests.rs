//! Tests that the gate leaves to a part, run one at a time.

use std::time::Duration;

use anyhow::Context as _;

use super::Outcome;
use super::parts::Deadline;
use crate::suite::{self, DeepTest, LoadSample, TestProgram, deep_tests, run_test, test_programs};

/// Longest time of one test.
const TEST_LIMIT: Duration = Duration::from_mins(10);

/// Number of runs of each test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repetition {
    Once,
    /// Three runs, of which the majority decides. The third run is skipped if the first two agree.
    Median,
}

/// Runs all tests of that part.
///
/// # Errors
/// If the tests cannot be built, or a marked one is in none of their programs.
pub(super) fn run_marked(
    part: &str,
    repetition: Repetition,
    seed: Option<u64>,
    deadline: Deadline,
) -> anyhow::Result<Outcome> {
    let marked: Vec<DeepTest> = deep_tests(suite::root())?
        .into_iter()
        .filter(|test| test.part == part)
        .collect();
    let mut packages: Vec<&str> = marked.iter().map(|test| test.package.as_str()).collect();
    packages.dedup();
    let mut outcome = Outcome {
        seed,
        ..Outcome::default()
    };
    if packages.is_empty() {
        return Ok(outcome);
    }
    let programs = Index::build(&packages)?;
    for test in &marked {
        let (program, name) = programs.find(test)?;
        let has_passed = verdict(program, name, repetition, seed, deadline)?;
        outcome.add(&format!("{}::{name}", test.package), has_passed);
    }
    Ok(outcome)
}

/// Runs one test as often as its verdict needs, and prints each run.
fn verdict(
    program: &TestProgram,
    name: &str,
    repetition: Repetition,
    seed: Option<u64>,
    deadline: Deadline,
) -> anyhow::Result<bool> {
    let enough = if repetition == Repetition::Median {
        2
    } else {
        1
    };
    let (mut passed, mut failed) = (0, 0);
    while passed < enough && failed < enough {
        let load = LoadSample::now();
        let ended = run_test(program, name, TEST_LIMIT.min(deadline.left()), seed)?;
        println!(
            "{}::{name}: {} ({})",
            program.package,
            ended.verdict(),
            load.until_now()
        );
        if ended.succeeded() {
            passed += 1;
        } else {
            failed += 1;
            println!("{}", ended.output);
        }
    }
    Ok(passed == enough)
}

/// Ignored tests by their programs.
struct Index(Vec<(TestProgram, Vec<String>)>);

impl Index {
    fn build(packages: &[&str]) -> anyhow::Result<Self> {
        let mut all = Vec::new();
        for program in test_programs(packages)? {
            let tests = program.tests(true)?;
            all.push((program, tests));
        }
        Ok(Self(all))
    }

    /// Finds the program of a marked test, and its full name there.
    fn find(&self, test: &DeepTest) -> anyhow::Result<(&TestProgram, &str)> {
        let of_package = self
            .0
            .iter()
            .filter(|(program, _)| program.package == test.package);
        let mut names = of_package
            .flat_map(|(program, tests)| tests.iter().map(move |name| (program, name.as_str())));
        let found = names.find(|(_, name)| suite::function_of(name) == test.function);
        found.with_context(|| format!("{} has no ignored test {}", test.package, test.function))
    }
}
