//! Upcalls of the kernel's Open vSwitch: packets that it sends to user space for want of a flow. They happen to any
//! process, most of them in soft interrupts, so that they are counted for all, by CPU and by what came of them.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R8, R9, R10};
use bpf_insn::{Asm, AsmError, AtomicOp, Helper, JumpOp, MapDef, MapKind, Size, Width};

use super::emit;
use crate::layout::{Counts, UPCALLS, UpcallKey, offset};
use bpf_program::{ProgramDef, ProgramKind};
use uapi::bpf::NOEXIST;

/// The kernel's function (`net/openvswitch/datapath.c`). It is 0 or a negative error.
pub const FUNCTION: &str = "ovs_dp_upcall";
/// The tracepoint at its begin, since Linux 5.14 (`net/openvswitch/openvswitch_trace.h`).
pub const TRACEPOINT: &str = "ovs_dp_upcall";

/// Keys that there is room for: 64 CPUs with 64 different errors each, or more CPUs with fewer.
const ROOM: u32 = 4096;

/// The stack's places: the key, and the value of a new one.
const KEY: i16 = -8;
const CPU: i16 = KEY + offset!(UpcallKey, cpu);
const ERROR: i16 = KEY + offset!(UpcallKey, error);
const NEW: i16 = -16;

/// The map.
pub fn map() -> MapDef {
    MapDef::new(UPCALLS, MapKind::Hash, size_of::<UpcallKey>() as u32, size_of::<u64>() as u32, ROOM)
}

/// The program: at the function's return, where `result` says where `pt_regs` has what it returns; or else at the
/// tracepoint, which knows of no errors.
pub fn program(result: Option<i16>) -> Result<ProgramDef, AsmError> {
    let mut asm = Asm::new();
    let (end, found, full, good) = (asm.label("end"), asm.label("found"), asm.label("full"), asm.label("good"));
    asm.mov(R9, 0);
    if let Some(at) = result {
        asm.comment("its error").load(Size::W, R1, R1.at(at)).lsh(R1, 32).arsh(R1, 32);
        asm.jump_if(R1, JumpOp::SGe, 0, good).sub(R9, R1).bind(good);
    }
    emit::now(&mut asm);
    emit::inside(&mut asm, R8, end);
    asm.comment("by CPU and error").call(Helper::GET_SMP_PROCESSOR_ID);
    asm.store(Size::W, R10.at(CPU), R0).store(Size::W, R10.at(ERROR), R9);
    lookup(&mut asm);
    asm.jump_if(R0, JumpOp::Ne, 0, found).store(Size::DW, R10.at(NEW), 0);
    // Another CPU has another key, but what interrupts us has the same: it must not be written over.
    asm.load_map(R1, UPCALLS).mov(R2, R10).add(R2, i32::from(KEY)).mov(R3, R10).add(R3, i32::from(NEW));
    asm.mov(R4, NOEXIST.cast_signed()).call(Helper::MAP_UPDATE_ELEM);
    lookup(&mut asm);
    asm.jump_if(R0, JumpOp::Eq, 0, full);
    asm.bind(found).mov(R1, 1).atomic(AtomicOp::Add, Width::W64, R0.at(0), R1).bind(end);
    emit::end(&mut asm);
    asm.bind(full);
    emit::add_to(&mut asm, offset!(Counts, no_upcall), 1);
    emit::end(&mut asm);
    Ok(ProgramDef {
        name: "upcalls".to_owned(),
        kind: if result.is_some() { ProgramKind::KprobeReturn } else { ProgramKind::RawTracepoint },
        target: None,
        sleepable: false,
        code: asm.finish()?,
        subprograms: Vec::new(),
    })
}

fn lookup(asm: &mut Asm) {
    asm.load_map(R1, UPCALLS).mov(R2, R10).add(R2, i32::from(KEY)).call(Helper::MAP_LOOKUP_ELEM);
}
