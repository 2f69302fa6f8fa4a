//! `cargo xtask deep`: everything that a verdict in minutes cannot depend on. Other kernels, tests
//! that judge time, other programs, random seeds, releases. It blocks no landing; a failure in it
//! becomes an issue.

mod again;
mod packages;
mod parts;
mod release;
mod report;
mod tests;

use std::time::Instant;

use anyhow::ensure;
use clap::Args;

use crate::suite::{self, LoadSample, changed_files, deep_tests};
use parts::{PARTS, Part};
use report::Line;

/// `cargo xtask deep`, as typed.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DeepArgs {
    /// The parts to run, by name [default: all]
    #[arg(value_name = "PART")]
    parts: Vec<String>,

    /// Only the parts that test what has changed since the last landing
    #[arg(long, conflicts_with = "parts")]
    changed: bool,

    /// List the parts, and the tests that the gate leaves to them with the reason of each; run nothing
    #[arg(long)]
    list: bool,
}

const EXAMPLES: &str = "\
Each part installs what it needs, ends by its own limit, and appends a line of JSON to target/deep.jsonl.

Examples:
  cargo xtask deep                   all parts, one after the other: hours
  cargo xtask deep truth soak        two of them
  cargo xtask deep --changed         those that your change touches
  cargo xtask deep --list truth      which tests that part runs, and why the gate does not";

/// Result of a part.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Number of tests or steps that passed.
    pub(crate) passed: usize,
    /// Names of the failed tests or steps.
    pub(crate) failed: Vec<String>,
    /// Seed of random tests, if there are any.
    pub(crate) seed: Option<u64>,
}

impl Outcome {
    /// Counts a step.
    pub(crate) fn add(&mut self, name: &str, has_passed: bool) {
        if has_passed {
            self.passed += 1;
        } else {
            self.failed.push(name.to_owned());
        }
    }
}

/// Returns whether there is a part of that name.
pub(crate) fn is_part(name: &str) -> bool {
    PARTS.iter().any(|part| part.name == name)
}

/// Runs the task.
pub(crate) fn run(args: &DeepArgs) -> anyhow::Result<()> {
    let parts = selected(args)?;
    if args.list {
        return list(&parts);
    }
    let mut failed = Vec::new();
    for part in parts {
        let (since, load) = (Instant::now(), LoadSample::now());
        println!(
            "\n== deep {}: {} (at most {} min)",
            part.name,
            part.about,
            part.limit.as_secs() / 60
        );
        let outcome = part.run().unwrap_or_else(|error| {
            println!("{error:#}");
            Outcome {
                failed: vec![format!("{} did not run", part.name)],
                ..Outcome::default()
            }
        });
        let line = Line::new(part.name, &outcome, since.elapsed(), load.until_now())?;
        println!("{line}");
        line.append()?;
        failed.extend(
            outcome
                .failed
                .iter()
                .map(|name| format!("{}: {name}", part.name)),
        );
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Returns the parts that the command line selects, in the order of the table.
fn selected(args: &DeepArgs) -> anyhow::Result<Vec<&'static Part>> {
    for name in &args.parts {
        let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        ensure!(
            is_part(name),
            "no part is named {name}: there are {}",
            names.join(", ")
        );
    }
    let changed = if args.changed {
        changed_files(suite::root())?
    } else {
        Vec::new()
    };
    let is_selected = |part: &&Part| {
        if args.changed {
            part.is_touched_by(&changed)
        } else {
            args.parts.is_empty() || args.parts.iter().any(|name| name == part.name)
        }
    };
    Ok(PARTS.iter().filter(is_selected).collect())
}

fn list(parts: &[&Part]) -> anyhow::Result<()> {
    let tests = deep_tests(suite::root())?;
    for part in parts {
        println!(
            "{}: {} (at most {} min)",
            part.name,
            part.about,
            part.limit.as_secs() / 60
        );
        for test in tests.iter().filter(|test| test.part == part.name) {
            println!("  {}: {}: {}", test.package, test.function, test.reason);
        }
    }
    Ok(())
}
