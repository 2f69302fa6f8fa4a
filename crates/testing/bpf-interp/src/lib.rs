//! An interpreter of BPF programs, for tests without a kernel. Never linked into the product.
//!
//! It takes programs from the assembler ([`bpf_insn::Code`], with maps and subprograms by name) and
//! runs them on a made-up machine: maps, a ring buffer, a task, clocks, and the memory of a process
//! and of the kernel. It is stricter than a CPU: errors that the verifier would reject, if they
//! show at run time, are a [`Fault`] with the position of the instruction. These include reads of
//! unwritten registers and stack bytes, accesses outside of the memory that a pointer points to,
//! ring records that are neither submitted nor discarded, and unknown helpers and map kinds.
//!
//! It lacks the verifier's other half: it follows only the path of one run, so a kernel may still
//! reject a program that runs here. Tests that load programs stay with `bpf-session`.
//!
//! ```
//! use bpf_insn::{Asm, Helper, Reg::*};
//! use bpf_interp::{Machine, Program};
//!
//! let mut asm = Asm::new();
//! asm.call(Helper::GET_CURRENT_PID_TGID).rsh(R0, 32).exit();
//! let code = asm.finish()?;
//! let mut machine = Machine::new(&[])?;
//! machine.task.tgid = 4711;
//! assert_eq!(machine.run(&Program::new("pid", &code), &[])?, 4711);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `machine` | the machine: what helpers answer, and what programs leave behind |
//! | `memory` | a program's own memory, in regions whose bounds are checked |
//! | `foreign` | the memory of a process and of the kernel, for the helpers that read it |
//! | `maps` | maps by kind |
//! | `exec` | registers, frames, instructions |
//! | `alu` | arithmetic and comparisons |
//! | `helpers` | the kernel's helper functions |
//! | `counts` | the number of instructions of programs, held against a file |
//! | `fault` | what a program did wrong, and where |
#![forbid(unsafe_code)]

mod alu;
mod counts;
mod exec;
mod fault;
mod foreign;
mod helpers;
mod machine;
mod maps;
mod memory;

pub use counts::check_counts;
pub use exec::Program;
pub use fault::{Fault, Place, Wrong};
pub use machine::{Machine, Printed, Task};
