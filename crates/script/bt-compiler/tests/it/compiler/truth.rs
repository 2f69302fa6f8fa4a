//! Random expressions and statements: programs must print the results of a second implementation of
//! the language's rules.

use compiler_testkit::truth::{Kind, Truth};

use crate::compiler::{MACHINES, printed};

/// Number of programs of each kind, unless [`VARIABLE`] sets another.
const PROGRAMS: u64 = 100;
/// Environment variable with the number of programs.
const VARIABLE: &str = "DPTRACE_TEST_TRUTHS";

fn compare(kind: Kind) {
    let count = std::env::var(VARIABLE)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(PROGRAMS);
    let (mut wrong, mut lines) = (Vec::new(), 0);
    for seed in 1..=count {
        let truth = Truth::new(kind, seed);
        lines += truth.lines.len() as u64;
        // The output does not depend on the machine, so each runs half of the programs.
        let arch = MACHINES[seed as usize % MACHINES.len()];
        wrong.extend(truth.difference(&printed(&truth.script(), arch)));
    }
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(8)].join("\n")
    );
    assert!(
        lines >= count,
        "{count} programs printed only {lines} lines"
    );
}

#[test]
fn expressions_have_the_values_that_the_language_gives_them() {
    compare(Kind::Expressions);
}

#[test]
fn statements_go_the_ways_that_the_language_gives_them() {
    compare(Kind::Statements);
}
