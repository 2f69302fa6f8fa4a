//! Bytes of BTF, word by word.

use super::*;

const HEADER_BYTES: usize = 24;

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
        .collect()
}

/// Returns the types' words and the strings.
fn parts(btf: &Btf) -> (Vec<u32>, Vec<u8>) {
    let bytes = btf.to_bytes();
    let header = words(&bytes[..HEADER_BYTES]);
    assert_eq!(header[0], 0x0001_eb9f, "magic and version");
    assert_eq!(header[1] as usize, HEADER_BYTES);
    assert_eq!(header[2], 0);
    let (type_len, str_off, str_len) = (header[3] as usize, header[4] as usize, header[5] as usize);
    assert_eq!(type_len, str_off);
    assert_eq!(bytes.len(), HEADER_BYTES + str_off + str_len);
    (
        words(&bytes[HEADER_BYTES..HEADER_BYTES + type_len]),
        bytes[HEADER_BYTES + str_off..].to_vec(),
    )
}

#[test]
fn nothing_is_a_header_and_an_empty_string() {
    assert_eq!(parts(&Btf::new()), (vec![], vec![0]));
}

#[test]
fn integers_pointers_and_arrays() {
    let mut btf = Btf::new();
    let int = btf.int("int", 4, true);
    let pointer = btf.pointer(int);
    let array = btf.array(pointer, int, 27);
    assert_eq!((int.number(), pointer.number(), array.number()), (1, 2, 3));
    let (types, strings) = parts(&btf);
    assert_eq!(types[..4], [1, 0x0100_0000, 4, 0x0100_0020]);
    assert_eq!(types[4..7], [0, 0x0200_0000, 1]);
    assert_eq!(types[7..], [0, 0x0300_0000, 0, 2, 1, 27]);
    assert_eq!(strings, b"\0int\0");
}

#[test]
fn structures_variables_and_sections() {
    let mut btf = Btf::new();
    let byte = btf.int("u8", 1, false);
    let members = [("a", 0), ("b", 8)].map(|(name, byte_offset)| Member {
        name,
        ty: byte,
        byte_offset,
    });
    let structure = btf.structure("", 16, &members);
    let variable = btf.variable("a", structure, Linkage::Global);
    btf.section(
        ".maps",
        16,
        &[SectionVar {
            ty: variable,
            offset: 0,
            bytes: 16,
        }],
    );
    let (types, strings) = parts(&btf);
    assert_eq!(types[..4], [1, 0x0100_0000, 1, 8]);
    assert_eq!(types[4..13], [0, 0x0400_0002, 16, 4, 1, 0, 6, 1, 64]);
    assert_eq!(types[13..17], [4, 0x0e00_0000, 2, 1]);
    assert_eq!(types[17..], [8, 0x0f00_0001, 16, 3, 0, 16]);
    assert_eq!(strings, b"\0u8\0a\0b\0.maps\0", "each string once");
}

#[test]
fn functions() {
    let mut btf = Btf::new();
    let int = btf.int("int", 4, true);
    let prototype = btf.prototype(
        int,
        &[Param {
            name: "ctx",
            ty: int,
        }],
    );
    btf.function("f", prototype, Linkage::Static);
    btf.function("g", prototype, Linkage::Global);
    let (types, _) = parts(&btf);
    assert_eq!(types[4..9], [0, 0x0d00_0001, 1, 5, 1]);
    assert_eq!(types[9..12], [9, 0x0c00_0000, 2]);
    assert_eq!(types[12..], [11, 0x0c00_0001, 2]);
}

#[test]
fn function_and_line_records_are_grouped_by_section() {
    let mut btf = Btf::new();
    let lines = vec![
        LineInfo { slot: 0, text: "a" },
        LineInfo { slot: 2, text: "b" },
    ];
    let at = |section, byte_offset, id| FunctionInfo {
        section,
        name: "f",
        byte_offset,
        ty: TypeId(id),
        lines: lines.clone(),
    };
    let functions = [at("uprobe", 0, 7), at("uprobe", 32, 8), at(".text", 0, 9)];
    let words = words(&ext_section(&mut btf, &functions));
    assert_eq!(words[..8], [0x0001_eb9f, 32, 0, 44, 44, 116, 160, 0]);
    assert_eq!(words[8..19], [8, 1, 2, 0, 7, 32, 8, 8, 1, 0, 9]);
    let lines = &words[19..];
    assert_eq!(lines[..3], [16, 1, 4]);
    assert_eq!(lines[3..11], [0, 14, 16, 0, 16, 14, 18, 2 << 10]);
    assert_eq!(lines[11..19], [32, 14, 16, 0, 48, 14, 18, 2 << 10]);
    assert_eq!(lines[19..21], [8, 2]);
    assert_eq!(parts(&btf).1, b"\0uprobe\0.text\0f\0a\0b\0");
}

#[test]
fn strings_end_at_a_nul() {
    let mut btf = Btf::new();
    assert_eq!(
        (btf.string("ab\0cd"), btf.string("ab"), btf.string("\0x")),
        (1, 1, 0)
    );
    assert_eq!(parts(&btf).1, b"\0ab\0");
}
