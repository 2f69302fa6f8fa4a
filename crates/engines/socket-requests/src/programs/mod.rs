//! Programs that send the events of the process's sockets.
//!
//! The tracepoints of the socket layer show each receive and each send of a socket whatever system
//! call led to it, those of io_uring and sendfile(2) included, and when data has arrived
//! (`include/trace/events/sock.h`): `sock_recv_length(sk, ret, flags)`,
//! `sock_send_length(sk, ret, flags)`, `sk_data_ready(sk)`. All three are in Linux 6.3 and later.
//!
//! In all programs r6 is the context, and then the socket. The event is made on the stack.

mod operation;
mod text;

use bpf_insn::Reg::{R0, R1, R6, R7};
use bpf_insn::{Asm, AsmError, Code, Helper, JumpOp};
use bpf_program::emit::program;
use bpf_program::event as ring;
use bpf_program::{Emit as _, Module, argument, field};
use sched_programs::{Hook, OwnTaskCheck, ProcessStack, Processes, SchedError, hooks};

use crate::facts::SocketFacts;
use crate::layout::{self, Event, SOCKETS, SocketState, kind};

/// Setting that the programs are made for.
pub(crate) struct Setting {
    facts: SocketFacts,
    processes: Processes,
    ring_bytes: u32,
}

/// Stack of all programs.
#[repr(C)]
struct Stack {
    /// Slots for [`OwnTaskCheck`]; unused for a single process.
    processes: ProcessStack,
    /// Address of the socket, as a key.
    socket: u64,
    /// New value of the map of sockets.
    state: SocketState,
    /// Address in the process's memory.
    pointer: u64,
    /// Event to send.
    event: Event,
}

/// Slot of the stack: `slot!(socket)`.
macro_rules! slot {
    ($($field:tt)+) => { bpf_program::slot!($crate::programs::Stack, $($field)+) };
}
use slot;

/// Field of the event on the stack: `event!(at)`.
macro_rules! event {
    ($($field:tt)+) => { bpf_program::slot!($crate::programs::Stack, event.$($field)+) };
}
use event;

impl Setting {
    /// Returns the test whether a task belongs to the process.
    fn ours(&self) -> OwnTaskCheck {
        OwnTaskCheck {
            processes: self.processes,
            task: self.facts.task(),
            stack: slot!(processes),
        }
    }
}

/// `RCV_SHUTDOWN` (`include/net/sock.h`).
const RECEIVE_SHUTDOWN: i32 = 1;

/// Tracepoints that the source cannot do without.
const REQUIRED_TRACEPOINTS: [&str; 2] = ["sock_recv_length", "sock_send_length"];

/// Hooks to attach.
const HOOKS: [Hook<Setting>; 3] = [
    Hook::typed("sock_recv_length", operation::received),
    Hook::typed("sock_send_length", operation::sent),
    Hook::typed("sk_data_ready", arrived),
];

/// Returns the tracepoints to which programs are attached.
pub(crate) fn tracepoints() -> impl Iterator<Item = &'static str> {
    HOOKS.iter().map(|hook| hook.tracepoint)
}

/// Makes the maps and the programs.
pub(crate) fn module(
    facts: SocketFacts,
    processes: Processes,
    ring_bytes: u32,
) -> Result<Module, SchedError> {
    let setting = Setting {
        facts,
        processes,
        ring_bytes,
    };
    let tracepoints = &setting.facts.kernel.tracepoints;
    let programs = hooks::programs(&HOOKS, &REQUIRED_TRACEPOINTS, &setting, tracepoints)?;
    Ok(Module {
        maps: layout::maps(ring_bytes),
        programs,
        ..Module::default()
    })
}

/// Begins an event of that kind for the socket r6, with its time. Other fields are 0.
fn begin(asm: &mut Asm, kind: u32) {
    asm.clear(slot!(event))
        .put(event!(kind), kind)
        .comment("when")
        .call(Helper::KTIME_GET_BOOT_NS)
        .put(event!(at), R0);
    asm.comment("which")
        .mov(R1, R6)
        .call(Helper::GET_SOCKET_COOKIE)
        .put(event!(cookie), R0);
}

/// Sends the event, or counts it as lost.
fn send(asm: &mut Asm, setting: &Setting) {
    ring::output(asm, slot!(event), setting.ring_bytes);
    asm.unless(R0, JumpOp::Eq, 0, ring::count_lost);
}

/// Makes the program of data that arrives, in the context of an interrupt or of the sender:
///
/// ```text
/// if the socket is none of ours, or data has arrived before: return
/// if the peer has shut the connection down, which is no data: return
/// send (ARRIVED, socket)
/// ```
fn arrived(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, end| {
        asm.get(R6, argument(R1, 0))
            .put(slot!(socket), R6)
            .comment("ours?")
            .lookup_or(SOCKETS, slot!(socket), end);
        let has_arrived = field!(R7, SocketState, has_arrived);
        asm.mov(R7, R0)
            .get(R1, setting.facts.sock.shutdown.at(R6))
            .jump_if(R1, JumpOp::Set, RECEIVE_SHUTDOWN, end)
            .get(R1, has_arrived)
            .jump_if(R1, JumpOp::Ne, 0, end);
        begin(asm, kind::ARRIVED);
        asm.comment("the same socket?")
            .get(R1, field!(R7, SocketState, cookie))
            .jump_if(R0, JumpOp::Ne, R1, end);
        asm.put(has_arrived, 1);
        send(asm, setting);
    })
}

#[cfg(test)]
mod tests;
