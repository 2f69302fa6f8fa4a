//! Debug information for a library that finds lines: accepted from compilers, but not if it refers
//! to one thing many times, or is nested without end.

use crate::common::gcc;
use gimli::{Dwarf, EndianSlice, LittleEndian, SectionId};
use object::{Object as _, ObjectSection as _};
use typeinfo::{LineBounds, TypeError};

/// Hand-made sections: DWARF 4 in the 32-bit format, addresses of 8 bytes.
#[derive(Default)]
struct Made {
    info: Vec<u8>,
    abbrev: Vec<u8>,
    ranges: Vec<u8>,
    line: Vec<u8>,
    strings: Vec<u8>,
}

impl Made {
    fn dwarf(&self) -> Dwarf<EndianSlice<'_, LittleEndian>> {
        let section = |id| match id {
            SectionId::DebugInfo => &self.info[..],
            SectionId::DebugAbbrev => &self.abbrev,
            SectionId::DebugRanges => &self.ranges,
            SectionId::DebugLine => &self.line,
            SectionId::DebugStr => &self.strings,
            _ => &[],
        };
        Dwarf::load(|id| Ok::<_, ()>(EndianSlice::new(section(id), LittleEndian))).unwrap()
    }

    fn check(&self) -> Result<(), TypeError> {
        let mut dwarf = self.dwarf();
        LineBounds::new(&mut dwarf)?.check(&dwarf, 0x1000)
    }

    /// Adds a unit of these entries: `DW_TAG_compile_unit` is the first abbreviation.
    fn unit(&mut self, entries: &[u8]) {
        let body = [&[4, 0, 0, 0, 0, 0, 8][..], entries].concat();
        self.info
            .extend_from_slice(&(body.len() as u32).to_le_bytes());
        self.info.extend_from_slice(&body);
    }
}

/// Abbreviations of a unit at 0x1000 (`DW_AT_low_pc`, `DW_AT_high_pc`), a function there, and
/// inlined ones with children or ranges.
const ABBREVIATIONS: &[u8] = &[
    1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0, 0, //
    2, 0x2e, 1, 0x11, 0x01, 0x12, 0x07, 0, 0, //
    3, 0x1d, 1, 0x11, 0x01, 0x12, 0x07, 0, 0, //
    4, 0x1d, 0, 0x55, 0x17, 0, 0, //
    5, 0x1d, 0, 0x03, 0x0e, 0, 0, //
    6, 0x11, 0, 0x10, 0x17, 0, 0, //
    0,
];

fn entry(number: u8) -> Vec<u8> {
    [
        &[number][..],
        &0x1000_u64.to_le_bytes(),
        &0x100_u64.to_le_bytes(),
    ]
    .concat()
}

fn made() -> Made {
    Made {
        abbrev: ABBREVIATIONS.to_vec(),
        ..Made::default()
    }
}

#[test]
fn compiler_output_is_accepted() {
    let source = "static inline int f(int x) { return x ? f(x - 1) + 1 : 0; } int main(int n, char **v) { return f(n); }";
    for options in [["-g", "-O2"], ["-gdwarf-4", "-O2"], ["-g", "-O0"]] {
        let Some(elf) = gcc(source, &options) else {
            return;
        };
        let file = object::File::parse(&*elf).unwrap();
        let section = |id: SectionId| {
            let data = file
                .section_by_name(id.name())
                .map_or(&[][..], |section| section.data().unwrap());
            Ok::<_, ()>(EndianSlice::new(data, LittleEndian))
        };
        let mut dwarf = Dwarf::load(section).unwrap();
        let mut bounds = LineBounds::new(&mut dwarf).unwrap();
        for section in file
            .sections()
            .filter(|section| section.kind() == object::SectionKind::Text)
        {
            assert_eq!(bounds.check(&dwarf, section.address()), Ok(()));
            assert_eq!(
                bounds.check(&dwarf, section.address() + section.size() / 2),
                Ok(())
            );
        }
    }
}

#[test]
fn inlined_functions_are_not_nested_without_end() {
    let nested = |levels: usize| {
        let mut made = made();
        let inlined: Vec<u8> = entry(3).repeat(levels);
        made.unit(&[entry(1), entry(2), inlined, vec![0; levels + 2]].concat());
        made.check()
    };
    assert_eq!(nested(256), Ok(()));
    for levels in [257, 20_000, 1_000_000] {
        let error = nested(levels).unwrap_err().to_string();
        assert!(
            error.contains("inlined more than 256 levels deep"),
            "{error}"
        );
    }
    // Side by side there may be any number.
    let mut made = made();
    let inlined = [entry(3), vec![0]].concat().repeat(20_000);
    made.unit(&[entry(1), entry(2), inlined, vec![0; 2]].concat());
    assert_eq!(made.check(), Ok(()));
}

#[track_caller]
fn takes_too_much(made: &Made) {
    let error = made.check().unwrap_err().to_string();
    assert!(error.contains("would take many times its size"), "{error}");
}

#[test]
fn one_thing_is_not_referred_to_many_times() {
    // 20,000 functions with the same 20,000 ranges.
    let mut shared = made();
    let range = [0x1000_u64.to_le_bytes(), 0x1010_u64.to_le_bytes()].concat();
    shared.ranges = [range.repeat(20_000), vec![0; 16]].concat();
    let inlined = [4, 0, 0, 0, 0].repeat(20_000);
    shared.unit(&[entry(1), entry(2), inlined, vec![0; 2]].concat());
    takes_too_much(&shared);
    // The same name of 1 MB.
    let mut names = made();
    names.strings = [vec![b'x'; 1 << 20], vec![0]].concat();
    names.unit(
        &[
            entry(1),
            entry(2),
            [5, 0, 0, 0, 0].repeat(20_000),
            vec![0; 2],
        ]
        .concat(),
    );
    takes_too_much(&names);
    // Units that all have the same lines, whose addresses are those of the lines.
    let mut lines = made();
    let header = [
        1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0,
    ];
    let body = [
        &[4, 0][..],
        &(header.len() as u32).to_le_bytes(),
        &header,
        &vec![1; 1 << 20],
    ]
    .concat();
    lines.line = [&(body.len() as u32).to_le_bytes()[..], &body].concat();
    for _ in 0..2000 {
        lines.unit(&[6, 0, 0, 0, 0]);
    }
    takes_too_much(&lines);
}

#[test]
fn abbreviations_are_bounded() {
    // An entry of one byte with 100,000 attributes of no bytes.
    let mut wide = made();
    wide.abbrev = [&[1, 0x11, 0][..], &[3, 0x19].repeat(100_000), &[0, 0, 0]].concat();
    wide.unit(&[1]);
    assert!(
        wide.check()
            .unwrap_err()
            .to_string()
            .contains(".debug_abbrev")
    );
    // Each unit's table begins a little later in the same bytes.
    let mut many = made();
    many.abbrev = [1, 0x11, 0, 0, 0].repeat(10_000);
    for number in 0..10_000_u32 {
        let at = (number * 5).to_le_bytes();
        let body = [&[4, 0][..], &at, &[8, 1]].concat();
        many.info
            .extend_from_slice(&(body.len() as u32).to_le_bytes());
        many.info.extend_from_slice(&body);
    }
    assert!(
        many.check()
            .unwrap_err()
            .to_string()
            .contains("not read many times")
    );
}
