//! Any text as what describes a capture.
#![no_main]

use capture::{Meta, Reader};
use dptrace_fuzz::within;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    within(text.len(), 64, || {
        let Ok(reader) = Reader::open(&text.as_bytes().to_vec(), None, None) else {
            return;
        };
        reader.lcore_threads();
        // Written and read again, it is the same.
        let again = reader.meta().to_json().expect("all of it is JSON");
        let again: Meta = serde_json::from_str(&again).expect("it is ours");
        assert_eq!(&again, reader.meta());
    });
});
