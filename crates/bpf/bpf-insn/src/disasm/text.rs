//! The text of one instruction.
//!
//! The forms were taken from the output of llvm-objdump 19, not from its source; a test compares
//! the two if the tool is installed. Registers are `w0` to `w10` if only 32 bits of them are used;
//! constants are signed and in hex.

use crate::insn::{
    Addr, AluOp, AtomicOp, ByteOrder, Callee, Extend, Imm64, Insn, JumpOp, Reg, Size, Src, SxSize,
    Width, opcode::pseudo,
};
use std::fmt::{self, Display, Formatter};

impl Display for Insn {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Alu {
                op,
                width,
                dst,
                src,
            } => arithmetic(f, (op, width), dst, src),
            Self::Neg { width, dst } => write!(f, "{0} = -{0}", RegisterName(width, dst)),
            Self::MovSx { extend, dst, src } => mov_sx(f, extend, dst, src),
            Self::Swap { order, bits, dst } => write!(f, "{dst} = {order}{} {dst}", bits.code()),
            Self::LoadImm64 { dst, imm } => load_imm64(f, dst, imm),
            Self::Load { size, dst, addr } => load(f, size, dst, addr),
            Self::LoadSx { size, dst, addr } => write!(f, "{dst} = *({size} *)({addr})"),
            Self::Store { size, addr, src } => store(f, size, addr, src),
            Self::Atomic {
                op,
                width,
                addr,
                src,
            } => atomic(f, op, width, addr, src),
            Self::Jump { off } => write!(f, "goto {}", JumpDistance(i32::from(off))),
            Self::JumpLong { off } => write!(f, "gotol {}", JumpDistance(off)),
            Self::JumpIf {
                op,
                width,
                dst,
                src,
                off,
            } => jump_if(f, (op, width), dst, src, off),
            Self::Call(callee) => write!(f, "call {}", Hex(i64::from(call_number(callee)))),
            Self::Exit => f.write_str("exit"),
        }
    }
}

impl Display for Reg {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.code())
    }
}

impl Display for Addr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sign = if self.off < 0 { '-' } else { '+' };
        write!(f, "{} {sign} {:#x}", self.base, self.off.unsigned_abs())
    }
}

/// Register by its name at this width.
struct RegisterName(Width, Reg);

impl Display for RegisterName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let letter = match self.0 {
            Width::W32 => 'w',
            Width::W64 => 'r',
        };
        write!(f, "{letter}{}", self.1.code())
    }
}

/// Second operand.
struct Operand(Width, Src);

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.1 {
            Src::Reg(reg) => RegisterName(self.0, reg).fmt(f),
            Src::Imm(imm) => Hex(i64::from(imm)).fmt(f),
        }
    }
}

/// Place in memory with its type.
struct MemoryOperand(Size, Addr);

impl Display for MemoryOperand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "*(u{} *)({})", u32::from(self.0.bytes()) * 8, self.1)
    }
}

/// Signed number in hex: `-0x8`.
struct Hex(i64);

impl Display for Hex {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{:#x}", self.0.unsigned_abs())
    }
}

/// Distance of a jump, always with its sign.
struct JumpDistance(i32);

impl Display for JumpDistance {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { '-' } else { '+' };
        write!(f, "{sign}{:#x}", self.0.unsigned_abs())
    }
}

/// Returns the width that names the register of a load or store of this size.
const fn reg_width(size: Size) -> Width {
    match size {
        Size::DW => Width::W64,
        Size::B | Size::H | Size::W => Width::W32,
    }
}

impl Display for SxSize {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::B => "s8",
            Self::H => "s16",
            Self::W => "s32",
        })
    }
}

const fn alu_sign(op: AluOp) -> &'static str {
    match op {
        AluOp::Add => "+=",
        AluOp::Sub => "-=",
        AluOp::Mul => "*=",
        AluOp::Div => "/=",
        AluOp::SDiv => "s/=",
        AluOp::Or => "|=",
        AluOp::And => "&=",
        AluOp::Lsh => "<<=",
        AluOp::Rsh => ">>=",
        AluOp::Mod => "%=",
        AluOp::SMod => "s%=",
        AluOp::Xor => "^=",
        AluOp::Mov => "=",
        AluOp::Arsh => "s>>=",
    }
}

const fn jump_sign(op: JumpOp) -> &'static str {
    match op {
        JumpOp::Eq => "==",
        JumpOp::Gt => ">",
        JumpOp::Ge => ">=",
        JumpOp::Set => "&",
        JumpOp::Ne => "!=",
        JumpOp::SGt => "s>",
        JumpOp::SGe => "s>=",
        JumpOp::Lt => "<",
        JumpOp::Le => "<=",
        JumpOp::SLt => "s<",
        JumpOp::SLe => "s<=",
    }
}

impl Display for ByteOrder {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Little => "le",
            Self::Big => "be",
            Self::Swap => "bswap",
        })
    }
}

fn arithmetic(
    f: &mut Formatter<'_>,
    (op, width): (AluOp, Width),
    dst: Reg,
    src: Src,
) -> fmt::Result {
    let (dst, src) = (RegisterName(width, dst), Operand(width, src));
    write!(f, "{dst} {} {src}", alu_sign(op))
}

