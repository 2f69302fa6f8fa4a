//! The peephole pass: shortens code that is emitted piece by piece. It removes jumps to jumps,
//! moves through a register, and registers and words of the frame that are set and never read.
//!
//! It only removes instructions and renames registers, and only if the meaning provably stays the
//! same: by a forward scan of a stretch without labels, and by a backward liveness analysis of all
//! of the code.

use std::collections::HashSet;

use super::Asm;
use super::live::{Regs, bit};
use crate::insn::{AluOp, Insn, Reg, Size, Src, Width};

/// Limit on the turns. Each can make room for another one, but rarely does.
const MAX_PASSES: u32 = 5;

impl Asm {
    /// Repeats all improvements while one of them changes something.
    pub(super) fn peephole(&mut self) {
        for _ in 0..MAX_PASSES {
            if !(self.thread_jumps()
                | self.turn_jumps()
                | self.forward_stores()
                | self.store_constants()
                | self.shorten_moves()
                | self.use_sources()
                | self.drop_unread())
            {
                return;
            }
        }
    }

    /// Redirects jumps to a jump to its target, and removes jumps to the next instruction. Returns
    /// true if something changed.
    fn thread_jumps(&mut self) -> bool {
        let mut changed = false;
        for index in 0..self.items.len() {
            let Some(label) = self.items[index].label else {
                continue;
            };
            let Some(target) = self.index_of(label) else {
                continue;
            };
            let at_target = &self.items[target];
            if let (Insn::Jump { .. }, Some(further)) = (at_target.line.insn, at_target.label)
                && further != label
                && self
                    .index_of(further)
                    .is_some_and(|end| end != target && end > index)
            {
                self.items[index].label = Some(further);
                changed = true;
            }
        }
        let is_empty = |index: usize| {
            let item = &self.items[index];
            matches!(item.line.insn, Insn::Jump { .. })
                && item.label.and_then(|label| self.index_of(label)) == Some(index + 1)
        };
        let keep: Vec<bool> = (0..self.items.len())
            .map(|index| !is_empty(index))
            .collect();
        changed | self.keep_only(&keep)
    }

    /// Replaces a conditional jump over a jump by one jump with the opposite condition.
    fn turn_jumps(&mut self) -> bool {
        let targets = self.targets();
        let mut gone = HashSet::new();
        for index in 1..self.items.len() {
            let (above, item) = (&self.items[index - 1], &self.items[index]);
            let over = above.label.and_then(|label| self.index_of(label)) == Some(index + 1);
            let (
                Insn::JumpIf {
                    op,
                    width,
                    dst,
                    src,
                    off,
                },
                Insn::Jump { .. },
            ) = (above.line.insn, item.line.insn)
            else {
                continue;
            };
            let (Some(op), Some(label)) = (op.negated(), item.label) else {
                continue;
            };
            if over && !targets.contains(&item.line.slot) {
                self.items[index - 1].line.insn = Insn::JumpIf {
                    op,
                    width,
                    dst,
                    src,
                    off,
                };
                self.items[index - 1].label = Some(label);
                gone.insert(index);
            }
        }
        self.leave_out(&gone)
    }

    /// Replaces a load right after a store to the same address by a move.
    fn forward_stores(&mut self) -> bool {
        let targets = self.targets();
        let mut changed = false;
        for index in 1..self.items.len() {
            let (store, load) = (self.items[index - 1].line.insn, self.items[index].line.insn);
            let Insn::Store {
                size: Size::DW,
                addr: to,
                src: src @ Src::Reg(_),
            } = store
            else {
                continue;
            };
            let Insn::Load {
                size: Size::DW,
                dst,
                addr: from,
            } = load
            else {
                continue;
            };
            if to == from && to.base == Reg::R10 && !targets.contains(&self.items[index].line.slot)
            {
                self.items[index].line.insn = Insn::Alu {
                    op: AluOp::Mov,
                    width: Width::W64,
                    dst,
                    src,
                };
                changed = true;
            }
        }
        changed
    }

    /// Replaces `rX = number; *address = rX` with X not read later by `*address = number`.
    fn store_constants(&mut self) -> bool {
        let (live, targets) = (self.live_after(), self.targets());
        let mut changed = false;
        for (index, live) in live.iter().enumerate().skip(1) {
            let Insn::Alu {
                op: AluOp::Mov,
                width: Width::W64,
                dst,
                src: number @ Src::Imm(_),
            } = self.items[index - 1].line.insn
            else {
                continue;
            };
            let is_target = targets.contains(&self.items[index].line.slot);
            if let Insn::Store { src, addr, .. } = &mut self.items[index].line.insn
                && *src == Src::Reg(dst)
                && addr.base != dst
                && live & bit(dst) == 0
                && !is_target
            {
                // The instruction that set the register is removed as unread.
                *src = number;
                changed = true;
            }
        }
        changed
    }

