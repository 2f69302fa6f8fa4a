//! Functions without symbols, and their returns.

use elf::symbols::Functions;
use elf::{Code, CodePlace, ElfImage, ElfVaddr, PlaceFault, ProbePoint};

use super::{SOURCE, build};

/// A file without symbols still has its unwind information; a file with neither is refused.
#[test]
fn a_stripped_program_s_functions_are_known_by_its_unwind_information() {
    let Some((_folder, program)) = build(SOURCE, &["-O2"]) else {
        return;
    };
    let bytes = std::fs::read(&program).unwrap();
    let image = ElfImage::parse(&bytes).unwrap();
    let functions = Functions::read(&image, None);
    let code = Code::with_functions(&image, &image, &functions);
    let mixed = functions.named("mixed").next().unwrap();
    let places = || (0..mixed.size).map(|within| ElfVaddr(mixed.vaddr.0 + within));
    let wanted: Vec<_> = places()
        .map(|vaddr| code.address(vaddr, ProbePoint::Within(0)))
        .collect();
    let none = Functions::default();
    let stripped = Code::with_functions(&image, &image, &none);
    assert_eq!(
        places()
            .map(|vaddr| stripped.address(vaddr, ProbePoint::Within(0)))
            .collect::<Vec<_>>(),
        wanted
    );
    let flags = [
        "-O2",
        "-fno-asynchronous-unwind-tables",
        "-fno-unwind-tables",
    ];
    let Some((_folder, program)) = build(SOURCE, &flags) else {
        return;
    };
    let bytes = std::fs::read(&program).unwrap();
    let image = ElfImage::parse(&bytes).unwrap();
    let functions = Functions::read(&image, None);
    let vaddr = functions.named("mixed").next().unwrap().vaddr;
    let stripped = Code::with_functions(&image, &image, &none);
    assert_eq!(
        stripped.address(vaddr, ProbePoint::Within(0)),
        Err(PlaceFault::NoFunction { vaddr })
    );
    let message = PlaceFault::NoFunction { vaddr }.to_string();
    assert!(
        message.contains("can't be verified") && message.contains(&vaddr.to_string()),
        "{message}"
    );
}

/// Returns the range of a file's `.eh_frame_hdr`: its program header of the type `PT_GNU_EH_FRAME`
/// (elf(5)).
fn unwind_table(file: &[u8]) -> std::ops::Range<usize> {
    let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    let count = usize::from(u16::from_le_bytes(file[56..58].try_into().unwrap()));
    let mut headers = (0..count).map(|index| number(32) + index * 56);
    let header = headers
        .find(|&at| file[at..at + 4] == 0x6474_e550_u32.to_le_bytes())
        .unwrap();
    number(header + 8)..number(header + 8) + number(header + 32)
}

/// A table of unwind information that leads anywhere does no harm: each of its words is set to
/// wrong values. (Found by fuzzing: an entry that lies before all entries.)
#[test]
fn unwind_information_may_say_anything() {
    let Some((_folder, program)) = build(SOURCE, &["-O2"]) else {
        return;
    };
    let good = std::fs::read(&program).unwrap();
    let image = ElfImage::parse(&good).unwrap();
    let mixed = Functions::read(&image, None)
        .named("mixed")
        .next()
        .unwrap()
        .vaddr;
    let none = Functions::default();
    for at in unwind_table(&good).step_by(4) {
        for word in [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
            let mut bytes = good.clone();
            bytes[at..][..4].copy_from_slice(&word.to_le_bytes());
            let image = ElfImage::parse(&bytes).unwrap();
            let code = Code::with_functions(&image, &image, &none);
            // It may still be found there, or not; `ProbePoint::Return` reads the entry's rows, too.
            let _ = (
                code.address(mixed, ProbePoint::Within(0)),
                code.address(mixed, ProbePoint::Return),
            );
        }
    }
}

/// A return probe replaces the top of the stack when its place is hit.
#[test]
fn a_return_is_probed_at_entries_only() {
    let Some((_folder, program)) = build(SOURCE, &["-O0"]) else {
        return;
    };
    let bytes = std::fs::read(&program).unwrap();
    let image = ElfImage::parse(&bytes).unwrap();
    let functions = Functions::read(&image, None);
    let code = Code::with_functions(&image, &image, &functions);
    for name in ["mixed", "checked", "rare", "main"] {
        let function = functions.named(name).next().unwrap();
        assert_eq!(
            code.function(function, ProbePoint::Return),
            Ok(CodePlace::unverified(function.offset)),
            "{name}"
        );
        // Behind `endbr64; push rbp; mov rbp, rsp`, the first of which may be missing.
        let inside = (8..24).map(|within| ElfVaddr(function.vaddr.0 + within));
        let inside: Vec<_> = inside
            .filter(|&vaddr| code.address(vaddr, ProbePoint::Within(0)).is_ok())
            .collect();
        assert!(!inside.is_empty(), "{name}");
        for vaddr in inside {
            assert_eq!(
                code.address(vaddr, ProbePoint::Return),
                Err(PlaceFault::NotEntry { vaddr }),
                "{name}"
            );
        }
    }
    // The compiler decides whether there are such parts.
    let Some((_folder, program)) = build(SOURCE, &["-O2"]) else {
        return;
    };
    let bytes = std::fs::read(&program).unwrap();
    let image = ElfImage::parse(&bytes).unwrap();
    let functions = Functions::read(&image, None);
    let code = Code::with_functions(&image, &image, &functions);
    for part in functions
        .all()
        .iter()
        .filter(|function| function.name.ends_with(".cold"))
    {
        let first = code.function(part, ProbePoint::Within(0));
        assert!(first.is_ok(), "{}: {first:?}", part.name);
        if &*part.name == "checked.cold" {
            assert_eq!(
                code.function(part, ProbePoint::Return),
                Err(PlaceFault::NotEntry { vaddr: part.vaddr })
            );
        }
    }
}

/// A symbol table may say anything: that a function begins in the middle of another one's instruction, for instance.
#[test]
fn a_function_within_another_one_begins_where_an_instruction_does() {
    const NESTED: &str = r#"
__asm__(".text\n.type outer,@function\nouter: mov $0x90909090, %eax\n"
        ".type inner,@function\ninner: add $1, %eax\n ret\n.size inner, .-inner\n.size outer, .-outer\n"
        ".type wrong,@function\n.set wrong, outer+2\n.size wrong, 3\n");
int main(void) { return 0; }
"#;
    let Some((_folder, program)) = build(NESTED, &["-O1"]) else {
        return;
    };
    let bytes = std::fs::read(&program).unwrap();
    let image = ElfImage::parse(&bytes).unwrap();
    let functions = Functions::read(&image, None);
    let code = Code::with_functions(&image, &image, &functions);
    let first =
        |name: &str| code.function(functions.named(name).next().unwrap(), ProbePoint::Within(0));
    assert!(first("outer").is_ok() && first("inner").is_ok());
    let outer = functions.named("outer").next().unwrap().vaddr.0;
    let (before, after) = (ElfVaddr(outer), Some(ElfVaddr(outer + 5)));
    assert_eq!(
        first("wrong"),
        Err(PlaceFault::Inside {
            vaddr: ElfVaddr(outer + 2),
            before,
            after
        })
    );
}
