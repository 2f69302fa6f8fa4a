//! Any text as what Open vSwitch answers about its PMD threads, and any bytes as the answer's JSON.
#![no_main]

use dptrace_fuzz::within;
use libfuzzer_sys::fuzz_target;
use pmd::{Framer, History, answered_settings, answered_text, explain, parse, telemetry};
use scene::{Activity, BootNanos, Interval};

fuzz_target!(|text: &str| {
    let bytes = text.as_bytes();
    let _ = (
        answered_text(bytes),
        answered_settings(bytes),
        telemetry(bytes),
    );
    // The end of a value does not depend on the pieces in which it comes.
    let whole = Framer::default().end(bytes);
    let mut framer = Framer::default();
    assert_eq!(
        (0..=bytes.len()).find_map(|length| framer.end(&bytes[..length])),
        whole
    );
    let parsed = within(text.len(), 64, || parse(text));
    for section in &parsed.sections {
        let rows = section.milliseconds.as_deref().unwrap_or_default();
        let mut history = History::default();
        // Two answers, the second of which has what is new.
        history.add(&rows[rows.len() / 2..], 1_000);
        history.add(rows, 2_000);
        let interval = Interval {
            from: BootNanos(0),
            to: BootNanos(u64::MAX),
            activity: Activity::Stopped(None),
        };
        let slow = history.slow(0, u64::MAX, 1);
        assert!(slow.is_sorted_by_key(|stretch| stretch.from));
        for stretch in slow {
            assert!(
                stretch.length() > 1 && stretch.from < stretch.to,
                "{stretch:?}"
            );
            explain(&stretch, &[interval], 0, |tid| tid.0.to_string());
        }
        for queue in &section.queues {
            assert!(text.contains(&queue.port));
        }
    }
});
