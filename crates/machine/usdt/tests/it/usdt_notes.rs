//! USDT notes from bytes that the test wrote itself.

use crate::elf_files::{AARCH64, DATA, ET_EXEC, ElfBuilder, NOTES, TEXT, note, raw_note};
use elf::ElfImage;
use elf::notes::NoteFrameFault;
use elf::{ElfVaddr, FileOffset};
use usdt::NoteFault;
use usdt::UsdtError;
use usdt::{MAX_DESCRIBED, ProbeLocation, Semaphore, UsdtProbes};

fn places(probes: &UsdtProbes, name: &str) -> Vec<ProbeLocation> {
    probes.get("spdk", name).unwrap().places.clone()
}

fn fault(notes: &[Vec<u8>]) -> NoteFault {
    let probes = probes_of(notes);
    assert_eq!((probes.probes.len(), probes.broken), (0, 1));
    match probes.faults[0] {
        UsdtError::BrokenNote { fault, .. } => fault,
        ref other => panic!("{other}"),
    }
}

#[test]
fn one_probe_with_everything() {
    let probes = probes_of(&[note(
        "spdk",
        "qpair",
        "8@%rdi -4@-4(%rbp)",
        TEXT + 0x10,
        0,
        DATA + 2,
    )]);
    assert_eq!(probes.probes.len(), 1);
    let place = &places(&probes, "qpair")[0];
    assert_eq!(
        (place.vaddr, place.at.offset()),
        (ElfVaddr(TEXT + 0x10), FileOffset(0x1010))
    );
    assert_eq!(
        place.semaphore,
        Some(Semaphore {
            vaddr: ElfVaddr(DATA + 2),
            offset: FileOffset(0x2002)
        })
    );
    let shown: Vec<String> = place.args.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["u64 @ %rdi", "i32 @ -4(%rbp)"]);
}

#[test]
fn places_are_grouped_in_file_order() {
    let probes = probes_of(&[
        note("spdk", "b", "8@%rdi", TEXT + 0x30, 0, 0),
        note("spdk", "a", "", TEXT + 0x10, 0, 0),
        note("spdk", "b", "8@%rsi", TEXT + 0x20, 0, 0),
        note("other", "b", "", TEXT + 0x40, 0, 0),
    ]);
    let names: Vec<String> = probes
        .probes
        .iter()
        .map(|probe| format!("{}:{}", probe.provider, probe.name))
        .collect();
    assert_eq!(names, ["spdk:b", "spdk:a", "other:b"]);
    let offsets: Vec<u64> = places(&probes, "b")
        .iter()
        .map(|place| place.at.offset().0)
        .collect();
    assert_eq!(offsets, [0x1030, 0x1020]);
}

#[test]
fn prelinked_files_are_corrected() {
    let notes = note(
        "spdk",
        "moved",
        "",
        TEXT - 0x1000 + 0x10,
        0x5000,
        DATA - 0x1000 + 4,
    );
    let bytes = ElfBuilder {
        notes: notes.clone(),
        base: Some(0x6000),
        ..ElfBuilder::default()
    }
    .build();
    let place = &places(
        &UsdtProbes::read(&ElfImage::parse(&bytes).unwrap()),
        "moved",
    )[0];
    assert_eq!(
        (place.vaddr, place.at.offset()),
        (ElfVaddr(TEXT + 0x10), FileOffset(0x1010))
    );
    assert_eq!(place.semaphore.unwrap().vaddr, ElfVaddr(DATA + 4));
    // A note without a base, and a file without the section, are used as they are.
    let notes = note("spdk", "moved", "", TEXT, 0, 0);
    let bytes = ElfBuilder {
        notes,
        base: Some(0x6000),
        ..ElfBuilder::default()
    }
    .build();
    assert_eq!(
        places(
            &UsdtProbes::read(&ElfImage::parse(&bytes).unwrap()),
            "moved"
        )[0]
        .vaddr,
        ElfVaddr(TEXT)
    );
}

