//! A file with debug information as the input says (`src/debug_info.rs`), through all that reads such files of live
//! processes: within a second of a processor, and 64 MiB and eight times the file in memory.
#![no_main]

use std::sync::Arc;

use addr2line::Context;
use dptrace_fuzz::debug_info::{CODE, Script, elf};
use dptrace_fuzz::types::ask;
use dptrace_fuzz::{processor_time, within_more};
use elf::ElfImage;
use elf::symbols::Functions;
use gimli::{Dwarf as Sections, EndianSlice, LittleEndian};
use libfuzzer_sys::fuzz_target;
use typeinfo::{
    Arch, Dwarf, DwarfSections, FrameSections, FrameTable, LineBounds, SourceLine, TypeStore,
};
use usdt::UsdtProbes;

/// How long a file may take, in nanoseconds.
const TIME_LIMIT_NS: u64 = 1_000_000_000;
/// Addresses that are looked up: a function's first, and others.
const ADDRESSES: [u64; 4] = [CODE, CODE + 0x10, CODE + 0x31, 0];

fn probes(file: &[u8]) {
    let Ok(image) = ElfImage::parse(file) else {
        return;
    };
    let probes = UsdtProbes::read(&image);
    let _ = (
        probes.wanted_symbols().len(),
        image.build_id(),
        image.debug_link(),
        Functions::read(&image, None),
    );
    let ranges = image.note_ranges();
    assert!(
        ranges
            .iter()
            .map(|range| range.end - range.start)
            .sum::<u64>()
            <= file.len() as u64,
        "{ranges:?}"
    );
}

fn stacks(file: &[u8]) {
    let table =
        FrameSections::find(file).and_then(|sections| FrameTable::<Vec<u8>>::new(&sections).ok());
    if let Some(mut table) = table {
        (0..256).for_each(|at| drop(table.cost(CODE + at)));
    }
}

fn types(file: &[u8]) {
    let Ok(sections) = DwarfSections::from_elf(file) else {
        return;
    };
    let _ = sections.line_address(&SourceLine {
        file: "a.c",
        line: 7,
        column: None,
    });
    let mut types = TypeStore::new(Arch::X86_64);
    if let Ok(source) = Dwarf::new(sections).and_then(|dwarf| types.add_dwarf(dwarf)) {
        ask(&types, source);
    }
}

fn lines(file: &[u8]) {
    let Ok(sections) = DwarfSections::every(file) else {
        return;
    };
    let section = |id: gimli::SectionId| {
        let found = sections.iter().find(|section| section.name == id.name());
        Ok::<_, ()>(EndianSlice::new(
            found.map_or(&[][..], |section| section.data),
            LittleEndian,
        ))
    };
    let Ok(mut dwarf) = Sections::load(section) else {
        return;
    };
    let Ok(mut bounds) = LineBounds::new(&mut dwarf) else {
        return;
    };
    let dwarf = Arc::new(dwarf);
    let Ok(context) = Context::from_arc_dwarf(Arc::clone(&dwarf)) else {
        return;
    };
    for address in ADDRESSES {
        if bounds.check(&dwarf, address).is_err() {
            continue;
        }
        if let Ok(mut frames) = context.find_frames(address).skip_all_loads() {
            while let Ok(Some(_)) = frames.next() {}
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let file = elf(&mut Script(bytes));
    let before = processor_time();
    within_more(file.len(), 8, 64 << 20, || {
        probes(&file);
        stacks(&file);
        if let Ok(plain) = typeinfo::inflated(&file) {
            types(&plain);
            lines(&plain);
        }
    });
    let took = processor_time() - before;
    assert!(
        took <= TIME_LIMIT_NS,
        "{took} ns for a file of {} bytes",
        file.len()
    );
});
