//! Lines of this very file, which is built with debug information.

use typeinfo::{DwarfSections, SourceLine};

#[inline(never)]
fn marked() -> u32 {
    std::hint::black_box(line!())
}

#[inline(never)]
fn another() -> u32 {
    std::hint::black_box(line!())
}

#[test]
fn lines_have_addresses() {
    let elf = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let sections = DwarfSections::from_elf(&elf).unwrap();
    let at = |file: &str, line: u32| {
        sections.line_address(&SourceLine {
            file,
            line,
            column: None,
        })
    };
    // In an optimized program, a function's instructions may belong to its first line.
    let within = |file: &str, line: u32| {
        (line - 1..=line + 1)
            .find_map(|line| at(file, line))
            .unwrap()
    };
    let (first, second) = (
        within("it/lines.rs", marked()),
        within("lines.rs", another()),
    );
    assert_ne!(first, second);
    // The functions are small and adjacent in the source, so their addresses are close.
    assert!(first.abs_diff(second) < 4096, "{first:#x} {second:#x}");
    assert_eq!(at("lines.rs", 100_000), None);
    assert_eq!(at("xlines.rs", marked()), None);
}