#[test]
fn notes_of_a_file_without_sections() {
    let notes = [
        raw_note(b"GNU\0", 3, &[0xab; 20]),
        note("spdk", "kept", "8@%rdi", TEXT, 0, 0),
    ]
    .concat();
    let bytes = ElfBuilder {
        notes,
        sections: false,
        ..ElfBuilder::default()
    }
    .build();
    let image = ElfImage::parse(&bytes).unwrap();
    assert!(!image.has_sections());
    assert_eq!(image.build_id().unwrap().to_string(), "ab".repeat(20));
    let probes = UsdtProbes::read(&image);
    assert_eq!((probes.probes.len(), probes.broken), (1, 0));
}

#[test]
fn aarch64_notes() {
    let notes = note(
        "spdk",
        "arm",
        "8@x0 -4@[sp, 8] 4@[x1, x2, lsl 3]",
        TEXT,
        0,
        0,
    );
    let bytes = ElfBuilder {
        notes,
        machine: AARCH64,
        ..ElfBuilder::default()
    }
    .build();
    let place = &places(&UsdtProbes::read(&ElfImage::parse(&bytes).unwrap()), "arm")[0];
    let shown: Vec<String> = place.args.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        ["u64 @ x0", "i32 @ [sp, 8]", "u32 @ [x1, x2, lsl 3]"]
    );
    assert!(place.args.iter().all(|arg| arg.unreadable().is_none()));
}

#[test]
fn symbols_are_looked_up_in_both_files() {
    let notes = note(
        "spdk",
        "vars",
        "4@counter(%rip) 4@hidden(%rip) 8@.LC0(%rip)",
        TEXT,
        0,
        0,
    );
    let main = ElfBuilder {
        notes,
        symbols: vec![("counter", DATA + 8, 1, true, 4)],
        kind: ET_EXEC,
        ..ElfBuilder::default()
    };
    let debug = ElfBuilder {
        symbols: vec![("hidden", DATA + 16, 1, false, 4)],
        ..ElfBuilder::default()
    };
    let (main, debug) = (main.build(), debug.build());
    let (main, debug) = (
        ElfImage::parse(&main).unwrap(),
        ElfImage::parse(&debug).unwrap(),
    );
    let mut probes = UsdtProbes::read(&main);
    assert_eq!(probes.wanted_symbols().len(), 3);
    probes.resolve(&main, None);
    assert_eq!(probes.wanted_symbols().len(), 2);
    probes.resolve(&main, Some(&debug));
    assert_eq!(
        probes.wanted_symbols().into_iter().collect::<Vec<_>>(),
        [".LC0"]
    );
    let reasons: Vec<bool> = places(&probes, "vars")[0]
        .args
        .iter()
        .map(|arg| arg.unreadable().is_some())
        .collect();
    assert_eq!(reasons, [false, false, true]);
}

#[test]
fn broken_notes_say_why() {
    let with = |descriptor: &[u8]| raw_note(b"stapsdt\0", 3, descriptor);
    let words = [TEXT.to_le_bytes(), [0; 8], [0; 8]].concat();
    let text = |text: &[u8]| with(&[&words, text].concat());
    assert_eq!(
        fault(&[raw_note(b"stapsdt\0", 4, &[0; 40])]),
        NoteFault::Type { found: 4 }
    );
    assert_eq!(
        fault(&[with(&[0; 26])]),
        NoteFault::Descriptor { found: 26 }
    );
    assert_eq!(fault(&[with(&[0; 4])]), NoteFault::Descriptor { found: 4 });
    assert_eq!(
        fault(&[text(b"spdk")]),
        NoteFault::Unterminated { which: "provider" }
    );
    assert_eq!(
        fault(&[text(b"spdk\0name")]),
        NoteFault::Unterminated { which: "name" }
    );
    assert_eq!(
        fault(&[text(b"spdk\0name\08@%rdi")]),
        NoteFault::Unterminated { which: "arguments" }
    );
    assert_eq!(fault(&[text(b"spdk\0\0\0")]), NoteFault::NoName);
    assert_eq!(
        fault(&[text(b"spdk\0na\x1bme\0\0")]),
        NoteFault::NotText { which: "name" }
    );
    assert_eq!(
        fault(&[text(b"\xff\xfe\0name\0\0")]),
        NoteFault::NotText { which: "provider" }
    );
    let many = note("spdk", "x", &"8@%rdi ".repeat(33), TEXT, 0, 0);
    assert_eq!(fault(&[many]), NoteFault::TooManyArguments { limit: 32 });
}

