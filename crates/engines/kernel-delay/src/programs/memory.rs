//! Work of the kernel for a thread's memory: page faults of its own code, and reclaim, in a call or in a fault.
//!
//! A page fault is a call that nobody makes: a thread that begins one in its own code is in the slot [`SLOT_FAULT`] until it ends, on
//! the CPU and blocked. The kernel counts a fault when it begins (`PERF_COUNT_SW_PAGE_FAULTS`), and as a minor or a major one when it
//! has ended (`mm_account_fault` of `mm/memory.c`, since Linux 5.9), so that programs on these three events see both ends, on any
//! machine. A fault that ends with a signal has no end; the next call, fault or end of a fault is one.
//!
//! Reclaim is a part of a call or of a fault: its own time is in [`SLOT_RECLAIM`], and not in theirs.

use bpf_insn::Reg::{R0, R1, R4, R7, R8};
use bpf_insn::{Addr, Asm, AsmError, Code, JumpOp, Label, Size};

use super::Setting;
use super::emit::{self, Parts, thread};
use super::marks::Level;
use crate::layout::{SLOT_FAULT, SLOT_NONE, SLOT_RECLAIM, SLOT_UNKNOWN, entry_of};

/// Returns the offset of a slot's entry as an instruction has it.
fn entry(slot: u32) -> i32 {
    entry_of(slot).cast_signed()
}

/// Emits the begin of a program: finds the current thread, if it is one of ours, and sets r1 to the entry of its call.
fn begin(asm: &mut Asm, setting: &Setting, others: Label) {
    emit::current(asm, setting, others);
    emit::find(asm, others);
    asm.load(Size::W, R1, thread!(call));
}

/// Emits that time until now goes to what the thread did before.
fn account(asm: &mut Asm, setting: &Setting) {
    emit::now(asm);
    emit::account(asm, setting, Level::Thread);
    emit::settle_running(asm, setting);
}

/// Emits that one that began at `since` ended now, and counts it in the slot, if it lies in the window; 0 is a begin that nobody saw.
fn count(asm: &mut Asm, slot: u32, since: Addr, uncounted: Label) {
    asm.load(Size::DW, R4, since).jump_if(R4, JumpOp::Eq, 0, uncounted);
    emit::inside(asm, R4, uncounted);
    asm.mov(R1, R8).sub(R1, R4).mov(R0, R7).add(R0, entry(slot));
    emit::count(asm, R0, 0, Parts::Longest);
}

/// The program of a page fault's begin in a thread's own code.
pub(super) fn fault_begins(setting: &Setting) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let (own, others) = (asm.label("own_code"), asm.label("others"));
    begin(&mut asm, setting, others);
    asm.jump_if(R1, JumpOp::Eq, entry(SLOT_NONE), own).jump_if(R1, JumpOp::Eq, entry(SLOT_FAULT), own);
    asm.jump_if(R1, JumpOp::Ne, entry(SLOT_UNKNOWN), others);
    asm.comment("it was in its own code").store(Size::W, thread!(resolved), entry(SLOT_NONE)).bind(own);
    account(&mut asm, setting);
    asm.store(Size::W, thread!(call), entry(SLOT_FAULT)).store(Size::DW, thread!(entered), R8);
    emit::on_cpu_bucket(&mut asm);
    asm.bind(others);
    emit::end(&mut asm);
    asm.finish()
}

/// The program of a page fault's end.
pub(super) fn fault_ends(setting: &Setting) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let (known, uncounted, others) = (asm.label("known"), asm.label("uncounted"), asm.label("others"));
    begin(&mut asm, setting, others);
    asm.jump_if(R1, JumpOp::Eq, entry(SLOT_FAULT), known).jump_if(R1, JumpOp::Ne, entry(SLOT_UNKNOWN), others);
    asm.comment("a fault from before").store(Size::W, thread!(resolved), entry(SLOT_FAULT)).bind(known);
    account(&mut asm, setting);
    count(&mut asm, SLOT_FAULT, thread!(entered), uncounted);
    asm.bind(uncounted).comment("now it is in its own code");
    asm.store(Size::W, thread!(call), entry(SLOT_NONE)).store(Size::DW, thread!(entered), 0);
    emit::on_cpu_bucket(&mut asm);
    asm.bind(others);
    emit::end(&mut asm);
    asm.finish()
}

/// The program of `mm_vmscan_direct_reclaim_begin` and `mm_vmscan_memcg_reclaim_begin` of `include/trace/events/vmscan.h`.
pub(super) fn reclaim_begins(setting: &Setting) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let others = asm.label("others");
    begin(&mut asm, setting, others);
    asm.jump_if(R1, JumpOp::Eq, entry(SLOT_RECLAIM), others).store(Size::W, thread!(outer), R1);
    account(&mut asm, setting);
    asm.store(Size::W, thread!(call), entry(SLOT_RECLAIM)).store(Size::DW, thread!(reclaim_since), R8);
    emit::on_cpu_bucket(&mut asm);
    asm.bind(others);
    emit::end(&mut asm);
    asm.finish()
}

/// The program of `mm_vmscan_direct_reclaim_end` and `mm_vmscan_memcg_reclaim_end`.
pub(super) fn reclaim_ends(setting: &Setting) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let (uncounted, others) = (asm.label("uncounted"), asm.label("others"));
    begin(&mut asm, setting, others);
    asm.jump_if(R1, JumpOp::Ne, entry(SLOT_RECLAIM), others);
    account(&mut asm, setting);
    count(&mut asm, SLOT_RECLAIM, thread!(reclaim_since), uncounted);
    asm.bind(uncounted).comment("what it was in").load(Size::W, R1, thread!(outer)).store(Size::W, thread!(call), R1);
    emit::on_cpu_bucket(&mut asm);
    asm.bind(others);
    emit::end(&mut asm);
    asm.finish()
}
