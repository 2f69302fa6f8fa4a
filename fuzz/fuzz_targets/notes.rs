//! Any bytes as the notes of a USDT program, and as a whole ELF file: its probes.
#![no_main]

use dptrace_fuzz::{with_notes, within};
use elf::ElfImage;
use elf::ElfVaddr;
use libfuzzer_sys::fuzz_target;
use usdt::{MAX_DESCRIBED, UsdtProbes};

fn check(file: &[u8]) {
    let Ok(image) = within(file.len(), 16, || ElfImage::parse(file)) else {
        return;
    };
    let found = within(file.len(), 64, || UsdtProbes::read(&image));
    assert_eq!(found.faults.len(), found.broken.min(MAX_DESCRIBED));
    assert!(
        found
            .faults
            .iter()
            .all(|fault| !fault.to_string().is_empty())
    );
    for probe in &found.probes {
        assert!(!probe.places.is_empty(), "{probe:?}");
        assert_eq!(
            found.get(&probe.provider, &probe.name),
            Some(probe),
            "each probe is there once"
        );
        for place in &probe.places {
            assert_eq!(
                image.address_map().to_offset(place.vaddr).ok(),
                Some(place.at.offset()),
                "{place:?}"
            );
            assert_ne!(
                place.semaphore.map(|semaphore| semaphore.vaddr),
                Some(ElfVaddr(0)),
                "{place:?}"
            );
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    check(&with_notes(bytes));
});
