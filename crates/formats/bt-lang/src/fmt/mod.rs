//! The formatter: a tree as text, in one style.
//!
//! Invariants: the text parses to the same tree, and formatting it again changes nothing. Comments
//! are kept. Between statements and items they keep their position; a comment within an expression
//! moves to the end of its statement. Empty lines between two statements or items become one. Long
//! lines are not broken.

mod cdef;
mod expr;
mod item;
mod stmt;

use crate::ast::{Comment, Program};

/// Formats the script. `source` is the text of the tree, for the empty lines in it; it may be
/// empty.
pub fn format(program: &Program, source: &str) -> String {
    let mut out = Printer {
        out: String::new(),
        indent: 0,
        source,
        comments: &program.comments,
    };
    out.program(program);
    out.out
}

struct Printer<'a> {
    out: String,
    indent: usize,
    source: &'a str,
    /// Comments not yet printed.
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

    /// Indents a new line.
    fn begin(&mut self) {
        self.out.extend(std::iter::repeat_n("  ", self.indent));
    }

    /// Prints the comments before an offset. The output is at the start of a line, before and
    /// after.
    fn comments_before(&mut self, offset: u32) {
        while let [comment, rest @ ..] = self.comments {
            if comment.span.start >= offset {
                return;
            }
            self.comments = rest;
            // An empty output has no line for a trailing comment.
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

    /// Prints an empty line if the source has one before this offset and no block begins here.
    fn blank_before(&mut self, offset: u32) {
        let before = self.source.get(..offset as usize).unwrap_or_default();
        let blank = &before[before.trim_end().len()..];
        if blank.matches('\n').count() > 1 {
            self.blank();
        }
    }

    /// Prints an empty line, unless the output or a block begins here, or the last line is empty.
    fn blank(&mut self) {
        let begins = self.out.is_empty() || self.out.ends_with("{\n") || self.out.ends_with("\n\n");
        if !begins {
            self.end();
        }
    }
}
