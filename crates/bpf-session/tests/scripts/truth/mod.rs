//! What programs work out, beside what they should: random expressions and statements, run here by rules of our own and by
//! the compiled program on this kernel.

mod make;
mod tree;
mod value;

use std::fmt::Write;

use bpf_session::SessionError;
use make::Maker;
use tree::{Ex, St, State, run};

use crate::facts::Facts;
use crate::{allowed, try_run};

/// How many programs of each kind, where not said otherwise.
const PROGRAMS: u64 = 100;
/// Says how many instead.
const VARIABLE: &str = "DPTRACE_TEST_TRUTHS";
/// How many expressions a program has.
const EXPRESSIONS: usize = 20;

/// Runs programs and compares what they print, line by line.
fn compare(make: impl Fn(&mut Maker) -> Vec<St>) {
    let Some(_alone) = allowed() else { return };
    let count = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(PROGRAMS);
    let (mut wrong, mut lines, mut ran, mut too_much) = (Vec::new(), 0, 0, 0);
    for seed in 1..=count {
        let mut maker = Maker::new(seed);
        let (mut state, mut source) = maker.beginning();
        let stmts = make(&mut maker);
        for stmt in &stmts {
            let _ = writeln!(source, "{stmt}");
        }
        run(&stmts, &mut state);
        let outcome = match try_run(&format!("begin {{\n{source}}}"), &Facts::default()) {
            Ok(Some(outcome)) => outcome,
            Ok(None) => continue,
            Err(SessionError::TooComplex { .. }) => {
                too_much += 1;
                continue;
            }
            Err(error) => panic!("seed {seed}:\n{source}\n{error}"),
        };
        ran += 1;
        lines += state.lines.len();
        if outcome.events != state.lines {
            wrong.push(difference(seed, &source, &state, &outcome.events));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong[..wrong.len().min(8)].join("\n"));
    // Older kernels follow fewer ways: 2 of the first 15 expressions are too much for Linux 6.1.
    assert!(too_much * 5 < count, "{too_much} of {count} are too much for the verifier");
    assert!(lines >= ran, "{ran} programs printed only {lines} lines");
}

/// The first line that differs, with what prints it if that is a statement of its own.
fn difference(seed: u64, source: &str, state: &State, events: &[String]) -> String {
    let most = state.lines.len().max(events.len());
    let line = (0..most).find(|line| state.lines.get(*line) != events.get(*line)).unwrap_or_default();
    let of = |lines: &[String]| lines.get(line).cloned().unwrap_or_else(|| "nothing".to_owned());
    let prints: Vec<&str> = source.lines().filter(|line| line.starts_with("print")).collect();
    let whole = if prints.len() == source.lines().count() - HEAD_LINES { prints[line] } else { source };
    format!("seed {seed}, line {line}: {} is to be {}\n{whole}", of(events), of(&state.lines))
}

/// The lines that set variables.
const HEAD_LINES: usize = value::IntTy::ALL.len() + 1 + 3;

#[test]
fn expressions_have_the_values_that_the_language_gives_them() {
    compare(|maker| (0..EXPRESSIONS).map(|_| St::Print(vec![maker.ex(4), Ex::Literal(0)])).collect());
}

#[test]
fn statements_go_the_ways_that_the_language_gives_them() {
    compare(|maker| maker.stmts(5, 2, false));
}
