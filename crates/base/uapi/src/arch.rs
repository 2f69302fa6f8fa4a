//! The supported machines.

use std::fmt;

/// A machine whose programs can be traced.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Arch {
    /// 64-bit x86 (`EM_X86_64`).
    X86_64,
    /// 64-bit Arm (`EM_AARCH64`), little-endian.
    Aarch64,
}

impl Arch {
    /// The machine that this is compiled for.
    pub const HOST: Self = if cfg!(target_arch = "aarch64") {
        Self::Aarch64
    } else {
        Self::X86_64
    };

    /// Returns whether plain `char` is signed: in the System V ABI for x86-64 it is, in the
    /// procedure call standard for the 64-bit Arm architecture it isn't.
    pub const fn char_is_signed(self) -> bool {
        matches!(self, Self::X86_64)
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X86_64 => "x86-64",
            Self::Aarch64 => "aarch64",
        })
    }
}
