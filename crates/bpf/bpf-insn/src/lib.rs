//! BPF instructions, from their model to an object file that a loader accepts.
//!
//! This is the lowest crate of the compiler. It knows the instruction set, not the purpose of a
//! program: registers, labels and map names come in, bytes go out. It is pure: no file, no clock,
//! no system call, and no machine other than BPF.
//!
//! | module | holds |
//! |---|---|
//! | [`insn`] | the instructions, and their 8-byte form both ways |
//! | [`helpers`] | the kernel's helper functions by number and name |
//! | [`asm`] | the assembler: one method for each instruction, labels, comments |
//! | [`disasm`] | the text of instructions, in the form of `llvm-objdump -d` |
//! | [`btf`] | the type information that map definitions and callbacks need |
//! | [`object`] | the ELF object: programs, subprograms, maps, global data |
//!
//! Only little-endian machines are supported (`dptrace` runs on x86-64 and aarch64): a BPF
//! instruction's register nibbles and an object's numbers have the host's byte order (RFC 9669,
//! section 3).
#![forbid(unsafe_code)]

pub mod asm;
pub mod btf;
pub mod disasm;
pub mod helpers;
pub mod insn;
pub mod object;

pub use asm::{Asm, AsmError, Code, Label, SourceSpan};
pub use disasm::Listing;
pub use helpers::Helper;
pub use insn::{
    Addr, AluOp, AtomicOp, ByteOrder, Callee, Extend, Imm64, Insn, JumpOp, Reg, Size, Src,
    SwapBits, SxSize, Width,
};
pub use object::{MapDef, ObjectBuilder, ObjectError};
pub use uapi::KernelVersion;
pub use uapi::bpf::MapKind;
