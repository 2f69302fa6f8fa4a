//! Any bytes as the stream of the kernel's events, and as what describes a capture.
#![no_main]

use std::sync::Arc;

use capture::{EventsWriter, FORMAT, Reader, Source};
use dptrace_fuzz::within;
use libfuzzer_sys::fuzz_target;
use scene::BootNanos;

fuzz_target!(|data: &[u8]| {
    let stream = [b"dpKEVTS\x01", data].concat();
    let meta = format!("{{\"format\": {FORMAT}}}").into_bytes();
    within(stream.len(), 64, || {
        let source: Source = Arc::new(stream.clone());
        let Ok(reader) = Reader::open(&meta, None, Some(source)) else {
            return;
        };
        let names = reader.names();
        for (tid, name) in names.all() {
            assert!(name.len() <= 16 && names.name(tid, BootNanos(0)).is_some());
        }
        let Ok(events) = reader.events() else { return };
        let (mut good, mut bad) = (Vec::new(), 0);
        for event in events {
            assert_eq!(bad, 0, "nothing comes behind an error");
            match event {
                Ok(event) => good.push(event),
                Err(_) => bad += 1,
            }
        }
        assert!(good.len() * 32 <= stream.len());
        // Written again, they are the same.
        let mut again = Vec::new();
        let mut writer = EventsWriter::begin(&mut again).expect("memory");
        writer.events(good.iter().copied()).expect("memory");
        writer.flush().expect("memory");
        let source: Source = Arc::new(again);
        let reader = Reader::open(&meta, None, Some(source)).expect("it is ours");
        let mut read = reader
            .events()
            .expect("it has some")
            .map(|event| event.expect("it is ours"))
            .collect::<Vec<_>>();
        good.sort_by_key(|event| event.at);
        read.sort_by_key(|event| event.at);
        assert_eq!(read.len(), good.len());
    });
});
