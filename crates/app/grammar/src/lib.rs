//! Everything that is made from a command line's grammar, as `clap` has it: help, man pages, and
//! completion while a line is typed.
//!
//! | module | makes |
//! |---|---|
//! | `help` | `-h` and `--help` |
//! | `man` | pages in the form of man(7) |
//! | `complete` | the completions of a word |
//! | `instead` | suggestions for unknown words |
//! | `time` | the message for a time of two words |
#![forbid(unsafe_code)]

pub mod complete;
pub mod help;
pub mod instead;
pub mod man;
pub mod time;
