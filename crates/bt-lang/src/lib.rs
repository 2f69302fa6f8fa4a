//! The bpftrace language: text in, a syntax tree and diagnostics out.
//!
//! This room opens no file and knows no machine. It says what a script *says*; what a name means, and whether its types
//! agree, is the compiler's to find out.
#![forbid(unsafe_code)]

pub mod ast;
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
