//! Any bytes as `/proc/PID/maps`.
#![no_main]

use dptrace_fuzz::within;
use kernel_text::maps::ProcMaps;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let maps = match within(text.len(), 64, || ProcMaps::parse(text)) {
        Ok(maps) => maps,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(maps.all().is_sorted_by_key(|mapping| mapping.start));
    let files = maps.code_files();
    assert!(
        files
            .iter()
            .all(|mapping| mapping.permissions.execute && mapping.file().is_some())
    );
    for mapping in maps.all().iter().take(64) {
        assert!(mapping.start <= mapping.end, "{mapping:?}");
        if let Some(found) = maps.at(mapping.start) {
            assert!(
                found.start <= mapping.start && mapping.start < found.end,
                "{found:?}"
            );
        }
        if let Some((of, offset)) = maps.to_file(mapping.start) {
            assert!(
                maps.addresses(of, offset)
                    .any(|address| address == mapping.start),
                "{of:?} at {offset}"
            );
        }
        if let Some(offset) = mapping.to_offset(mapping.start) {
            assert_eq!(
                mapping.to_address(offset),
                Some(mapping.start),
                "{mapping:?}"
            );
        }
    }
});
