//! The registers of the machines that we trace on: names in assembler text, and places in the kernel's `struct pt_regs`.
//!
//! A BPF program attached to a uprobe gets a `bpf_user_pt_regs_t` as its context. On x86-64 that is `struct pt_regs`
//! (`arch/x86/include/asm/ptrace.h`), on arm64 it is `struct user_pt_regs` (`arch/arm64/include/uapi/asm/ptrace.h`), which
//! is also the beginning of the kernel's own `struct pt_regs` there.

use std::fmt;

use uapi::Arch;

/// A register that a BPF program finds in its context.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Register {
    /// A register of x86-64.
    X86(X86Register),
    /// A register of aarch64.
    Arm64(Arm64Register),
}

impl Register {
    /// Returns the register that holds the address of the instruction where a probe was hit.
    pub fn instruction_pointer(arch: Arch) -> Self {
        match arch {
            Arch::X86_64 => Self::X86(X86Register::Rip),
            Arch::Aarch64 => Self::Arm64(Arm64Register::Pc),
        }
    }

    /// Returns the byte offset of the register in the context of a uprobe's program. Every register
    /// has 8 bytes there.
    pub fn pt_regs_offset(self) -> u16 {
        match self {
            Self::X86(register) => register.pt_regs_offset(),
            Self::Arm64(register) => register.pt_regs_offset(),
        }
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::X86(register) => f.write_str(register.name()),
            Self::Arm64(Arm64Register::X(number)) => write!(f, "x{number}"),
            Self::Arm64(Arm64Register::Sp) => f.write_str("sp"),
            Self::Arm64(Arm64Register::Pc) => f.write_str("pc"),
        }
    }
}

/// A register of x86-64, for names of any width.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names are the machine's own")]
pub enum X86Register {
    Rax,
    Rbx,
    Rcx,
    Rdx,
    Rsi,
    Rdi,
    Rbp,
    Rsp,
    R8,
    R9,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15,
    Rip,
}

/// One register of x86-64: its names by width and its place in `struct pt_regs`.
struct X86Row {
    register: X86Register,
    /// Names for 8, 4, 2 and 1 bytes.
    names: [&'static str; 4],
    /// Name of bits 8 to 15, for the four registers that have one.
    high_byte: &'static str,
    /// Offset in `struct pt_regs` of `arch/x86/include/asm/ptrace.h`, the branch without
    /// `__i386__`: r15 first, 8 bytes each.
    offset: u16,
}

const fn row(
    register: X86Register,
    names: [&'static str; 4],
    high_byte: &'static str,
    offset: u16,
) -> X86Row {
    X86Row {
        register,
        names,
        high_byte,
        offset,
    }
}

/// All of x86-64's registers, in the order of [`X86Register`].
const X86_REGISTERS: [X86Row; 17] = [
    row(X86Register::Rax, ["rax", "eax", "ax", "al"], "ah", 80),
    row(X86Register::Rbx, ["rbx", "ebx", "bx", "bl"], "bh", 40),
    row(X86Register::Rcx, ["rcx", "ecx", "cx", "cl"], "ch", 88),
    row(X86Register::Rdx, ["rdx", "edx", "dx", "dl"], "dh", 96),
    row(X86Register::Rsi, ["rsi", "esi", "si", "sil"], "", 104),
    row(X86Register::Rdi, ["rdi", "edi", "di", "dil"], "", 112),
    row(X86Register::Rbp, ["rbp", "ebp", "bp", "bpl"], "", 32),
    row(X86Register::Rsp, ["rsp", "esp", "sp", "spl"], "", 152),
    row(X86Register::R8, ["r8", "r8d", "r8w", "r8b"], "", 72),
    row(X86Register::R9, ["r9", "r9d", "r9w", "r9b"], "", 64),
    row(X86Register::R10, ["r10", "r10d", "r10w", "r10b"], "", 56),
    row(X86Register::R11, ["r11", "r11d", "r11w", "r11b"], "", 48),
    row(X86Register::R12, ["r12", "r12d", "r12w", "r12b"], "", 24),
    row(X86Register::R13, ["r13", "r13d", "r13w", "r13b"], "", 16),
    row(X86Register::R14, ["r14", "r14d", "r14w", "r14b"], "", 8),
    row(X86Register::R15, ["r15", "r15d", "r15w", "r15b"], "", 0),
    row(X86Register::Rip, ["rip", "eip", "", ""], "", 128),
];

impl X86Register {
    /// Returns the byte offset of the register in `struct pt_regs`.
    pub fn pt_regs_offset(self) -> u16 {
        X86_REGISTERS[self as usize].offset
    }

    /// Returns the name of the whole register, without `%`.
    pub fn name(self) -> &'static str {
        X86_REGISTERS[self as usize].names[0]
    }

    /// Returns the register that a name (without `%`) means, with the named part of it.
    pub fn parse(name: &str) -> Option<(Self, RegisterPart)> {
        if name.is_empty() {
            return None;
        }
        X86_REGISTERS.iter().find_map(|row| {
            if row.high_byte == name {
                return Some((row.register, RegisterPart { shift: 8, size: 1 }));
            }
            let width = row.names.iter().position(|known| *known == name)?;
            Some((
                row.register,
                RegisterPart {
                    shift: 0,
                    size: 8 >> width,
                },
            ))
        })
    }
}

/// A register of aarch64 that a BPF program finds in its context.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Arm64Register {
    /// `x0` to `x30`.
    X(u8),
    /// The stack pointer.
    Sp,
    /// The program counter.
    Pc,
}

