//! The instructions: an enum of which every value is a valid instruction.
//!
//! Invalid combinations (such as a sign-extending 64-bit load) have no value. So encoding cannot
//! fail, and `decode(encode(i)) == i` is true for all values. Offsets are numbers here;
//! [`crate::asm`] has labels.
//!
//! Source: RFC 9669, "BPF Instruction Set Architecture (ISA)". The parts that it leaves to the
//! platform (the pseudo source registers of 64-bit loads and calls) are in `linux/bpf.h`.

mod decode;
mod encode;
pub mod opcode;
mod ops;
mod raw;
mod since;

pub use decode::{DecodeError, decode_all};
pub use ops::{AluOp, AtomicOp, ByteOrder, Extend, JumpOp, Reg, Size, SwapBits, SxSize, Width};
pub use raw::{INSN_BYTES, RawInsn};

use crate::helpers::Helper;

/// Second operand of arithmetic, jumps and stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Src {
    /// Register.
    Reg(Reg),
    /// Constant, sign-extended to the operation's width.
    Imm(i32),
}

impl From<Reg> for Src {
    fn from(reg: Reg) -> Self {
        Self::Reg(reg)
    }
}

impl From<i32> for Src {
    fn from(imm: i32) -> Self {
        Self::Imm(imm)
    }
}

impl From<i16> for Src {
    fn from(imm: i16) -> Self {
        Self::Imm(imm.into())
    }
}

/// Takes the bits of the number: one of 2^31 or more is negative at 64 bits.
impl From<u32> for Src {
    fn from(imm: u32) -> Self {
        Self::Imm(imm.cast_signed())
    }
}

/// Place in memory: a register and a constant distance from it, in bytes. Made with [`Reg::at`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Addr {
    /// Register that holds the address.
    pub base: Reg,
    /// Distance from it.
    pub off: i16,
}

/// Constant of a 64-bit load: a number, or something that the kernel replaces when it loads the
/// program (RFC 9669, section 5.4; `BPF_PSEUDO_*` in `linux/bpf.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Imm64 {
    /// Number itself.
    Value(u64),
    /// Map with this file descriptor.
    MapFd(i32),
    /// Address of byte `off` in the first value of the map with this file descriptor. Since Linux
    /// 5.2.
    MapValue {
        /// File descriptor of the map.
        fd: i32,
        /// Byte in its first value.
        off: i32,
    },
    /// Kernel variable with this BTF id. Since Linux 5.10.
    BtfVar {
        /// Id of the variable in its BTF.
        id: i32,
        /// File descriptor of a module's BTF, 0 for the kernel's own.
        btf_fd: i32,
    },
    /// Address of the subprogram this number of instructions after the next slot, for callbacks.
    /// Since Linux 5.13.
    Func(i32),
    /// Map at this index of the load call's array of descriptors. Since Linux 5.14.
    MapIndex(i32),
    /// Address like [`Imm64::MapValue`], by the index in the array. Since Linux 5.14.
    MapIndexValue {
        /// Index in the array.
        index: i32,
        /// Byte in the map's first value.
        off: i32,
    },
}

/// Target of a call instruction (RFC 9669, section 4.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Callee {
    /// Helper function, by its number.
    Helper(Helper),
    /// Subprogram this number of slots after the next instruction. Since Linux 4.16.
    Subprogram(i32),
    /// Kernel function, by its BTF id. Since Linux 5.13; in modules since 5.16.
    Kfunc {
        /// Id of the function in its BTF.
        btf_id: i32,
        /// Index of a module's BTF in the load call's array, 0 for the kernel's own.
        module: i16,
    },
}

/// Instruction. It takes one 8-byte slot, [`Insn::LoadImm64`] two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Insn {
    /// `dst = dst op src`; for [`AluOp::Mov`], `dst = src`. At 32 bits the upper half of `dst`
    /// becomes zero.
    Alu {
        /// Operation.
        op: AluOp,
        /// Width of the operation.
        width: Width,
        /// First operand and result.
        dst: Reg,
        /// Second operand.
        src: Src,
    },
    /// `dst = -dst`.
    Neg {
        /// Width of the operation.
        width: Width,
        /// Operand and result.
        dst: Reg,
    },
    /// `dst = src`, sign-extended from a narrower type. Since Linux 6.6 (BPF v4).
    MovSx {
        /// Widths of operand and result.
        extend: Extend,
        /// Result.
        dst: Reg,
        /// Operand.
        src: Reg,
    },
    /// Byte swap of `dst`.
    Swap {
        /// Byte order of the result. [`ByteOrder::Swap`] since Linux 6.6 (BPF v4).
        order: ByteOrder,
        /// Number of bits swapped; those above become zero.
        bits: SwapBits,
        /// Operand and result.
        dst: Reg,
    },
    /// `dst = imm ll`.
    LoadImm64 {
        /// Result.
        dst: Reg,
        /// Constant.
        imm: Imm64,
    },
    /// `dst = *(u64 *)(base + off)`, zero-extended.
    Load {
        /// Number of bytes.
        size: Size,
        /// Result.
        dst: Reg,
        /// Source address.
        addr: Addr,
    },
    /// `dst = *(s32 *)(base + off)`, sign-extended to 64 bits. Since Linux 6.6 (BPF v4).
    LoadSx {
        /// Number of bytes.
        size: SxSize,
        /// Result.
        dst: Reg,
        /// Source address.
        addr: Addr,
    },
    /// `*(u64 *)(base + off) = src`.
    Store {
        /// Number of bytes.
        size: Size,
        /// Target address.
        addr: Addr,
        /// Value.
        src: Src,
    },
    /// Atomic read-modify-write of a 32-bit or 64-bit word.
    Atomic {
        /// Operation.
        op: AtomicOp,
        /// Width of the word.
        width: Width,
        /// Address of the word.
        addr: Addr,
        /// Operand, and the register for the old value with operations that fetch.
        src: Reg,
    },
    /// Jump to `off` slots after the next instruction.
    Jump {
        /// Distance in slots.
        off: i16,
    },
    /// Jump like [`Insn::Jump`] with a 32-bit distance (`gotol`). Since Linux 6.6 (BPF v4).
    JumpLong {
        /// Distance in slots.
        off: i32,
    },
    /// Jump if `dst op src`.
    JumpIf {
        /// Comparison.
        op: JumpOp,
        /// Width of the comparison; 32 bits since Linux 5.1.
        width: Width,
        /// First operand.
        dst: Reg,
        /// Second operand.
        src: Src,
        /// Distance in slots.
        off: i16,
    },
    /// Call; arguments are in r1 to r5, the result is in r0, r1 to r5 are lost.
    Call(Callee),
    /// Return of r0.
    Exit,
}

impl Insn {
    /// Returns the number of its 8-byte slots, in which jumps count.
    pub const fn slots(self) -> u32 {
        if matches!(self, Self::LoadImm64 { .. }) {
            2
        } else {
            1
        }
    }
}
