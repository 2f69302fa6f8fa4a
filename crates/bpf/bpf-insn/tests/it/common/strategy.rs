//! Instructions for property tests: all of the model's values.

use bpf_insn::*;
use proptest::prelude::*;
use proptest::sample::select;

fn reg() -> impl Strategy<Value = Reg> + Clone {
    select(Reg::ALL)
}

fn width() -> impl Strategy<Value = Width> + Clone {
    select(&[Width::W32, Width::W64][..])
}

fn src() -> impl Strategy<Value = Src> + Clone {
    prop_oneof![reg().prop_map(Src::Reg), any::<i32>().prop_map(Src::Imm)]
}

fn addr() -> impl Strategy<Value = Addr> + Clone {
    (reg(), any::<i16>()).prop_map(|(base, off)| base.at(off))
}

fn imm64() -> impl Strategy<Value = Imm64> {
    let pair = any::<(i32, i32)>;
    prop_oneof![
        any::<u64>().prop_map(Imm64::Value),
        any::<i32>().prop_map(Imm64::MapFd),
        pair().prop_map(|(fd, off)| Imm64::MapValue { fd, off }),
        pair().prop_map(|(id, btf_fd)| Imm64::BtfVar { id, btf_fd }),
        any::<i32>().prop_map(Imm64::Func),
        any::<i32>().prop_map(Imm64::MapIndex),
        pair().prop_map(|(index, off)| Imm64::MapIndexValue { index, off }),
    ]
}

fn callee() -> impl Strategy<Value = Callee> {
    prop_oneof![
        any::<u32>().prop_map(|id| Callee::Helper(Helper(id))),
        any::<i32>().prop_map(Callee::Subprogram),
        any::<(i32, i16)>().prop_map(|(btf_id, module)| Callee::Kfunc { btf_id, module }),
    ]
}

fn arithmetic() -> impl Strategy<Value = Insn> {
    prop_oneof![
        (select(AluOp::ALL), width(), reg(), src()).prop_map(|(op, width, dst, src)| Insn::Alu {
            op,
            width,
            dst,
            src
        }),
        (width(), reg()).prop_map(|(width, dst)| Insn::Neg { width, dst }),
        (select(Extend::ALL), reg(), reg()).prop_map(|(extend, dst, src)| Insn::MovSx {
            extend,
            dst,
            src
        }),
        (select(ByteOrder::ALL), select(SwapBits::ALL), reg())
            .prop_map(|(order, bits, dst)| Insn::Swap { order, bits, dst }),
    ]
}

fn memory() -> impl Strategy<Value = Insn> {
    prop_oneof![
        (reg(), imm64()).prop_map(|(dst, imm)| Insn::LoadImm64 { dst, imm }),
        (select(Size::ALL), reg(), addr()).prop_map(|(size, dst, addr)| Insn::Load {
            size,
            dst,
            addr
        }),
        (select(SxSize::ALL), reg(), addr()).prop_map(|(size, dst, addr)| Insn::LoadSx {
            size,
            dst,
            addr
        }),
        (select(Size::ALL), addr(), src()).prop_map(|(size, addr, src)| Insn::Store {
            size,
            addr,
            src
        }),
        (select(AtomicOp::ALL), width(), addr(), reg()).prop_map(|(op, width, addr, src)| {
            Insn::Atomic {
                op,
                width,
                addr,
                src,
            }
        }),
    ]
}

fn control() -> impl Strategy<Value = Insn> {
    prop_oneof![
        any::<i16>().prop_map(|off| Insn::Jump { off }),
        any::<i32>().prop_map(|off| Insn::JumpLong { off }),
        (select(JumpOp::ALL), width(), reg(), src(), any::<i16>()).prop_map(
            |(op, width, dst, src, off)| Insn::JumpIf {
                op,
                width,
                dst,
                src,
                off
            }
        ),
        callee().prop_map(Insn::Call),
        Just(Insn::Exit),
    ]
}

/// Generates any instruction of the model.
pub(crate) fn any_insn() -> impl Strategy<Value = Insn> {
    prop_oneof![arithmetic(), memory(), control()]
}
