//! Compressed debug sections: read as others are, and checked against their stated sizes and the
//! limits.

use crate::common::gcc;
use typeinfo::{
    Arch, DebugSection, Dwarf, DwarfSections, InflateBudget, NameKind, SectionFormat, SourceLine,
    TypeError, TypeStore, inflate, inflated,
};

const PROGRAM: &str = "struct in { int x; char name[40]; struct in *next; }; struct in g;
int fn(struct in *first) {
    return first->x;
}
int main(void) { return fn(&g); }";

#[test]
fn types_and_lines_are_read() {
    for format in ["zlib", "zstd"] {
        let Some(elf) = compressed(format) else {
            continue;
        };
        assert!(
            DwarfSections::locate(&elf)
                .unwrap()
                .iter()
                .any(|section| section.format != SectionFormat::Plain)
        );
        assert!(matches!(
            DwarfSections::from_elf(&elf),
            Err(TypeError::Compressed { .. })
        ));
        let plain = inflated(&elf).unwrap();
        let sections = DwarfSections::from_elf(&plain).unwrap();
        assert!(
            sections
                .line_address(&SourceLine {
                    file: "a.c",
                    line: 3,
                    column: None
                })
                .is_some()
        );
        let mut types = TypeStore::new(Arch::X86_64);
        types.add_dwarf(Dwarf::new(sections).unwrap()).unwrap();
        let found = types.require(NameKind::Struct, "in").unwrap();
        assert_eq!(types.path(found, "name[3]").unwrap().byte_offset(), 7);
        assert_eq!(
            inflated(&plain).unwrap(),
            plain,
            "{format}: it has nothing to inflate any more"
        );
    }
}

/// Builds a program with compressed debug information; prints a note and returns `None` without the
/// tools for that.
fn compressed(format: &str) -> Option<Vec<u8>> {
    let elf = gcc(PROGRAM, &["-g"])?;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.out");
    std::fs::write(&file, elf).unwrap();
    let tool = testkit::command("objcopy")
        .arg(format!("--compress-debug-sections={format}"))
        .arg(&file)
        .status();
    if tool.is_ok_and(|status| status.success()) {
        return Some(std::fs::read(&file).unwrap());
    }
    testkit::kernel::skip_if_permitted(
        "objcopy",
        &format!("no objcopy on this machine that knows {format}"),
    );
    None
}

/// Returns the byte offset of the compression header of the first compressed section.
fn header(elf: &[u8]) -> usize {
    let sections = DwarfSections::locate(elf).unwrap();
    let first = sections
        .iter()
        .find(|section| section.format != SectionFormat::Plain)
        .unwrap();
    first.data.as_ptr() as usize - elf.as_ptr() as usize - 24
}

#[test]
fn a_claim_is_held_against_the_limits_and_the_stream_against_its_claim() {
    for format in ["zlib", "zstd"] {
        let Some(elf) = compressed(format) else {
            continue;
        };
        let at = header(&elf) + 8;
        let size = u64::from_le_bytes(elf[at..at + 8].try_into().unwrap());
        let stating = |size: u64| {
            let mut elf = elf.clone();
            elf[at..at + 8].copy_from_slice(&size.to_le_bytes());
            inflated(&elf).map(|plain| plain.len())
        };
        assert!(stating(size).is_ok());
        for other in [0, size - 1, size + 1] {
            assert!(
                matches!(stating(other), Err(TypeError::Inflate { .. })),
                "{format} {other}"
            );
        }
        for other in [1 << 20, 1 << 34, u64::MAX] {
            assert!(
                matches!(stating(other), Err(TypeError::InflatesTooMuch { .. })),
                "{format} {other}"
            );
        }
    }
}

#[test]
fn inflated_bytes_of_one_file_are_bounded_in_total() {
    let section = DebugSection {
        name: ".debug_str",
        data: &[0; 1 << 14],
        format: SectionFormat::Zstd,
        size: 1 << 20,
    };
    // The claims count, even if the streams are broken.
    let mut budget = InflateBudget::for_file(1 << 14);
    let states = |budget: &mut InflateBudget| inflate(&section, budget).unwrap_err().to_string();
    assert!(
        states(&mut budget).contains("does not inflate to 0x100000 bytes as its header states")
    );
    let refused = states(&mut budget);
    assert!(
        refused.contains("0x4000 bytes become 0x100000 when inflated, expected at most 0x40000"),
        "{refused}"
    );
}
