//! Operands of aarch64.
//!
//! `x0`, `w3`, `sp`, constants with or without `#`, and the addresses of the Arm ARM's section C1.3.3: `[base]`,
//! `[base, offset]`, `[base, index, extend amount]`, and `[base, #:lo12:symbol]` as GCC writes it for variables.

use super::cursor::Cursor;
use super::operand::{
    Extend, Index, MemoryOperand, Operand, SymbolAccess, SymbolOperand, Unreadable,
};
use crate::registers::{Arm64Register, Register};

/// Width in bytes of an operand that is not a register.
const WORD: u32 = 8;

/// Meaning of a register's name.
enum NamedRegister {
    /// A register of the context, with the width of the name in bytes.
    Register(Register, u32),
    /// `xzr` or `wzr`, which reads as zero.
    Zero(u32),
}

/// Reads an operand; returns it with its own width in bytes.
pub(super) fn operand(text: &str) -> (Operand, u32) {
    let mut cursor = Cursor::new(text);
    if cursor.take("[") {
        let memory = memory(cursor).unwrap_or(Operand::Unreadable(Unreadable::Unrecognised));
        return (memory, WORD);
    }
    match named(text) {
        Some(NamedRegister::Register(register, size)) => {
            (Operand::Register { register, shift: 0 }, size)
        }
        Some(NamedRegister::Zero(size)) => (Operand::Constant(0), size),
        None if is_vector(text) => (
            Operand::Unreadable(Unreadable::VectorRegister { name: text.into() }),
            WORD,
        ),
        None => (
            constant(cursor).unwrap_or(Operand::Unreadable(Unreadable::Unrecognised)),
            WORD,
        ),
    }
}

fn constant(mut cursor: Cursor<'_>) -> Option<Operand> {
    cursor.take("#");
    let number = cursor.number()?;
    cursor.is_at_end().then_some(Operand::Constant(number))
}

/// Reads an address, after its opening bracket. Forms that change the base (`[x0, 8]!`) are
/// refused: a probe changes nothing.
fn memory(mut cursor: Cursor<'_>) -> Option<Operand> {
    let NamedRegister::Register(base, WORD) = named(cursor.word())? else {
        return None;
    };
    let operand = if cursor.take(",") {
        offset(base, &mut cursor)?
    } else {
        Operand::Memory(MemoryOperand::at(base, 0))
    };
    (cursor.take("]") && cursor.is_at_end()).then_some(operand)
}

/// Reads the text behind the base: a number, a symbol's offset in its page, or an index register.
fn offset(base: Register, cursor: &mut Cursor<'_>) -> Option<Operand> {
    let hash = cursor.take("#");
    if cursor.take(":lo12:") {
        let sum = cursor.sum()?;
        let memory = MemoryOperand::at(base, sum.number);
        let name = sum.symbol?.into();
        return Some(Operand::Symbol(SymbolOperand {
            name,
            memory,
            access: SymbolAccess::PageOffset,
        }));
    }
    if let Some(number) = cursor.number() {
        return Some(Operand::Memory(MemoryOperand::at(base, number)));
    }
    if hash {
        return None;
    }
    let index = index(cursor)?;
    Some(Operand::Memory(MemoryOperand {
        base: Some(base),
        index: Some(index),
        offset: 0,
    }))
}

/// Reads an index: `x2`, `x2, lsl 3`, `w2, sxtw 3`, `w2, uxtw`.
fn index(cursor: &mut Cursor<'_>) -> Option<Index> {
    let NamedRegister::Register(register, size) = named(cursor.word())? else {
        return None;
    };
    let mut extend = if size == WORD {
        Extend::Full
    } else {
        Extend::Zero32
    };
    let mut shift = 0;
    if cursor.take(",") {
        extend = match (cursor.word(), size) {
            ("lsl" | "sxtx" | "uxtx", WORD) => Extend::Full,
            ("uxtw", 4) => Extend::Zero32,
            ("sxtw", 4) => Extend::Sign32,
            _ => return None,
        };
        let hash = cursor.take("#");
        shift = match cursor.number() {
            Some(amount) => u8::try_from(amount).ok().filter(|amount| *amount <= 4)?,
            None if hash => return None,
            None => 0,
        };
    }
    Some(Index {
        register,
        extend,
        shift,
    })
}

/// Returns the register that a name means: `x0` to `x30`, `w0` to `w30`, and the named ones (Arm
/// ARM, section B1.2).
fn named(name: &str) -> Option<NamedRegister> {
    let (letter, size) = match name {
        "sp" => {
            return Some(NamedRegister::Register(
                Register::Arm64(Arm64Register::Sp),
                WORD,
            ));
        }
        "wsp" => {
            return Some(NamedRegister::Register(
                Register::Arm64(Arm64Register::Sp),
                4,
            ));
        }
        "fp" => {
            return Some(NamedRegister::Register(
                Register::Arm64(Arm64Register::X(29)),
                WORD,
            ));
        }
        "lr" => {
            return Some(NamedRegister::Register(
                Register::Arm64(Arm64Register::X(30)),
                WORD,
            ));
        }
        "pc" => {
            return Some(NamedRegister::Register(
                Register::Arm64(Arm64Register::Pc),
                WORD,
            ));
        }
        "xzr" => return Some(NamedRegister::Zero(WORD)),
        "wzr" => return Some(NamedRegister::Zero(4)),
        _ if name.starts_with('x') => ('x', WORD),
        _ => ('w', 4),
    };
    let number = register_number(name.strip_prefix(letter)?)?;
    (number <= 30).then_some(NamedRegister::Register(
        Register::Arm64(Arm64Register::X(number)),
        size,
    ))
}

/// Returns true for `b`, `h`, `s`, `d`, `q` and `v` with a number, the latter with or without its
/// lanes (`v0.2d`).
fn is_vector(name: &str) -> bool {
    let plain = name.split('.').next().unwrap_or_default();
    let number = plain.strip_prefix(['b', 'h', 's', 'd', 'q', 'v', 'z']);
    number
        .and_then(register_number)
        .is_some_and(|number| number <= 31)
}

fn register_number(digits: &str) -> Option<u8> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = plain && (digits.len() == 1 || !digits.starts_with('0'));
    if canonical { digits.parse().ok() } else { None }
}
