//! Tests of labels, valid and invalid.

use super::*;
use crate::insn::{JumpOp, Reg::*};
use crate::{Helper, Insn, KernelVersion};

fn offsets(code: &Code) -> Vec<i16> {
    let lines = code.lines().iter();
    lines
        .filter_map(|line| match line.insn {
            Insn::Jump { off } | Insn::JumpIf { off, .. } => Some(off),
            _ => None,
        })
        .collect()
}

#[test]
fn labels_go_forwards_and_backwards_in_slots() {
    let mut asm = Asm::new();
    let (again, out) = (asm.label("again"), asm.label("out"));
    asm.bind(again)
        .jump_if(R1, JumpOp::Eq, 0, out)
        .constant(R2, 1 << 40)
        .sub(R1, 1)
        .jump(again);
    asm.bind(out).mov(R0, 0).exit();
    let code = asm.finish().unwrap();
    assert_eq!(offsets(&code), [4, -5]);
    assert_eq!(code.slots(), 7);
    assert_eq!(code.labels_at(5), ["out"]);
    assert_eq!(code.lines()[0].target.as_deref(), Some("out"));
}

#[test]
fn a_jump_to_the_next_instruction_has_distance_zero() {
    let mut asm = Asm::new();
    let next = asm.label("next");
    asm.jump(next).bind(next).exit();
    assert_eq!(offsets(&asm.finish().unwrap()), [0]);
}

#[test]
fn labels_of_one_name_stay_apart() {
    let mut asm = Asm::new();
    let (first, second) = (asm.label("skip"), asm.label("skip"));
    asm.jump(first).bind(first).jump(second).bind(second).exit();
    let code = asm.finish().unwrap();
    assert_eq!(code.labels_at(1), ["skip"]);
    assert_eq!(code.labels_at(2), ["skip_1"]);
}

#[test]
fn an_unbound_label_is_named() {
    let mut asm = Asm::new();
    let lost = asm.label("lost");
    asm.mov(R0, 0).jump(lost).exit();
    let error = asm.finish().unwrap_err();
    assert_eq!(
        error,
        AsmError::Unbound {
            label: "lost".into(),
            slot: 1
        }
    );
    assert_eq!(
        error.to_string(),
        "jump at instruction 1 goes to label `lost`, which is not defined"
    );
}

#[test]
fn a_label_bound_twice_is_named() {
    let mut asm = Asm::new();
    let twice = asm.label("twice");
    asm.bind(twice).mov(R0, 0).bind(twice).exit();
    let error = asm.finish().unwrap_err();
    assert_eq!(
        error,
        AsmError::BoundTwice {
            label: "twice".into(),
            first: 0,
            second: 1
        }
    );
}

#[test]
fn a_foreign_label_is_an_error_not_a_panic() {
    let mut other = Asm::new();
    other.label("a");
    let foreign = other.label("b");
    let mut asm = Asm::new();
    asm.jump(foreign).exit();
    assert_eq!(asm.finish().unwrap_err(), AsmError::Foreign { label: 1 });
    let mut asm = Asm::new();
    asm.bind(foreign).exit();
    assert_eq!(asm.finish().unwrap_err(), AsmError::Foreign { label: 1 });
}

#[test]
fn a_label_behind_the_end_is_an_error() {
    let mut asm = Asm::new();
    let end = asm.label("end");
    asm.jump(end).exit().bind(end);
    assert_eq!(
        asm.finish().unwrap_err(),
        AsmError::BehindEnd {
            label: "end".into(),
            slot: 0
        }
    );
}

/// Assembles a jump over `gap` one-slot instructions.
fn over(gap: usize, long: bool) -> Result<Code, AsmError> {
    let mut asm = Asm::new();
    let far = asm.label("far");
    if long {
        asm.jump_long(far)
    } else {
        asm.jump_if(R1, JumpOp::Set, 1, far)
    };
    for _ in 0..gap {
        asm.mov(R0, 0);
    }
    asm.bind(far).exit();
    asm.finish()
}

#[test]
fn offsets_are_checked_at_their_limit() {
    let limit = usize::from(i16::MAX.cast_unsigned());
    assert_eq!(offsets(&over(limit, false).unwrap()), [i16::MAX]);
    let error = over(limit + 1, false).unwrap_err();
    assert_eq!(
        error,
        AsmError::TooFar {
            label: "far".into(),
            slot: 0,
            distance: 32768
        }
    );
    assert_eq!(
        error.to_string(),
        "jump at instruction 0 goes to label `far`, 32768 instructions away; the offset can be -32768 to 32767"
    );
}

#[test]
fn a_long_jump_goes_further_and_needs_a_newer_kernel() {
    let code = over(100_000, true).unwrap();
    assert_eq!(code.lines()[0].insn, Insn::JumpLong { off: 100_000 });
    assert_eq!(code.since(), KernelVersion::new(6, 6));
}

#[test]
fn constants_take_one_slot_where_they_can() {
    for (value, slots) in [
        (0, 1),
        (0x7fff_ffff, 1),
        (0x8000_0000, 2),
        (u64::MAX, 1),
        (1 << 63, 2),
    ] {
        let mut asm = Asm::new();
        asm.constant(R1, value);
        assert_eq!(asm.slots(), slots, "{value:#x}");
    }
}

#[test]
fn the_newest_instruction_or_helper_decides_the_kernel() {
    let mut asm = Asm::new();
    asm.call(Helper::GET_ATTACH_COOKIE).mov(R0, 0).exit();
    assert_eq!(asm.finish().unwrap().since(), KernelVersion::new(5, 15));
    assert_eq!(Code::default().since(), KernelVersion::FIRST);
}

#[test]
fn comments_and_spans_stay_with_their_instructions() {
    let span = SourceSpan { start: 3, end: 9 };
    let mut asm = Asm::new();
    asm.span(Some(span))
        .comment("one")
        .comment("two")
        .mov(R0, 0);
    asm.span(None).exit();
    let code = asm.finish().unwrap();
    assert_eq!(code.lines()[0].comment.as_deref(), Some("one; two"));
    assert_eq!(code.lines()[0].span, Some(span));
    assert_eq!(
        (&code.lines()[1].comment, code.lines()[1].span),
        (&None, None)
    );
}

#[test]
fn decoded_code_has_labels_only_where_instructions_start() {
    let mut asm = Asm::new();
    let to = asm.label("to");
    asm.jump_if(R1, JumpOp::Eq, 0, to)
        .constant(R2, 1 << 40)
        .bind(to)
        .exit();
    asm.insn(Insn::Jump { off: -4 })
        .insn(Insn::Jump { off: 100 });
    let code = Code::decode(&asm.finish().unwrap().to_bytes()).unwrap();
    let targets: Vec<_> = code
        .lines()
        .iter()
        .map(|line| line.target.as_deref())
        .collect();
    // The jump back lands in a constant's second slot... and the last one outside.
    assert_eq!(targets, [Some("L3"), None, None, Some("L1"), None]);
    assert_eq!(code.labels_at(3), ["L3"]);
}
