//! Turns an operand that names a symbol into one of registers and numbers.

use super::ArgSpec;
use super::operand::{MemoryOperand, Operand, SymbolAccess, SymbolOperand, Unreadable};
use crate::registers::Register;
use elf::ElfKind;
use elf::ElfVaddr;
use elf::symbols::SymbolLookup;
use uapi::Arch;

/// Mask of the address bits that name a byte of a 4096-byte page: the meaning of `:lo12:` (ELF for
/// the Arm 64-bit Architecture, `R_AARCH64_ADD_ABS_LO12_NC`).
const PAGE_MASK: u64 = 0xfff;

impl ArgSpec {
    /// Returns the symbol whose address this argument waits for.
    pub fn wanted_symbol(&self) -> Option<&str> {
        match &self.operand {
            Operand::Symbol(symbol) => Some(&symbol.name),
            _ => None,
        }
    }

    /// Puts the symbol's address in its place, if it is found. The probe's own address serves as the origin, so that the
    /// result holds wherever the file is loaded: a hit's instruction pointer is that address in the process.
    pub fn resolve(&mut self, arch: Arch, kind: ElfKind, probe: ElfVaddr, found: SymbolLookup) {
        let Operand::Symbol(symbol) = &self.operand else {
            return;
        };
        self.operand = match found {
            SymbolLookup::At(address) => resolved(symbol, arch, kind, probe, address),
            SymbolLookup::Ambiguous => Operand::Unreadable(Unreadable::SymbolAmbiguous {
                name: symbol.name.clone(),
            }),
            SymbolLookup::Missing => return,
        };
    }
}

fn resolved(
    symbol: &SymbolOperand,
    arch: Arch,
    kind: ElfKind,
    probe: ElfVaddr,
    address: ElfVaddr,
) -> Operand {
    let target = address.0.wrapping_add_signed(symbol.memory.offset);
    let origin = Register::instruction_pointer(arch);
    let memory = match symbol.memory.base {
        Some(_) if symbol.access == SymbolAccess::PageOffset => MemoryOperand {
            offset: (target & PAGE_MASK).cast_signed(),
            ..symbol.memory
        },
        Some(base) if base != origin => {
            if kind == ElfKind::PositionIndependent {
                return Operand::Unreadable(Unreadable::NotFixed {
                    name: symbol.name.clone(),
                });
            }
            MemoryOperand {
                offset: target.cast_signed(),
                ..symbol.memory
            }
        }
        _ => MemoryOperand {
            base: Some(origin),
            offset: target.wrapping_sub(probe.0).cast_signed(),
            ..symbol.memory
        },
    };
    match symbol.access {
        SymbolAccess::Address => Operand::Address(memory),
        SymbolAccess::Load | SymbolAccess::PageOffset => Operand::Memory(memory),
    }
}
