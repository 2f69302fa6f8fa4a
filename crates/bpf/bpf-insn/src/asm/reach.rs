//! Removes unreachable instructions: the verifier rejects a program that has any.

use super::{Asm, AsmError, Code, Item, Label};
use crate::insn::Insn;

impl Asm {
    /// Finishes like [`Asm::finish`], without unreachable instructions: an emitter need not know
    /// whether code after an `exit` is reachable.
    pub fn finish_reachable(mut self) -> Result<Code, AsmError> {
        if self.may_change() {
            self.drop_unreachable();
        }
        self.finish()
    }

    /// Finishes like [`Asm::finish_reachable`], after the peephole pass. It assumes that a call
    /// reads all registers that it can.
    pub fn finish_optimized(mut self) -> Result<Code, AsmError> {
        if self.may_change() {
            self.drop_unreachable();
            self.peephole();
            self.drop_unreachable();
        }
        self.finish()
    }

    /// Returns true if all jumps have labels: other targets are not ours to change.
    fn may_change(&self) -> bool {
        self.mistake.is_none()
            && self
                .items
                .iter()
                .all(|item| item.label.is_some() || !is_jump(item.line.insn))
    }

    fn drop_unreachable(&mut self) {
        let reached = self.reached();
        self.keep_only(&reached);
    }

    /// Removes the other instructions; returns true if there were any.
    pub(super) fn keep_only(&mut self, keep: &[bool]) -> bool {
        if keep.iter().all(|keep| *keep) {
            return false;
        }
        let mut kept = Vec::with_capacity(self.items.len());
        // New slot for each old one: that of its instruction, or of the next one kept.
        let mut moved = vec![0; self.slots as usize + 1];
        let mut slot = 0;
        for (mut item, &is_kept) in std::mem::take(&mut self.items).into_iter().zip(keep) {
            let (old, slots) = (item.line.slot, item.line.insn.slots());
            moved[old as usize..(old + slots) as usize].fill(slot);
            if is_kept {
                item.line.slot = slot;
                slot += slots;
                kept.push(item);
            }
        }
        moved[self.slots as usize] = slot;
        for label in &mut self.labels {
            label.slot = label.slot.map(|old| moved[old as usize]);
        }
        (self.items, self.slots) = (kept, slot);
        true
    }

    /// Returns for each instruction whether it is reachable.
    fn reached(&self) -> Vec<bool> {
        let mut reached = vec![false; self.items.len()];
        let mut waiting = vec![0];
        while let Some(index) = waiting.pop() {
            let Some(Item { line, label }) = self.items.get(index) else {
                continue;
            };
            if std::mem::replace(&mut reached[index], true) {
                continue;
            }
            waiting.extend(label.and_then(|label| self.index_of(label)));
            if !matches!(
                line.insn,
                Insn::Exit | Insn::Jump { .. } | Insn::JumpLong { .. }
            ) {
                waiting.push(index + 1);
            }
        }
        reached
    }

    /// Returns the index of the instruction after a label.
    pub(super) fn index_of(&self, Label(number): Label) -> Option<usize> {
        let slot = self.labels.get(number as usize)?.slot?;
        self.items
            .binary_search_by_key(&slot, |item| item.line.slot)
            .ok()
    }
}

fn is_jump(insn: Insn) -> bool {
    matches!(
        insn,
        Insn::Jump { .. } | Insn::JumpLong { .. } | Insn::JumpIf { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insn::{JumpOp, Reg::*};

    #[test]
    fn unreachable_code_is_left_out() {
        let mut asm = Asm::new();
        let (dead, live, end) = (asm.label("dead"), asm.label("live"), asm.label("end"));
        asm.mov(R0, 0).jump(live);
        asm.bind(dead)
            .constant(R1, 1 << 40)
            .jump_if(R1, JumpOp::Eq, 0, end)
            .exit();
        asm.bind(live).jump_if(R0, JumpOp::Eq, 0, end).mov(R0, 1);
        asm.bind(end).exit().mov(R0, 2).exit();
        let code = asm.finish_reachable().unwrap();
        let insns: Vec<_> = code.lines().iter().map(|line| line.insn).collect();
        assert_eq!(insns.len(), 5);
        assert_eq!(insns[1], Insn::Jump { off: 0 });
        assert!(matches!(insns[2], Insn::JumpIf { off: 1, .. }), "{insns:?}");
        assert_eq!(
            (code.slots(), code.labels_at(4)),
            (5, ["end".to_owned()].as_slice())
        );
    }

    #[test]
    fn loops_stay_and_nothing_is_lost_of_whole_code() {
        let build = |reachable: bool| {
            let mut asm = Asm::new();
            let (again, out) = (asm.label("again"), asm.label("out"));
            asm.mov(R1, 5)
                .bind(again)
                .jump_if(R1, JumpOp::Eq, 0, out)
                .sub(R1, 1)
                .jump(again);
            asm.bind(out).mov(R0, 0).exit();
            if reachable {
                asm.finish_reachable().unwrap()
            } else {
                asm.finish().unwrap()
            }
        };
        assert_eq!(build(true), build(false));
    }

    #[test]
    fn jumps_without_labels_are_left_alone() {
        let mut asm = Asm::new();
        asm.mov(R0, 0).exit().insn(Insn::Jump { off: -3 });
        assert_eq!(asm.finish_reachable().unwrap().slots(), 3);
    }
}
