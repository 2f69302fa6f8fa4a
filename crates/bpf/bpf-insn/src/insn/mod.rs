//! The instructions: an enum of which every value is a valid instruction.
//!
//! Invalid combinations (such as a sign-extending 64-bit load) have no value. So encoding cannot fail, and
//! `decode(encode(i)) == i` is true for all values. Offsets are numbers here; [`crate::asm`] has labels.
//!
//! Source: RFC 9669, "BPF Instruction Set Architecture (ISA)"; what it leaves to the platform (the pseudo source
//! registers of 64-bit loads and calls) is in `linux/bpf.h`.

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

/// The second operand of arithmetic, jumps and stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Src {
    /// A register.
    Reg(Reg),
    /// A constant, sign-extended to the operation's width.
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

/// A place in memory: a register and a constant distance from it, in bytes. Made with [`Reg::at`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Addr {
    /// The register that holds the address.
    pub base: Reg,
    /// The distance from it.
    pub off: i16,
}

/// The constant of a 64-bit load: a number, or something that the kernel replaces when it loads the program
/// (RFC 9669, section 5.4; `BPF_PSEUDO_*` in `linux/bpf.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Imm64 {
    /// The number itself.
    Value(u64),
    /// The map with this file descriptor.
    MapFd(i32),
    /// The address of byte `off` in the first value of the map with this file descriptor. Since Linux 5.2.
    MapValue {
        /// The map's file descriptor.
        fd: i32,
        /// The byte in its first value.
        off: i32,
    },
    /// The kernel variable with this BTF id. Since Linux 5.10.
    BtfVar {
        /// The variable's id in its BTF.
        id: i32,
        /// The file descriptor of a module's BTF, 0 for the kernel's own.
        btf_fd: i32,
    },
    /// The address of the subprogram this many instructions after the next slot, for callbacks. Since Linux 5.13.
    Func(i32),
    /// The map at this place of the load call's array of descriptors. Since Linux 5.14.
    MapIndex(i32),
    /// As [`Imm64::MapValue`], by the place in the array. Since Linux 5.14.
    MapIndexValue {
        /// The place in the array.
        index: i32,
        /// The byte in the map's first value.
        off: i32,
    },
}

/// What a call instruction calls (RFC 9669, section 4.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Callee {
    /// A helper function, by its number.
    Helper(Helper),
    /// The subprogram this many slots after the next instruction. Since Linux 4.16.
    Subprogram(i32),
    /// A kernel function, by its BTF id. Since Linux 5.13; in modules since 5.16.
    Kfunc {
        /// The function's id in its BTF.
        btf_id: i32,
        /// The place of a module's BTF in the load call's array, 0 for the kernel's own.
        module: i16,
    },
}

/// One instruction. It takes one 8-byte slot, [`Insn::LoadImm64`] two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Insn {
    /// `dst = dst op src`; for [`AluOp::Mov`], `dst = src`. At 32 bits the upper half of `dst` becomes zero.
    Alu {
        /// The operation.
        op: AluOp,
        /// Its width.
        width: Width,
        /// First operand and result.
        dst: Reg,
        /// Second operand.
        src: Src,
    },
    /// `dst = -dst`.
    Neg {
        /// The width.
        width: Width,
        /// Operand and result.
        dst: Reg,
    },
    /// `dst = src`, sign-extended from a narrower type. Since Linux 6.6 (BPF v4).
    MovSx {
        /// From which width to which.
        extend: Extend,
        /// The result.
        dst: Reg,
        /// The operand.
        src: Reg,
    },
    /// Turns the bytes of `dst`.
    Swap {
        /// To which order. [`ByteOrder::Swap`] since Linux 6.6 (BPF v4).
        order: ByteOrder,
        /// How many of its bits; those above become zero.
        bits: SwapBits,
        /// Operand and result.
        dst: Reg,
    },
    /// `dst = imm ll`.
    LoadImm64 {
        /// The result.
        dst: Reg,
        /// The constant.
        imm: Imm64,
    },
    /// `dst = *(u64 *)(base + off)`, zero-extended.
    Load {
        /// How many bytes.
        size: Size,
        /// The result.
        dst: Reg,
        /// From where.
        addr: Addr,
    },
    /// `dst = *(s32 *)(base + off)`, sign-extended to 64 bits. Since Linux 6.6 (BPF v4).
    LoadSx {
        /// How many bytes.
        size: SxSize,
        /// The result.
        dst: Reg,
        /// From where.
        addr: Addr,
    },
    /// `*(u64 *)(base + off) = src`.
    Store {
        /// How many bytes.
        size: Size,
        /// To where.
        addr: Addr,
        /// The value.
        src: Src,
    },
    /// An atomic read-modify-write of a 32-bit or 64-bit word.
    Atomic {
        /// The operation.
        op: AtomicOp,
        /// The word's width.
        width: Width,
        /// Where the word is.
        addr: Addr,
        /// The operand, and the place of the old value for operations that fetch.
        src: Reg,
    },
    /// Goes on `off` slots after the next instruction.
    Jump {
        /// The distance in slots.
        off: i16,
    },
    /// As [`Insn::Jump`] with a 32-bit distance (`gotol`). Since Linux 6.6 (BPF v4).
    JumpLong {
        /// The distance in slots.
        off: i32,
    },
    /// Jumps if `dst op src`.
    JumpIf {
        /// The comparison.
        op: JumpOp,
        /// Its width; 32 bits since Linux 5.1.
        width: Width,
        /// First operand.
        dst: Reg,
        /// Second operand.
        src: Src,
        /// The distance in slots.
        off: i16,
    },
    /// Calls; arguments are in r1 to r5, the result is in r0, r1 to r5 are lost.
    Call(Callee),
    /// Returns r0.
    Exit,
}

impl Insn {
    /// How many 8-byte slots it takes: jumps count in these.
    pub const fn slots(self) -> u32 {
        if matches!(self, Self::LoadImm64 { .. }) { 2 } else { 1 }
    }
}
