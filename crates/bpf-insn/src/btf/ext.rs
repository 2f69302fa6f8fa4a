//! `.BTF.ext`: which type belongs to the function at which instruction.
//!
//! The kernel takes a callback's address (`bpf_loop`, `bpf_for_each_map_elem`) only from programs that say this. Layout:
//! `Documentation/bpf/btf.rst`, section 4.2. Line information and CO-RE relocations are left out.

use super::{Btf, TypeId, header, push_words};

/// The size of a `bpf_func_info` record (`linux/bpf.h`).
const RECORD_BYTES: u32 = 8;

/// A function's place and type.
#[derive(Debug, Clone, Copy)]
pub struct FunctionInfo<'a> {
    /// The ELF section.
    pub section: &'a str,
    /// The function's first byte in it.
    pub byte_offset: u32,
    /// Its type, a [`Btf::function`].
    pub ty: TypeId,
}

/// The `.BTF.ext` section's bytes. Functions of one section must follow each other, in the order of their offsets. The
/// names of sections are entered in `btf`.
pub fn func_info_section(btf: &mut Btf, functions: &[FunctionInfo<'_>]) -> Vec<u8> {
    let mut infos = Vec::new();
    push_words(&mut infos, &[RECORD_BYTES]);
    for group in functions.chunk_by(|one, next| one.section == next.section) {
        let Some(first) = group.first() else { continue };
        push_words(&mut infos, &[btf.string(first.section), group.len() as u32]);
        for function in group {
            push_words(&mut infos, &[function.byte_offset, function.ty.number()]);
        }
    }
    let length = infos.len() as u32;
    // Offset and length of the function records, then of the line records, of which there are none.
    let mut bytes = header(&[0, length, length, 0]);
    bytes.extend_from_slice(&infos);
    bytes
}
