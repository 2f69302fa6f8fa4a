//! Liveness: for each instruction, the registers and the local stack slots that are read after it
//! before they are overwritten.

use super::Asm;
use crate::insn::{Addr, AluOp, AtomicOp, Callee, Insn, Reg, Size, Src};

/// Set of registers and of the frame's local slots, a bit each.
pub(super) type Regs = u64;

/// Registers that calls may change: r0 to r5
/// (Documentation/bpf/standardization/instruction-set.rst, "Calling convention").
const CHANGED_BY_CALLS: Regs = 0b11_1111;
/// Registers that calls read: r1 to r5.
const TAKEN_BY_CALLS: Regs = 0b11_1110;

/// Bit of the first local slot; those of registers are below.
const FIRST_WORD: usize = 16;
/// Limit on the local slots tracked.
const MAX_WORDS: usize = Regs::BITS as usize - FIRST_WORD;

pub(super) const fn bit(reg: Reg) -> Regs {
    1 << reg as u16
}

impl Asm {
    /// Returns the bit of the local slot at an address.
    pub(super) fn word(&self, size: Size, addr: Addr) -> Option<Regs> {
        if size != Size::DW || addr.base != Reg::R10 {
            return None;
        }
        let index = self
            .local_slots
            .iter()
            .take(MAX_WORDS)
            .position(|off| *off == addr.off)?;
        Some(1 << (FIRST_WORD + index))
    }

    /// Returns the registers and local slots that an instruction reads, and those that it sets
    /// without reading them.
    fn effect(&self, insn: Insn) -> (Regs, Regs) {
        let (read, set) = effect(insn);
        match insn {
            Insn::Load { size, addr, .. } => (read | self.word(size, addr).unwrap_or(0), set),
            Insn::Store { size, addr, .. } => (read, set | self.word(size, addr).unwrap_or(0)),
            _ => (read, set),
        }
    }

    /// Returns for each instruction the registers that are read after it before they are set anew.
    pub(super) fn live_after(&self) -> Vec<Regs> {
        let targets: Vec<Option<usize>> = self
            .items
            .iter()
            .map(|item| item.label.and_then(|label| self.index_of(label)))
            .collect();
        let mut before = vec![0; self.items.len() + 1];
        let mut after = vec![0; self.items.len()];
        let mut changed = true;
        // Code that only jumps forwards is done in one turn; a second one confirms that.
        while changed {
            changed = false;
            for index in (0..self.items.len()).rev() {
                let insn = self.items[index].line.insn;
                let next = if is_end(insn) { 0 } else { before[index + 1] };
                after[index] = next | targets[index].map_or(0, |target| before[target]);
                let (read, set) = self.effect(insn);
                let now = (after[index] & !set) | read;
                changed |= now != before[index];
                before[index] = now;
            }
        }
        after
    }
}

/// Returns true if the next instruction does not follow.
fn is_end(insn: Insn) -> bool {
    matches!(insn, Insn::Exit | Insn::Jump { .. } | Insn::JumpLong { .. })
}

/// Returns the registers that an instruction reads, and those that it sets without reading them.
fn effect(insn: Insn) -> (Regs, Regs) {
    let of = |src: Src| match src {
        Src::Reg(reg) => bit(reg),
        Src::Imm(_) => 0,
    };
    match insn {
        Insn::Alu {
            op: AluOp::Mov,
            dst,
            src,
            ..
        } => (of(src), bit(dst)),
        Insn::MovSx { dst, src, .. } => (bit(src), bit(dst)),
        Insn::LoadImm64 { dst, .. } => (0, bit(dst)),
        Insn::Load { dst, addr, .. } | Insn::LoadSx { dst, addr, .. } => (bit(addr.base), bit(dst)),
        Insn::Store { addr, src, .. } => (bit(addr.base) | of(src), 0),
        Insn::Neg { dst, .. } | Insn::Swap { dst, .. } => (bit(dst), 0),
        Insn::Call(Callee::Helper(_) | Callee::Subprogram(_)) => (TAKEN_BY_CALLS, CHANGED_BY_CALLS),
        Insn::Exit => (bit(Reg::R0), 0),
        Insn::Jump { .. } | Insn::JumpLong { .. } => (0, 0),
        Insn::JumpIf { dst, src, .. } | Insn::Alu { dst, src, .. } => (bit(dst) | of(src), 0),
        // A compare-and-exchange reads and sets r0. The other fetches set their source register,
        // but that is not used here.
        Insn::Atomic {
            op: AtomicOp::CmpXchg,
            addr,
            src,
            ..
        } => (bit(addr.base) | bit(src) | bit(Reg::R0), 0),
        Insn::Atomic { addr, src, .. } => (bit(addr.base) | bit(src), 0),
        // Nothing is known of the kernel's own functions here: they count as reading all registers.
        Insn::Call(Callee::Kfunc { .. }) => (Regs::MAX, 0),
    }
}
