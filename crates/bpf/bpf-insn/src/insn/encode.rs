//! Encodes instructions to slots. Every value has an encoding.

use super::opcode::{SRC_REG, alu, class, jmp, mode, pseudo};
use super::{Addr, AluOp, AtomicOp, Callee, Extend, Imm64, Insn, RawInsn, Reg, Size, Src, Width};

impl Insn {
    /// Returns its slots. Only [`Insn::LoadImm64`] has a second one.
    pub fn encode(self) -> (RawInsn, Option<RawInsn>) {
        if let Self::LoadImm64 { dst, imm } = self {
            let (first, second) = load_imm64(dst, imm);
            return (first, Some(second));
        }
        (self.one_slot(), None)
    }

    /// Appends its 8 or 16 bytes to `out`.
    pub fn encode_into(self, out: &mut Vec<u8>) {
        let (first, second) = self.encode();
        out.extend_from_slice(&first.to_bytes());
        if let Some(second) = second {
            out.extend_from_slice(&second.to_bytes());
        }
    }

    fn one_slot(self) -> RawInsn {
        match self {
            Self::Alu {
                op,
                width,
                dst,
                src,
            } => arithmetic(op, width, dst, src),
            Self::Neg { width, dst } => with_dst(alu::NEG | alu_class(width), dst),
            Self::MovSx { extend, dst, src } => mov_sx(extend, dst, src),
            Self::Swap { order, bits, dst } => {
                with_imm(with_dst(alu::END | order.code(), dst), bits.code())
            }
            // `encode` has handled this already; its first slot is still the right answer.
            Self::LoadImm64 { dst, imm } => load_imm64(dst, imm).0,
            Self::Load { size, dst, addr } => load(mode::MEM | size.code(), dst, addr),
            Self::LoadSx { size, dst, addr } => load(mode::MEMSX | size.code(), dst, addr),
            Self::Store { size, addr, src } => store(size, addr, src),
            Self::Atomic {
                op,
                width,
                addr,
                src,
            } => atomic(op, width, addr, src),
            Self::Jump { off } => with_off(bare(class::JMP | jmp::JA), off),
            Self::JumpLong { off } => with_imm(bare(class::JMP32 | jmp::JA), off),
            Self::JumpIf {
                op,
                width,
                dst,
                src,
                off,
            } => with_off(with_src(op.code() | jump_class(width), dst, src), off),
            Self::Call(callee) => call(callee),
            Self::Exit => bare(class::JMP | jmp::EXIT),
        }
    }
}

const fn alu_class(width: Width) -> u8 {
    match width {
        Width::W32 => class::ALU,
        Width::W64 => class::ALU64,
    }
}

const fn jump_class(width: Width) -> u8 {
    match width {
        Width::W32 => class::JMP32,
        Width::W64 => class::JMP,
    }
}

const fn word_size(width: Width) -> u8 {
    match width {
        Width::W32 => super::opcode::SIZE_W,
        Width::W64 => super::opcode::SIZE_DW,
    }
}

fn bare(code: u8) -> RawInsn {
    RawInsn {
        code,
        ..RawInsn::default()
    }
}

fn with_off(raw: RawInsn, off: i16) -> RawInsn {
    RawInsn { off, ..raw }
}

fn with_imm(raw: RawInsn, imm: i32) -> RawInsn {
    RawInsn { imm, ..raw }
}

fn with_dst(code: u8, dst: Reg) -> RawInsn {
    RawInsn {
        dst: dst.code(),
        ..bare(code)
    }
}

fn with_src(code: u8, dst: Reg, src: Src) -> RawInsn {
    match src {
        Src::Reg(src) => RawInsn {
            src: src.code(),
            ..with_dst(code | SRC_REG, dst)
        },
        Src::Imm(imm) => with_imm(with_dst(code, dst), imm),
    }
}

fn arithmetic(op: AluOp, width: Width, dst: Reg, src: Src) -> RawInsn {
    let (op, off) = op.code();
    with_off(with_src(op | alu_class(width), dst, src), off)
}

fn mov_sx(extend: Extend, dst: Reg, src: Reg) -> RawInsn {
    let (wide, off) = extend.code();
    let class = if wide { class::ALU64 } else { class::ALU };
    with_off(with_src(alu::MOV | class, dst, Src::Reg(src)), off)
}

fn load(code: u8, dst: Reg, addr: Addr) -> RawInsn {
    RawInsn {
        src: addr.base.code(),
        off: addr.off,
        ..with_dst(class::LDX | code, dst)
    }
}

fn store(size: Size, addr: Addr, src: Src) -> RawInsn {
    let to = |class| {
        with_off(
            with_dst(class | mode::MEM | size.code(), addr.base),
            addr.off,
        )
    };
    match src {
        Src::Imm(imm) => with_imm(to(class::ST), imm),
        Src::Reg(src) => RawInsn {
            src: src.code(),
            ..to(class::STX)
        },
    }
}

fn atomic(op: AtomicOp, width: Width, addr: Addr, src: Reg) -> RawInsn {
    let code = class::STX | mode::ATOMIC | word_size(width);
    let raw = with_off(with_dst(code, addr.base), addr.off);
    RawInsn {
        src: src.code(),
        imm: op.code(),
        ..raw
    }
}

fn call(callee: Callee) -> RawInsn {
    let (src, off, imm) = match callee {
        Callee::Helper(helper) => (pseudo::CALL_HELPER, 0, helper.0.cast_signed()),
        Callee::Subprogram(distance) => (pseudo::CALL_SUBPROGRAM, 0, distance),
        Callee::Kfunc { btf_id, module } => (pseudo::CALL_KFUNC, module, btf_id),
    };
    RawInsn {
        code: class::JMP | jmp::CALL,
        dst: 0,
        src,
        off,
        imm,
    }
}

fn load_imm64(dst: Reg, imm: Imm64) -> (RawInsn, RawInsn) {
    let (src, low, high) = match imm {
        Imm64::Value(value) => (
            pseudo::VALUE,
            (value as u32).cast_signed(),
            ((value >> 32) as u32).cast_signed(),
        ),
        Imm64::MapFd(fd) => (pseudo::MAP_FD, fd, 0),
        Imm64::MapValue { fd, off } => (pseudo::MAP_VALUE, fd, off),
        Imm64::BtfVar { id, btf_fd } => (pseudo::BTF_ID, id, btf_fd),
        Imm64::Func(distance) => (pseudo::FUNC, distance, 0),
        Imm64::MapIndex(index) => (pseudo::MAP_IDX, index, 0),
        Imm64::MapIndexValue { index, off } => (pseudo::MAP_IDX_VALUE, index, off),
    };
    let code = class::LD | mode::IMM | super::opcode::SIZE_DW;
    let first = RawInsn {
        src,
        imm: low,
        ..with_dst(code, dst)
    };
    (
        first,
        RawInsn {
            imm: high,
            ..RawInsn::default()
        },
    )
}
