//! The arguments of a USDT probe: `SIZE@OPERAND`, separated by blanks, as `<sys/sdt.h>` has the compiler write them.
//!
//! Sources of the grammar: the systemtap wiki's page UserSpaceProbeImplementation, the comments of
//! systemtap's `includes/sys/sdt.h` (4.8), and the forms that libbpf's `src/usdt.c`
//! (`parse_usdt_arg`) and bcc's `usdt_args.cc` accept. The compiler writes the operand as in an
//! instruction, so its form is that of the machine's assembler.

mod arm64;
mod cursor;
mod operand;
mod split;
mod symbol;
mod value;
mod x86;

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::error::NoteFault;
use uapi::Arch;

pub use operand::{Extend, Index, MemoryOperand, Operand, SymbolAccess, SymbolOperand, Unreadable};
pub use value::{ArgValue, Memory, Registers, value};

/// Limit on the arguments of one probe. `<sys/sdt.h>` allows 12, and so does libbpf
/// (`USDT_MAX_ARG_CNT`).
pub const MAX_ARGS: usize = 32;

/// Width of an argument, and the meaning of its bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ArgType {
    /// Width in bytes. Only 1, 2, 4 and 8 can be read; the operand of any other is
    /// [`Operand::Unreadable`].
    pub size: u32,
    /// True if its sign must be extended.
    pub signed: bool,
    /// True for a floating-point number, which is read by its bits.
    pub float: bool,
}

impl ArgType {
    /// Returns an unsigned integer type with this number of bytes.
    pub fn unsigned(size: u32) -> Self {
        Self {
            size,
            signed: false,
            float: false,
        }
    }

    /// Returns true if a BPF program can hold such a value.
    pub fn is_readable(self) -> bool {
        match self.size {
            4 | 8 => true,
            1 | 2 => !self.float,
            _ => false,
        }
    }

    /// Returns the value that these bits mean, as 64 bits: bits above the width are replaced by
    /// zeros or copies of the sign. Floating-point bits are left as they are.
    pub fn extend(self, bits: u64) -> u64 {
        let unused = 64u32.saturating_sub(self.size.saturating_mul(8)).min(63);
        if self.signed && !self.float {
            ((bits << unused).cast_signed() >> unused).cast_unsigned()
        } else {
            bits << unused >> unused
        }
    }
}

impl fmt::Display for ArgType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self {
            Self { float: true, .. } => 'f',
            Self { signed: true, .. } => 'i',
            _ => 'u',
        };
        match self.size {
            1 | 2 | 4 | 8 => write!(f, "{letter}{}", self.size * 8),
            bytes => write!(f, "{bytes} bytes"),
        }
    }
}

/// One argument of a probe at one of its places.
///
/// Shown as type and place: `i32 @ -4(%rbp)`, `u64 @ %rdi`.
///
/// Two are equal if they have the same value at every hit, even if their notes write the operand
/// differently.
#[derive(Clone, Debug)]
pub struct ArgSpec {
    /// Width of the argument, and the meaning of its bits.
    pub ty: ArgType,
    /// Place of the value when the probe is hit.
    pub operand: Operand,
    /// The operand as the note writes it, for people; control characters are escaped.
    pub text: Box<str>,
}

impl ArgSpec {
    /// Returns the reason why this argument has no value for a BPF program, if so. The probe can be
    /// used without it.
    pub fn unreadable(&self) -> Option<Unreadable> {
        match &self.operand {
            Operand::Unreadable(reason) => Some(reason.clone()),
            Operand::Symbol(symbol) => Some(Unreadable::SymbolNotFound {
                name: symbol.name.clone(),
            }),
            _ => None,
        }
    }
}

impl PartialEq for ArgSpec {
    fn eq(&self, other: &Self) -> bool {
        (&self.ty, &self.operand) == (&other.ty, &other.operand)
    }
}

impl Eq for ArgSpec {}

impl Hash for ArgSpec {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.ty, &self.operand).hash(state);
    }
}

impl fmt::Display for ArgSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} @ {}", self.ty, self.text)
    }
}

/// Reads a note's whole argument string. An unreadable argument still takes its place in the list,
/// as [`Operand::Unreadable`], so that the others keep their numbers.
pub fn parse_args(arch: Arch, text: &str) -> Result<Vec<ArgSpec>, NoteFault> {
    // libbpf (`parse_usdt_note`) takes a string that begins with a colon for no arguments at all.
    if text.starts_with(':') {
        return Ok(Vec::new());
    }
    let mut args = Vec::new();
    for token in split::arguments(text) {
        if args.len() == MAX_ARGS {
            return Err(NoteFault::TooManyArguments { limit: MAX_ARGS });
        }
        args.push(argument(arch, token));
    }
    Ok(args)
}

fn argument(arch: Arch, token: &str) -> ArgSpec {
    let (ty, text) = match split::size(token) {
        Some((ty, operand)) => (Some(ty), operand.trim()),
        // Blanks within a bracket that is never closed reach to the end of the string.
        None => (None, token.trim()),
    };
    let (operand, natural_size) = match arch {
        Arch::X86_64 => x86::operand(text),
        Arch::Aarch64 => arm64::operand(text),
    };
    // Without a size, bcc takes the register's width and otherwise a machine word, unsigned.
    let ty = ty.unwrap_or(ArgType::unsigned(natural_size));
    let operand = match operand {
        // A vector register or a thread-local variable is the better explanation than its size.
        Operand::Unreadable(_) => operand,
        _ if ty.is_readable() => operand,
        _ => Operand::Unreadable(Unreadable::Size { size: ty.size }),
    };
    ArgSpec {
        ty,
        operand,
        text: printable(text),
    }
}

fn printable(text: &str) -> Box<str> {
    if text.chars().any(char::is_control) {
        text.escape_debug().to_string().into()
    } else {
        text.into()
    }
}
