//! Receives and sends: `sock_recv_length(sk, ret, flags)`, `sock_send_length(sk, ret, flags)`.

use bpf_insn::Reg::{R0, R1, R2, R6, R7, R9};
use bpf_insn::{Asm, AsmError, Code, JumpOp, Label};
use bpf_program::emit::program;
use bpf_program::{Emit as _, argument, field};

use super::{Setting, begin, ends, event, send, slot, text};
use crate::layout::{SOCKETS, SocketState, kind};

/// `SOCK_STREAM` (`include/linux/net.h`).
const STREAM: i32 = 1;
/// `MSG_PEEK`: the data is received again later (`include/linux/socket.h`).
const PEEK: i32 = 2;

/// Makes the program of a receive:
///
/// ```text
/// if nothing was received, or the data was only looked at: return
/// if the task is not ours, or the socket is not one of connections: return
/// remember the socket: all data that arrived is received
/// send (RECEIVED, socket, thread, bytes, ends, first bytes)
/// ```
///
/// A receive may leave data in the socket. Then more data makes no difference to the server.
pub(super) fn received(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, end| {
        asm.mov(R6, R1)
            .get(R1, argument(R6, 2))
            .jump_if(R1, JumpOp::Set, PEEK, end);
        ours(asm, setting, kind::RECEIVED, end);
        ends(asm, setting, end);
        text::read(asm, setting);
        send(asm, setting);
    })
}

/// Makes the program of a send:
///
/// ```text
/// if nothing was sent: return
/// if the task is not ours, or the socket is not one of connections: return
/// remember the socket
/// send (SENT, socket, thread, bytes)
/// ```
pub(super) fn sent(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, end| {
        asm.mov(R6, R1);
        ours(asm, setting, kind::SENT, end);
        send(asm, setting);
    })
}

/// Begins the event, and goes to `others` if there is none. r6 becomes the socket, r7 the number of
/// bytes.
fn ours(asm: &mut Asm, setting: &Setting, kind: u32, others: Label) {
    let sock = &setting.facts.sock;
    asm.comment("how much?")
        .get(R7, argument(R6, 1))
        .low_half(R7);
    asm.jump_if(R7, JumpOp::Eq, 0, others)
        .comment("an error")
        .jump_if(R7, JumpOp::Gt, i32::MAX, others)
        .get(R6, argument(R6, 0))
        .comment("connections?")
        .get(R1, sock.kind.at(R6))
        .jump_if(R1, JumpOp::Ne, STREAM, others);
    setting
        .ours()
        .unless_current(asm, true, (R9, slot!(tid)), others);
    begin(asm, kind);
    asm.put(event!(bytes), R7).copy(slot!(tid), event!(tid));
    remember(asm, kind == kind::RECEIVED);
}

/// Remembers the socket r6. After a receive, nothing has arrived.
fn remember(asm: &mut Asm, is_received: bool) {
    let (new, known) = (asm.label("new"), asm.label("known"));
    asm.put(slot!(socket), R6)
        .lookup_or(SOCKETS, slot!(socket), new);
    asm.get(R1, field!(R0, SocketState, cookie))
        .get(R2, event!(cookie))
        .jump_if(R1, JumpOp::Ne, R2, new);
    if is_received {
        asm.put(field!(R0, SocketState, has_arrived), 0);
    }
    asm.jump(known)
        .bind(new)
        .copy(event!(cookie), slot!(state.cookie))
        .put(slot!(state.has_arrived), 0);
    asm.update(SOCKETS, slot!(socket), slot!(state), 0)
        .bind(known);
}
