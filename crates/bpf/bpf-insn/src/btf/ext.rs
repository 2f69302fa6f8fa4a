//! Encodes `.BTF.ext`: the type of the function at each instruction, and comments on instructions.
//!
//! The kernel accepts the address of a callback (`bpf_loop`, `bpf_for_each_map_elem`) only if the
//! program has the types of its functions. Line information is meant for source lines, which the
//! verifier prints in its log before the instructions; ours has the compiler's comments. Layout:
//! `Documentation/bpf/btf.rst`, section 4.2. There are no CO-RE relocations.

use super::{Btf, TypeId, header, push_words};

/// Size of a `bpf_func_info` record (`linux/bpf.h`).
const FUNCTION_BYTES: u32 = 8;
/// Size of a `bpf_line_info` record (`linux/bpf.h`).
const LINE_BYTES: u32 = 16;
/// First bit of the line number in `bpf_line_info.line_col` (`BPF_LINE_INFO_LINE_NUM` of
/// `linux/bpf.h`).
const LINE_SHIFT: u32 = 10;

/// Place and type of a function, and its lines.
#[derive(Debug, Clone)]
pub struct FunctionInfo<'a> {
    /// ELF section.
    pub section: &'a str,
    /// Name, shown in place of a file's name in the verifier's log.
    pub name: &'a str,
    /// Offset of its first byte in the section.
    pub byte_offset: u32,
    /// Type, a [`Btf::function`].
    pub ty: TypeId,
    /// Lines in order. The kernel requires one for the first instruction, or none at all in the
    /// whole program.
    pub lines: Vec<LineInfo<'a>>,
}

/// Comment on an instruction.
#[derive(Debug, Clone, Copy)]
pub struct LineInfo<'a> {
    /// Slot in the function, shown in place of the line's number.
    pub slot: u32,
    /// Text.
    pub text: &'a str,
}

/// Returns the bytes of the `.BTF.ext` section. Functions of one section must follow each other, in
/// the order of their offsets. Names and texts are entered in `btf`, so its bytes must be taken
/// afterwards.
pub fn ext_section(btf: &mut Btf, functions: &[FunctionInfo<'_>]) -> Vec<u8> {
    let types = records(btf, functions, FUNCTION_BYTES, |_, function, out| {
        push_words(out, &[function.byte_offset, function.ty.number()]);
    });
    let lines = records(btf, functions, LINE_BYTES, |btf, function, out| {
        let file = btf.string(function.name);
        for line in &function.lines {
            let text = btf.string(line.text);
            push_words(
                out,
                &[
                    function.byte_offset + line.slot * 8,
                    file,
                    text,
                    line.slot << LINE_SHIFT,
                ],
            );
        }
    });
    let (types_len, lines_len) = (types.len() as u32, lines.len() as u32);
    // Offset and length of the functions' types, of the lines and of the relocations.
    let mut bytes = header(&[0, types_len, types_len, lines_len, types_len + lines_len, 0]);
    bytes.extend_from_slice(&types);
    bytes.extend_from_slice(&lines);
    bytes
}

/// Returns a record size, and then for each section its name, the number of its records, and the
/// records.
fn records(
    btf: &mut Btf,
    functions: &[FunctionInfo<'_>],
    record_bytes: u32,
    mut push: impl FnMut(&mut Btf, &FunctionInfo<'_>, &mut Vec<u8>),
) -> Vec<u8> {
    let mut out = Vec::new();
    push_words(&mut out, &[record_bytes]);
    for group in functions.chunk_by(|one, next| one.section == next.section) {
        let mut records = Vec::new();
        for function in group {
            push(btf, function, &mut records);
        }
        let section = group.first().map_or("", |function| function.section);
        push_words(
            &mut out,
            &[btf.string(section), records.len() as u32 / record_bytes],
        );
        out.extend_from_slice(&records);
    }
    out
}
