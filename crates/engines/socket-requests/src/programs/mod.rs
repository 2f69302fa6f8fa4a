//! Programs that send the events of the process's sockets.
//!
//! The tracepoints of the socket layer show each receive and each send of a socket whatever system
//! call led to it, those of io_uring and sendfile(2) included, and when data has arrived
//! (`include/trace/events/sock.h`): `sock_recv_length(sk, ret, flags)`,
//! `sock_send_length(sk, ret, flags)`, `sk_data_ready(sk)`. All three are in Linux 6.3 and later.
//!
//! In all programs r6 is the context, and then the socket. The event is made on the stack.

mod arrival;
mod operation;
mod text;

use bpf_insn::Reg::{R0, R1, R2, R3, R6};
use bpf_insn::{Asm, Helper, JumpOp, Label};
use bpf_program::event as ring;
use bpf_program::{Emit as _, Module};
use sched_programs::processes::FORK;
use sched_programs::{Hook, OwnTaskCheck, ProcessStack, Processes, SchedError, hooks};

use crate::facts::SocketFacts;
use crate::layout::{self, Event, SocketState, family};

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
    /// Port as a key.
    port: u32,
    /// Current thread.
    tid: u32,
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

/// Tracepoints that the source cannot do without.
const REQUIRED_TRACEPOINTS: [&str; 2] = ["sock_recv_length", "sock_send_length"];

/// Hooks to attach.
const HOOKS: [Hook<Setting>; 4] = [
    Hook::typed("sock_recv_length", operation::received),
    Hook::typed("sock_send_length", operation::sent),
    Hook::typed("sk_data_ready", arrival::arrived),
    Hook::typed(FORK, |setting| {
        // A process for which there is no room has none of its requests seen.
        setting.ours().follow_children(ring::count_lost)
    }),
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
    let follows = processes.with_children();
    let hooks = HOOKS
        .iter()
        .filter(|hook| follows || hook.tracepoint != FORK);
    let programs = hooks::programs(hooks, &REQUIRED_TRACEPOINTS, &setting, tracepoints)?;
    let mut maps = layout::maps(ring_bytes);
    maps.extend(processes.map());
    Ok(Module {
        maps,
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

/// Fills in the ends of the connection; goes to `others` for a family without connections that we
/// know.
fn ends(asm: &mut Asm, setting: &Setting, others: Label) {
    let sock = &setting.facts.sock;
    let [internet, unix, done] = ["internet", "unix", "ends"].map(|name| asm.label(name));
    asm.get(R1, sock.family.at(R6)).put(event!(ends.family), R1);
    asm.jump_if(R1, JumpOp::Eq, i32::from(family::UNIX), unix)
        .jump_if(R1, JumpOp::Eq, i32::from(family::INET), internet)
        .jump_if(R1, JumpOp::Ne, i32::from(family::INET6), others);
    asm.copy(sock.peer6.at(R6), event!(ends.peer6))
        .copy(sock.own6.at(R6), event!(ends.own6))
        .bind(internet)
        .copy(sock.peer4.at(R6), event!(ends.peer4))
        .copy(sock.own4.at(R6), event!(ends.own4));
    asm.copy(sock.peer_port.at(R6), event!(ends.peer_port))
        .copy(sock.own_port.at(R6), event!(ends.own_port))
        .jump(done)
        .bind(unix);
    if let Some(address) = sock.unix_address {
        // The verifier knows only a `struct sock`.
        asm.put(slot!(pointer), 0)
            .mov(R3, R6)
            .add(R3, address.offset())
            .address(R1, slot!(pointer))
            .mov(R2, 8)
            .call(Helper::PROBE_READ_KERNEL);
        asm.get(R1, slot!(pointer)).if_(R1, JumpOp::Ne, 0, |asm| {
            _ = asm.put(event!(ends.is_named), 1);
        });
    }
    asm.bind(done);
}

#[cfg(test)]
mod tests;
