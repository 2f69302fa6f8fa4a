//! Decodes bytes to instructions. The decoder is strict: accepted bytes encode to the same bytes
//! again, so a field that an instruction does not use must be zero (RFC 9669, section 3.1). It
//! never panics.

use super::opcode::{OP_MASK, SIZE_MASK, SRC_REG, alu, class, jmp, mode, pseudo};
use super::{
    AluOp, AtomicOp, ByteOrder, Callee, Extend, INSN_BYTES, Imm64, Insn, JumpOp, RawInsn, Reg,
    Size, Src, SwapBits, SxSize, Width, opcode,
};
use crate::helpers::Helper;

/// Reason why bytes are not an instruction. Offsets are bytes from the start of the input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Bytes that end within an instruction.
    #[error("instruction at {offset:#x} is cut short: {have} bytes, needs {need}")]
    Truncated {
        /// Offset of the instruction.
        offset: usize,
        /// Number of bytes left.
        have: usize,
        /// Number of bytes needed.
        need: usize,
    },
    /// Unknown combination of opcode and fields.
    #[error(
        "instruction at {offset:#x} is unknown: opcode {code:#04x}, offset {off}, constant {imm:#x}"
    )]
    Unknown {
        /// Offset of the instruction.
        offset: usize,
        /// Opcode.
        code: u8,
        /// Offset field.
        off: i16,
        /// Constant.
        imm: i32,
    },
    /// Register above r10.
    #[error("instruction at {offset:#x} names register r{reg}, the last is r10")]
    Register {
        /// Offset of the instruction.
        offset: usize,
        /// Number of the register.
        reg: u8,
    },
    /// Field that must be zero but is not.
    #[error(
        "instruction at {offset:#x} (opcode {code:#04x}) has a reserved field that is not zero: {field}"
    )]
    Reserved {
        /// Offset of the instruction.
        offset: usize,
        /// Opcode.
        code: u8,
        /// Name of the field.
        field: &'static str,
    },
}

/// Decodes all instructions of a program's bytes.
pub fn decode_all(bytes: &[u8]) -> Result<Vec<Insn>, DecodeError> {
    let mut insns = Vec::with_capacity(bytes.len() / INSN_BYTES);
    let mut offset = 0;
    while offset < bytes.len() {
        let insn = Insn::decode_at(bytes, offset)?;
        offset += insn.slots() as usize * INSN_BYTES;
        insns.push(insn);
    }
    Ok(insns)
}

impl Insn {
    /// Decodes the first instruction of these bytes; [`Insn::slots`] returns the number of slots
    /// that it took.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::decode_at(bytes, 0)
    }

    fn decode_at(bytes: &[u8], offset: usize) -> Result<Self, DecodeError> {
        let raw = slot(bytes, offset, INSN_BYTES)?;
        let decoder = Decoder { offset, raw };
        match raw.code & class::MASK {
            class::LD => {
                decoder.check_ld_opcode()?;
                let second = slot(bytes, offset + INSN_BYTES, INSN_BYTES).map_err(|_| {
                    DecodeError::Truncated {
                        offset,
                        have: bytes.len() - offset,
                        need: 2 * INSN_BYTES,
                    }
                })?;
                decoder.load_imm64(second)
            }
            class::LDX => decoder.load(),
            class::ST => decoder.store_imm(),
            class::STX => decoder.store_reg(),
            class::ALU => decoder.alu(Width::W32),
            class::ALU64 => decoder.alu(Width::W64),
            class::JMP => decoder.jump(Width::W64),
            _ => decoder.jump(Width::W32),
        }
    }
}

fn slot(bytes: &[u8], offset: usize, need: usize) -> Result<RawInsn, DecodeError> {
    let left = bytes.get(offset..).unwrap_or_default();
    match left.first_chunk::<INSN_BYTES>() {
        Some(chunk) => Ok(RawInsn::from_bytes(*chunk)),
        None => Err(DecodeError::Truncated {
            offset,
            have: left.len(),
            need,
        }),
    }
}

/// Slot with its offset, for the errors.
struct Decoder {
    offset: usize,
    raw: RawInsn,
}

