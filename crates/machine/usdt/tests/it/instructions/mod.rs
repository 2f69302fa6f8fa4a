//! Places of real code where a breakpoint may stand, with `objdump` as the witness.
#![cfg_attr(
    target_arch = "x86_64",
    expect(clippy::unwrap_used, reason = "a test that can't go on fails")
)]
#![cfg(target_arch = "x86_64")]

mod functions;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use elf::symbols::Functions;
use elf::{Code, CodePlace, ElfImage, ElfVaddr, FileOffset, PlaceFault, ProbePoint};
use tempfile::TempDir;
use usdt::{NoteFault, UsdtError, UsdtProbes};

/// Functions with short and long instructions, a loop, a table of jumps, floating point, and one that is left early in a
/// part that compilers move away.
const SOURCE: &str = r"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
volatile uint64_t sink;
__attribute__((noinline)) uint64_t mixed(uint64_t n, double d) {
    uint64_t sum = 0x1122334455667788;
    for (uint64_t i = 0; i < n; i++)
        switch (i % 11) {
        case 0: sum += i; break;
        case 1: sum ^= 0x90909090; break;
        case 2: sum *= 3; break;
        case 3: sum -= (uint64_t)(d * (double)i); break;
        case 5: sum = (sum << 7) | (sum >> 57); break;
        case 7: sink = sum; break;
        case 9: sum |= 0x9090909090909090; break;
        default: sum++; break;
        }
    return sum;
}
__attribute__((noinline, cold)) void rare(const char *text) { sink = strlen(text); abort(); }
__attribute__((noinline)) uint64_t checked(uint64_t n, char **all) {
    char room[256];
    memset(room, (int)n, sizeof room);
    if (__builtin_expect(n > 1000, 0)) {
        for (uint64_t i = 0; i < n; i++) sink += (uint64_t)room[i & 255];
        rare(all[0]);
    }
    return (uint64_t)room[n & 255] + mixed(n, 1.5);
}
int main(int argc, char **argv) { return (int)(mixed((uint64_t)argc, 2.0) + checked((uint64_t)argc, argv)); }
";

/// Builds a program with the machine's compiler; `None` without one.
fn build(source: &str, flags: &[&str]) -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let (file, program) = (
        folder.path().join("program.c"),
        folder.path().join("program"),
    );
    std::fs::write(&file, source).unwrap();
    let done = testkit::command("cc")
        .args(flags)
        .arg("-o")
        .args([&program, &file])
        .output();
    let Ok(done) = done else {
        testkit::kernel::skip_if_permitted("gcc", "no compiler here");
        return None;
    };
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    Some((folder, program))
}

/// Returns the addresses at which instructions begin, from `objdump`.
fn listed(program: &Path) -> Option<BTreeSet<u64>> {
    let output = testkit::command("objdump")
        .arg("-d")
        .arg(program)
        .env("LC_ALL", "C")
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter_map(|line| {
        let (address, rest) = line.trim_start().split_once(":\t")?;
        // A line that has only bytes continues the instruction of the line before.
        rest.contains('\t')
            .then(|| u64::from_str_radix(address, 16).ok())
            .flatten()
    });
    Some(lines.collect())
}

/// Compares each byte of some functions with the listing.
fn compare(program: &Path, names: &[&str]) {
    let bytes = std::fs::read(program).unwrap();
    let image = ElfImage::parse(&bytes).unwrap();
    let functions = Functions::read(&image, None);
    let code = Code::with_functions(&image, &image, &functions);
    let Some(listed) = listed(program) else {
        return testkit::kernel::skip_if_permitted("objdump", "no objdump here");
    };
    for name in names {
        let function = functions
            .named(name)
            .next()
            .unwrap_or_else(|| panic!("no {name}"));
        assert!(function.size > 8, "{name}");
        for within in 0..function.size {
            let vaddr = ElfVaddr(function.vaddr.0 + within);
            let by_name = code.function(function, ProbePoint::Within(within));
            assert_eq!(
                by_name.is_ok(),
                listed.contains(&vaddr.0),
                "{name}+{within}: {by_name:?}"
            );
            assert_eq!(
                by_name,
                code.address(vaddr, ProbePoint::Within(0)),
                "{name}+{within}"
            );
            match by_name {
                Ok(place) => assert_eq!(
                    place.offset(),
                    image.address_map().to_offset(vaddr).unwrap()
                ),
                Err(PlaceFault::Inside { before, after, .. }) => {
                    assert_eq!(
                        Some(&before.0),
                        listed.range(..vaddr.0).next_back(),
                        "{name}+{within}"
                    );
                    let next = listed
                        .range(vaddr.0..)
                        .next()
                        .filter(|&&next| next < function.vaddr.0 + function.size);
                    assert_eq!(after.map(|after| after.0).as_ref(), next, "{name}+{within}");
                }
                Err(other) => panic!("{name}+{within}: {other}"),
            }
        }
    }
}

