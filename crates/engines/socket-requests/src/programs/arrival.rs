//! Data that arrives, in the context of an interrupt or of the sender: `sk_data_ready(sk)`.

use bpf_insn::Reg::{R0, R1, R6, R7};
use bpf_insn::{AsmError, Code, JumpOp};
use bpf_program::emit::program;
use bpf_program::{Emit as _, argument, field};

use super::{Setting, begin, ends, event, send, slot};
use crate::layout::{PORTS, SOCKETS, SocketState, family, kind};

/// `RCV_SHUTDOWN` (`include/net/sock.h`).
const RECEIVE_SHUTDOWN: i32 = 1;
/// `TCP_LISTEN` (`include/net/tcp_states.h`).
const LISTEN: i32 = 10;

/// Makes the program:
///
/// ```text
/// if the peer has shut the connection down, which is no data: return
/// if the socket is known:
///     if data has arrived before: return
///     data has arrived
///     send (ARRIVED, socket)
/// if it is a connection to a port of ours:
///     remember it
///     send (ARRIVED, socket, ends)
/// ```
///
/// The listening socket itself is ready with each connection.
pub(super) fn arrived(setting: &Setting) -> Result<Code, AsmError> {
    let sock = &setting.facts.sock;
    program(|asm, end| {
        let [new, internet] = ["new", "internet"].map(|name| asm.label(name));
        asm.get(R6, argument(R1, 0))
            .get(R1, sock.shutdown.at(R6))
            .jump_if(R1, JumpOp::Set, RECEIVE_SHUTDOWN, end);
        asm.put(slot!(socket), R6)
            .lookup_or(SOCKETS, slot!(socket), new);
        let has_arrived = field!(R7, SocketState, has_arrived);
        asm.mov(R7, R0)
            .get(R1, has_arrived)
            .jump_if(R1, JumpOp::Ne, 0, end);
        begin(asm, kind::ARRIVED);
        asm.comment("the same socket?")
            .get(R1, field!(R7, SocketState, cookie))
            .jump_if(R0, JumpOp::Ne, R1, new);
        asm.put(has_arrived, 1);
        send(asm, setting);
        asm.jump(end).bind(new).comment("a port of ours?");
        asm.get(R1, sock.family.at(R6))
            .jump_if(R1, JumpOp::Eq, i32::from(family::INET), internet)
            .jump_if(R1, JumpOp::Ne, i32::from(family::INET6), end)
            .bind(internet)
            .get(R1, sock.state.at(R6))
            .jump_if(R1, JumpOp::Eq, LISTEN, end);
        asm.get(R1, sock.own_port.at(R6))
            .put(slot!(port), R1)
            .lookup_or(PORTS, slot!(port), end);
        begin(asm, kind::ARRIVED);
        ends(asm, setting, end);
        asm.copy(event!(cookie), slot!(state.cookie))
            .put(slot!(state.has_arrived), 1);
        asm.update(SOCKETS, slot!(socket), slot!(state), 0);
        send(asm, setting);
    })
}
