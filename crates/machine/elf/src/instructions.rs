//! Finds where the instructions of a function begin, from its bytes.
//!
//! A breakpoint is written over an instruction's first bytes. Within an instruction it changes what
//! the program computes. On aarch64 each instruction has four bytes. On x86-64 it has 1 to 15
//! (Intel SDM volume 2, section 2.3.11), and only decoding all instructions since the function's
//! first finds its beginning.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};

use uapi::Arch;

/// Length of the longest instruction of x86-64, in bytes.
pub const MAX_INSTRUCTION_BYTES: usize = 15;
/// Length of an instruction of aarch64, in bytes.
const AARCH64: usize = 4;
/// Bytes of `nop` of aarch64 in memory (Arm ARM, C6.2 "NOP").
const AARCH64_NOP: [u8; AARCH64] = [0x1f, 0x20, 0x03, 0xd5];

/// The first bytes of a function's instructions, as distances from the function's first byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instructions {
    /// Bit set with a bit for each byte.
    first: Vec<u64>,
    /// Number of bytes that were decoded.
    decoded: usize,
}

/// Position of a byte among instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// First byte of an instruction.
    First,
    /// Byte within an instruction.
    Inside {
        /// First byte of the instruction.
        before: usize,
        /// First byte of the next one; `None` if nothing that follows could be decoded.
        after: Option<usize>,
    },
    /// Byte behind bytes that are not an instruction.
    Unknown {
        /// First of these bytes; the function's length if all of it was decoded.
        from: usize,
    },
}

impl Instructions {
    /// Decodes from the function's first byte to its last, or to the first byte that begins no
    /// instruction, such as those of a table among the code.
    pub fn decode(arch: Arch, code: &[u8]) -> Self {
        let mut instructions = Self {
            first: vec![0; code.len().div_ceil(64)],
            decoded: 0,
        };
        match arch {
            Arch::X86_64 => instructions.decode_x86(code),
            Arch::Aarch64 => {
                let whole = code.len() / AARCH64 * AARCH64;
                (0..whole)
                    .step_by(AARCH64)
                    .for_each(|at| instructions.mark(at));
                instructions.decoded = whole;
            }
        }
        instructions
    }

    fn decode_x86(&mut self, code: &[u8]) {
        let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            if instruction.is_invalid() {
                return;
            }
            self.mark(self.decoded);
            self.decoded = decoder.position();
        }
    }

    fn mark(&mut self, at: usize) {
        if let Some(word) = self.first.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    fn is_first(&self, at: usize) -> bool {
        self.first
            .get(at / 64)
            .is_some_and(|word| word & (1 << (at % 64)) != 0)
    }

    /// Returns the position of a byte.
    pub fn position(&self, at: usize) -> Position {
        if at >= self.decoded {
            return Position::Unknown { from: self.decoded };
        }
        if self.is_first(at) {
            return Position::First;
        }
        // The function's first byte always begins one, and the next one is near.
        let before = (0..at)
            .rev()
            .find(|&before| self.is_first(before))
            .unwrap_or_default();
        let after = (at..at.saturating_add(MAX_INSTRUCTION_BYTES).min(self.decoded))
            .find(|&after| self.is_first(after));
        Position::Inside { before, after }
    }
}

/// Returns true if these bytes begin with an instruction that does nothing: on x86-64 `nop` of any
/// length (`90`, `66 90`, `0f 1f 40 00` and so on; Intel SDM volume 2, "NOP"), on aarch64 `nop`.
pub fn is_nop(arch: Arch, code: &[u8]) -> bool {
    match arch {
        Arch::X86_64 => {
            Decoder::new(64, code, DecoderOptions::NONE)
                .decode()
                .mnemonic()
                == Mnemonic::Nop
        }
        Arch::Aarch64 => code.starts_with(&AARCH64_NOP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instruction_boundaries_are_decoded_from_the_first_byte() {
        // push rbp; mov rbp, rsp; mov eax, 0x90909090; nop; ret; a byte that is no instruction of 64-bit code.
        let code = [
            0x55, 0x48, 0x89, 0xe5, 0xb8, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3, 0x06, 0x90,
        ];
        let instructions = Instructions::decode(Arch::X86_64, &code);
        let firsts: Vec<usize> = (0..20)
            .filter(|&at| instructions.position(at) == Position::First)
            .collect();
        assert_eq!(firsts, [0, 1, 4, 9, 10]);
        assert_eq!(
            instructions.position(3),
            Position::Inside {
                before: 1,
                after: Some(4)
            }
        );
        assert_eq!(instructions.position(11), Position::Unknown { from: 11 });
        assert_eq!(
            instructions.position(usize::MAX),
            Position::Unknown { from: 11 }
        );
        let cut = Instructions::decode(Arch::X86_64, &code[..3]);
        assert_eq!(cut.position(2), Position::Unknown { from: 1 });
        let last = Instructions::decode(Arch::X86_64, &code[..4]);
        assert_eq!(
            last.position(2),
            Position::Inside {
                before: 1,
                after: None
            }
        );
    }

    #[test]
    fn instructions_of_aarch64_have_four_bytes() {
        let instructions = Instructions::decode(Arch::Aarch64, &[0; 10]);
        assert_eq!(instructions.position(4), Position::First);
        assert_eq!(
            instructions.position(5),
            Position::Inside {
                before: 4,
                after: None
            }
        );
        assert_eq!(
            instructions.position(1),
            Position::Inside {
                before: 0,
                after: Some(4)
            }
        );
        assert_eq!(instructions.position(8), Position::Unknown { from: 8 });
    }

    #[test]
    fn nops_of_all_lengths() {
        let nops: [&[u8]; 9] = [
            &[0x90],
            &[0x66, 0x90],
            &[0x0f, 0x1f, 0x00],
            &[0x0f, 0x1f, 0x40, 0x00],
            &[0x0f, 0x1f, 0x44, 0x00, 0x00],
            &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
            &[0x0f, 0x1f, 0x80, 0, 0, 0, 0],
            &[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
            &[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
        ];
        assert!(nops.iter().all(|nop| is_nop(Arch::X86_64, nop)));
        // pause; xchg r8, rax; ret; a nop that is cut; nothing.
        let others: [&[u8]; 5] = [
            &[0xf3, 0x90],
            &[0x49, 0x90],
            &[0xc3],
            &[0x0f, 0x1f, 0x40],
            &[],
        ];
        assert!(!others.iter().any(|other| is_nop(Arch::X86_64, other)));
        assert!(
            is_nop(Arch::Aarch64, &0xd503_201f_u32.to_le_bytes())
                && !is_nop(Arch::Aarch64, &[0x90; 4])
        );
    }
}
