//! One 8-byte slot, split into its fields.

/// Size of a slot in bytes (RFC 9669, section 3.1).
pub const INSN_BYTES: usize = 8;

/// Slot as `struct bpf_insn` of `linux/bpf.h`: opcode, two register nibbles, offset, constant (RFC
/// 9669, section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RawInsn {
    /// Opcode.
    pub code: u8,
    /// Number of the destination register, 0 to 15.
    pub dst: u8,
    /// Number of the source register, 0 to 15.
    pub src: u8,
    /// Offset.
    pub off: i16,
    /// Constant.
    pub imm: i32,
}

impl RawInsn {
    /// Returns its bytes on a little-endian machine: the destination is the low nibble.
    pub fn to_bytes(self) -> [u8; INSN_BYTES] {
        let [off0, off1] = self.off.to_le_bytes();
        let [imm0, imm1, imm2, imm3] = self.imm.to_le_bytes();
        [
            self.code,
            (self.src << 4) | (self.dst & 0x0f),
            off0,
            off1,
            imm0,
            imm1,
            imm2,
            imm3,
        ]
    }

    /// Splits these bytes into fields.
    pub fn from_bytes(bytes: [u8; INSN_BYTES]) -> Self {
        let [code, regs, off0, off1, imm0, imm1, imm2, imm3] = bytes;
        Self {
            code,
            dst: regs & 0x0f,
            src: regs >> 4,
            off: i16::from_le_bytes([off0, off1]),
            imm: i32::from_le_bytes([imm0, imm1, imm2, imm3]),
        }
    }
}
