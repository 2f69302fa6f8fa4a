//! ELF files from bytes: identification, errors, and the functions in them.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod common;

use common::{AARCH64, DATA, ET_DYN, ET_EXEC, ElfBuilder, TEXT, note, raw_note};
use elf::symbols::{Function, Functions};
use elf::{ElfImage, ElfKind};
use elf::{ElfVaddr, FileOffset};
use text::patterns::NamePattern;
use uapi::Arch;

const FUNC: u8 = 2;
const OBJECT: u8 = 1;
const IFUNC: u8 = 10;

fn error(bytes: &[u8]) -> String {
    ElfImage::parse(bytes).unwrap_err().to_string()
}

/// Returns a good file with some of its bytes changed.
fn changed(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = ElfBuilder::default().build();
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}

#[test]
fn files_that_are_no_program_of_ours() {
    assert_eq!(
        error(b""),
        "not an ELF file: it starts with no bytes, expected 7f 45 4c 46"
    );
    assert_eq!(
        error(b"PK\x03\x04zip"),
        "not an ELF file: it starts with 50 4b 03 04, expected 7f 45 4c 46"
    );
    let script = b"#!/usr/bin/env python3 -u\nprint(1)\n";
    let wanted =
        "a script run by /usr/bin/env python3 -u, not an ELF file: look at the interpreter instead";
    assert_eq!(error(script), wanted);
    assert_eq!(
        error(b"#!"),
        "a script run by nothing, not an ELF file: look at the interpreter instead"
    );
    let wanted = "truncated: the file header at 0x0 needs 0x40 bytes and the file has 0x4";
    assert_eq!(error(b"\x7fELF"), wanted);
    let wanted = "a 32-bit ELF file (machine x86-64): only 64-bit programs can be traced";
    assert_eq!(error(&changed(4, &[1])), wanted);
    let wanted = "an ELF file for RISC-V: expected x86-64 or aarch64, little-endian";
    assert_eq!(error(&changed(18, &[243, 0])), wanted);
    let wanted = "an ELF file for big-endian S/390: expected x86-64 or aarch64, little-endian";
    assert_eq!(
        error(&changed(5, &[2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 22])),
        wanted
    );
    let wanted = "an ELF file of type core dump (CORE): expected an executable or a shared library";
    assert_eq!(error(&changed(16, &[4, 0])), wanted);
}

#[test]
fn truncated_files() {
    let file = ElfBuilder::default().build();
    assert!(
        error(&file[..file.len() - 1]).starts_with("truncated: the section header table at 0x")
    );
    assert!(
        error(&file[..100])
            .starts_with("truncated: the program header table at 0x40 needs 0xa8 bytes")
    );
    let wanted = "truncated: the program header table at 0xffffffffffffffff needs 0xa8 bytes";
    assert!(error(&changed(32, &[0xff; 8])).starts_with(wanted));
}

#[test]
fn the_kind_of_a_file_is_recognised() {
    let check = |machine, kind, arch, elf_kind| {
        let file = ElfBuilder {
            machine,
            kind,
            ..ElfBuilder::default()
        }
        .build();
        let image = ElfImage::parse(&file).unwrap();
        assert_eq!((image.arch(), image.kind()), (arch, elf_kind));
        assert_eq!(image.build_id(), None);
        assert_eq!(image.debug_link(), None);
    };
    check(
        common::X86_64,
        ET_DYN,
        Arch::X86_64,
        ElfKind::PositionIndependent,
    );
    check(AARCH64, ET_EXEC, Arch::Aarch64, ElfKind::Fixed);
}

#[test]
fn addresses() {
    let file = ElfBuilder::default().build();
    let image = ElfImage::parse(&file).unwrap();
    let map = image.address_map();
    assert_eq!(map.to_offset(ElfVaddr(TEXT + 5)), Ok(FileOffset(0x1005)));
    assert_eq!(map.to_vaddr(FileOffset(0x2004)), Ok(ElfVaddr(DATA + 4)));
    assert_eq!(map.segments().len(), 2);
    let message = map
        .to_offset(ElfVaddr(DATA + 0x1800))
        .unwrap_err()
        .to_string();
    assert_eq!(
        message,
        "the virtual address 0x24800 lies in zero-filled memory that the file has no bytes for"
    );
    let message = map.to_offset(ElfVaddr(1)).unwrap_err().to_string();
    assert_eq!(message, "no loadable segment holds the virtual address 0x1");
}

