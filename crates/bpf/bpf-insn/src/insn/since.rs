//! The first kernel release that has an instruction.
//!
//! The compiler checks this before it uses an instruction, and `dptrace` prints it if a kernel is
//! too old.

use super::{AluOp, AtomicOp, ByteOrder, Callee, Imm64, Insn, JumpOp, Width};
use uapi::KernelVersion;

/// BPF v2: the jumps "less than" and "less or equal".
const LESS_THAN: KernelVersion = KernelVersion::new(4, 14);
/// Calls from one BPF function to another.
const SUBPROGRAMS: KernelVersion = KernelVersion::new(4, 16);
/// BPF v3: comparisons of 32-bit halves.
const JMP32: KernelVersion = KernelVersion::new(5, 1);
/// Addresses of map values in 64-bit constants.
const MAP_VALUE: KernelVersion = KernelVersion::new(5, 2);
/// Addresses of kernel variables in 64-bit constants.
const BTF_VAR: KernelVersion = KernelVersion::new(5, 10);
/// Atomic operations other than the plain addition.
const ATOMICS: KernelVersion = KernelVersion::new(5, 12);
/// Addresses of BPF functions in 64-bit constants, and calls of kernel functions.
const FUNC_AND_KFUNC: KernelVersion = KernelVersion::new(5, 13);
/// Maps by their index in the load call's array.
const MAP_INDEX: KernelVersion = KernelVersion::new(5, 14);
/// Calls of kernel functions that are in modules.
const MODULE_KFUNC: KernelVersion = KernelVersion::new(5, 16);
/// BPF v4: sign extension, signed division, unconditional byte swaps, long jumps.
const V4: KernelVersion = KernelVersion::new(6, 6);

impl Insn {
    /// Returns the first Linux release whose verifier accepts this instruction; for helper calls,
    /// the one that brought the helper, if the table knows it.
    pub fn since(self) -> KernelVersion {
        match self {
            Self::MovSx { .. }
            | Self::LoadSx { .. }
            | Self::JumpLong { .. }
            | Self::Swap {
                order: ByteOrder::Swap,
                ..
            }
            | Self::Alu {
                op: AluOp::SDiv | AluOp::SMod,
                ..
            } => V4,
            Self::JumpIf {
                width: Width::W32, ..
            } => JMP32,
            Self::JumpIf {
                op: JumpOp::Lt | JumpOp::Le | JumpOp::SLt | JumpOp::SLe,
                ..
            } => LESS_THAN,
            Self::Atomic { op, .. } if op != AtomicOp::Add => ATOMICS,
            Self::LoadImm64 { imm, .. } => imm.since(),
            Self::Call(callee) => callee.since(),
            _ => KernelVersion::FIRST,
        }
    }
}

impl Imm64 {
    pub(crate) fn since(self) -> KernelVersion {
        match self {
            Self::Value(_) | Self::MapFd(_) => KernelVersion::FIRST,
            Self::MapValue { .. } => MAP_VALUE,
            Self::BtfVar { .. } => BTF_VAR,
            Self::Func(_) => FUNC_AND_KFUNC,
            Self::MapIndex(_) | Self::MapIndexValue { .. } => MAP_INDEX,
        }
    }
}

impl Callee {
    fn since(self) -> KernelVersion {
        match self {
            Self::Helper(helper) => helper.since().unwrap_or(KernelVersion::FIRST),
            Self::Subprogram(_) => SUBPROGRAMS,
            Self::Kfunc { module: 0, .. } => FUNC_AND_KFUNC,
            Self::Kfunc { .. } => MODULE_KFUNC,
        }
    }
}
