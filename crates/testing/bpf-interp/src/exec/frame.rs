//! Frame of one call: its registers and its stack.

use bpf_insn::{Addr, Reg, Src};

use crate::fault::Wrong;

/// State of a running function.
pub(crate) struct Frame {
    pub(super) function: usize,
    /// Index of the current line.
    pub(super) line: usize,
    pub(super) registers: [Option<u64>; 11],
}

impl Frame {
    pub(super) fn get(&self, reg: Reg) -> Result<u64, Wrong> {
        self.registers[usize::from(reg.code())].ok_or(Wrong::Register(reg))
    }

    pub(super) fn set(&mut self, reg: Reg, value: u64) {
        self.registers[usize::from(reg.code())] = Some(value);
    }

    pub(super) fn src(&self, src: Src) -> Result<u64, Wrong> {
        match src {
            Src::Reg(reg) => self.get(reg),
            Src::Imm(imm) => Ok(i64::from(imm).cast_unsigned()),
        }
    }

    pub(super) fn addr(&self, addr: Addr) -> Result<u64, Wrong> {
        self.get(addr.base)
            .map(|base| base.wrapping_add_signed(i64::from(addr.off)))
    }
}
