//! Adds what is over to the sums of its kind and of its key.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R5, R7, R9, R10};
use bpf_insn::{Asm, Helper, JumpOp, Size};
use bpf_program::{bytes_of, offset};

use super::Setting;
use super::emit::{self, EPISODE, NEW, episode};
use crate::audit::layout::{CLASSES, Episode, FIRST_CLASS, KINDS, RING, State, TALLIES, Tally, Total, detail, kind};

/// `BPF_NOEXIST` of `linux/bpf.h`.
const NEW_ONLY: i32 = 1;
/// `BPF_RB_NO_WAKEUP`: waking the reader would be an interrupt on the audited CPU.
const NO_WAKEUP: i32 = uapi::bpf::RB_NO_WAKEUP.cast_signed();

/// A field of the tally, which r9 is.
macro_rules! tally {
    ($field:ident) => {
        bpf_insn::Reg::R9.at(bpf_program::offset!($crate::audit::layout::Tally, $field))
    };
}

/// Adds the episode on the stack. r9 and r0 to r5 are lost.
///
/// ```text
/// if it did not wait: add it to totals[kind]
/// tally = tallies[key], or a new one; if there is no room: lost += 1
/// tally.count += 1, unless it only goes on; tally.total += own
/// tally.longest = the longer one; tally.classes[class of own] += 1
/// if it did not wait, is not idle and not shorter than asked for: send it; if there is no room: unsent += 1
/// ```
pub(super) fn add(asm: &mut Asm, setting: &Setting<'_>) {
    let (found, full, done) = (asm.label("tally"), asm.label("full"), asm.label("added"));
    add_total(asm);
    asm.comment("its tally");
    emit::lookup(asm, TALLIES, EPISODE);
    asm.jump_if(R0, JumpOp::Ne, 0, found);
    for at in (0..bytes_of!(Tally)).step_by(8) {
        asm.store(Size::DW, R10.at(NEW + at), 0);
    }
    emit::update(asm, TALLIES, EPISODE, NEW, NEW_ONLY);
    emit::lookup(asm, TALLIES, EPISODE);
    asm.jump_if(R0, JumpOp::Eq, 0, full).bind(found).mov(R9, R0);
    add_tally(asm);
    asm.jump(done).bind(full);
    emit::count(asm, offset!(State, lost));
    asm.bind(done);
    if let Some(at_least) = setting.each {
        send(asm, at_least);
    }
}

/// r2 = 1, or 0 for one that only goes on.
fn counted(asm: &mut Asm) {
    let goes_on = asm.label("goes_on");
    asm.mov(R2, 0).load(Size::W, R1, episode!(detail)).jump_if(R1, JumpOp::Set, detail::RESUMED.cast_signed(), goes_on);
    asm.mov(R2, 1).bind(goes_on);
}

fn add_total(asm: &mut Asm) {
    let (waited, shorter) = (asm.label("waited"), asm.label("not_longest"));
    let total = |field: i16| R9.at(offset!(State, totals) + field);
    asm.comment("the sums of its kind").load(Size::W, R1, episode!(key.kind));
    asm.jump_if(R1, JumpOp::Ge, kind::WAITED.cast_signed(), waited);
    asm.and(R1, (KINDS as u32).cast_signed() - 1).lsh(R1, size_of::<Total>().trailing_zeros().cast_signed());
    asm.mov(R9, R7).add(R9, R1).load(Size::DW, R3, episode!(own));
    counted(asm);
    asm.load(Size::DW, R1, total(offset!(Total, count))).add(R1, R2);
    asm.store(Size::DW, total(offset!(Total, count)), R1);
    asm.load(Size::DW, R1, total(offset!(Total, total))).add(R1, R3);
    asm.store(Size::DW, total(offset!(Total, total)), R1);
    asm.load(Size::DW, R1, total(offset!(Total, longest))).jump_if(R1, JumpOp::Ge, R3, shorter);
    asm.store(Size::DW, total(offset!(Total, longest)), R3).bind(shorter).bind(waited);
}

/// Adds it to the tally r9.
fn add_tally(asm: &mut Asm) {
    let shorter = asm.label("shorter");
    asm.load(Size::DW, R3, episode!(own));
    counted(asm);
    asm.load(Size::DW, R1, tally!(count)).add(R1, R2).store(Size::DW, tally!(count), R1);
    asm.load(Size::DW, R1, tally!(total)).add(R1, R3).store(Size::DW, tally!(total), R1);
    asm.load(Size::DW, R1, tally!(longest)).jump_if(R1, JumpOp::Gt, R3, shorter).store(Size::DW, tally!(longest), R3);
    asm.load(Size::DW, R1, episode!(began)).store(Size::DW, tally!(longest_at), R1).bind(shorter);
    emit::copy_name(asm, episode!(name), tally!(name));
    for (from, to) in [(episode!(tgid), tally!(tgid)), (episode!(detail), tally!(detail))] {
        asm.load(Size::W, R1, from).store(Size::W, to, R1);
    }
    class(asm);
    asm.lsh(R4, 2).add(R9, R4);
    asm.load(Size::W, R1, tally!(classes)).add(R1, 1).store(Size::W, tally!(classes), R1);
}

/// r4 = the class of the time r3: its logarithm to base 2, from the first class on.
fn class(asm: &mut Asm) {
    let (first, last) = (asm.label("first_class"), asm.label("last_class"));
    asm.comment("the class of its length").mov(R4, 0).mov(R5, R3);
    for bits in [32, 16, 8, 4, 2, 1] {
        let less = asm.label("less");
        asm.mov(R1, R5).rsh(R1, bits).jump_if(R1, JumpOp::Eq, 0, less).mov(R5, R1).add(R4, bits).bind(less);
    }
    let below = FIRST_CLASS.cast_signed() - 1;
    let most = (CLASSES as u32).cast_signed() - 1;
    asm.jump_if(R4, JumpOp::Ge, below, first).mov(R4, below).bind(first).sub(R4, below);
    asm.jump_if(R4, JumpOp::Le, most, last).mov(R4, most).bind(last);
}

fn send(asm: &mut Asm, at_least: u64) {
    let (sent, unsent, busy) = (asm.label("sent"), asm.label("unsent"), asm.label("busy"));
    asm.comment("is it to be sent?").load(Size::W, R1, episode!(key.kind));
    asm.jump_if(R1, JumpOp::Ge, kind::WAITED.cast_signed(), sent);
    asm.jump_if(R1, JumpOp::Ne, kind::THREAD.cast_signed(), busy);
    asm.load(Size::DW, R1, episode!(key.id)).jump_if(R1, JumpOp::Eq, 0, sent).bind(busy);
    asm.load(Size::DW, R3, episode!(own)).constant(R1, at_least).jump_if(R3, JumpOp::Lt, R1, sent);
    asm.load_map(R1, RING).mov(R2, R10).add(R2, i32::from(EPISODE)).mov(R3, i32::from(bytes_of!(Episode)));
    asm.mov(R4, NO_WAKEUP).call(Helper::RINGBUF_OUTPUT).jump_if(R0, JumpOp::Eq, 0, sent).bind(unsent);
    emit::count(asm, offset!(State, unsent));
    asm.bind(sent);
}
