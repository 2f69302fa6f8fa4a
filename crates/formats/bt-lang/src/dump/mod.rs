//! The tree as text, for `--dump ast` and for tests: `(kind part part)`.
//!
//! The text contains everything in a tree except spans, comments and the spelling of numbers, so
//! two trees with the same text have the same meaning. Each item and statement is on its own line.

mod expr;
mod item;
mod stmt;

use crate::ast::Program;

/// Prints the tree of a script.
pub fn dump(program: &Program) -> String {
    let mut out = Dump::default();
    if let Some(header) = &program.header {
        out.leaf("header", &quoted(&header.text));
        out.line();
    }
    for item in &program.items {
        out.item(item);
        out.line();
    }
    out.out.trim().to_owned() + "\n"
}

#[derive(Default)]
struct Dump {
    out: String,
    indent: usize,
}

impl Dump {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Begins a new line.
    fn line(&mut self) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n("  ", self.indent));
    }

    /// Prints `(word rest)`; `rest` prints its own blanks.
    fn node(&mut self, word: &str, rest: impl FnOnce(&mut Self)) {
        self.push("(");
        self.push(word);
        rest(self);
        self.push(")");
    }

    /// Prints `(word text)`.
    fn leaf(&mut self, word: &str, text: &str) {
        self.push(&format!("({word} {text})"));
    }

    /// Prints a blank and one part of a node.
    fn part(&mut self, print: impl FnOnce(&mut Self)) {
        self.push(" ");
        print(self);
    }

    /// Prints a blank and a word.
    fn word(&mut self, text: &str) {
        self.push(" ");
        self.push(text);
    }

    /// Prints each part on a line of its own.
    fn lines<T>(&mut self, list: &[T], mut print: impl FnMut(&mut Self, &T)) {
        self.indent += 1;
        for part in list {
            self.line();
            print(self, part);
        }
        self.indent -= 1;
    }
}

/// Quotes text and escapes control characters.
fn quoted(text: &str) -> String {
    crate::lexer::text::quote(text.as_bytes())
}
