//! The numbers of the encoding. Sections are those of RFC 9669; names are those of `linux/bpf.h`
//! and `linux/bpf_common.h`.

/// Instruction classes, the low three bits of the opcode (section 3.3).
pub mod class {
    /// Non-standard loads: here the 64-bit constant.
    pub const LD: u8 = 0x00;
    /// Loads into registers.
    pub const LDX: u8 = 0x01;
    /// Stores of constants.
    pub const ST: u8 = 0x02;
    /// Stores of registers, and atomics.
    pub const STX: u8 = 0x03;
    /// 32-bit arithmetic.
    pub const ALU: u8 = 0x04;
    /// 64-bit jumps.
    pub const JMP: u8 = 0x05;
    /// 32-bit jumps.
    pub const JMP32: u8 = 0x06;
    /// 64-bit arithmetic.
    pub const ALU64: u8 = 0x07;
    /// The bits that hold the class.
    pub const MASK: u8 = 0x07;
}

/// The source bit of arithmetic and jumps (section 4): set for a register, clear for a constant.
pub const SRC_REG: u8 = 0x08;

/// The operation bits of arithmetic and jumps (section 4).
pub const OP_MASK: u8 = 0xf0;

/// Arithmetic operations (section 4.1).
pub mod alu {
    /// `dst = -dst`.
    pub const NEG: u8 = 0x80;
    /// `dst = src`.
    pub const MOV: u8 = 0xb0;
    /// Byte swaps (section 4.2).
    pub const END: u8 = 0xd0;
    /// The offset field that makes a division or a remainder signed.
    pub const SIGNED: i16 = 1;
}

/// Jump operations (section 4.3).
pub mod jmp {
    /// Always.
    pub const JA: u8 = 0x00;
    /// Call.
    pub const CALL: u8 = 0x80;
    /// Return.
    pub const EXIT: u8 = 0x90;
}

/// The mode bits of loads and stores (section 5).
pub mod mode {
    /// A 64-bit constant.
    pub const IMM: u8 = 0x00;
    /// Ordinary memory.
    pub const MEM: u8 = 0x60;
    /// Ordinary memory, sign-extended (section 5.2).
    pub const MEMSX: u8 = 0x80;
    /// Atomic operations (section 5.3).
    pub const ATOMIC: u8 = 0xc0;
    /// The bits that hold the mode.
    pub const MASK: u8 = 0xe0;
}

/// The size bits of loads and stores (section 5).
pub const SIZE_MASK: u8 = 0x18;

/// The size bits of a 64-bit access.
pub const SIZE_DW: u8 = 0x18;

/// The size bits of a 32-bit access.
pub const SIZE_W: u8 = 0x00;

/// Modifier of atomic operations that fetch the old value (section 5.3).
pub const FETCH: i32 = 0x01;

/// Meanings of the source register field of a 64-bit constant (`BPF_PSEUDO_*` in `linux/bpf.h`;
/// section 5.4).
pub mod pseudo {
    /// The number itself.
    pub const VALUE: u8 = 0;
    /// `BPF_PSEUDO_MAP_FD`.
    pub const MAP_FD: u8 = 1;
    /// `BPF_PSEUDO_MAP_VALUE`.
    pub const MAP_VALUE: u8 = 2;
    /// `BPF_PSEUDO_BTF_ID`.
    pub const BTF_ID: u8 = 3;
    /// `BPF_PSEUDO_FUNC`.
    pub const FUNC: u8 = 4;
    /// `BPF_PSEUDO_MAP_IDX`.
    pub const MAP_IDX: u8 = 5;
    /// `BPF_PSEUDO_MAP_IDX_VALUE`.
    pub const MAP_IDX_VALUE: u8 = 6;
    /// The source register field of a helper call.
    pub const CALL_HELPER: u8 = 0;
    /// `BPF_PSEUDO_CALL`: a call of a subprogram.
    pub const CALL_SUBPROGRAM: u8 = 1;
    /// `BPF_PSEUDO_KFUNC_CALL`.
    pub const CALL_KFUNC: u8 = 2;
}
