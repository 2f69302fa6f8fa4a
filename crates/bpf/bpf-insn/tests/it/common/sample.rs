//! Object with everything that the writer supports, to try loaders on.

use bpf_insn::Reg::*;
use bpf_insn::*;
use std::error::Error;

/// Constant in `.rodata` with which events begin.
pub(crate) const MAGIC: u64 = 0x6470_7472_6163_6521;
/// Number of calls of `bpf_loop`'s callback for each event.
pub(crate) const ROUNDS: i32 = 5;

/// Offset of the first argument in the context of a uprobe (`struct pt_regs` of `asm/ptrace.h`:
/// rdi, or x0).
const FIRST_ARGUMENT: i16 = if cfg!(target_arch = "x86_64") { 112 } else { 0 };

/// Builds the object. `tgid` is the process whose system calls `on_enter` reports.
pub(crate) fn object(tgid: u32) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut object = ObjectBuilder::new("GPL");
    object.map(MapDef::ring_buffer("events", 1 << 16));
    object.map(MapDef::new("counts", MapKind::Hash, 4, 8, 64));
    object.map(MapDef::new("stacks", MapKind::StackTrace, 4, 127 * 8, 16));
    object.map(MapDef::new("scratch", MapKind::PercpuArray, 4, 256, 1));
    object.map(MapDef::new("least", MapKind::LruHash, 4, 8, 64).with_flags(0));
    object
        .constant("wanted", &tgid.to_le_bytes())
        .constant("magic", &MAGIC.to_le_bytes());
    object.variable("step", &3_u64.to_le_bytes());
    object.zeroed("unused", 8).zeroed("rounds", 8);
    object.program("raw_tp/sys_enter", "on_enter", on_enter()?);
    object.program("uprobe", "on_call", on_call()?);
    object.program("uprobe", "on_other_call", on_call()?);
    object.program("uretprobe", "on_return", nothing()?);
    object.program("tracepoint/sched/sched_switch", "on_switch", nothing()?);
    object.program("perf_event", "on_tick", nothing()?);
    object.subprogram("send", send()?);
    object.subprogram("each_round", each_round()?);
    Ok(object.build()?)
}

fn nothing() -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    asm.mov(R0, 0).exit();
    asm.finish()
}

/// Counts and reports system calls of the wanted process.
fn on_enter() -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let (out, first) = (asm.label("out"), asm.label("first"));
    asm.call(Helper::GET_CURRENT_PID_TGID)
        .mov(R6, R0)
        .rsh(R6, 32);
    asm.load_data(R1, "wanted", 0)
        .load(Size::W, R1, R1.at(0))
        .jump_if(R1, JumpOp::Ne, R6, out);
    asm.comment("the count, by tgid")
        .store(Size::W, R10.at(-4), R6);
    asm.load_map(R1, "counts")
        .mov(R2, R10)
        .add(R2, -4)
        .call(Helper::MAP_LOOKUP_ELEM);
    asm.jump_if(R0, JumpOp::Eq, 0, first);
    asm.mov(R1, 1)
        .atomic(AtomicOp::Add, Width::W64, R0.at(0), R1)
        .jump(out);
    asm.bind(first).store(Size::DW, R10.at(-16), 1);
    asm.load_map(R1, "counts")
        .mov(R2, R10)
        .add(R2, -4)
        .mov(R3, R10)
        .add(R3, -16)
        .mov(R4, 0);
    asm.call(Helper::MAP_UPDATE_ELEM);
    asm.comment("the first call is reported")
        .mov(R1, R6)
        .mov(R2, 0)
        .call_subprogram("send");
    asm.bind(out).mov(R0, 0).exit();
    asm.finish()
}

/// Reports a call with its cookie and its first argument.
fn on_call() -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    asm.mov(R6, R1).call(Helper::GET_ATTACH_COOKIE).mov(R1, R0);
    asm.load(Size::DW, R2, R6.at(FIRST_ARGUMENT))
        .call_subprogram("send");
    asm.mov(R0, 0).exit();
    asm.finish()
}

/// Sends an event of the magic number and two words, and runs `bpf_loop`.
fn send() -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let full = asm.label("full");
    asm.mov(R6, R1).mov(R7, R2);
    asm.mov(R1, ROUNDS)
        .load_function(R2, "each_round")
        .mov(R3, 0)
        .mov(R4, 0)
        .call(Helper::LOOP);
    asm.load_map(R1, "events")
        .mov(R2, 24)
        .mov(R3, 0)
        .call(Helper::RINGBUF_RESERVE);
    asm.jump_if(R0, JumpOp::Eq, 0, full);
    asm.load_data(R1, "magic", 0).load(Size::DW, R1, R1.at(0));
    asm.store(Size::DW, R0.at(0), R1)
        .store(Size::DW, R0.at(8), R6)
        .store(Size::DW, R0.at(16), R7);
    asm.mov(R1, R0).mov(R2, 0).call(Helper::RINGBUF_SUBMIT);
    asm.bind(full).mov(R0, 0).exit();
    asm.finish()
}

/// Adds `step` to `rounds`, which is 8 bytes after `unused`.
fn each_round() -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    asm.load_data(R1, "unused", 8)
        .load_data(R2, "step", 0)
        .load(Size::DW, R2, R2.at(0));
    asm.atomic(AtomicOp::Add, Width::W64, R1.at(0), R2)
        .mov(R0, 0)
        .exit();
    asm.finish()
}
