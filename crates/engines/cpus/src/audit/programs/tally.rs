//! Adds finished episodes to the sums of their kind and of their key.

use bpf_insn::Reg::{R0, R1, R2, R3, R4, R5, R7, R9};
use bpf_insn::{Asm, Helper, JumpOp};
use bpf_program::{Emit as _, bytes_of, field};
use uapi::bpf::{NOEXIST, RB_NO_WAKEUP};

use super::Setting;
use super::emit::{episode, slot, state};
use crate::audit::layout::{
    CLASSES, Episode, FIRST_CLASS, KINDS, RING, State, TALLIES, Tally, Total, detail, kind,
};

/// Field of the tally in r9.
macro_rules! tally {
    ($field:ident) => {
        field!(R9, Tally, $field)
    };
}

/// Field of the sums of a kind. r9 is the state, moved by whole sums.
macro_rules! total {
    ($field:ident) => {
        field!(field!(R9, State, totals).element(0), Total, $field)
    };
}

/// Adds the episode on the stack. r9 and r0 to r5 are lost.
///
/// ```text
/// if it did not wait: add it to totals[kind]
/// tally = tallies[key], or a new one; if there is no room: lost += 1
/// tally.count += 1, unless it only goes on; tally.total += own
/// tally.longest = the longer one; tally.classes[class of own] += 1
/// if it did not wait, is not idle and not too short: send it; if there is no room: unsent += 1
/// ```
pub(super) fn add(asm: &mut Asm, setting: &Setting) {
    let (full, done) = (asm.label("full"), asm.label("added"));
    add_total(asm);
    asm.comment("its tally")
        .entry(TALLIES, slot!(episode.key), slot!(new), NOEXIST, full)
        .mov(R9, R0);
    add_tally(asm);
    asm.jump(done)
        .bind(full)
        .add_atomic(state!(lost), R1, 1)
        .bind(done);
    if let Some(at_least) = setting.each {
        send(asm, at_least);
    }
}

/// Sets r2 to 1, or to 0 for an episode that only goes on.
fn counted(asm: &mut Asm) {
    let goes_on = asm.label("goes_on");
    asm.mov(R2, 0)
        .get(R1, episode!(detail))
        .jump_if(R1, JumpOp::Set, detail::RESUMED, goes_on);
    asm.mov(R2, 1).bind(goes_on);
}

fn add_total(asm: &mut Asm) {
    asm.comment("the sums of its kind")
        .get(R1, episode!(key.kind))
        .if_(R1, JumpOp::Lt, kind::WAITED, |asm| {
            asm.and(R1, KINDS as u32 - 1)
                .lsh(R1, size_of::<Total>().trailing_zeros());
            asm.mov(R9, R7).add(R9, R1).get(R3, episode!(own));
            counted(asm);
            asm.increase(total!(count), R1, R2)
                .increase(total!(total), R1, R3);
            asm.get(R1, total!(longest))
                .if_(R1, JumpOp::Lt, R3, |asm| _ = asm.put(total!(longest), R3));
        });
}

/// Adds the episode to the tally r9.
fn add_tally(asm: &mut Asm) {
    asm.get(R3, episode!(own));
    counted(asm);
    asm.increase(tally!(count), R1, R2)
        .increase(tally!(total), R1, R3);
    asm.get(R1, tally!(longest)).if_(R1, JumpOp::Le, R3, |asm| {
        asm.put(tally!(longest), R3)
            .copy(episode!(began), tally!(longest_at));
    });
    asm.copy(episode!(name), tally!(name))
        .copy(episode!(tgid), tally!(tgid))
        .copy(episode!(detail), tally!(detail));
    class(asm);
    asm.lsh(R4, 2)
        .add(R9, R4)
        .increase(tally!(classes).element(0), R1, 1);
}

/// Sets r4 to the class of the time r3: its logarithm to base 2, from the first class on.
fn class(asm: &mut Asm) {
    let below = FIRST_CLASS - 1;
    asm.comment("the class of its length")
        .mov(R5, R3)
        .logarithm(R4, R5, R1);
    asm.at_least(R4, below)
        .sub(R4, below)
        .at_most(R4, CLASSES as u32 - 1);
}

fn send(asm: &mut Asm, at_least: u64) {
    let sent = asm.label("sent");
    asm.comment("is it to be sent?")
        .get(R1, episode!(key.kind))
        .jump_if(R1, JumpOp::Ge, kind::WAITED, sent);
    asm.if_(R1, JumpOp::Eq, kind::THREAD, |asm| {
        asm.get(R1, episode!(key.id))
            .jump_if(R1, JumpOp::Eq, 0, sent);
    });
    asm.get(R3, episode!(own))
        .constant(R1, at_least)
        .jump_if(R3, JumpOp::Lt, R1, sent);
    // Waking the reader would be an interrupt on the audited CPU.
    asm.load_map(R1, RING)
        .address(R2, slot!(episode))
        .mov(R3, bytes_of!(Episode))
        .mov(R4, RB_NO_WAKEUP);
    asm.call(Helper::RINGBUF_OUTPUT)
        .jump_if(R0, JumpOp::Eq, 0, sent)
        .add_atomic(state!(unsent), R1, 1)
        .bind(sent);
}