#[test]
fn names_known_to_others() {
    let debug_link = [b"prog.debug\0\0".as_slice(), &0xcbf4_3926_u32.to_le_bytes()].concat();
    let notes = [
        note("p", "n", "", TEXT, 0, 0),
        raw_note(b"GNU\0", 3, &[1, 2, 0xab]),
    ]
    .concat();
    let file = ElfBuilder {
        notes,
        debug_link,
        ..ElfBuilder::default()
    }
    .build();
    let image = ElfImage::parse(&file).unwrap();
    assert_eq!(image.build_id().unwrap().to_string(), "0102ab");
    let link = image.debug_link().unwrap();
    assert_eq!((link.name.as_str(), link.crc), ("prog.debug", 0xcbf4_3926));
    // The check value of CRC-32 as the catalogues give it.
    assert!(link.matches(b"123456789"));
    assert!(!link.matches(b"12345678"));
}

#[test]
fn debug_links_that_lead_elsewhere_are_not_taken() {
    for name in ["../x", "/etc/passwd", "", ".."] {
        let mut debug_link = name.as_bytes().to_vec();
        debug_link.push(0);
        debug_link.resize(debug_link.len().next_multiple_of(4) + 4, 0);
        let file = ElfBuilder {
            debug_link,
            ..ElfBuilder::default()
        }
        .build();
        assert_eq!(ElfImage::parse(&file).unwrap().debug_link(), None, "{name}");
    }
}

fn with_symbols(symbols: Vec<common::Symbol<'_>>) -> Vec<u8> {
    ElfBuilder {
        symbols,
        ..ElfBuilder::default()
    }
    .build()
}

#[test]
fn functions_of_both_files() {
    let file = with_symbols(vec![
        ("main", TEXT + 0x20, FUNC, true, 8),
        ("alias", TEXT + 0x20, FUNC, true, 8),
        ("table", DATA, OBJECT, true, 8),
        ("gone", 0x10, FUNC, true, 8),
        ("memcpy", TEXT + 0x40, IFUNC, true, 8),
    ]);
    let debug = with_symbols(vec![
        ("_ZN4spdk4openEi", TEXT + 0x10, FUNC, false, 4),
        ("main", TEXT + 0x20, FUNC, true, 8),
    ]);
    let (image, debug) = (
        ElfImage::parse(&file).unwrap(),
        ElfImage::parse(&debug).unwrap(),
    );
    let functions = Functions::read(&image, Some(&debug));
    let shown: Vec<(u64, &str)> = functions
        .all()
        .iter()
        .map(|f| (f.offset.0, &*f.name))
        .collect();
    assert_eq!(
        shown,
        [
            (0x1010, "_ZN4spdk4openEi"),
            (0x1020, "alias"),
            (0x1020, "main"),
            (0x1040, "memcpy")
        ]
    );
    assert_eq!(functions.skipped(), 1);
    assert!(functions.all()[3].indirect && !functions.all()[2].indirect);
    assert_eq!(functions.all()[0].display_name(), "spdk::open(int)");
    let names =
        |found: Vec<&Function<'_>>| found.iter().map(|f| f.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(functions.named("main").collect()), ["main"]);
    assert_eq!(
        names(functions.named("spdk::open(int)").collect()),
        ["_ZN4spdk4openEi"]
    );
    let pattern = |text| NamePattern::parse(text).unwrap();
    assert_eq!(
        names(functions.matching(&pattern("spdk::*")).collect()),
        ["_ZN4spdk4openEi"]
    );
    assert_eq!(
        names(functions.matching(&pattern("*a*")).collect()),
        ["alias", "main"]
    );
}
