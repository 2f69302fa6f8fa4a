//! The formatter: a tree as text, in one style.
//!
//! Invariants: the text parses to the same tree, and formatting it again changes nothing. Comments are kept. Between
//! statements and items they keep their place; a comment within an expression moves to the end of its statement. Empty lines
//! between two statements or items become one. Long lines are not broken.

mod cdef;
mod expr;
mod item;
mod stmt;

use crate::ast::{Comment, Program};

/// The script as text. `source` is what the tree was parsed from, for the empty lines in it; it may be empty.
pub fn format(program: &Program, source: &str) -> String {
    let mut out = Printer { out: String::new(), indent: 0, source, comments: &program.comments };
    out.program(program);
    out.out
}

struct Printer<'a> {
    out: String,
    indent: usize,
    source: &'a str,
    /// The comments that are still to be printed.
    comments: &'a [Comment],
}

impl Printer<'_> {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Ends a line.
    fn end(&mut self) {
        self.out.push('\n');
    }

    /// Begins a line.
    fn begin(&mut self) {
        self.out.extend(std::iter::repeat_n("  ", self.indent));
    }

    /// Prints the comments before an offset. The output is at the beginning of a line, before and after.
    fn comments_before(&mut self, offset: u32) {
        while let [comment, rest @ ..] = self.comments {
            if comment.span.start >= offset {
                return;
            }
            self.comments = rest;
            // A text that began with one, and had none of its own lines.
            if comment.own_line || self.out.is_empty() {
                self.blank_before(comment.span.start);
                self.begin();
                self.push(&comment.text);
                self.end();
            } else {
                self.out.truncate(self.out.trim_end_matches('\n').len());
                self.push(" ");
                self.push(&comment.text);
                self.end();
            }
        }
    }

    /// An empty line, if there was one before this offset and the block doesn't begin here.
    fn blank_before(&mut self, offset: u32) {
        let before = self.source.get(..offset as usize).unwrap_or_default();
        let blank = &before[before.trim_end().len()..];
        if blank.matches('\n').count() > 1 {
            self.blank();
        }
    }

    /// An empty line, if a line may be empty here.
    fn blank(&mut self) {
        let begins = self.out.is_empty() || self.out.ends_with("{\n") || self.out.ends_with("\n\n");
        if !begins {
            self.end();
        }
    }
}
