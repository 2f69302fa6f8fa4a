//! Scratch memory: values that do not fit on the stack.
//!
//! Each CPU has a few areas, since a program can be interrupted by another one (or by the same one for another thread) on
//! its CPU, and these need not end in the order in which they began. So an area is taken by an exchange of its first word.

use bpf_insn::Reg::{R0, R1, R2, R7, R10};
use bpf_insn::{AtomicOp, Helper, JumpOp, Label, Size, Width};

use super::{Emitter, SCRATCH};
use bt_abi::lost::LOST;

/// The scratch map's name.
pub(crate) const MAP: &str = "scratch";
/// How many areas each CPU has.
pub(crate) const AREAS: u32 = 4;
/// The word that says whether an area is taken.
pub(super) const HEAD: u32 = 8;
/// The most that an area can have: the largest value of a per-CPU map (`PCPU_MIN_UNIT_SIZE`).
pub(crate) const MOST: u32 = 32 << 10;

impl Emitter<'_> {
    /// Goes through the areas; the verifier follows the count of turns, which is in a register.
    pub(super) fn take_scratch(&mut self, busy: Label) {
        let (found, next, taken) = (self.asm.label("found"), self.asm.label("area"), self.asm.label("taken"));
        let index = self.slot();
        self.asm.comment("scratch memory").mov(R7, 0).bind(next).store(Size::W, R10.at(index), R7).load_map(R1, MAP);
        self.asm.mov(R2, R10).add(R2, i32::from(index)).call(Helper::MAP_LOOKUP_ELEM).jump_if(R0, JumpOp::Eq, 0, busy);
        if self.inputs.facts.kernel().exchange {
            self.asm.mov(R1, 1).atomic(AtomicOp::Xchg, Width::W64, R0.at(0), R1).jump_if(R1, JumpOp::Eq, 0, found);
        } else {
            // Whoever comes between the two gives the area back before we go on: on such a kernel programs can't
            // be preempted, only interrupted.
            self.asm.load(Size::DW, R1, R0.at(0)).jump_if(R1, JumpOp::Ne, 0, taken);
            self.asm.store(Size::DW, R0.at(0), 1).jump(found);
        }
        self.asm.bind(taken).add(R7, 1).jump_if(R7, JumpOp::Lt, AREAS.cast_signed(), next).jump(busy);
        self.asm.bind(found).store(Size::DW, R10.at(SCRATCH), R0);
    }

    pub(super) fn give_scratch(&mut self) {
        self.asm.load(Size::DW, R1, R10.at(SCRATCH)).store(Size::DW, R1.at(0), 0);
    }

    /// Adds one to the counter at this offset of [`LostCounters`](bt_abi::LostCounters). Uses r1 and r2.
    pub(super) fn count(&mut self, counter: i16) {
        self.asm.comment("count what is lost").load_data(R1, LOST, u32::from(counter.cast_unsigned())).mov(R2, 1);
        self.asm.atomic(AtomicOp::Add, Width::W64, R1.at(0), R2);
    }
}
