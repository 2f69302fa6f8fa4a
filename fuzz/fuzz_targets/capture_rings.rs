//! Any bytes as the stream of a captured trace: behind the first bytes of a file, and behind the header of a valid trace.
#![no_main]

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use capture::{FORMAT, Reader, RingsWriter, Source};
use dptrace_fuzz::{base, within};
use libfuzzer_sys::fuzz_target;
use spdk_trace::{Follower, Lcore, Ticks};

fn meta() -> Vec<u8> {
    format!("{{\"format\": {FORMAT}}}").into_bytes()
}

/// The beginning of a capture of a small trace.
fn header() -> &'static [u8] {
    static HEADER: OnceLock<Vec<u8>> = OnceLock::new();
    HEADER.get_or_init(|| {
        let file = &base(0).file.bytes;
        let follower = Follower::new(file).expect("it is valid");
        let mut bytes = Vec::new();
        let mut writer = RingsWriter::begin(&mut bytes).expect("memory");
        capture::OwnerSnapshot::begin(file, &follower, &mut writer).expect("memory");
        writer.flush().expect("memory");
        bytes
    })
}

fn check(stream: Vec<u8>) {
    let source: Source = Arc::new(stream);
    let Ok(reader) = Reader::open(&meta(), Some(source), None) else {
        return;
    };
    let _ = reader.clock();
    let Ok(trace) = reader.trace() else { return };
    let lcores: Vec<Lcore> = trace.rings().map(|(lcore, _)| lcore).collect();
    let (mut records, mut last) = (0_u64, Ticks(0));
    trace.for_each(|record| {
        assert!(lcores.contains(&record.lcore));
        records += 1;
        last = last.max(record.tsc);
        ControlFlow::Continue(())
    });
    let summary = trace.summary();
    assert_eq!(
        summary.rings.iter().map(|ring| ring.records).sum::<u64>(),
        records,
        "a second pass reads the same"
    );
}

fuzz_target!(|data: &[u8]| {
    for start in [&b"dpRINGS\x01"[..], header()] {
        let stream = [start, data].concat();
        within(stream.len(), 64, || check(stream));
    }
});
