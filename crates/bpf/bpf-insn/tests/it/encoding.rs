//! Bytes and instructions, both ways: known pairs, the whole space, and arbitrary input.

use crate::common::strategy::any_insn;
use crate::common::table::every_kind;
use bpf_insn::Reg::*;
use bpf_insn::insn::{DecodeError, INSN_BYTES, RawInsn, decode_all};
use bpf_insn::*;
use proptest::prelude::*;

fn bytes(insns: &[Insn]) -> Vec<u8> {
    let mut out = Vec::new();
    for insn in insns {
        insn.encode_into(&mut out);
    }
    out
}

/// Assembles with the given methods, and compares with bytes written out by hand from RFC 9669:
/// opcode, registers (source nibble first), offset, constant.
macro_rules! known {
    ($($method:ident($($argument:expr),*) => $hex:expr;)*) => {
        $({
            let mut asm = Asm::new();
            asm.$method($($argument),*);
            let code = asm.finish().unwrap();
            let expected = from_hex($hex);
            assert_eq!(code.to_bytes(), expected, "{}", Listing::new(&code));
            assert_eq!(Insn::decode(&expected), Ok(code.lines()[0].insn));
        })*
    };
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter_map(|byte| (byte as char).to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

#[test]
fn known_bytes_of_arithmetic() {
    known! {
        mov(R0, -1) => "b7 00 0000 ffffffff";
        alu32(AluOp::Add, R1, R2) => "0c 21 0000 00000000";
        alu(AluOp::SMod, R3, R4) => "9f 43 0100 00000000";
        alu32(AluOp::SDiv, R3, 7) => "34 03 0100 07000000";
        mov_sx(Extend::S32To64, R3, R4) => "bf 43 2000 00000000";
        mov_sx(Extend::S8To32, R3, R4) => "bc 43 0800 00000000";
        neg(R7) => "87 07 0000 00000000";
        swap(ByteOrder::Little, SwapBits::B32, R2) => "d4 02 0000 20000000";
        swap(ByteOrder::Big, SwapBits::B16, R2) => "dc 02 0000 10000000";
        swap(ByteOrder::Swap, SwapBits::B64, R2) => "d7 02 0000 40000000";
    }
}

#[test]
fn known_bytes_of_memory() {
    known! {
        load(Size::DW, R1, R10.at(-8)) => "79 a1 f8ff 00000000";
        load_sx(SxSize::W, R1, R10.at(-8)) => "81 a1 f8ff 00000000";
        store(Size::B, R10.at(-1), 7) => "72 0a ffff 07000000";
        store(Size::H, R2.at(4), R3) => "6b 32 0400 00000000";
        atomic(AtomicOp::Add, Width::W32, R1.at(8), R2) => "c3 21 0800 00000000";
        atomic(AtomicOp::CmpXchg, Width::W64, R1.at(8), R2) => "db 21 0800 f1000000";
        load_imm64(R1, Imm64::Value(0x1122_3344_5566_7788)) => "18 01 0000 88776655 00 00 0000 44332211";
        load_imm64(R1, Imm64::MapFd(5)) => "18 11 0000 05000000 00 00 0000 00000000";
        load_imm64(R1, Imm64::MapValue { fd: 5, off: 16 }) => "18 21 0000 05000000 00 00 0000 10000000";
    }
}

#[test]
fn known_bytes_of_control() {
    known! {
        insn(Insn::Jump { off: -2 }) => "05 00 feff 00000000";
        insn(Insn::JumpLong { off: 70_000 }) => "06 00 0000 70110100";
        insn(Insn::JumpIf { op: JumpOp::SLe, width: Width::W32, dst: R1, src: Src::Reg(R2), off: 3 })
            => "de 21 0300 00000000";
        insn(Insn::JumpIf { op: JumpOp::Eq, width: Width::W64, dst: R1, src: Src::Imm(9), off: 3 })
            => "15 01 0300 09000000";
        call(Helper::GET_ATTACH_COOKIE) => "85 00 0000 ae000000";
        call_subprogram("f") => "85 10 0000 ffffffff";
        insn(Insn::Call(Callee::Kfunc { btf_id: 0x1234, module: 3 })) => "85 20 0300 34120000";
        exit() => "95 00 0000 00000000";
    }
}

#[test]
fn every_kind_comes_back() {
    let all = every_kind();
    let program = bytes(&all);
    assert_eq!(decode_all(&program).unwrap(), all);
}

fn raw(code: u8, dst: u8, src: u8, off: i16, imm: i32) -> [u8; INSN_BYTES] {
    RawInsn {
        code,
        dst,
        src,
        off,
        imm,
    }
    .to_bytes()
}

#[test]
fn refusals_say_why() {
    let table: &[(&[u8], &str)] = &[
        (&[], "instruction at 0x0 is cut short: 0 bytes, needs 8"),
        (
            &[0x95, 0, 0],
            "instruction at 0x0 is cut short: 3 bytes, needs 8",
        ),
        (
            &raw(0x18, 1, 0, 0, 0),
            "instruction at 0x0 is cut short: 8 bytes, needs 16",
        ),
        (
            &raw(0xbf, 11, 0, 0, 0),
            "instruction at 0x0 names register r11, the last is r10",
        ),
        (
            &raw(0x95, 0, 0, 0, 1),
            "instruction at 0x0 (opcode 0x95) has a reserved field that is not zero: constant",
        ),
        (
            &raw(0x07, 1, 2, 0, 1),
            "instruction at 0x0 (opcode 0x07) has a reserved field that is not zero: source register",
        ),
        (
            &raw(0x20, 0, 0, 0, 1),
            "instruction at 0x0 is unknown: opcode 0x20, offset 0, constant 0x1",
        ),
        (
            &raw(0xbf, 1, 2, 12, 0),
            "instruction at 0x0 is unknown: opcode 0xbf, offset 12, constant 0x0",
        ),
        (
            &raw(0xdb, 1, 2, 0, 0x77),
            "instruction at 0x0 is unknown: opcode 0xdb, offset 0, constant 0x77",
        ),
    ];
    for (bytes, expected) in table {
        assert_eq!(Insn::decode(bytes).unwrap_err().to_string(), *expected);
    }
}

#[test]
fn errors_in_a_program_say_where() {
    let mut program = bytes(&[Insn::LoadImm64 {
        dst: R1,
        imm: Imm64::Value(1),
    }]);
    program.extend(raw(0xff, 0, 0, 0, 0));
    assert!(matches!(
        decode_all(&program),
        Err(DecodeError::Unknown {
            offset: 16,
            code: 0xff,
            ..
        })
    ));
}

/// All opcodes with the meaningful field values: everything accepted must encode to the same bytes.
#[test]
fn accepted_instructions_are_encoded_exactly() {
    let mut taken = 0;
    for code in 0..=u8::MAX {
        for (dst, src) in [
            (0, 0),
            (1, 0),
            (0, 1),
            (10, 10),
            (1, 2),
            (11, 0),
            (0, 15),
            (1, 6),
        ] {
            for off in [0, 1, 8, 16, 32, -1] {
                for imm in [0, 1, 16, 32, 64, 0x41, 0xe1, 0xf1, -1] {
                    let program = [raw(code, dst, src, off, imm), raw(0, 0, 0, 0, 0)].concat();
                    if let Ok(insn) = Insn::decode(&program) {
                        taken += 1;
                        assert_eq!(
                            bytes(&[insn]),
                            program[..insn.slots() as usize * INSN_BYTES]
                        );
                    }
                }
            }
        }
    }
    assert!(taken > 1000, "only {taken} taken");
}

/// Asserts the kernel that the last of the emitted instructions needs.
macro_rules! needs {
    ($($method:ident($($argument:expr),*) => $version:expr;)*) => {
        $({
            let mut asm = Asm::new();
            asm.$method($($argument),*);
            assert_eq!(asm.finish().unwrap().since().to_string(), $version);
        })*
    };
}

#[test]
fn kernels_that_know_an_instruction() {
    let jump = |op, width| Insn::JumpIf {
        op,
        width,
        dst: R1,
        src: Src::Imm(0),
        off: 0,
    };
    needs! {
        exit() => "3.18";
        insn(Insn::Jump { off: 0 }) => "3.18";
        insn(Insn::JumpLong { off: 0 }) => "6.6";
        mov_sx(Extend::S8To32, R0, R1) => "6.6";
        sign_extend(R0, SxSize::B) => "3.18";
        load_sx(SxSize::B, R0, R1.at(0)) => "6.6";
        alu(AluOp::SDiv, R0, R1) => "6.6";
        swap(ByteOrder::Big, SwapBits::B32, R0) => "3.18";
        swap(ByteOrder::Swap, SwapBits::B32, R0) => "6.6";
        atomic(AtomicOp::Add, Width::W64, R1.at(0), R2) => "3.18";
        atomic(AtomicOp::FetchAdd, Width::W64, R1.at(0), R2) => "5.12";
        load_map(R1, "m") => "3.18";
        load_data(R1, "d", 0) => "5.2";
        load_imm64(R1, Imm64::MapValue { fd: 3, off: 0 }) => "5.2";
        load_function(R1, "f") => "5.13";
        insn(jump(JumpOp::Eq, Width::W64)) => "3.18";
        insn(jump(JumpOp::Lt, Width::W64)) => "4.14";
        insn(jump(JumpOp::Lt, Width::W32)) => "5.1";
        call(Helper::RINGBUF_RESERVE) => "5.8";
        call_subprogram("f") => "4.16";
        call_kfunc(1) => "5.13";
        insn(Insn::Call(Callee::Kfunc { btf_id: 1, module: 1 })) => "5.16";
    }
}

#[test]
fn a_negated_comparison_negates_back() {
    for &op in JumpOp::ALL {
        if let Some(negated) = op.negated() {
            assert_eq!(negated.negated(), Some(op));
        } else {
            assert_eq!(op, JumpOp::Set);
        }
    }
}

proptest! {
    #[test]
    fn instructions_come_back(insns in prop::collection::vec(any_insn(), 0..40)) {
        let program = bytes(&insns);
        let slots: u32 = insns.iter().map(|insn| insn.slots()).sum();
        prop_assert_eq!(program.len(), slots as usize * INSN_BYTES);
        prop_assert_eq!(decode_all(&program).unwrap(), insns);
    }

    #[test]
    fn any_bytes_decode_without_panic(program in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(insns) = decode_all(&program) {
            let again: Vec<u8> = insns.into_iter().flat_map(|insn| bytes(&[insn])).collect();
            prop_assert_eq!(again, program.clone());
        }
        let _ = Code::decode(&program).map(|code| Listing::new(&code).with_bytes().to_string());
    }

    #[test]
    fn any_slot_decodes_exactly_or_not(slot in any::<[u8; 16]>(), known in prop::sample::select(every_kind())) {
        // A known opcode, with all other bytes at random.
        let mut program = slot;
        program[0] = bytes(&[known])[0];
        if let Ok(insn) = Insn::decode(&program) {
            prop_assert_eq!(&bytes(&[insn])[..], &program[..insn.slots() as usize * INSN_BYTES]);
        }
    }

    #[test]
    fn any_code_has_a_text(insns in prop::collection::vec(any_insn(), 0..40)) {
        let program = bytes(&insns);
        let code = Code::decode(&program).unwrap();
        prop_assert_eq!(code.to_bytes(), program);
        let lines = Listing::new(&code).to_string().lines().filter(|line| !line.starts_with('<')).count();
        prop_assert_eq!(lines, insns.len());
    }
}
