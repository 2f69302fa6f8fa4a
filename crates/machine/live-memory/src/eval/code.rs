//! Parts of a compiled expression whose types are all known: members are offsets, and running them
//! looks nothing up.

use std::cmp::Ordering;

use bt_lang::Span;
use bt_lang::ast::{BinaryOp, UnaryOp};

use super::error::{EvalError, Fault};
use super::load::{NEAR_NULL, extend};
use crate::memory::Memory;

/// Limit on the bytes of a text that a pointer points to.
const MAX_TEXT: usize = 1024;
/// Bytes per read of such a text: most texts are shorter, and the bytes behind may not be mapped.
const TEXT_STEP: usize = 64;

/// Memory and variables of running code.
#[derive(Clone, Copy)]
pub(crate) struct Machine<'m> {
    pub(crate) memory: &'m dyn Memory,
    /// Values of variables, by their numbers.
    pub(crate) vars: &'m [u64],
}

/// An expression that needs no types any more: a number of 64 bits, signed or not, or a text.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Code {
    Int(i128),
    Text(Vec<u8>),
    /// A variable, which is an address.
    Var(usize),
    /// An address that lies a number of bytes behind another one.
    Behind(Box<Code>, u64),
    Element(Box<Element>),
    Load(Box<Load>),
    Unary(UnaryOp, bool, Box<Code>),
    Binary(Box<Binary>),
    And(Box<Code>, Box<Code>),
    Or(Box<Code>, Box<Code>),
    /// The low bits of a number, with their sign.
    Wrap(Box<Code>, u32, bool),
    /// A text in an array of this number of bytes, within which it must end.
    Chars(Box<Code>, u64),
    /// A text that a pointer points to; empty if the pointer is 0.
    Pointed(Box<Code>),
    /// True if two texts are the same.
    Same(Box<Code>, Box<Code>),
    /// True if two texts differ in their first bytes, up to this number.
    Differ(Box<Code>, Box<Code>, usize),
}

/// The address of an element of an array, or behind a pointer.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Element {
    pub(crate) base: Code,
    pub(crate) index: Code,
    pub(crate) size: u64,
    /// Number of elements, if that is known.
    pub(crate) count: Option<u64>,
    pub(crate) span: Span,
}

/// A number in memory.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Load {
    pub(crate) at: Code,
    /// Number of bytes, at most 8.
    pub(crate) size: u8,
    /// First bit in these.
    pub(crate) shift: u32,
    /// Number of bits.
    pub(crate) bits: u32,
    pub(crate) signed: bool,
    /// Description of the number, for messages.
    pub(crate) what: String,
    pub(crate) span: Span,
}

/// An operation on two numbers.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Binary {
    pub(crate) op: BinaryOp,
    /// True if the result is signed.
    pub(crate) signed: bool,
    pub(crate) one: Code,
    pub(crate) other: Code,
    /// Span of the second number.
    pub(crate) span: Span,
}

impl Code {
    /// Returns the address `offset` bytes behind this one.
    pub(crate) fn plus(self, offset: u64) -> Self {
        match self {
            Self::Behind(base, before) => Self::Behind(base, before.wrapping_add(offset)),
            Self::Int(address) => Self::Int((address as u64).wrapping_add(offset).into()),
            base if offset == 0 => base,
            base => Self::Behind(Box::new(base), offset),
        }
    }

