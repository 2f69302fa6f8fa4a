//! Tests of types, against compilers and damaged files.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod against_gcc;
mod common;
mod compressed;
mod damaged;
mod kernel_btf;
mod lazy_units;
mod line_bounds;
mod lines;
mod variables;
