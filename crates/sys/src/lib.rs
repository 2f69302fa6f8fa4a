//! The calls that no well-kept crate makes for us, and the only unsafe code of dptrace.
//!
//! What is unsafe here is pointers that the kernel reads and writes, memory that it shares with us, and code between `fork`
//! and `exec`. Every item's face is safe: lengths are checked, descriptors are owned, and a link ends when it is dropped.
//! Nothing here decides anything; what is attached to what is [`bpf-session`]'s.
//!
//! | module | holds |
//! |---|---|
//! | `apart` | calls that a SIGKILL does not break off |
//! | [`bpf`] | maps, programs, links (`bpf(2)`) |
//! | [`ring`] | the consumer's side of a BPF ring buffer |
//! | [`perf`] | perf events to attach programs to (`perf_event_open(2)`) |
//! | [`mount`] | file systems that are mounted nowhere |
//! | [`memory`] | memory that is zero until it is written |
//! | [`clock`] | the kernel's clock and the processor's |
//! | [`cpus`] | the kernel's lists of CPUs, and how many there can be |
//! | [`sched`] | where a thread runs, and how urgently |
//! | [`process`] | whether a process lives, and children that wait before they run their program |
//!
//! [`bpf-session`]: ../bpf_session/index.html

mod apart;
pub mod bpf;
pub mod clock;
pub mod cpus;
pub mod memory;
pub mod mount;
pub mod perf;
pub mod process;
pub mod ring;
pub mod sched;
