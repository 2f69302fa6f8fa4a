//! Operands of x86-64 in AT&T syntax.
//!
//! `%reg`, `$constant`, `disp(%base,%index,scale)` with any part left out, where the displacement
//! may hold a symbol (GNU as manual, "i386-Memory"). libbpf's list in `parse_usdt_arg` shows the
//! forms that compilers write.

use super::cursor::{Cursor, Sum};
use super::operand::{
    Extend, Index, MemoryOperand, Operand, SymbolAccess, SymbolOperand, Unreadable,
};
use crate::registers::{Register, X86Register};

/// Width in bytes of an operand that is not a register.
const WORD: u32 = 8;

/// Reads an operand; returns it with its own width in bytes.
pub(super) fn operand(text: &str) -> (Operand, u32) {
    let mut cursor = Cursor::new(text);
    let parsed = if cursor.take("$") {
        constant(cursor)
    } else if text.starts_with('%') {
        return register(cursor);
    } else {
        memory(cursor)
    };
    (
        parsed.unwrap_or_else(|| Operand::Unreadable(unknown_form(text))),
        WORD,
    )
}

/// Reads a register, or a segment's prefix before an address.
fn register(mut cursor: Cursor<'_>) -> (Operand, u32) {
    let unreadable = |reason| (Operand::Unreadable(reason), WORD);
    let Some(name) = register_name(&mut cursor) else {
        return unreadable(Unreadable::Unrecognised);
    };
    if cursor.take(":") {
        return unreadable(Unreadable::ThreadLocal);
    }
    if let Some((register, part)) = X86Register::parse(name)
        && cursor.is_at_end()
    {
        let register = Register::X86(register);
        return (
            Operand::Register {
                register,
                shift: part.shift,
            },
            u32::from(part.size),
        );
    }
    let vector = ["xmm", "ymm", "zmm"]
        .iter()
        .any(|kind| name.starts_with(kind))
        && cursor.is_at_end();
    let name = format!("%{name}").into();
    unreadable(if vector {
        Unreadable::VectorRegister { name }
    } else {
        Unreadable::OtherRegister { name }
    })
}

/// Reads `$5`, `$-0x8` or `$symbol+8`.
fn constant(mut cursor: Cursor<'_>) -> Option<Operand> {
    if cursor.is_at_end() {
        return None;
    }
    let sum = cursor.sum()?;
    if !cursor.is_at_end() {
        return None;
    }
    let Some(name) = sum.symbol else {
        return Some(Operand::Constant(sum.number));
    };
    let memory = MemoryOperand {
        base: None,
        index: None,
        offset: sum.number,
    };
    Some(Operand::Symbol(SymbolOperand {
        name: name.into(),
        memory,
        access: SymbolAccess::Address,
    }))
}

/// Reads `disp(%base,%index,scale)`, or a symbol alone.
fn memory(mut cursor: Cursor<'_>) -> Option<Operand> {
    let Sum { symbol, number } = cursor.sum()?;
    let mut memory = MemoryOperand {
        base: None,
        index: None,
        offset: number,
    };
    if cursor.take("(") {
        (memory.base, memory.index) = base_and_index(&mut cursor)?;
    } else {
        // A number alone would be an absolute address, which nobody writes, or a constant in Intel syntax; a register's
        // name alone is Intel syntax too.
        symbol.filter(|name| X86Register::parse(&name.to_ascii_lowercase()).is_none())?;
    }
    if !cursor.is_at_end() {
        return None;
    }
    match symbol {
        Some(name) => Some(Operand::Symbol(SymbolOperand {
            name: name.into(),
            memory,
            access: SymbolAccess::Load,
        })),
        None => Some(Operand::Memory(memory)),
    }
}

/// Reads the text in the parentheses, and the closing one. At least one of the two is there.
fn base_and_index(cursor: &mut Cursor<'_>) -> Option<(Option<Register>, Option<Index>)> {
    let base = match register_name(cursor) {
        Some(name) => Some(pointer(name)?),
        None => None,
    };
    let mut index = None;
    if cursor.take(",") {
        let register = pointer(register_name(cursor)?)?;
        let scale = if cursor.take(",") {
            cursor.number()?
        } else {
            1
        };
        let shift = match scale {
            1 => 0,
            2 => 1,
            4 => 2,
            8 => 3,
            _ => return None,
        };
        index = Some(Index {
            register,
            extend: Extend::Full,
            shift,
        });
    }
    (cursor.take(")") && (base.is_some() || index.is_some())).then_some((base, index))
}

/// Returns a register that addresses memory. A narrower one would make an address of 32 bits, which
/// 64-bit programs don't have.
fn pointer(name: &str) -> Option<Register> {
    let (register, part) = X86Register::parse(name)?;
    (part.size == 8).then_some(Register::X86(register))
}

fn register_name<'a>(cursor: &mut Cursor<'a>) -> Option<&'a str> {
    cursor
        .take("%")
        .then(|| cursor.word())
        .filter(|name| !name.is_empty())
}

/// Returns the best explanation for an operand that could not be read.
fn unknown_form(text: &str) -> Unreadable {
    let lower = text.to_ascii_lowercase();
    if text.contains('@') {
        Unreadable::Relocation
    } else if lower.contains(" ptr ")
        || text.starts_with('[')
        || X86Register::parse(&lower).is_some()
    {
        Unreadable::IntelSyntax
    } else {
        Unreadable::Unrecognised
    }
}
