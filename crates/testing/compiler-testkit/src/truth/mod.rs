//! What programs work out, beside what they should: random expressions and statements with the values that rules of our own
//! give them, to be compared with what a compiled program prints.

mod make;
mod tree;
mod value;

use std::fmt::Write as _;

use make::Maker;
use tree::{Expr, Stmt, run};

/// How many expressions a program has.
const EXPRESSIONS: usize = 20;
/// The lines that set variables.
const HEAD_LINES: usize = value::IntTy::ALL.len() + 1 + 3;

/// What a program is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Expressions, each printed.
    Expressions,
    /// Statements of all kinds.
    Statements,
}

/// A random program, and what it is to print.
#[derive(Clone, Debug)]
pub struct Truth {
    /// What it was made of.
    pub seed: u64,
    /// Its statements, a line each.
    pub body: String,
    /// The lines that it prints.
    pub lines: Vec<String>,
}

impl Truth {
    /// The program of this number.
    pub fn new(kind: Kind, seed: u64) -> Self {
        let mut maker = Maker::new(seed);
        let (mut state, mut body) = maker.beginning();
        let stmts = match kind {
            Kind::Expressions => (0..EXPRESSIONS).map(|_| Stmt::Print(vec![maker.ex(4), Expr::Literal(0)])).collect(),
            Kind::Statements => maker.stmts(5, 2, false),
        };
        for stmt in &stmts {
            let _ = writeln!(body, "{stmt}");
        }
        run(&stmts, &mut state);
        Self { seed, body, lines: state.lines }
    }

    /// The script.
    pub fn script(&self) -> String {
        format!("begin {{\n{}}}", self.body)
    }

    /// The first line that differs, with what prints it if that is a statement of its own. Nothing if there is none.
    pub fn difference(&self, events: &[String]) -> Option<String> {
        let most = self.lines.len().max(events.len());
        let line = (0..most).find(|line| self.lines.get(*line) != events.get(*line))?;
        let of = |lines: &[String]| lines.get(line).cloned().unwrap_or_else(|| "nothing".to_owned());
        let prints: Vec<&str> = self.body.lines().filter(|line| line.starts_with("print")).collect();
        let whole = if prints.len() == self.body.lines().count() - HEAD_LINES { prints[line] } else { &self.body };
        Some(format!("seed {}, line {line}: {} is to be {}\n{whole}", self.seed, of(events), of(&self.lines)))
    }
}