impl Decoder {
    fn alu(&self, width: Width) -> Result<Insn, DecodeError> {
        let (op, off) = (self.raw.code & OP_MASK, self.raw.off);
        if op == alu::END {
            return self.swap();
        }
        if op == alu::NEG {
            self.zero(self.raw.code & SRC_REG == 0, "source bit")?;
            self.zero_src()?;
            self.zero_off()?;
            self.zero_imm()?;
            return Ok(Insn::Neg {
                width,
                dst: self.dst()?,
            });
        }
        let is_move_extending = op == alu::MOV && self.raw.code & SRC_REG != 0 && off != 0;
        if is_move_extending {
            let extend =
                Extend::from_code((width == Width::W64, off)).ok_or_else(|| self.unknown())?;
            self.zero_imm()?;
            return Ok(Insn::MovSx {
                extend,
                dst: self.dst()?,
                src: self.src()?,
            });
        }
        let op = AluOp::from_code((op, off)).ok_or_else(|| self.unknown())?;
        Ok(Insn::Alu {
            op,
            width,
            dst: self.dst()?,
            src: self.operand()?,
        })
    }

    fn swap(&self) -> Result<Insn, DecodeError> {
        let order = ByteOrder::from_code(self.raw.code & (class::MASK | SRC_REG))
            .ok_or_else(|| self.unknown())?;
        let bits = SwapBits::from_code(self.raw.imm).ok_or_else(|| self.unknown())?;
        self.zero_src()?;
        self.zero_off()?;
        Ok(Insn::Swap {
            order,
            bits,
            dst: self.dst()?,
        })
    }

    fn jump(&self, width: Width) -> Result<Insn, DecodeError> {
        let op = self.raw.code & OP_MASK;
        let by_reg = self.raw.code & SRC_REG != 0;
        match (op, width, by_reg) {
            (jmp::JA, Width::W64, false) => {
                self.no_registers()?;
                self.zero_imm()?;
                Ok(Insn::Jump { off: self.raw.off })
            }
            (jmp::JA, Width::W32, false) => {
                self.no_registers()?;
                self.zero_off()?;
                Ok(Insn::JumpLong { off: self.raw.imm })
            }
            (jmp::CALL, Width::W64, false) => self.call(),
            (jmp::EXIT, Width::W64, false) => {
                self.no_registers()?;
                self.zero_off()?;
                self.zero_imm()?;
                Ok(Insn::Exit)
            }
            _ => {
                let op = JumpOp::from_code(op).ok_or_else(|| self.unknown())?;
                Ok(Insn::JumpIf {
                    op,
                    width,
                    dst: self.dst()?,
                    src: self.operand()?,
                    off: self.raw.off,
                })
            }
        }
    }

    fn call(&self) -> Result<Insn, DecodeError> {
        self.zero(self.raw.dst == 0, "destination register")?;
        let callee = match self.raw.src {
            pseudo::CALL_HELPER => Callee::Helper(Helper(self.raw.imm.cast_unsigned())),
            pseudo::CALL_SUBPROGRAM => Callee::Subprogram(self.raw.imm),
            pseudo::CALL_KFUNC => {
                return Ok(Insn::Call(Callee::Kfunc {
                    btf_id: self.raw.imm,
                    module: self.raw.off,
                }));
            }
            _ => return Err(self.unknown()),
        };
        self.zero_off()?;
        Ok(Insn::Call(callee))
    }

    fn load(&self) -> Result<Insn, DecodeError> {
        let size = self.raw.code & SIZE_MASK;
        self.zero_imm()?;
        let (dst, addr) = (self.dst()?, self.src()?.at(self.raw.off));
        match self.raw.code & mode::MASK {
            mode::MEM => {
                let size = Size::from_code(size).ok_or_else(|| self.unknown())?;
                Ok(Insn::Load { size, dst, addr })
            }
            mode::MEMSX => {
                let size = SxSize::from_code(size).ok_or_else(|| self.unknown())?;
                Ok(Insn::LoadSx { size, dst, addr })
            }
            _ => Err(self.unknown()),
        }
    }

    fn store_imm(&self) -> Result<Insn, DecodeError> {
        let size = Size::from_code(self.raw.code & SIZE_MASK).ok_or_else(|| self.unknown())?;
        if self.raw.code & mode::MASK != mode::MEM {
            return Err(self.unknown());
        }
        self.zero_src()?;
        Ok(Insn::Store {
            size,
            addr: self.dst()?.at(self.raw.off),
            src: Src::Imm(self.raw.imm),
        })
    }