#[test]
fn probes_and_semaphores_in_wrong_places_say_why() {
    let good = |probe, semaphore| note("spdk", "x", "", probe, 0, semaphore);
    assert_eq!(
        fault(&[good(0x10, 0)]),
        NoteFault::ProbeUnmapped {
            vaddr: ElfVaddr(0x10)
        }
    );
    assert_eq!(
        fault(&[good(DATA, 0)]),
        NoteFault::ProbeNotExecutable {
            vaddr: ElfVaddr(DATA)
        }
    );
    assert_eq!(
        fault(&[good(TEXT, 0x10)]),
        NoteFault::SemaphoreUnmapped {
            vaddr: ElfVaddr(0x10)
        }
    );
    // In memory, but not in the file: the kernel has no place to name it by.
    assert_eq!(
        fault(&[good(TEXT, DATA + 0x1000)]),
        NoteFault::SemaphoreUnmapped {
            vaddr: ElfVaddr(DATA + 0x1000)
        }
    );
    assert_eq!(
        fault(&[good(TEXT, TEXT)]),
        NoteFault::SemaphoreNotWritable {
            vaddr: ElfVaddr(TEXT)
        }
    );
}

#[test]
fn one_broken_note_does_not_hide_the_others() {
    let probes = probes_of(&[
        note("spdk", "a", "", TEXT, 0, 0),
        raw_note(b"stapsdt\0", 3, &[0; 4]),
        note("spdk", "b", "", TEXT + 4, 0, 0),
        vec![9, 0, 0],
    ]);
    assert_eq!((probes.probes.len(), probes.broken), (2, 2));
    let first = note("spdk", "a", "", TEXT, 0, 0).len();
    let wanted = format!(
        "the USDT note at {:#x}: its descriptor has 4 bytes, expected at least 27",
        NOTES + first
    );
    assert_eq!(probes.faults[0].to_string(), wanted);
    assert!(
        probes.faults[1]
            .to_string()
            .ends_with("its header is cut short: expected 12 bytes, found 3")
    );
}

#[test]
fn a_note_longer_than_the_section_ends_the_walk() {
    let mut long = note("spdk", "a", "", TEXT, 0, 0);
    long[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    let left = long.len() - 12;
    assert_eq!(
        fault(&[long]),
        NoteFrameFault::Length {
            needed: 8 + u64::from(u32::MAX),
            left
        }
        .into()
    );
}

#[test]
fn all_broken_notes_are_counted_and_some_described() {
    let notes = vec![raw_note(b"stapsdt\0", 3, &[]); MAX_DESCRIBED + 10];
    let probes = probes_of(&notes);
    assert_eq!(
        (probes.broken, probes.faults.len()),
        (MAX_DESCRIBED + 10, MAX_DESCRIBED)
    );
}

#[test]
fn files_without_notes_have_no_probes() {
    assert!(probes_of(&[]).is_empty());
}

/// Returns the probes of a file that has these notes and nothing else.
pub(crate) fn probes_of(notes: &[Vec<u8>]) -> UsdtProbes {
    let bytes = ElfBuilder {
        notes: notes.concat(),
        ..ElfBuilder::default()
    }
    .build();
    UsdtProbes::read(&ElfImage::parse(&bytes).unwrap())
}
