//! Damaged BTF and DWARF: no panic and no hang, for any query.

use crate::common::{ask_everything, gcc};
use proptest::prelude::*;
use typeinfo::{Arch, Btf, Dwarf, DwarfSections, TypeStore};

/// Builds BTF with one of everything, by hand: header, then records, then strings.
fn btf() -> Vec<u8> {
    let strings = b"\0int\0foo\0a\0b\0fn\0E\0X\0";
    let info = |kind: u32, parts: u32| kind << 24 | parts;
    let types: Vec<u32> = [
        vec![1, info(1, 0), 4, 1 << 24 | 32], // 1: int
        vec![0, info(2, 0), 3],               // 2: struct foo *
        vec![5, info(4, 2) | 1 << 31, 16, 9, 1, 3 << 24, 11, 2, 64], // 3: struct foo { int a : 3; struct foo *b; }
        vec![0, info(3, 0), 0, 3, 1, 2],                             // 4: struct foo [2]
        vec![16, info(6, 1) | 1 << 31, 4, 18, 7],                    // 5: enum E { X = 7 }
        vec![16, info(19, 1), 8, 18, 7, 1],                          // 6: enum E of 64 bits
        vec![0, info(13, 2), 1, 9, 2, 0, 0],                         // 7: int (struct foo *a, ...)
        vec![13, info(12, 1), 7],                                    // 8: fn
        vec![5, info(8, 0), 3],                                      // 9: typedef foo
        vec![0, info(10, 0), 9],                                     // 10: const foo
        vec![0, info(5, 1), 16, 0, 10, 0],                           // 11: union { const foo; }
        vec![5, info(7, 0), 0],                                      // 12: struct foo;
        vec![1, info(16, 0), 8],                                     // 13: float
    ]
    .concat();
    let len = types.len() as u32 * 4;
    let header = [0, len, len, strings.len() as u32];
    let mut bytes = vec![0x9f, 0xeb, 1, 0, 24, 0, 0, 0];
    header
        .iter()
        .chain(&types)
        .for_each(|word| bytes.extend(word.to_le_bytes()));
    bytes.extend(strings);
    bytes
}

fn try_btf(bytes: &[u8]) {
    let Ok(btf) = Btf::parse(bytes) else { return };
    assert!(btf.type_count() * 12 <= bytes.len());
    let mut types = TypeStore::new(Arch::X86_64);
    let base = Btf::parse_split(bytes, &btf);
    let source = types.add_btf(btf).unwrap();
    ask_everything(&types, source);
    if let Ok(split) = base {
        let source = types.add_split_btf(split, source).unwrap();
        ask_everything(&types, source);
    }
}

#[test]
fn the_sound_one_is_read() {
    let bytes = btf();
    let mut types = TypeStore::new(Arch::X86_64);
    let source = types.add_btf(Btf::parse(&bytes).unwrap()).unwrap();
    let foo = types.require(typeinfo::NameKind::Struct, "foo").unwrap();
    assert_eq!(
        types.definition(foo, true).unwrap(),
        "struct foo {\n    int a : 3; /* 0:0 */\n    struct foo *b; /* 8 8 */\n}"
    );
    let function = types.function(source, "fn").unwrap().unwrap();
    assert_eq!(types.display(function.ty), "int fn(struct foo *a, ...)");
    assert_eq!(
        types.find_enumerator("X").unwrap().map(|(_, value)| value),
        Some(7)
    );
    ask_everything(&types, source);
}

proptest! {
    #[test]
    fn damaged_btf(at in prop::collection::vec((0_usize..400, any::<u8>()), 1..6), cut in 0_usize..600) {
        let mut bytes = btf();
        for (at, value) in at {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        bytes.truncate(cut.max(20));
        try_btf(&bytes);
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        try_btf(&bytes);
        try_btf(&[&[0x9f, 0xeb, 1, 0, 24, 0, 0, 0], bytes.as_slice()].concat());
        let _ = DwarfSections::locate(&bytes);
    }
}

const PROGRAM: &str =
    "struct in { int x : 3; unsigned y : 5; char n[2][3]; struct in *next; union { int u; float f; }; };
enum state { A = -1, B = 5 }; typedef struct in in_t;
in_t g; enum state s; int fn(struct in *first, const char *second, ...) { return first->x + *second; }";

#[test]
fn damaged_dwarf() {
    let Some(elf) = gcc(PROGRAM, &["-gdwarf-5", "-c"]) else {
        return;
    };
    let mut whole = DwarfSections::default();
    let parts = DwarfSections::locate(&elf).unwrap();
    for part in &parts {
        whole.set(part.name, part.data);
    }
    let mut seed = 1_u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    for round in 0..1_500 {
        let part = &parts[random(parts.len())];
        let mut data = part.data.to_vec();
        for _ in 0..=random(4) {
            let at = random(data.len());
            data[at] = random(256) as u8;
        }
        if round % 5 == 0 {
            data.truncate(random(data.len()));
        }
        let mut sections = whole;
        sections.set(part.name, &data);
        let Ok(dwarf) = Dwarf::new(sections) else {
            continue;
        };
        let mut types = TypeStore::new(Arch::X86_64);
        let source = types.add_dwarf(dwarf).unwrap();
        ask_everything(&types, source);
    }
}
