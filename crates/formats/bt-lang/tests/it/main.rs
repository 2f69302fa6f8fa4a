//! Tests of the language's parser, formatter and macros.

mod common;
mod formatting;
mod macros;
mod mistakes;
mod properties;
mod trees;
