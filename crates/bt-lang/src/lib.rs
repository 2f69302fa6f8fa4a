//! The bpftrace language: text in, a syntax tree and diagnostics out.
//!
//! This room opens no file and knows no machine. It says what a script *says*; what a name means, and whether its types
//! agree, is the compiler's to find out.
//!
//! | module | holds |
//! |---|---|
//! | [`ast`] | the tree, and [`ast::visit`] to walk it |
//! | [`parser`] | from text to a tree and diagnostics; it never fails |
//! | [`conditions`] | `#ifdef` and its like heeded |
//! | [`macros`] | macros expanded |
//! | [`fmt`] | a tree as a script, in one style |
//! | [`dump`] | a tree as `(kind part part)` |
//! | [`diag`], [`render`] | what is wrong, and how it is shown |
//!
//! The language is bpftrace's, of its manual and its own tests, versions 0.17 to 0.27: where they differ, both are read. It
//! is a little wider where a narrower reading helps nobody: items come in any order, `config` takes `,` too, `'a'` is a
//! number, a `for` walks a range between any two sums, C names of types (`unsigned long`) may stand anywhere.
//!
//! ```
//! let parsed = bt_lang::parse("kprobe:f { @x[pid] = count( }");
//! let source = bt_lang::render::Source::new("my.bt", "kprobe:f { @x[pid] = count( }");
//! let text = bt_lang::render::render(&parsed.diagnostics[0], &source, false);
//! assert_eq!(text.lines().next(), Some("error: expected an expression, found `}`"));
//! ```
#![forbid(unsafe_code)]

pub mod ast;
pub mod conditions;
pub mod diag;
pub mod dump;
pub mod fmt;
mod lexer;
pub mod macros;
mod names;
pub mod parser;
pub mod render;

pub use ast::Span;
pub use diag::{Diagnostic, Severity};
pub use names::nearest;
pub use parser::{Options, Parsed, parse, parse_with};
