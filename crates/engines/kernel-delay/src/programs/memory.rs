//! Kernel work for a thread's memory: page faults of its own code, and reclaim, in a call or in a
//! fault.
//!
//! A page fault is treated as a call: a thread that begins one in its own code is in the slot
//! [`SLOT_FAULT`] until it ends, on the CPU and blocked. The kernel counts a fault when it begins
//! (`PERF_COUNT_SW_PAGE_FAULTS`), and as a minor or a major one when it has ended
//! (`mm_account_fault` of `mm/memory.c`, since Linux 5.9). So programs on these three events see
//! both ends, on any machine. A fault that ends with a signal has no end event; the next call,
//! fault or end of a fault ends it.
//!
//! Reclaim is a part of a call or of a fault: its own time is in [`SLOT_RECLAIM`], and not in
//! theirs.

use bpf_insn::Reg::{R0, R1, R4, R7, R8};
use bpf_insn::{Asm, AsmError, Code, JumpOp, Label};
use bpf_program::emit::program;
use bpf_program::{Emit as _, Place, field};

use super::Setting;
use super::emit::{self, thread};
use super::marks::Level;
use crate::layout::{CallEntry, SLOT_FAULT, SLOT_NONE, SLOT_RECLAIM, SLOT_UNKNOWN, entry_of};

/// Emits the start of a program: finds the current thread, if it is one of ours, and sets r1 to the
/// entry of its call.
fn begin(asm: &mut Asm, setting: &Setting, others: Label) {
    emit::current_thread(asm, setting, others);
    asm.get(R1, thread!(call));
}

/// Emits code to count, in the slot, an activity that began at `since` and ended now, if it lies in
/// the window. If `since` is 0 its start was not seen, and it is not counted.
fn count(asm: &mut Asm, slot: u32, since: Place<u64>) {
    let uncounted = asm.label("uncounted");
    asm.get(R4, since).jump_if(R4, JumpOp::Eq, 0, uncounted);
    emit::inside(asm, R4, uncounted);
    asm.mov(R1, R8)
        .sub(R1, R4)
        .mov(R0, R7)
        .add(R0, entry_of(slot));
    emit::count(asm, field!(R0, CallEntry, tally));
    asm.bind(uncounted);
}

/// Makes the program for the start of a page fault in a thread's own code.
pub(super) fn fault_begins(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, others| {
        let own = asm.label("own_code");
        begin(asm, setting, others);
        asm.jump_if(R1, JumpOp::Eq, entry_of(SLOT_NONE), own)
            .jump_if(R1, JumpOp::Eq, entry_of(SLOT_FAULT), own);
        asm.jump_if(R1, JumpOp::Ne, entry_of(SLOT_UNKNOWN), others);
        asm.comment("it was in its own code")
            .put(thread!(resolved), entry_of(SLOT_NONE))
            .bind(own);
        emit::account_running(asm, setting, Level::Thread);
        asm.put(thread!(call), entry_of(SLOT_FAULT))
            .put(thread!(entered), R8);
        emit::on_cpu_bucket(asm);
    })
}

/// Makes the program for the end of a page fault.
pub(super) fn fault_ends(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, others| {
        begin(asm, setting, others);
        asm.if_(R1, JumpOp::Ne, entry_of(SLOT_FAULT), |asm| {
            asm.jump_if(R1, JumpOp::Ne, entry_of(SLOT_UNKNOWN), others);
            asm.comment("a fault from before")
                .put(thread!(resolved), entry_of(SLOT_FAULT));
        });
        emit::account_running(asm, setting, Level::Thread);
        count(asm, SLOT_FAULT, thread!(entered));
        asm.comment("now it is in its own code")
            .put(thread!(call), entry_of(SLOT_NONE))
            .put(thread!(entered), 0);
        emit::on_cpu_bucket(asm);
    })
}

/// Makes the program of `mm_vmscan_direct_reclaim_begin` and `mm_vmscan_memcg_reclaim_begin` of
/// `include/trace/events/vmscan.h`.
pub(super) fn reclaim_begins(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, others| {
        begin(asm, setting, others);
        asm.jump_if(R1, JumpOp::Eq, entry_of(SLOT_RECLAIM), others)
            .put(thread!(outer), R1);
        emit::account_running(asm, setting, Level::Thread);
        asm.put(thread!(call), entry_of(SLOT_RECLAIM))
            .put(thread!(reclaim_since), R8);
        emit::on_cpu_bucket(asm);
    })
}

/// Makes the program of `mm_vmscan_direct_reclaim_end` and `mm_vmscan_memcg_reclaim_end`.
pub(super) fn reclaim_ends(setting: &Setting) -> Result<Code, AsmError> {
    program(|asm, others| {
        begin(asm, setting, others);
        asm.jump_if(R1, JumpOp::Ne, entry_of(SLOT_RECLAIM), others);
        emit::account_running(asm, setting, Level::Thread);
        count(asm, SLOT_RECLAIM, thread!(reclaim_since));
        asm.comment("what it was in")
            .copy(thread!(outer), thread!(call));
        emit::on_cpu_bucket(asm);
    })
}