fn load(f: &mut Formatter<'_>, size: Size, dst: Reg, addr: Addr) -> fmt::Result {
    write!(
        f,
        "{} = {}",
        RegisterName(reg_width(size), dst),
        MemoryOperand(size, addr)
    )
}

fn store(f: &mut Formatter<'_>, size: Size, addr: Addr, src: Src) -> fmt::Result {
    write!(
        f,
        "{} = {}",
        MemoryOperand(size, addr),
        Operand(reg_width(size), src)
    )
}

fn jump_if(
    f: &mut Formatter<'_>,
    (op, width): (JumpOp, Width),
    dst: Reg,
    src: Src,
    off: i16,
) -> fmt::Result {
    let (dst, src, off) = (
        RegisterName(width, dst),
        Operand(width, src),
        JumpDistance(i32::from(off)),
    );
    write!(f, "if {dst} {} {src} goto {off}", jump_sign(op))
}

fn mov_sx(f: &mut Formatter<'_>, extend: Extend, dst: Reg, src: Reg) -> fmt::Result {
    let (wide, bits) = extend.code();
    let width = if wide { Width::W64 } else { Width::W32 };
    write!(
        f,
        "{} = (s{bits}){}",
        RegisterName(width, dst),
        RegisterName(width, src)
    )
}

fn load_imm64(f: &mut Formatter<'_>, dst: Reg, imm: Imm64) -> fmt::Result {
    let (kind, number) = match imm {
        Imm64::Value(value) => return write!(f, "{dst} = {} ll", Hex(value.cast_signed())),
        Imm64::MapFd(fd) => (pseudo::MAP_FD, fd),
        Imm64::MapValue { fd, .. } => (pseudo::MAP_VALUE, fd),
        Imm64::BtfVar { id, .. } => (pseudo::BTF_ID, id),
        Imm64::Func(distance) => (pseudo::FUNC, distance),
        Imm64::MapIndex(index) => (pseudo::MAP_IDX, index),
        Imm64::MapIndexValue { index, .. } => (pseudo::MAP_IDX_VALUE, index),
    };
    write!(f, "ld_pseudo {dst}, {kind:#x}, {}", Hex(i64::from(number)))
}

fn atomic(f: &mut Formatter<'_>, op: AtomicOp, width: Width, addr: Addr, src: Reg) -> fmt::Result {
    let src = RegisterName(width, src);
    let bits = match width {
        Width::W32 => 32,
        Width::W64 => 64,
    };
    let (exchange, r0) = match width {
        Width::W32 => ("xchg32_32", "w0"),
        Width::W64 => ("xchg_64", "r0"),
    };
    let plain = |f: &mut Formatter<'_>, sign| write!(f, "lock *(u{bits} *)({addr}) {sign} {src}");
    let fetch = |f: &mut Formatter<'_>, name| {
        write!(f, "{src} = atomic_fetch_{name}((u{bits} *)({addr}), {src})")
    };
    match op {
        AtomicOp::Add => plain(f, "+="),
        AtomicOp::Or => plain(f, "|="),
        AtomicOp::And => plain(f, "&="),
        AtomicOp::Xor => plain(f, "^="),
        AtomicOp::FetchAdd => fetch(f, "add"),
        AtomicOp::FetchOr => fetch(f, "or"),
        AtomicOp::FetchAnd => fetch(f, "and"),
        AtomicOp::FetchXor => fetch(f, "xor"),
        AtomicOp::Xchg => write!(f, "{src} = {exchange}({addr}, {src})"),
        AtomicOp::CmpXchg => write!(f, "{r0} = cmp{exchange}({addr}, {r0}, {src})"),
    }
}

const fn call_number(callee: Callee) -> i32 {
    match callee {
        Callee::Helper(helper) => helper.0.cast_signed(),
        Callee::Subprogram(distance) => distance,
        Callee::Kfunc { btf_id, .. } => btf_id,
    }
}

impl Insn {
    /// Returns the meaning that the text leaves out: the name of a helper, the target of a call, or
    /// that of a pseudo constant.
    pub fn meaning(self) -> Option<String> {
        match self {
            Self::Call(callee) => Some(match callee {
                Callee::Helper(helper) => helper.to_string(),
                Callee::Subprogram(distance) => format!("subprogram {}", JumpDistance(distance)),
                Callee::Kfunc { btf_id, module: 0 } => format!("kfunc {btf_id}"),
                Callee::Kfunc { btf_id, module } => format!("kfunc {btf_id} of module {module}"),
            }),
            Self::LoadImm64 { imm, .. } => match imm {
                Imm64::Value(_) => None,
                Imm64::MapFd(fd) => Some(format!("map fd {fd}")),
                Imm64::MapValue { fd, off } => {
                    Some(format!("value of map fd {fd} {}", JumpDistance(off)))
                }
                Imm64::BtfVar { id, btf_fd: 0 } => Some(format!("kernel variable {id}")),
                Imm64::BtfVar { id, btf_fd } => Some(format!("variable {id} of BTF fd {btf_fd}")),
                Imm64::Func(distance) => Some(format!("subprogram {}", JumpDistance(distance))),
                Imm64::MapIndex(index) => Some(format!("map index {index}")),
                Imm64::MapIndexValue { index, off } => {
                    Some(format!("value of map index {index} {}", JumpDistance(off)))
                }
            },
            _ => None,
        }
    }
}
