//! The text of instructions, in the form of `llvm-objdump -d` (LLVM 16 and newer, `--mcpu=v4`).
//!
//! The `Display` of [`Insn`](crate::Insn) prints one instruction, and [`Listing`] a function:
//! slots, labels, and after a semicolon the meaning of the instruction: the name of a helper or a
//! map, the compiler's comment, the bytes of the script.

mod listing;
mod text;

pub use listing::Listing;
