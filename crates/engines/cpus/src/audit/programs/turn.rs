//! The program that ends a window of a CPU and begins the next one, without a gap between them.

use bpf_insn::Reg::{R1, R7, R8, R9, R10};
use bpf_insn::{Asm, AsmError, Code, JumpOp, Size};
use bpf_program::{bytes_of, offset};

use super::emit::{self, LEVEL_MASK, LEVEL_SHIFT, SAVED, level, state};
use super::{Setting, tally};
use crate::audit::layout::{KINDS, LEVELS, State, Total, detail};

/// Run on the CPU in an interrupt, which is counted: what of its levels has passed goes to the sums, and they go on.
///
/// ```text
/// account
/// for each level that has time: add it to its sums, as if it ended; when it does end, it does not count again
/// turned = totals, whose longest begin anew; stop = mark
/// ```
pub(super) fn turn(setting: &Setting<'_>) -> Result<Code, AsmError> {
    // Single ones are sent when they are over, not in pieces.
    let setting = &Setting { each: None, ..*setting };
    let mut asm = Asm::new();
    let (out, each, unused) = (asm.label("out"), asm.label("each_level"), asm.label("unused"));
    emit::begin(&mut asm, out);
    emit::now(&mut asm);
    emit::account(&mut asm, setting);
    // The verifier follows a constant in a register that is stored, and not one that is stored as such (before 6.3).
    asm.mov(R1, (LEVELS as u32).cast_signed()).store(Size::DW, R10.at(SAVED), R1).bind(each);
    asm.load(Size::DW, R1, R10.at(SAVED)).sub(R1, 1).and(R1, LEVEL_MASK).lsh(R1, LEVEL_SHIFT);
    asm.mov(R9, R7).add(R9, R1).load(Size::DW, R1, level!(own)).jump_if(R1, JumpOp::Eq, 0, unused);
    emit::take_level(&mut asm, setting);
    asm.load(Size::W, R1, level!(detail)).or(R1, detail::RESUMED.cast_signed()).store(Size::W, level!(detail), R1);
    tally::add(&mut asm, setting);
    asm.bind(unused).load(Size::DW, R1, R10.at(SAVED)).sub(R1, 1).store(Size::DW, R10.at(SAVED), R1);
    asm.jump_if(R1, JumpOp::Ne, 0, each);
    keep_totals(&mut asm);
    asm.load(Size::DW, R8, state!(mark)).store(Size::DW, state!(stop), R8).bind(out);
    emit::end(&mut asm);
    asm.finish()
}

/// Copies the sums of each kind: whoever reads them gets those of the window's end, whatever has come since.
fn keep_totals(asm: &mut Asm) {
    asm.comment("the sums at the end of this window");
    for kind in 0..(KINDS as u16).cast_signed() {
        let at = |array: i16, field: i16| R7.at(array + kind * bytes_of!(Total) + field);
        for field in [offset!(Total, count), offset!(Total, total), offset!(Total, longest)] {
            asm.load(Size::DW, R1, at(offset!(State, totals), field));
            asm.store(Size::DW, at(offset!(State, turned), field), R1);
        }
        asm.store(Size::DW, at(offset!(State, totals), offset!(Total, longest)), 0);
    }
}
