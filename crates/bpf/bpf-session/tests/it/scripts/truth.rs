//! Results of programs on this kernel, compared with the expected ones: see
//! [`compiler_testkit::truth`], whose programs the interpreter runs in greater number.

use bpf_session::SessionError;
use compiler_testkit::truth::{Kind, Truth};

use crate::scripts::facts::live;
use crate::scripts::{allowed, try_run};

/// Default number of programs of each kind.
const PROGRAMS: u64 = 40;
/// Variable that overrides the number of programs.
const VARIABLE: &str = "DPTRACE_TEST_TRUTHS";

/// Runs programs and compares their output, line by line.
fn compare(kind: Kind) {
    let Some(_alone) = allowed() else { return };
    let count = std::env::var(VARIABLE)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(PROGRAMS);
    let (mut wrong, mut lines, mut ran, mut too_much) = (Vec::new(), 0, 0, 0);
    for seed in 1..=count {
        let truth = Truth::new(kind, seed);
        let outcome = match try_run(&truth.script(), &live()) {
            Ok(Some(outcome)) => outcome,
            Ok(None) => continue,
            Err(SessionError::TooComplex { .. }) => {
                too_much += 1;
                continue;
            }
            Err(error) => panic!("seed {seed}:\n{}\n{error}", truth.script()),
        };
        ran += 1;
        lines += truth.lines.len();
        wrong.extend(truth.difference(&outcome.events));
    }
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(8)].join("\n")
    );
    // Older kernels follow fewer ways: 2 of the first 15 expressions are too much for Linux 6.1.
    assert!(
        too_much * 5 < count,
        "{too_much} of {count} are too much for the verifier"
    );
    assert!(lines >= ran, "{ran} programs printed only {lines} lines");
}

#[test]
fn expressions_have_the_values_that_the_language_gives_them() {
    compare(Kind::Expressions);
}

#[test]
fn statements_go_the_ways_that_the_language_gives_them() {
    compare(Kind::Statements);
}
