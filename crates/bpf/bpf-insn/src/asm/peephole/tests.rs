//! Tests of the pass on short programs.

use super::*;
use crate::helpers::Helper;
use crate::insn::{JumpOp, Reg::*};

fn tidied(build: impl FnOnce(&mut Asm)) -> Vec<String> {
    let mut asm = Asm::new();
    build(&mut asm);
    asm.finish_optimized()
        .unwrap()
        .lines()
        .iter()
        .map(|line| line.insn.to_string())
        .collect()
}

#[test]
fn dead_stores_go_and_arguments_stay() {
    let code = tidied(|asm| {
        asm.mov(R6, R1)
            .mov(R7, 3)
            .mov(R1, 4)
            .call(Helper::KTIME_GET_NS)
            .add(R7, 1)
            .exit();
    });
    assert_eq!(code.len(), 3, "{code:?}");
    let code = tidied(|asm| {
        asm.mov(R6, R1)
            .mov(R7, 3)
            .call(Helper::KTIME_GET_NS)
            .add(R0, R7)
            .load(Size::DW, R1, R6.at(0))
            .exit();
    });
    assert_eq!(code.len(), 6, "what is loaded may not be there: {code:?}");
}

#[test]
fn moves_through_a_register_are_one() {
    let code = tidied(|asm| {
        asm.load(Size::DW, R0, R1.at(8))
            .mov(R3, R0)
            .mov(R0, 0)
            .mov(R7, R0)
            .mov(R0, R3)
            .add(R0, R7)
            .exit();
    });
    assert_eq!(
        code,
        [
            "r3 = *(u64 *)(r1 + 0x8)",
            "r7 = 0x0",
            "r0 = r3",
            "r0 += r7",
            "exit"
        ]
    );
    // It is read later.
    let code = tidied(|asm| {
        asm.load(Size::DW, R0, R1.at(8))
            .mov(R3, R0)
            .add(R0, 1)
            .add(R0, R3)
            .exit();
    });
    assert_eq!(code.len(), 5);
    // A jump comes between.
    let code = tidied(|asm| {
        let there = asm.label("there");
        asm.mov(R0, R1)
            .jump_if(R1, JumpOp::Eq, 0, there)
            .mov(R0, 5)
            .bind(there)
            .mov(R3, R0)
            .mov(R0, R3)
            .exit();
    });
    assert_eq!(code.len(), 4, "{code:?}");
}

#[test]
fn jumps_to_jumps_and_over_jumps() {
    let code = tidied(|asm| {
        let (over, out, end) = (asm.label("over"), asm.label("out"), asm.label("end"));
        asm.mov(R0, 0)
            .jump_if(R1, JumpOp::Eq, 0, over)
            .jump(out)
            .bind(over)
            .mov(R0, 1);
        asm.bind(out).jump(end).bind(end).exit();
    });
    assert_eq!(
        code,
        ["r0 = 0x0", "if r1 != 0x0 goto +0x1", "r0 = 0x1", "exit"]
    );
}

#[test]
fn copies_are_propagated() {
    let code = tidied(|asm| {
        let end = asm.label("end");
        asm.mov(R3, R6)
            .store(Size::DW, R3.at(8), R0)
            .mov(R4, R7)
            .jump_if(R4, JumpOp::Eq, 0, end)
            .mov(R0, 0);
        asm.bind(end).exit();
    });
    assert_eq!(
        code,
        [
            "*(u64 *)(r6 + 0x8) = r0",
            "if r7 == 0x0 goto +0x1",
            "r0 = 0x0",
            "exit"
        ]
    );
    let code = tidied(|asm| {
        asm.mov(R3, R6)
            .store(Size::DW, R3.at(8), R0)
            .mov(R0, R3)
            .exit();
    });
    assert_eq!(code.len(), 4, "it is read later: {code:?}");
}

#[test]
fn numbers_are_stored_without_a_register() {
    let code = tidied(|asm| {
        asm.mov(R0, 5)
            .store(Size::DW, R10.at(-8), R0)
            .mov(R0, 0)
            .exit();
    });
    assert_eq!(code, ["*(u64 *)(r10 - 0x8) = 0x5", "r0 = 0x0", "exit"]);
    let code = tidied(|asm| {
        asm.mov(R0, 5).store(Size::DW, R10.at(-8), R0).exit();
    });
    assert_eq!(code.len(), 3, "it is read later: {code:?}");
}

#[test]
fn local_slots_that_nothing_reads_are_not_written() {
    let build = |local_slots: bool| {
        tidied(|asm| {
            if local_slots {
                asm.mark_local_slot(-8);
            }
            let end = asm.label("end");
            asm.store(Size::DW, R10.at(-8), 0)
                .load(Size::DW, R7, R1.at(0))
                .store(Size::DW, R10.at(-8), R7);
            asm.jump_if(R7, JumpOp::Eq, 0, end)
                .store(Size::DW, R10.at(-8), 1)
                .bind(end);
            asm.load(Size::DW, R0, R10.at(-8))
                .store(Size::DW, R10.at(-8), 7)
                .exit();
        })
    };
    assert_eq!(build(false).len(), 8);
    let code = build(true);
    assert_eq!(code.len(), 6, "the first one and the last one: {code:?}");
    assert!(
        code[1].contains("= r7"),
        "it is read where nothing else was written: {code:?}"
    );
}

#[test]
fn labels_that_nothing_jumps_to_are_no_barrier() {
    let code = tidied(|asm| {
        let unused = asm.label("unused");
        asm.store(Size::DW, R10.at(-8), R1)
            .bind(unused)
            .load(Size::DW, R0, R10.at(-8))
            .exit();
    });
    assert_eq!(code, ["*(u64 *)(r10 - 0x8) = r1", "r0 = r1", "exit"]);
}

#[test]
fn loops_are_followed_round() {
    let code = tidied(|asm| {
        let again = asm.label("again");
        asm.mov(R6, 5)
            .mov(R0, 0)
            .bind(again)
            .add(R0, R6)
            .sub(R6, 1)
            .jump_if(R6, JumpOp::Ne, 0, again)
            .exit();
    });
    assert_eq!(code.len(), 6);
}
