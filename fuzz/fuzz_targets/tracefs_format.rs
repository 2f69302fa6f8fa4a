//! Any text as the format of a kernel tracepoint.
#![no_main]

use dptrace_fuzz::within;
use kernel_text::tracefs::TracepointFormat;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let format = match within(text.len(), 64, || TracepointFormat::parse(text)) {
        Ok(format) => format,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(!format.name.is_empty() && format.fields.len() <= text.lines().count());
    for field in &format.fields {
        assert!(
            format
                .field(&field.name)
                .is_some_and(|found| found.name == field.name)
        );
        let _ = field.element_size();
    }
    assert_eq!(
        format.own_fields().count() + format.fields.iter().filter(|f| f.is_common()).count(),
        format.fields.len()
    );
});