impl Arm64Register {
    /// Returns the byte offset of the register in `struct user_pt_regs`: `regs[31]`, then `sp`,
    /// `pc` and `pstate`.
    pub fn pt_regs_offset(self) -> u16 {
        match self {
            Self::X(number) => u16::from(number) * 8,
            Self::Sp => 31 * 8,
            Self::Pc => 32 * 8,
        }
    }
}

/// Bits of a register that a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RegisterPart {
    /// Right shift in bits: 8 for `ah`, `bh`, `ch` and `dh`, 0 for all others.
    pub shift: u8,
    /// Number of bytes: 1, 2, 4 or 8.
    pub size: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_x86_row_stands_where_its_register_says() {
        for (index, row) in X86_REGISTERS.iter().enumerate() {
            assert_eq!(row.register as usize, index, "{}", row.names[0]);
        }
    }

    #[test]
    fn x86_names_of_every_width() {
        let check = |name: &str, register, shift, size| {
            assert_eq!(
                X86Register::parse(name),
                Some((register, RegisterPart { shift, size })),
                "{name}"
            );
        };
        check("al", X86Register::Rax, 0, 1);
        check("ah", X86Register::Rax, 8, 1);
        check("dh", X86Register::Rdx, 8, 1);
        check("ax", X86Register::Rax, 0, 2);
        check("eax", X86Register::Rax, 0, 4);
        check("rax", X86Register::Rax, 0, 8);
        check("sil", X86Register::Rsi, 0, 1);
        check("spl", X86Register::Rsp, 0, 1);
        check("r8", X86Register::R8, 0, 8);
        check("r8d", X86Register::R8, 0, 4);
        check("r15w", X86Register::R15, 0, 2);
        check("r10b", X86Register::R10, 0, 1);
        check("rip", X86Register::Rip, 0, 8);
        for wrong in ["", "xmm0", "r16", "rax ", "AX", "sih"] {
            assert_eq!(X86Register::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn places_in_pt_regs() {
        // The x86 numbers are those of `offsetof` on this machine's <sys/user.h>, whose first 21 members are the same.
        assert_eq!(Register::X86(X86Register::R15).pt_regs_offset(), 0);
        assert_eq!(Register::X86(X86Register::Rdi).pt_regs_offset(), 112);
        assert_eq!(
            Register::instruction_pointer(Arch::X86_64).pt_regs_offset(),
            128
        );
        assert_eq!(Register::X86(X86Register::Rsp).pt_regs_offset(), 152);
        assert_eq!(Register::Arm64(Arm64Register::X(30)).pt_regs_offset(), 240);
        assert_eq!(Register::Arm64(Arm64Register::Sp).pt_regs_offset(), 248);
        assert_eq!(
            Register::instruction_pointer(Arch::Aarch64).pt_regs_offset(),
            256
        );
    }
}
