//! The system calls that no well-maintained crate wraps, and the only unsafe code of dptrace.
//!
//! The code is unsafe because of pointers that the kernel reads and writes, memory that the kernel
//! shares with us, and code between `fork` and `exec`. Every public interface is safe: lengths are
//! checked, descriptors are owned, and a link is closed when it is dropped. This crate makes no
//! decisions; [`bpf-session`] decides what is attached to what.
//!
//! | module | holds |
//! |---|---|
//! | `apart` | calls that a SIGKILL does not interrupt |
//! | [`bpf`] | maps, programs, links (`bpf(2)`) |
//! | [`ring`] | the consumer's side of a BPF ring buffer |
//! | [`perf`] | perf events to attach programs to (`perf_event_open(2)`) |
//! | [`mount`] | file systems that are mounted nowhere |
//! | [`memory`] | memory that is zero until it is written |
//! | [`clock`] | the kernel's clock and the processor's |
//! | [`CodeLog`] | the code that a process maps, as the kernel reports it (`perf_event_open(2)`) |
//! | [`cpus`] | the kernel's lists of CPUs, and how many there can be |
//! | [`sched`] | the CPUs and the priority of a thread |
//! | [`remote`] | the memory of other processes, read without stopping them (`process_vm_readv(2)`) |
//! | [`process`] | whether a process is alive, and child processes that wait before they execute their program |
//!
//! [`bpf-session`]: ../bpf_session/index.html

pub mod allocator;
mod apart;
pub mod bpf;
pub mod clock;
mod code_log;
pub mod cpus;
pub mod memory;
pub mod mount;
pub mod perf;
pub mod process;
pub mod remote;
pub mod ring;
pub mod sched;

pub use code_log::{CodeEvent, CodeLog, MappedCode};