    /// Returns true if its value is a text.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Chars(..) | Self::Pointed(_))
    }

    /// Computes an address, or an unsigned number of 64 bits.
    pub(crate) fn address(&self, machine: Machine<'_>) -> Result<u64, EvalError> {
        Ok(self.number(machine)? as u64)
    }

    /// Computes the number; for a text, its length.
    pub(crate) fn number(&self, machine: Machine<'_>) -> Result<i128, EvalError> {
        let truth = |code: &Self| code.number(machine).map(|number| number != 0);
        Ok(match self {
            Self::Int(number) => *number,
            Self::Var(index) => machine.vars.get(*index).copied().unwrap_or_default().into(),
            Self::Behind(base, offset) => base.address(machine)?.wrapping_add(*offset).into(),
            Self::Element(element) => element.address(machine)?.into(),
            Self::Load(load) => load.number(machine)?,
            Self::Unary(op, signed, of) => unary(*op, *signed, of.number(machine)?),
            Self::Binary(binary) => {
                let (one, other) = (binary.one.number(machine)?, binary.other.number(machine)?);
                apply(binary.op, binary.signed, one, other, binary.span)?
            }
            Self::And(one, other) => (truth(one)? && truth(other)?).into(),
            Self::Or(one, other) => (truth(one)? || truth(other)?).into(),
            Self::Wrap(of, bits, signed) => {
                extend(of.number(machine)?.cast_unsigned(), *bits, *signed)
            }
            Self::Same(one, other) => (one.text(machine)? == other.text(machine)?).into(),
            Self::Differ(one, other, count) => {
                let (one, other) = (one.text(machine)?, other.text(machine)?);
                (one[..one.len().min(*count)] != other[..other.len().min(*count)]).into()
            }
            Self::Text(_) | Self::Chars(..) | Self::Pointed(_) => self.text(machine)?.len() as i128,
        })
    }

    /// Computes the text; empty if this is not a text.
    pub(crate) fn text(&self, machine: Machine<'_>) -> Result<Vec<u8>, EvalError> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::Chars(at, count) => text_in_array(at.address(machine)?, *count, machine.memory),
            Self::Pointed(at) => text_at(at.address(machine)?, machine.memory),
            _ => Ok(Vec::new()),
        }
    }
}

impl Element {
    fn address(&self, machine: Machine<'_>) -> Result<u64, EvalError> {
        let number = self.index.number(machine)?;
        check_index(number, self.count, self.span)?;
        let base = self.base.address(machine)?;
        Ok(base.wrapping_add((number as u64).wrapping_mul(self.size)))
    }
}

/// Returns an error if an array of `count` elements does not have this one.
pub(crate) fn check_index(number: i128, count: Option<u64>, span: Span) -> Result<(), EvalError> {
    match count.filter(|count| number < 0 || number >= i128::from(*count)) {
        None => Ok(()),
        Some(count) => {
            let message =
                format!("the index {number} is beyond the array, which has {count} elements");
            Err(EvalError::other(span, message)
                .with_hint(format!("to go beyond it: *(&{} + {number})", "ARRAY[0]")))
        }
    }
}

impl Load {
    fn number(&self, machine: Machine<'_>) -> Result<i128, EvalError> {
        let at = self.at.address(machine)?;
        let mut bytes = [0; 8];
        let into = &mut bytes[..usize::from(self.size).min(8)];
        machine.memory.read(at, into).map_err(|source| {
            let what = self.what.clone();
            let is_null = at < NEAR_NULL && !source.cause.is_final();
            let fault = if is_null {
                Fault::Null { what, address: at }
            } else {
                Fault::Unreadable { what, source }
            };
            EvalError::new(self.span, fault)
        })?;
        let raw = u64::from_le_bytes(bytes)
            .checked_shr(self.shift)
            .unwrap_or_default();
        Ok(extend(raw.into(), self.bits, self.signed))
    }
}

/// Computes `!`, `-` or `~` of a number.
pub(crate) fn unary(op: UnaryOp, signed: bool, number: i128) -> i128 {
    match op {
        UnaryOp::Neg => extend(number.wrapping_neg().cast_unsigned(), 64, true),
        UnaryOp::BitNot => extend((!number).cast_unsigned(), 64, signed),
        _ => (number == 0).into(),
    }
}

/// Returns true if the result of an operation is a truth value.
pub(crate) fn is_comparison(op: BinaryOp) -> bool {
    matches!(
        op,
        BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge
    )
}

