//! Random expressions and statements: what programs print is what the language's rules, written a second time, say.

use compiler_testkit::truth::{Kind, Truth};

use crate::compiler::{MACHINES, printed};

/// How many programs of each kind, where not said otherwise.
const PROGRAMS: u64 = 100;
/// Says how many instead.
const VARIABLE: &str = "DPTRACE_TEST_TRUTHS";

fn compare(kind: Kind) {
    let count = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(PROGRAMS);
    let (mut wrong, mut lines) = (Vec::new(), 0);
    for seed in 1..=count {
        let truth = Truth::new(kind, seed);
        lines += truth.lines.len() as u64;
        // What these print does not depend on the machine, so each has half of them.
        let arch = MACHINES[seed as usize % MACHINES.len()];
        wrong.extend(truth.difference(&printed(&truth.script(), arch)));
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong[..wrong.len().min(8)].join("\n"));
    assert!(lines >= count, "{count} programs printed only {lines} lines");
}

#[test]
fn expressions_have_the_values_that_the_language_gives_them() {
    compare(Kind::Expressions);
}

#[test]
fn statements_go_the_ways_that_the_language_gives_them() {
    compare(Kind::Statements);
}
