//! The program that ends a window of a CPU and begins the next one, without a gap.

use bpf_insn::Reg::{R1, R7, R8, R9};
use bpf_insn::{Asm, AsmError, Code, JumpOp};
use bpf_program::emit::program;
use bpf_program::{Emit as _, field};

use super::emit::{self, LEVEL_MASK, LEVEL_SHIFT, level, slot, state};
use super::{Setting, tally};
use crate::audit::layout::{KINDS, LEVELS, Total, detail};

/// Makes the program that runs on the CPU in an interrupt, which is counted: the time of its levels
/// goes to the sums, and the levels go on.
///
/// ```text
/// account
/// for each level that has time: add it to its sums, as if it ended; its end will not count again
/// turned = totals, whose longest begin anew; stop = mark
/// ```
pub(super) fn turn(setting: &Setting) -> Result<Code, AsmError> {
    // Individual intrusions are sent when they are over, not in pieces.
    let setting = &Setting {
        each: None,
        ..*setting
    };
    program(|asm, out| {
        let each = asm.label("each_level");
        emit::begin_accounted(asm, setting, out);
        // Before Linux 6.3, the verifier tracks a stored constant only if it was in a register.
        asm.mov(R1, LEVELS as u32).put(slot!(saved), R1).bind(each);
        asm.get(R1, slot!(saved))
            .sub(R1, 1)
            .and(R1, LEVEL_MASK)
            .lsh(R1, LEVEL_SHIFT)
            .mov(R9, R7)
            .add(R9, R1);
        asm.get(R1, level!(own)).if_(R1, JumpOp::Ne, 0, |asm| {
            emit::take_level(asm, setting);
            asm.get(R1, level!(detail))
                .or(R1, detail::RESUMED)
                .put(level!(detail), R1);
            tally::add(asm, setting);
        });
        asm.get(R1, slot!(saved))
            .sub(R1, 1)
            .put(slot!(saved), R1)
            .jump_if(R1, JumpOp::Ne, 0, each);
        keep_totals(asm);
        asm.get(R8, state!(mark)).put(state!(stop), R8);
    })
}

/// Copies the sums of each kind, so that a reader gets those of the window's end.
fn keep_totals(asm: &mut Asm) {
    asm.comment("the sums at the end of this window");
    for kind in 0..KINDS {
        let (from, to) = (state!(totals).element(kind), state!(turned).element(kind));
        asm.copy(field!(from, Total, count), field!(to, Total, count));
        asm.copy(field!(from, Total, total), field!(to, Total, total));
        asm.copy(field!(from, Total, longest), field!(to, Total, longest));
        asm.put(field!(from, Total, longest), 0);
    }
}
