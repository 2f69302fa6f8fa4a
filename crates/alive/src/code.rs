//! Expressions with their members' places worked out, and their values in a memory.

use std::fmt;

use bt_lang::ast::BinaryOp;
use live_memory::Memory;

use crate::Fault;

/// The most bytes of a text that a pointer points to.
const MAX_TEXT: usize = 1024;
/// Bytes of such a text that are read at once: most texts are shorter, and what follows may not be mapped.
const TEXT_STEP: usize = 64;

/// The value of an expression.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// A number or a pointer.
    Int(u64),
    /// A text, without the NUL that ends it.
    Text(Vec<u8>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(f),
            Self::Text(bytes) => f.write_str(&String::from_utf8_lossy(bytes)),
        }
    }
}

/// An expression that needs no types any more.
#[derive(Clone, Debug)]
pub(crate) enum Code {
    Int(u64),
    Text(Vec<u8>),
    /// A loop's variable: the address of the element.
    Var(usize),
    Add(Box<Code>, u64),
    /// A number of this size at an address.
    Load {
        at: Box<Code>,
        size: u8,
        signed: bool,
        /// Of a bit-field: its first bit in the number, and how many.
        bits: Option<(u32, u32)>,
    },
    /// A text in an array of this many bytes, within which it must end.
    Chars(Box<Code>, u64),
    /// A text to which a pointer points; an empty one for 0.
    Pointed(Box<Code>),
    Not(Box<Code>),
    /// Whether two texts differ in their first bytes, as many as this.
    Differ(Box<Code>, Box<Code>, usize),
    Binary(BinaryOp, Box<Code>, Box<Code>),
}

impl Code {
    /// The address behind this one by some bytes.
    pub(crate) fn plus(self, offset: u64) -> Self {
        match self {
            Self::Add(base, before) => Self::Add(base, before.wrapping_add(offset)),
            base if offset == 0 => base,
            base => Self::Add(Box::new(base), offset),
        }
    }

    /// The number; a text's length, so that an empty one is false.
    pub(crate) fn number(&self, vars: &[u64], memory: &dyn Memory) -> Result<u64, Fault> {
        Ok(match self.value(vars, memory)? {
            Value::Int(number) => number,
            Value::Text(text) => text.len() as u64,
        })
    }

    /// The value, where the variables have these.
    pub(crate) fn value(&self, vars: &[u64], memory: &dyn Memory) -> Result<Value, Fault> {
        let number = |code: &Self| code.number(vars, memory);
        Ok(Value::Int(match self {
            Self::Text(text) => return Ok(Value::Text(text.clone())),
            Self::Chars(at, count) => return text_in_array(number(at)?, *count, memory),
            Self::Pointed(at) => return text_at(number(at)?, memory),
            Self::Int(number) => *number,
            Self::Var(index) => vars.get(*index).copied().unwrap_or_default(),
            Self::Add(base, offset) => number(base)?.wrapping_add(*offset),
            Self::Load { at, size, signed, bits } => load(number(at)?, *size, *signed, *bits, memory)?,
            Self::Not(inner) => u64::from(number(inner)? == 0),
            Self::Differ(one, other, count) => {
                let (one, other) = (one.value(vars, memory)?, other.value(vars, memory)?);
                u64::from(!begin_the_same(&one, &other, *count))
            }
            Self::Binary(BinaryOp::LogAnd, one, other) => u64::from(number(one)? != 0 && number(other)? != 0),
            Self::Binary(BinaryOp::LogOr, one, other) => u64::from(number(one)? != 0 || number(other)? != 0),
            Self::Binary(op, one, other) => binary(*op, &one.value(vars, memory)?, &other.value(vars, memory)?),
        }))
    }
}

/// Whether two texts are the same in their first bytes, as strncmp(3) compares them.
fn begin_the_same(one: &Value, other: &Value, count: usize) -> bool {
    match (one, other) {
        (Value::Text(one), Value::Text(other)) => {
            one.get(..count.min(one.len())) == other.get(..count.min(other.len()))
        }
        (one, other) => one == other,
    }
}

fn binary(op: BinaryOp, one: &Value, other: &Value) -> u64 {
    let (a, b) = match (one, other) {
        (Value::Int(a), Value::Int(b)) => (*a, *b),
        _ => return u64::from((one == other) == (op == BinaryOp::Eq)),
    };
    match op {
        BinaryOp::Eq => u64::from(a == b),
        BinaryOp::Ne => u64::from(a != b),
        BinaryOp::Lt => u64::from(a < b),
        BinaryOp::Le => u64::from(a <= b),
        BinaryOp::Gt => u64::from(a > b),
        BinaryOp::Ge => u64::from(a >= b),
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        BinaryOp::Shl => a.checked_shl(b as u32).unwrap_or_default(),
        BinaryOp::Shr => a.checked_shr(b as u32).unwrap_or_default(),
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div => a.checked_div(b).unwrap_or_default(),
        BinaryOp::Mod => a.checked_rem(b).unwrap_or_default(),
        BinaryOp::LogAnd | BinaryOp::LogOr => 0,
    }
}

fn load(at: u64, size: u8, signed: bool, bits: Option<(u32, u32)>, memory: &dyn Memory) -> Result<u64, Fault> {
    let mut bytes = [0; 8];
    let size = usize::from(size).min(8);
    memory.read(at, &mut bytes[..size])?;
    let mut number = u64::from_le_bytes(bytes);
    let mut width = size as u32 * 8;
    if let Some((first, count)) = bits {
        number = number.checked_shr(first).unwrap_or_default();
        width = count.clamp(1, 64);
    }
    let unused = 64_u32.saturating_sub(width.max(1));
    let shifted = number << unused;
    Ok(if signed { (shifted.cast_signed() >> unused).cast_unsigned() } else { shifted >> unused })
}

fn text_in_array(at: u64, count: u64, memory: &dyn Memory) -> Result<Value, Fault> {
    let mut bytes = vec![0; usize::try_from(count).unwrap_or(MAX_TEXT).min(MAX_TEXT)];
    memory.read(at, &mut bytes)?;
    let end = bytes.iter().position(|&byte| byte == 0).ok_or(Fault::Endless(at))?;
    bytes.truncate(end);
    Ok(Value::Text(bytes))
}

fn text_at(at: u64, memory: &dyn Memory) -> Result<Value, Fault> {
    let mut text = Vec::new();
    while at != 0 && text.len() < MAX_TEXT {
        let from = at.wrapping_add(text.len() as u64);
        // Only up to the next such boundary: the text may be the last thing in a mapping.
        let mut step = TEXT_STEP - (from % TEXT_STEP as u64) as usize;
        let mut bytes = [0; TEXT_STEP];
        if memory.read(from, &mut bytes[..step]).is_err() {
            // A memory image may end with the text.
            step = 1;
            memory.read(from, &mut bytes[..step])?;
        }
        if let Some(end) = bytes[..step].iter().position(|&byte| byte == 0) {
            text.extend_from_slice(&bytes[..end]);
            return Ok(Value::Text(text));
        }
        text.extend_from_slice(&bytes[..step]);
    }
    if at == 0 { Ok(Value::Text(text)) } else { Err(Fault::Endless(at)) }
}
