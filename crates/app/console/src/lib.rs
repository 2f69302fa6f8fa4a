//! Standard output and standard error of the program, and its end by a signal.
//!
//! All commands print through these modules, so that a message, a status line and a table on one
//! terminal do not mix, and a signal ends each command in the same way. The state belongs to the
//! process, as its streams and its signals do; this is the only crate that keeps any.
//!
//! | module | holds |
//! |---|---|
//! | `output` | standard output or a file that is whole or absent |
//! | `messages` | errors, warnings and notes |
//! | `status_line` | the progress of work, on a terminal |
//! | `interrupt` | signals: a command's time to finish, and its end |
//! | `full_screen`, `cells` | a screen of cells, keys and the mouse |
//! | `own_process` | another process of this program, which ends with it |
//! | `stacks` | the file of a profile |
//! | `terminal` | output, messages and signals as engines see them |
#![forbid(unsafe_code)]

mod cells;
pub mod full_screen;
pub mod interrupt;
pub mod messages;
pub mod output;
pub mod own_process;
pub mod stacks;
pub mod status_line;
pub mod terminal;
