//! Reads an argument's value from registers and memory, as the BPF program that is compiled for it
//! does.
//!
//! For tests, and as the plain statement of an operand's meaning.

use std::fmt;

use super::operand::{Extend, Index, MemoryOperand, Operand};
use super::{ArgSpec, ArgType};
use crate::error::UsdtError;
use crate::registers::Register;
use elf::ProcAddr;

/// The registers of a thread that hit a probe.
pub trait Registers {
    /// Returns all 64 bits of a register; `None` if its value is not known.
    fn register(&self, register: Register) -> Option<u64>;
}

/// The memory of the process that hit a probe.
pub trait Memory {
    /// Fills the buffer from this address on; returns false if not all of it could be read.
    fn read(&self, address: ProcAddr, buffer: &mut [u8]) -> bool;
}

/// Value of an argument, by its type.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ArgValue {
    /// Value of an unsigned type.
    Unsigned(u64),
    /// Value of a signed type.
    Signed(i64),
    /// Value of a floating-point type.
    Float(f64),
}

impl ArgValue {
    /// Returns the value of a type in these bits; those beyond the type's width are ignored.
    pub fn from_bits(ty: ArgType, bits: u64) -> Self {
        let bits = ty.extend(bits);
        match ty {
            ArgType {
                float: true,
                size: 4,
                ..
            } => Self::Float(f64::from(f32::from_bits(bits as u32))),
            ArgType { float: true, .. } => Self::Float(f64::from_bits(bits)),
            ArgType { signed: true, .. } => Self::Signed(bits.cast_signed()),
            _ => Self::Unsigned(bits),
        }
    }
}

impl fmt::Display for ArgValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned(value) => value.fmt(f),
            Self::Signed(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
        }
    }
}

/// Returns the value of an argument with these registers and this memory, with its width and its
/// sign honoured.
pub fn value(
    arg: &ArgSpec,
    registers: &impl Registers,
    memory: &impl Memory,
) -> Result<ArgValue, UsdtError> {
    let bits = match &arg.operand {
        Operand::Register { register, shift } => get(registers, *register)? >> shift,
        Operand::Constant(value) => *value as u64,
        Operand::Address(place) => address(place, registers)?,
        Operand::Memory(place) => load(memory, address(place, registers)?, arg.ty.size)?,
        Operand::Symbol(_) | Operand::Unreadable(_) => {
            let reason = arg
                .unreadable()
                .map_or_else(String::new, |reason| reason.to_string());
            return Err(UsdtError::ArgumentUnreadable {
                text: arg.text.to_string(),
                reason,
            });
        }
    };
    Ok(ArgValue::from_bits(arg.ty, bits))
}

fn get(registers: &impl Registers, register: Register) -> Result<u64, UsdtError> {
    let unknown = || UsdtError::RegisterUnknown {
        register: register.to_string(),
    };
    registers.register(register).ok_or_else(unknown)
}

fn address(place: &MemoryOperand, registers: &impl Registers) -> Result<u64, UsdtError> {
    let mut sum = place.offset as u64;
    if let Some(base) = place.base {
        sum = sum.wrapping_add(get(registers, base)?);
    }
    if let Some(index) = place.index {
        sum = sum.wrapping_add(index_bytes(index, get(registers, index.register)?));
    }
    Ok(sum)
}

fn index_bytes(index: Index, value: u64) -> u64 {
    let extended = match index.extend {
        Extend::Full => value,
        Extend::Zero32 => u64::from(value as u32),
        Extend::Sign32 => i64::from(value as i32) as u64,
    };
    extended << index.shift.min(63)
}

fn load(memory: &impl Memory, at: u64, size: u32) -> Result<u64, UsdtError> {
    let address = ProcAddr(at);
    let mut bytes = [0; 8];
    let wanted = bytes.get_mut(..size as usize);
    if wanted.is_some_and(|wanted| memory.read(address, wanted)) {
        Ok(u64::from_le_bytes(bytes))
    } else {
        Err(UsdtError::MemoryUnreadable { address, size })
    }
}
