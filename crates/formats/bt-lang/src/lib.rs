//! The bpftrace language: text in, a syntax tree and diagnostics out.
//!
//! This crate opens no file and knows nothing about the machine. It parses a script; the compiler
//! resolves names and checks types.
//!
//! | module | holds |
//! |---|---|
//! | [`ast`] | the tree, and [`ast::visit`] to walk it |
//! | [`parser`] | from text to a tree and diagnostics; it never fails |
//! | [`conditions`] | `#ifdef` and so on applied |
//! | [`macros`] | macros expanded |
//! | [`fmt`] | a tree as a script, in one style |
//! | [`dump`] | a tree as `(kind part part)` |
//! | [`diag`], [`render`] | diagnostics, and how they are printed |
//!
//! The language is that of bpftrace's manual and tests, versions 0.17 to 0.27. Where versions
//! differ, both forms are accepted. The parser also accepts some harmless extensions: items in any
//! order, `,` in `config`, `'a'` as a number, any two sums as the ends of a range in `for`, and C
//! names of types (`unsigned long`) everywhere.
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
pub mod inputs;
mod lexer;
pub mod macros;
mod names;
pub mod parser;
pub mod render;

pub use ast::Span;
pub use diag::{Diagnostic, Severity};
pub use names::nearest;
pub use parser::{Options, Parsed, parse, parse_expression, parse_statements, parse_with};