    fn store_reg(&self) -> Result<Insn, DecodeError> {
        let size = Size::from_code(self.raw.code & SIZE_MASK).ok_or_else(|| self.unknown())?;
        let (addr, src) = (self.dst()?.at(self.raw.off), self.src()?);
        match (self.raw.code & mode::MASK, size) {
            (mode::MEM, _) => {
                self.zero_imm()?;
                Ok(Insn::Store {
                    size,
                    addr,
                    src: Src::Reg(src),
                })
            }
            (mode::ATOMIC, Size::W | Size::DW) => {
                let op = AtomicOp::from_code(self.raw.imm).ok_or_else(|| self.unknown())?;
                let width = if size == Size::W {
                    Width::W32
                } else {
                    Width::W64
                };
                Ok(Insn::Atomic {
                    op,
                    width,
                    addr,
                    src,
                })
            }
            _ => Err(self.unknown()),
        }
    }

    fn check_ld_opcode(&self) -> Result<(), DecodeError> {
        let expected = class::LD | mode::IMM | opcode::SIZE_DW;
        if self.raw.code == expected {
            Ok(())
        } else {
            Err(self.unknown())
        }
    }

    fn load_imm64(&self, second: RawInsn) -> Result<Insn, DecodeError> {
        self.zero_off()?;
        let rest = RawInsn { imm: 0, ..second };
        self.zero(
            rest == RawInsn::default(),
            "second slot's opcode, registers and offset",
        )?;
        let (low, high) = (self.raw.imm, second.imm);
        let (imm, uses_high) = match self.raw.src {
            pseudo::VALUE => {
                let value = u64::from(high.cast_unsigned()) << 32 | u64::from(low.cast_unsigned());
                (Imm64::Value(value), true)
            }
            pseudo::MAP_FD => (Imm64::MapFd(low), false),
            pseudo::MAP_VALUE => (Imm64::MapValue { fd: low, off: high }, true),
            pseudo::BTF_ID => (
                Imm64::BtfVar {
                    id: low,
                    btf_fd: high,
                },
                true,
            ),
            pseudo::FUNC => (Imm64::Func(low), false),
            pseudo::MAP_IDX => (Imm64::MapIndex(low), false),
            pseudo::MAP_IDX_VALUE => (
                Imm64::MapIndexValue {
                    index: low,
                    off: high,
                },
                true,
            ),
            _ => return Err(self.unknown()),
        };
        self.zero(uses_high || high == 0, "second slot's constant")?;
        Ok(Insn::LoadImm64 {
            dst: self.dst()?,
            imm,
        })
    }

    fn operand(&self) -> Result<Src, DecodeError> {
        if self.raw.code & SRC_REG != 0 {
            self.zero_imm()?;
            Ok(Src::Reg(self.src()?))
        } else {
            self.zero_src()?;
            Ok(Src::Imm(self.raw.imm))
        }
    }

    fn dst(&self) -> Result<Reg, DecodeError> {
        self.reg(self.raw.dst)
    }

    fn src(&self) -> Result<Reg, DecodeError> {
        self.reg(self.raw.src)
    }

    fn reg(&self, reg: u8) -> Result<Reg, DecodeError> {
        Reg::from_code(reg).ok_or(DecodeError::Register {
            offset: self.offset,
            reg,
        })
    }

    fn no_registers(&self) -> Result<(), DecodeError> {
        self.zero(self.raw.dst == 0, "destination register")?;
        self.zero_src()
    }

    fn zero_src(&self) -> Result<(), DecodeError> {
        self.zero(self.raw.src == 0, "source register")
    }

    fn zero_off(&self) -> Result<(), DecodeError> {
        self.zero(self.raw.off == 0, "offset")
    }

    fn zero_imm(&self) -> Result<(), DecodeError> {
        self.zero(self.raw.imm == 0, "constant")
    }

    fn zero(&self, is_zero: bool, field: &'static str) -> Result<(), DecodeError> {
        if is_zero {
            Ok(())
        } else {
            Err(DecodeError::Reserved {
                offset: self.offset,
                code: self.raw.code,
                field,
            })
        }
    }

    fn unknown(&self) -> DecodeError {
        let RawInsn { code, off, imm, .. } = self.raw;
        DecodeError::Unknown {
            offset: self.offset,
            code,
            off,
            imm,
        }
    }
}
