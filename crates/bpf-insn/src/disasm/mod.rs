//! The text of instructions, in the form of `llvm-objdump -d` (LLVM 16 and newer, `--mcpu=v4`).
//!
//! [`Insn`](crate::Insn)'s `Display` gives one instruction's text, [`Listing`] a function's: slots, labels, and behind a
//! semicolon what the instruction means: a helper's name, a map's, the compiler's note, the bytes of the script.

mod listing;
mod text;

pub use listing::Listing;
