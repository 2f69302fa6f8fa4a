//! Names for addresses, and addresses for names. [`UserSymbols`] finds the functions at addresses
//! of processes, with inlined functions and source lines on request; [`KernelSymbols`] those of the
//! kernel; [`StackWalkers`] the addresses of copied stacks; [`ProcessVariables`] the variables of a
//! process, with their types.
//!
//! Files are read through `host`, which holds them to regular files of bounded size; `typeinfo`
//! bounds the cost of their tables. Nothing is printed: the caller's function gets a [`Warning`]
//! for each omission. Names come as files have them; code that prints them must escape them.
#![forbid(unsafe_code)]

mod symbol;
mod unwind;
mod unwind_tables;
mod user;
mod variables;
mod walkers;
mod warning;

pub use host::KernelSymbols;
pub use symbol::{CodeAt, SourcePlace, Symbol, UnnamedCode};
pub use unwind::{MAX_ADDRESSES, StackEnd, WalkedStack};
pub use user::{DebugFolders, SymbolOptions, UserSymbols};
pub use variables::{ProcessGlobals, ProcessVariables, TypesFile};
pub use walkers::StackWalkers;
pub use warning::{Warn, Warning, ignore, once};
