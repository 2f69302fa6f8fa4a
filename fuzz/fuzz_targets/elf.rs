//! Any bytes as an ELF file: its functions, variables' addresses, build-id, debug link and address map.
#![no_main]

use std::collections::HashSet;

use dptrace_fuzz::within;
use elf::ElfImage;
use elf::symbols::{Functions, SymbolAddresses, demangle};
use libfuzzer_sys::fuzz_target;
use text::patterns::NamePattern;

fn check_functions(image: &ElfImage<'_>) {
    let size = image.data().len();
    let functions = within(size, 64, || Functions::read(image, Some(image)));
    assert!(
        functions
            .all()
            .is_sorted_by(|a, b| (a.offset, &a.name) < (b.offset, &b.name)),
        "sorted, each once"
    );
    for function in functions.all().iter().take(64) {
        assert_eq!(
            image.address_map().to_offset(function.vaddr).ok(),
            Some(function.offset),
            "{function:?}"
        );
        assert!(!function.display_name().is_empty());
        assert!(
            functions
                .named(&function.name)
                .any(|found| found == function),
            "{function:?}"
        );
    }
    if let Ok(all) = NamePattern::parse("*") {
        assert_eq!(functions.matching(&all).count(), functions.all().len());
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(name) = std::str::from_utf8(bytes) {
        let _ = within(bytes.len(), 4096, || demangle(name));
    }
    let image = match within(bytes.len(), 16, || ElfImage::parse(bytes)) {
        Ok(image) => image,
        Err(error) => return assert!(!error.to_string().contains(char::is_control), "{error}"),
    };
    if let Some(id) = image.build_id() {
        assert!(!id.bytes().is_empty() && id.bytes().len() <= 64);
    }
    if let Some(link) = image.debug_link() {
        let _ = link.matches(bytes);
    }
    for segment in image.address_map().segments() {
        if let Ok(offset) = image.address_map().to_offset(segment.vaddr) {
            assert!(image.address_map().to_vaddr(offset).is_ok(), "{segment:?}");
        }
    }
    check_functions(&image);
    let mut addresses = SymbolAddresses::default();
    within(bytes.len(), 16, || {
        addresses.search(&image, &HashSet::from(["main", "counter"]))
    });
    let _ = addresses.get("main");
});