/// Returns true if the result is signed, by the signs of the operands.
pub(crate) fn is_result_signed(op: BinaryOp, one: bool, other: bool) -> bool {
    match op {
        BinaryOp::Shl | BinaryOp::Shr => one,
        BinaryOp::Sub => true,
        _ => one || other,
    }
}

/// Computes an operation on two numbers, in 64 bits. Comparisons use their values: a signed and an
/// unsigned number never compare as in C.
pub(crate) fn apply(
    op: BinaryOp,
    signed: bool,
    a: i128,
    b: i128,
    span: Span,
) -> Result<i128, EvalError> {
    let order = a.cmp(&b);
    // A shift by 64 or more shifts out all bits.
    let shift = u32::try_from(b).ok().filter(|shift| *shift < 64);
    let result = match op {
        BinaryOp::Eq => return Ok((order == Ordering::Equal).into()),
        BinaryOp::Ne => return Ok((order != Ordering::Equal).into()),
        BinaryOp::Lt => return Ok((order == Ordering::Less).into()),
        BinaryOp::Le => return Ok((order != Ordering::Greater).into()),
        BinaryOp::Gt => return Ok((order == Ordering::Greater).into()),
        BinaryOp::Ge => return Ok((order != Ordering::Less).into()),
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div | BinaryOp::Mod if b == 0 => {
            return Err(EvalError::other(span, "this divides by zero"));
        }
        BinaryOp::Div => a.wrapping_div(b),
        BinaryOp::Mod => a.wrapping_rem(b),
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        BinaryOp::Shl => shift.map_or(0, |shift| ((a as u64) << shift).into()),
        BinaryOp::Shr => shift.map_or(if a < 0 { -1 } else { 0 }, |shift| a >> shift),
        BinaryOp::LogAnd | BinaryOp::LogOr => {
            return Err(EvalError::other(span, "this operator is not for numbers"));
        }
    };
    Ok(extend(result.cast_unsigned(), 64, signed))
}

fn text_in_array(at: u64, count: u64, memory: &dyn Memory) -> Result<Vec<u8>, EvalError> {
    let mut bytes = vec![0; usize::try_from(count).unwrap_or(MAX_TEXT).min(MAX_TEXT)];
    memory.read(at, &mut bytes).map_err(unreadable_text)?;
    let end = bytes
        .iter()
        .position(|&byte| byte == 0)
        .ok_or_else(|| endless(at))?;
    bytes.truncate(end);
    Ok(bytes)
}

fn text_at(at: u64, memory: &dyn Memory) -> Result<Vec<u8>, EvalError> {
    let mut text = Vec::new();
    while at != 0 && text.len() < MAX_TEXT {
        let from = at.wrapping_add(text.len() as u64);
        // Only up to the next such boundary: the text may be the last thing in a mapping.
        let mut step = TEXT_STEP - (from % TEXT_STEP as u64) as usize;
        let mut bytes = [0; TEXT_STEP];
        if memory.read(from, &mut bytes[..step]).is_err() {
            // A memory image may end with the text.
            step = 1;
            memory
                .read(from, &mut bytes[..step])
                .map_err(unreadable_text)?;
        }
        if let Some(end) = bytes[..step].iter().position(|&byte| byte == 0) {
            text.extend_from_slice(&bytes[..end]);
            return Ok(text);
        }
        text.extend_from_slice(&bytes[..step]);
    }
    if at == 0 { Ok(text) } else { Err(endless(at)) }
}

fn unreadable_text(source: crate::memory::MemoryError) -> EvalError {
    EvalError::new(
        Span::default(),
        Fault::Unreadable {
            what: "a text".to_owned(),
            source,
        },
    )
}

fn endless(at: u64) -> EvalError {
    EvalError::other(
        Span::default(),
        format!("the text at {at:#x} does not end within its array"),
    )
}
