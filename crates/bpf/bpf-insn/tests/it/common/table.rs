//! At least one instruction of each kind: the wide set on which tools are compared.

use bpf_insn::Reg::*;
use bpf_insn::*;

/// Both kinds of sources: a register and a negative constant.
const SOURCES: [Src; 2] = [Src::Reg(R2), Src::Imm(-5)];
const WIDTHS: [Width; 2] = [Width::W32, Width::W64];

/// Returns every operation, width, size and form of the model.
pub(crate) fn every_kind() -> Vec<Insn> {
    let mut all = arithmetic();
    all.extend(memory());
    all.extend(constants());
    all.extend(control());
    all
}

fn arithmetic() -> Vec<Insn> {
    let mut all = Vec::new();
    for width in WIDTHS {
        for &op in AluOp::ALL {
            all.extend(SOURCES.map(|src| Insn::Alu {
                op,
                width,
                dst: R1,
                src,
            }));
        }
        all.push(Insn::Neg { width, dst: R9 });
    }
    for imm in [0, 1, 255, i32::MAX, i32::MIN] {
        all.push(Insn::Alu {
            op: AluOp::Mov,
            width: Width::W64,
            dst: R0,
            src: Src::Imm(imm),
        });
    }
    all.extend(Extend::ALL.iter().map(|&extend| Insn::MovSx {
        extend,
        dst: R3,
        src: R4,
    }));
    for &order in ByteOrder::ALL {
        all.extend(SwapBits::ALL.iter().map(|&bits| Insn::Swap {
            order,
            bits,
            dst: R5,
        }));
    }
    all
}

fn memory() -> Vec<Insn> {
    let mut all = Vec::new();
    for off in [-8, 0, 24, i16::MIN, i16::MAX] {
        for &size in Size::ALL {
            let addr = R10.at(off);
            all.push(Insn::Load {
                size,
                dst: R1,
                addr,
            });
            all.extend(SOURCES.map(|src| Insn::Store { size, addr, src }));
        }
        all.extend(SxSize::ALL.iter().map(|&size| Insn::LoadSx {
            size,
            dst: R1,
            addr: R6.at(off),
        }));
    }
    for &op in AtomicOp::ALL {
        all.extend(WIDTHS.map(|width| Insn::Atomic {
            op,
            width,
            addr: R1.at(-4),
            src: R2,
        }));
    }
    all
}

fn constants() -> Vec<Insn> {
    let forms = [
        Imm64::Value(0),
        Imm64::Value(0x7_0000_1234),
        Imm64::Value(u64::MAX),
        Imm64::Value(1 << 63),
        Imm64::MapFd(3),
        Imm64::MapValue { fd: 3, off: 16 },
        Imm64::BtfVar {
            id: 1234,
            btf_fd: 0,
        },
        Imm64::Func(12),
        Imm64::MapIndex(1),
        Imm64::MapIndexValue { index: 1, off: 8 },
    ];
    forms.map(|imm| Insn::LoadImm64 { dst: R1, imm }).to_vec()
}

fn control() -> Vec<Insn> {
    let mut all = Vec::new();
    for width in WIDTHS {
        for &op in JumpOp::ALL {
            all.extend(SOURCES.map(|src| Insn::JumpIf {
                op,
                width,
                dst: R1,
                src,
                off: 5,
            }));
        }
    }
    all.extend([
        Insn::Jump { off: 5 },
        Insn::Jump { off: -3 },
        Insn::JumpLong { off: 70_000 },
        Insn::JumpLong { off: -3 },
        Insn::Call(Callee::Helper(Helper::MAP_LOOKUP_ELEM)),
        Insn::Call(Callee::Subprogram(-1)),
        Insn::Call(Callee::Kfunc {
            btf_id: 1234,
            module: 0,
        }),
        Insn::Exit,
    ]);
    all
}
