//! Names for addresses, and addresses for names. [`UserSymbols`] finds the functions at addresses of processes, with inlined
//! functions and source lines where they are wanted; [`KernelSymbols`] those of the kernel; [`StackWalkers`] the addresses of
//! copied stacks; [`ProcessVariables`] the variables of a process, with their types.
//!
//! Files are read through `host`, which holds them to regular files of bounded size; what their tables may cost is bounded by
//! `typeinfo`. Nothing is printed: what is left out is reported as a [`Warning`] to the caller's function. Names come as files
//! have them; whoever prints them escapes them.
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
