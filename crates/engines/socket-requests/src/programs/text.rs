//! First bytes of what was received, from the process's memory: the operation of the request.

use bpf_insn::Reg::{R0, R1, R2, R3, R7, R8, R9};
use bpf_insn::{Asm, Helper, JumpOp, Label};
use bpf_program::{Emit as _, Place, bytes_of};
use syscalls::Sysno;

use super::{Setting, event, slot};
use crate::layout::TEXT_BYTES;

/// Offset of `msg_iov` in a `struct msghdr` of a process of 64 bits (`include/linux/socket.h`).
const MESSAGE_PARTS: i32 = 16;

/// Reads the first of the r7 bytes that the current system call received, if the call is one whose
/// second argument leads to its buffer. r8 and r9 are lost.
pub(super) fn read(asm: &mut Asm, setting: &Setting) {
    let call = &setting.facts.call;
    let [parts, message, buffer, none] =
        ["parts", "message", "buffer", "no_text"].map(|name| asm.label(name));
    asm.comment("the call")
        .call(Helper::GET_CURRENT_TASK_BTF)
        .mov(R1, R0)
        .call(Helper::TASK_PT_REGS)
        .get(R8, call.second.at(R0))
        .get(R1, call.number.at(R0));
    for (made, to) in [
        (Sysno::read, buffer),
        (Sysno::recvfrom, buffer),
        (Sysno::readv, parts),
        (Sysno::recvmsg, message),
    ] {
        asm.jump_if(R1, JumpOp::Eq, made.id(), to);
    }
    asm.jump(none).bind(message).add(R8, MESSAGE_PARTS);
    follow(asm, none);
    asm.bind(parts);
    follow(asm, none);
    asm.bind(buffer)
        .mov(R9, R7)
        .at_most(R9, i32::from(bytes_of!([u8; TEXT_BYTES])));
    asm.address(R1, event!(text))
        .mov(R2, R9)
        .mov(R3, R8)
        .call(Helper::PROBE_READ_USER)
        .jump_if(R0, JumpOp::Ne, 0, none);
    asm.put(event!(text_bytes), R9).bind(none);
}

/// Sets r8 to the pointer at r8 in the process's memory.
fn follow(asm: &mut Asm, none: Label) {
    let pointer: Place<u64> = slot!(pointer);
    asm.address(R1, pointer)
        .mov(R2, 8)
        .mov(R3, R8)
        .call(Helper::PROBE_READ_USER)
        .jump_if(R0, JumpOp::Ne, 0, none)
        .get(R8, pointer);
}
