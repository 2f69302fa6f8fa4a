//! The small enums of which instructions consist, each with its codes in one table.

use super::{Addr, opcode};

/// Defines an enum with one code for each variant, and the conversions both ways: the list below is
/// the only one.
macro_rules! coded {
    ($(#[$meta:meta])* $name:ident: $code:ty { $($(#[$vmeta:meta])* $variant:ident = $value:expr,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vmeta])* $variant,)* }

        impl $name {
            /// All variants.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns its code in the encoding.
            pub const fn code(self) -> $code {
                match self { $(Self::$variant => $value,)* }
            }

            /// Returns the variant with this code.
            pub fn from_code(code: $code) -> Option<Self> {
                Self::ALL.iter().copied().find(|it| it.code() == code)
            }
        }
    };
}

coded! {
    /// Register (RFC 9669, section 4.1 of the calling convention: r0 result, r1 to r5 arguments, r6
    /// to r9 kept).
    Reg: u8 {
        /// Results, and the program's own.
        R0 = 0,
        /// First argument; the context at the program's start.
        R1 = 1,
        /// Second argument.
        R2 = 2,
        /// Third argument.
        R3 = 3,
        /// Fourth argument.
        R4 = 4,
        /// Fifth argument.
        R5 = 5,
        /// Kept by calls.
        R6 = 6,
        /// Kept by calls.
        R7 = 7,
        /// Kept by calls.
        R8 = 8,
        /// Kept by calls.
        R9 = 9,
        /// Frame pointer: 512 bytes of stack are below it. Read-only.
        R10 = 10,
    }
}

impl Reg {
    /// Frame pointer.
    pub const FP: Self = Self::R10;

    /// Returns the place `off` bytes from this register's address.
    pub const fn at(self, off: i16) -> Addr {
        Addr { base: self, off }
    }
}

/// Width of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// 32 bits; the upper half of the result is zero.
    W32,
    /// 64 bits.
    W64,
}

coded! {
    /// Number of bytes that a load or store moves, with its size bits (section 5, table 10).
    Size: u8 {
        /// 4 bytes.
        W = opcode::SIZE_W,
        /// 2 bytes.
        H = 0x08,
        /// 1 byte.
        B = 0x10,
        /// 8 bytes.
        DW = opcode::SIZE_DW,
    }
}

impl Size {
    /// Returns the number of bytes.
    pub const fn bytes(self) -> u8 {
        match self {
            Self::B => 1,
            Self::H => 2,
            Self::W => 4,
            Self::DW => 8,
        }
    }

    /// Returns the size of this number of bytes.
    pub fn from_bytes(bytes: u64) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|size| u64::from(size.bytes()) == bytes)
    }
}

coded! {
    /// Number of bytes that a sign-extending load moves, with its size bits (section 5.2).
    SxSize: u8 {
        /// 4 bytes.
        W = opcode::SIZE_W,
        /// 2 bytes.
        H = 0x08,
        /// 1 byte.
        B = 0x10,
    }
}

coded! {
    /// Arithmetic with two operands: operation bits and offset field (section 4.1, table 4).
    AluOp: (u8, i16) {
        /// `+`.
        Add = (0x00, 0),
        /// `-`.
        Sub = (0x10, 0),
        /// `*`.
        Mul = (0x20, 0),
        /// Unsigned `/`; 0 if the divisor is 0.
        Div = (0x30, 0),
        /// Signed `/`; 0 if the divisor is 0. Since Linux 6.6 (BPF v4).
        SDiv = (0x30, opcode::alu::SIGNED),
        /// `|`.
        Or = (0x40, 0),
        /// `&`.
        And = (0x50, 0),
        /// `<<`, by the operand's low 5 or 6 bits.
        Lsh = (0x60, 0),
        /// Unsigned `>>`.
        Rsh = (0x70, 0),
        /// Unsigned `%`; the dividend if the divisor is 0.
        Mod = (0x90, 0),
        /// Signed `%`; the dividend if the divisor is 0. Since Linux 6.6 (BPF v4).
        SMod = (0x90, opcode::alu::SIGNED),
        /// `^`.
        Xor = (0xa0, 0),
        /// The second operand.
        Mov = (opcode::alu::MOV, 0),
        /// Signed `>>`.
        Arsh = (0xc0, 0),
    }
}