#[test]
fn every_byte_of_a_function_is_a_place_exactly_where_an_instruction_begins() {
    for flags in [
        &["-O0"][..],
        &["-O2"],
        &[
            "-O2",
            "-fno-asynchronous-unwind-tables",
            "-fcf-protection=full",
        ],
    ] {
        let Some((_folder, program)) = build(SOURCE, flags) else {
            return;
        };
        compare(&program, &["mixed", "checked", "rare", "main"]);
    }
}

/// Hand-made notes: at a `nop` (of one byte and of four), in the middle of `mov`, at another
/// instruction than a `nop`, and at a `nop` in code that no symbol or unwind information names.
#[test]
fn a_probe_s_place_is_a_nop_that_begins_there() {
    const NOTES: &str = r#"
#define NOTE(NAME, PLACE) \
    ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n.4byte 8, 1f-0f, 3\n.asciz \"stapsdt\"\n" \
    "0: .8byte " PLACE ", 0, 0\n.asciz \"test\"\n.asciz \"" NAME "\"\n.asciz \"\"\n1: .balign 4\n.popsection\n"
__asm__(".text\n.type outer,@function\nouter: mov $0x90909090, %eax\nshort: nop\nlong: nopl 0(%rax)\n ret\n"
        ".size outer, .-outer\n hlt\nalone: nop\n hlt\n"
        NOTE("good", "short") NOTE("good", "long") NOTE("alone", "alone") NOTE("inside", "outer+2")
        NOTE("mov", "outer"));
int main(void) { return 0; }
"#;
    let Some((_folder, program)) = build(NOTES, &["-O1", "-no-pie"]) else {
        return;
    };
    let bytes = std::fs::read(&program).unwrap();
    let image = ElfImage::parse(&bytes).unwrap();
    let probes = UsdtProbes::read(&image);
    let places = |name| {
        probes
            .get("test", name)
            .map_or(0, |probe| probe.places.len())
    };
    assert_eq!(
        (
            places("good"),
            places("alone"),
            places("inside"),
            places("mov")
        ),
        (2, 1, 0, 0),
        "{probes:?}"
    );
    let outer = Functions::read(&image, None)
        .named("outer")
        .next()
        .unwrap()
        .vaddr;
    let (inside, after) = (ElfVaddr(outer.0 + 2), Some(ElfVaddr(outer.0 + 5)));
    let wanted = [
        PlaceFault::Inside {
            vaddr: inside,
            before: outer,
            after,
        },
        PlaceFault::NotNop { vaddr: outer },
    ];
    let found: Vec<PlaceFault> = probes
        .faults
        .iter()
        .filter_map(|fault| match fault {
            UsdtError::BrokenNote {
                fault: NoteFault::ProbePlace { fault },
                ..
            } => Some(*fault),
            _ => None,
        })
        .collect();
    assert_eq!((found.as_slice(), probes.broken), (&wanted[..], 2));
}

/// Decoding ends at bytes that are not an instruction, and a function that is too long is not
/// decoded at all.
#[test]
fn data_among_code_ends_what_is_known() {
    const DATA: &str = r#"
__asm__(".text\n.type mixed,@function\nmixed: nop\n jmp 1f\n .byte 0x06, 0x06\n1: nop\n ret\n.size mixed, .-mixed\n"
        ".type endless,@function\n.set endless, mixed+1\n.size endless, 0x7fffffffffff\n");
int main(void) { return 0; }
"#;
    let Some((_folder, program)) = build(DATA, &["-O1"]) else {
        return;
    };
    let bytes = std::fs::read(&program).unwrap();
    let image = ElfImage::parse(&bytes).unwrap();
    let functions = Functions::read(&image, None);
    let named = |name: &'static str| functions.named(name).next().unwrap();
    let mixed = elf::symbols::Function {
        size: 7,
        ..named("mixed").clone()
    };
    let none = Functions::default();
    let code = Code::with_functions(&image, &image, &none);
    let at = |within| code.function(&mixed, ProbePoint::Within(within));
    let vaddr = |within| ElfVaddr(mixed.vaddr.0 + within);
    assert!(at(0).is_ok() && at(1).is_ok());
    assert_eq!(
        at(5),
        Err(PlaceFault::Undecodable {
            vaddr: vaddr(5),
            from: vaddr(3)
        })
    );
    // A size beyond the file is cut to that of the file.
    let far = code.function(named("endless"), ProbePoint::Within(1));
    assert!(matches!(far, Err(PlaceFault::Inside { .. })), "{far:?}");
    let nowhere = ElfVaddr(u64::MAX);
    assert_eq!(
        code.address(nowhere, ProbePoint::Within(1)),
        Err(PlaceFault::NotCode { vaddr: nowhere })
    );
    assert_eq!(CodePlace::unverified(FileOffset(7)).offset(), FileOffset(7));
}
