//! Tests of the compiler, on the interpreter.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod compiler;
mod language_doc;