coded! {
    /// Sign-extending move: true for a 64-bit result, and the offset field, which is the operand's
    /// width (section 4.1).
    Extend: (bool, i16) {
        /// 8 to 32 bits.
        S8To32 = (false, 8),
        /// 16 to 32 bits.
        S16To32 = (false, 16),
        /// 8 to 64 bits.
        S8To64 = (true, 8),
        /// 16 to 64 bits.
        S16To64 = (true, 16),
        /// 32 to 64 bits.
        S32To64 = (true, 32),
    }
}

coded! {
    /// Byte order of a swap's result, as class and source bit (section 4.2, table 5).
    ByteOrder: u8 {
        /// From the host's order to little-endian.
        Little = opcode::class::ALU,
        /// From the host's order to big-endian.
        Big = opcode::class::ALU | opcode::SRC_REG,
        /// From the host's order to the other one. Since Linux 6.6 (BPF v4).
        Swap = opcode::class::ALU64,
    }
}

coded! {
    /// Number of bits that a byte swap reverses (section 4.2).
    SwapBits: i32 {
        /// 16 bits.
        B16 = 16,
        /// 32 bits.
        B32 = 32,
        /// 64 bits.
        B64 = 64,
    }
}

coded! {
    /// Comparisons (section 4.3, table 8).
    JumpOp: u8 {
        /// `==`.
        Eq = 0x10,
        /// Unsigned `>`.
        Gt = 0x20,
        /// Unsigned `>=`.
        Ge = 0x30,
        /// `&`: any common bit.
        Set = 0x40,
        /// `!=`.
        Ne = 0x50,
        /// Signed `>`.
        SGt = 0x60,
        /// Signed `>=`.
        SGe = 0x70,
        /// Unsigned `<`. Since Linux 4.14.
        Lt = 0xa0,
        /// Unsigned `<=`. Since Linux 4.14.
        Le = 0xb0,
        /// Signed `<`. Since Linux 4.14.
        SLt = 0xc0,
        /// Signed `<=`. Since Linux 4.14.
        SLe = 0xd0,
    }
}

impl JumpOp {
    /// Returns the comparison that holds exactly if this one does not; `None` for [`JumpOp::Set`].
    pub const fn negated(self) -> Option<Self> {
        Some(match self {
            Self::Eq => Self::Ne,
            Self::Ne => Self::Eq,
            Self::Gt => Self::Le,
            Self::Le => Self::Gt,
            Self::Ge => Self::Lt,
            Self::Lt => Self::Ge,
            Self::SGt => Self::SLe,
            Self::SLe => Self::SGt,
            Self::SGe => Self::SLt,
            Self::SLt => Self::SGe,
            Self::Set => return None,
        })
    }
}

coded! {
    /// Atomic operations, by the constant field (section 5.3, tables 13 and 14). All but
    /// [`AtomicOp::Add`] since Linux 5.12.
    AtomicOp: i32 {
        /// `+=`.
        Add = 0x00,
        /// `|=`.
        Or = 0x40,
        /// `&=`.
        And = 0x50,
        /// `^=`.
        Xor = 0xa0,
        /// `+=`, and the old value to the source register.
        FetchAdd = opcode::FETCH,
        /// `|=`, and the old value to the source register.
        FetchOr = 0x40 | opcode::FETCH,
        /// `&=`, and the old value to the source register.
        FetchAnd = 0x50 | opcode::FETCH,
        /// `^=`, and the old value to the source register.
        FetchXor = 0xa0 | opcode::FETCH,
        /// `=`, and the old value to the source register.
        Xchg = 0xe0 | opcode::FETCH,
        /// `=` if the word equals r0; the old value to r0.
        CmpXchg = 0xf0 | opcode::FETCH,
    }
}
