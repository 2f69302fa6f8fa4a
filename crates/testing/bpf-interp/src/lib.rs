//! An interpreter of BPF programs, for tests without a kernel. Never linked into the product.
//!
//! It takes programs as the assembler makes them ([`bpf_insn::Code`], maps and subprograms still named) and runs them on a
//! made-up machine: maps, a ring buffer, a task, clocks, a process's memory and the kernel's. It is stricter than a CPU:
//! what the verifier would refuse and a program can show by running is a [`Fault`] with the place of the instruction. So are
//! reads of registers and stack bytes that nothing has written, accesses outside of what a pointer points to, records of the
//! ring that are neither submitted nor discarded, helpers and map kinds that it does not know.
//!
//! What it does not do is the verifier's other half: it follows the one way that a run takes, so a program that runs here may
//! still be refused by a kernel. Tests that load programs stay with `bpf-session`.
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
//! | `fault` | what a program did wrong, and where |
#![forbid(unsafe_code)]

mod alu;
mod exec;
mod fault;
mod foreign;
mod helpers;
mod machine;
mod maps;
mod memory;

pub use exec::Program;
pub use fault::{Fault, Place, Wrong};
pub use machine::{Machine, Printed, Task};