    /// Replaces `rX = something; rZ = rX` with X not read later by `rZ = something`.
    fn shorten_moves(&mut self) -> bool {
        let (live, targets) = (self.live_after(), self.targets());
        let mut gone = HashSet::new();
        for (index, live) in live.iter().enumerate().skip(1) {
            let item = &self.items[index];
            let Insn::Alu {
                op: AluOp::Mov,
                width: Width::W64,
                dst,
                src: Src::Reg(src),
            } = item.line.insn
            else {
                continue;
            };
            let is_last = live & bit(src) == 0;
            if !is_last
                || src == dst
                || gone.contains(&(index - 1))
                || targets.contains(&item.line.slot)
            {
                continue;
            }
            // Changes of the register before the move may be made in the other one.
            let mut first = index - 1;
            while changes_only(self.items[first].line.insn, src)
                && !self.is_barrier(first, &targets, &gone)
            {
                first -= 1;
            }
            if !gone.contains(&first)
                && let Some(insn) = renamed(self.items[first].line.insn, src, dst)
            {
                self.items[first].line.insn = insn;
                for item in &mut self.items[first + 1..index] {
                    if let Insn::Alu { dst: changed, .. } = &mut item.line.insn {
                        *changed = dst;
                    }
                }
                gone.insert(index);
            }
        }
        self.leave_out(&gone)
    }

    /// Replaces `rX = rY; something with rX`, which is not read later, by something with rY.
    fn use_sources(&mut self) -> bool {
        let (live, targets) = (self.live_after(), self.targets());
        let mut changed = false;
        for (index, live) in live.iter().enumerate().skip(1) {
            let Insn::Alu {
                op: AluOp::Mov,
                width: Width::W64,
                dst,
                src: Src::Reg(src),
            } = self.items[index - 1].line.insn
            else {
                continue;
            };
            let item = &mut self.items[index];
            if live & bit(dst) == 0
                && !targets.contains(&item.line.slot)
                && let Some(insn) = reading(item.line.insn, dst, src)
            {
                item.line.insn = insn;
                changed = true;
            }
        }
        changed
    }

    fn leave_out(&mut self, gone: &HashSet<usize>) -> bool {
        let keep: Vec<bool> = (0..self.items.len())
            .map(|index| !gone.contains(&index))
            .collect();
        self.keep_only(&keep)
    }

    /// Returns true if nothing before an instruction may be examined: it is a jump target, or takes
    /// part in a change already.
    fn is_barrier(&self, index: usize, targets: &HashSet<u32>, gone: &HashSet<usize>) -> bool {
        index == 0 || gone.contains(&index) || targets.contains(&self.items[index].line.slot)
    }

    /// Returns the slots of jump targets.
    fn targets(&self) -> HashSet<u32> {
        let slot = |label: super::Label| {
            self.labels
                .get(label.0 as usize)
                .and_then(|label| label.slot)
        };
        self.items
            .iter()
            .filter_map(|item| item.label.and_then(slot))
            .collect()
    }

    /// Removes instructions that set a register or a local slot that nobody reads.
    fn drop_unread(&mut self) -> bool {
        let live = self.live_after();
        let unread = |(item, live): (&super::Item, &Regs)| match item.line.insn {
            Insn::Alu {
                op: AluOp::Mov,
                width: Width::W64,
                dst,
                src,
            } if src == Src::Reg(dst) => true,
            Insn::Alu { dst, .. } | Insn::MovSx { dst, .. } | Insn::LoadImm64 { dst, .. } => {
                live & bit(dst) == 0
            }
            Insn::Store { size, addr, .. } => {
                self.word(size, addr).is_some_and(|word| live & word == 0)
            }
            Insn::Load { size, dst, addr } => {
                self.word(size, addr).is_some() && live & bit(dst) == 0
            }
            _ => false,
        };
        let keep: Vec<bool> = self
            .items
            .iter()
            .zip(&live)
            .map(|both| !unread(both))
            .collect();
        self.keep_only(&keep)
    }
}

/// Returns true if an instruction does no more than change a number in this register by a constant.
fn changes_only(insn: Insn, reg: Reg) -> bool {
    matches!(insn, Insn::Alu { op, dst, src: Src::Imm(_), .. } if dst == reg && op != AluOp::Mov)
}

/// Returns the instruction with another target register, if it only sets `from` without reading it.
fn renamed(insn: Insn, from: Reg, to: Reg) -> Option<Insn> {
    match insn {
        Insn::Alu {
            op: AluOp::Mov,
            width,
            dst,
            src,
        } if dst == from => Some(Insn::Alu {
            op: AluOp::Mov,
            width,
            dst: to,
            src,
        }),
        Insn::LoadImm64 { dst, imm } if dst == from => Some(Insn::LoadImm64 { dst: to, imm }),
        Insn::Load { size, dst, addr } if dst == from => Some(Insn::Load {
            size,
            dst: to,
            addr,
        }),
        _ => None,
    }
}

/// Returns the instruction with another source register, if it reads `from` and does not change it.
fn reading(insn: Insn, from: Reg, to: Reg) -> Option<Insn> {
    let other = |reg: Reg| if reg == from { to } else { reg };
    let source = |src: Src| {
        if src == Src::Reg(from) {
            Src::Reg(to)
        } else {
            src
        }
    };
    let changed = match insn {
        Insn::Load { size, dst, addr } => Insn::Load {
            size,
            dst,
            addr: other(addr.base).at(addr.off),
        },
        Insn::Store { size, addr, src } => Insn::Store {
            size,
            addr: other(addr.base).at(addr.off),
            src: source(src),
        },
        Insn::JumpIf {
            op,
            width,
            dst,
            src,
            off,
        } => Insn::JumpIf {
            op,
            width,
            dst: other(dst),
            src: source(src),
            off,
        },
        Insn::Alu {
            op,
            width,
            dst,
            src,
        } if dst != from => Insn::Alu {
            op,
            width,
            dst,
            src: source(src),
        },
        _ => return None,
    };
    (changed != insn).then_some(changed)
}

#[cfg(test)]
mod tests;
