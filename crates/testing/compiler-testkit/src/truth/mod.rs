//! Compares the results of programs with the expected ones: random expressions and statements,
//! whose values follow from independently written rules.

mod make;
mod tree;
mod value;

use std::fmt::Write as _;

use make::Maker;
use tree::{Expr, Stmt, run};

/// Number of expressions in a program.
const EXPRESSIONS: usize = 20;
/// Number of lines that set variables.
const HEAD_LINES: usize = value::IntTy::ALL.len() + 1 + 3;

/// Contents of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Expressions, each printed.
    Expressions,
    /// Statements of all kinds.
    Statements,
}

/// A random program and its expected output.
#[derive(Clone, Debug)]
pub struct Truth {
    /// Seed of the program.
    pub seed: u64,
    /// Statements, one per line.
    pub body: String,
    /// Expected lines of output.
    pub lines: Vec<String>,
}

impl Truth {
    /// Generates the program for this seed.
    pub fn new(kind: Kind, seed: u64) -> Self {
        let mut maker = Maker::new(seed);
        let (mut state, mut body) = maker.beginning();
        let stmts = match kind {
            Kind::Expressions => (0..EXPRESSIONS)
                .map(|_| Stmt::Print(vec![maker.ex(4), Expr::Literal(0)]))
                .collect(),
            Kind::Statements => maker.stmts(5, 2, false),
        };
        for stmt in &stmts {
            let _ = writeln!(body, "{stmt}");
        }
        run(&stmts, &mut state);
        Self {
            seed,
            body,
            lines: state.lines,
        }
    }

    /// Returns the script.
    pub fn script(&self) -> String {
        format!("begin {{\n{}}}", self.body)
    }

    /// Returns the first line that differs, with the statement that prints it if that is separate.
    /// `None` if all are equal.
    pub fn difference(&self, events: &[String]) -> Option<String> {
        let most = self.lines.len().max(events.len());
        let line = (0..most).find(|line| self.lines.get(*line) != events.get(*line))?;
        let of = |lines: &[String]| {
            lines
                .get(line)
                .cloned()
                .unwrap_or_else(|| "nothing".to_owned())
        };
        let prints: Vec<&str> = self
            .body
            .lines()
            .filter(|line| line.starts_with("print"))
            .collect();
        let whole = if prints.len() == self.body.lines().count() - HEAD_LINES {
            prints[line]
        } else {
            &self.body
        };
        Some(format!(
            "seed {}, line {line}: {} is to be {}\n{whole}",
            self.seed,
            of(events),
            of(&self.lines)
        ))
    }
}
