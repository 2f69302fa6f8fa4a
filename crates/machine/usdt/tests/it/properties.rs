//! Any bytes and any text: no panic, no hang, and written text can be read again.

use crate::elf_files::{DATA, ElfBuilder, NOTES, TEXT, note};
use elf::ElfImage;
use elf::ProcAddr;
use elf::symbols::{Functions, demangle};
use kernel_text::maps::ProcMaps;
use kernel_text::tracefs::TracepointFormat;
use proptest::collection::vec;
use proptest::prelude::*;
use text::patterns::{NamePattern, ProbePattern, nearest};
use uapi::Arch;
use usdt::UsdtProbes;
use usdt::args::{Operand, parse_args};

/// Reads everything in a file.
fn read_everything(bytes: &[u8]) {
    let Ok(image) = ElfImage::parse(bytes) else {
        return;
    };
    let _ = (image.build_id(), image.debug_link());
    let mut probes = UsdtProbes::read(&image);
    probes.resolve(&image, Some(&image));
    for function in Functions::read(&image, Some(&image)).all() {
        let _ = function.display_name();
    }
    for place in probes.probes.iter().flat_map(|probe| &probe.places) {
        assert_eq!(
            image.address_map().to_offset(place.vaddr),
            Ok(place.at.offset())
        );
    }
}

fn real_notes(sections: bool) -> Vec<u8> {
    let notes = [
        note(
            "spdk",
            "nvmf_ctrlr_add_qpair",
            "8@%rdi -4@-20(%rbp) 8@(%rsp,%rax,8)",
            TEXT + 4,
            0x11000,
            DATA,
        ),
        note(
            "spdk",
            "nvmf_ctrlr_add_qpair",
            "8@52+stats(%rip) 8f@%xmm0 1@%ah",
            TEXT + 8,
            0x11000,
            DATA,
        ),
        note("lib", "x", "", TEXT + 12, 0, 0),
    ];
    let symbols = vec![
        ("stats", DATA + 64, 1, true, 8),
        ("_ZN3foo3barEv", TEXT + 4, 2, true, 8),
    ];
    ElfBuilder {
        notes: notes.concat(),
        base: Some(0x11000),
        symbols,
        sections,
        ..ElfBuilder::default()
    }
    .build()
}

/// Makes operand-like text: the pieces that operands are made of, in any order.
fn operand_soup() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "8@",
        "-4@",
        "4f@",
        "1",
        "%rax",
        "%ah",
        "%xmm0",
        "(",
        ")",
        ",",
        "$",
        "-",
        "+",
        "0x1f",
        "sym",
        ".LC0",
        "(%rip)",
        " ",
        "[",
        "]",
        "x0",
        "w3",
        "sp",
        "lsl",
        "#",
        ":lo12:",
        "@GOTPCREL",
        "%fs:",
        "18446744073709551616",
        "é",
        "\t",
    ]);
    vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..300)) {
        read_everything(&bytes);
        read_everything(&[b"\x7fELF\x02\x01\x01".as_slice(), &bytes].concat());
        let _ = ProcMaps::parse(&bytes);
        let text = String::from_utf8_lossy(&bytes);
        let _ = (TracepointFormat::parse(&text), NamePattern::parse(&text), ProbePattern::parse(&text));
        let _ = demangle(&format!("_Z{text}"));
        let _ = demangle(&format!("_R{text}"));
        let _ = nearest(&text, ["query__start", &text], 3);
    }

    #[test]
    fn damaged_files_are_read_without_a_panic(
        sections in any::<bool>(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
        whole in any::<bool>(),
    ) {
        let mut file = real_notes(sections);
        // The code and the data between the headers and the notes do not matter, so the damage is
        // done elsewhere.
        for (index, byte) in changes {
            let at = index.index(232 + file.len() - NOTES);
            let at = if at < 232 { at } else { NOTES + at - 232 };
            file[at] = byte;
        }
        read_everything(if whole { &file } else { &file[..cut.index(file.len())] });
    }

    #[test]
    fn any_arguments_are_read_without_a_panic(soup in operand_soup(), any_text in ".{0,60}") {
        for arch in [Arch::X86_64, Arch::Aarch64] {
            for text in [&soup, &any_text] {
                if let Ok(args) = parse_args(arch, text) {
                    for arg in args {
                        prop_assert!(!arg.to_string().contains(char::is_control));
                    }
                }
            }
        }
    }

    #[test]
    fn arguments_are_read_as_they_were_written(
        offset in any::<i32>(),
        scale in prop::sample::select(vec![1u8, 2, 4, 8]),
        size in prop::sample::select(vec![1u32, 2, 4, 8]),
        signed in any::<bool>(),
        constant in any::<i64>(),
    ) {
        let sign = if signed { "-" } else { "" };
        let text = format!("{sign}{size}@{offset}(%rbp,%rcx,{scale}) {sign}{size}@${constant}");
        let args = parse_args(Arch::X86_64, &text).unwrap();
        let Operand::Memory(memory) = &args[0].operand else { panic!("{text}") };
        prop_assert_eq!(memory.offset, i64::from(offset));
        prop_assert_eq!(1 << memory.index.unwrap().shift, scale);
        prop_assert_eq!(&args[1].operand, &Operand::Constant(constant));
        prop_assert!(args.iter().all(|arg| arg.ty.size == size && arg.ty.signed == signed));
    }

    #[test]
    fn the_way_from_addresses_to_files_and_back(start in 0u64..1 << 40, pages in 1u64..100, offset in 0u64..1 << 40, at in any::<u64>()) {
        let (start, offset, size) = (start << 12, offset << 12, pages << 12);
        let text = format!("{start:x}-{:x} r-xp {offset:08x} fe:01 7 /a b\n", start + size);
        let maps = ProcMaps::parse(text.as_bytes()).unwrap();
        let address = ProcAddr(start + at % size);
        let (mapping, found) = maps.to_file(address).unwrap();
        prop_assert_eq!(found.0, offset + at % size);
        prop_assert_eq!(maps.addresses(mapping, found).collect::<Vec<_>>(), [address]);
    }
}
