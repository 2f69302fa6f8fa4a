//! Upcalls of the kernel's Open vSwitch: packets that it sends to user space for want of a flow.
//! They can occur in any process, most of them in soft interrupts, so they are counted for all, by
//! CPU and by result.

use bpf_insn::Reg::{R0, R1, R8, R9};
use bpf_insn::{AsmError, Helper, JumpOp, MapDef, MapKind};
use bpf_program::emit::program as assemble;
use bpf_program::{Emit as _, Member, Place, ProgramDef, ProgramKind};
use uapi::bpf::NOEXIST;

use super::emit::{self, counts};
use crate::layout::{UPCALLS, UpcallKey};

/// Function of the kernel (`net/openvswitch/datapath.c`). It returns 0 or a negative error.
pub const FUNCTION: &str = "ovs_dp_upcall";
/// Tracepoint at its start, since Linux 5.14 (`net/openvswitch/openvswitch_trace.h`).
pub const TRACEPOINT: &str = "ovs_dp_upcall";

/// Maximum number of keys: 64 CPUs with 64 different errors each, or more CPUs with fewer.
const MAX_KEYS: u32 = 4096;

#[repr(C)]
struct Stack {
    /// Initial value of a new key.
    new: u64,
    key: UpcallKey,
}

macro_rules! slot {
    ($($field:tt)+) => { bpf_program::slot!(Stack, $($field)+) };
}

/// Returns the definition of the map.
pub fn map() -> MapDef {
    MapDef::new(
        UPCALLS,
        MapKind::Hash,
        size_of::<UpcallKey>() as u32,
        size_of::<u64>() as u32,
        MAX_KEYS,
    )
}

/// Makes the program: at the function's return, if it has a `result` in `pt_regs`; otherwise at the
/// tracepoint, which does not show errors.
pub fn program(result: Option<Member<u32>>) -> Result<ProgramDef, AsmError> {
    let code = assemble(|asm, end| {
        let full = asm.label("full");
        asm.mov(R9, 0);
        if let Some(at) = result {
            asm.comment("its error")
                .get(R1, at.at(R1))
                .lsh(R1, 32)
                .arsh(R1, 32);
            asm.if_(R1, JumpOp::SLt, 0, |asm| _ = asm.sub(R9, R1));
        }
        asm.now(R8);
        emit::inside(asm, R8, end);
        asm.comment("by CPU and error")
            .call(Helper::GET_SMP_PROCESSOR_ID);
        asm.put(slot!(key.cpu), R0).put(slot!(key.error), R9);
        // Another CPU has another key, but a program that interrupts us has the same: it must not
        // be overwritten.
        asm.entry(UPCALLS, slot!(key), slot!(new), NOEXIST, full)
            .add_atomic(Place::from(R0), R1, 1);
        asm.ret().bind(full);
        emit::add_to(asm, counts!(no_upcall), 1);
    })?;
    let kind = if result.is_some() {
        ProgramKind::KprobeReturn
    } else {
        ProgramKind::RawTracepoint
    };
    Ok(ProgramDef::new("upcalls", kind, code))
}
