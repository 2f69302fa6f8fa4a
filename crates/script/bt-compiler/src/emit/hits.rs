//! Programs mark that they were hit. After the first hit that costs two loads and a jump.

use bpf_insn::Reg::{R1, R2};
use bpf_insn::{JumpOp, Size};
use bt_abi::hits::HITS;

use super::Emitter;

impl Emitter<'_> {
    /// Marks the program, if marks are wanted. The mark is written once: CPUs share a line of cache
    /// that none of them writes. Uses r1 and r2.
    pub(super) fn mark_hit(&mut self) {
        let Some(mark) = self.mark else { return };
        let marked = self.asm.label("marked");
        self.asm
            .comment("mark the program as hit")
            .load_data(R1, HITS, mark)
            .load(Size::W, R2, R1.at(0))
            .jump_if(R2, JumpOp::Ne, 0, marked);
        self.asm.store(Size::W, R1.at(0), 1).bind(marked);
    }
}
