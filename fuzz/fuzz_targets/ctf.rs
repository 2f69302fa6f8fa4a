//! Any bytes as a folder of the Common Trace Format: as the description (up to two zeros) with the stream behind it, and as the events
//! of a stream that a description of every type describes.
#![no_main]

use ctf::{Form, MergedStreams, Metadata, Stream, Writer};
use dptrace_fuzz::{within, within_more};
use libfuzzer_sys::fuzz_target;

/// A description with every type that DPDK writes.
const DESCRIPTION: &str = r#"/* CTF 1.8 */
typealias integer {size = 8; base = x;} := uint8_t;
typealias integer {size = 16; base = x;} := uint16_t;
typealias integer {size = 32; base = x;} := uint32_t;
typealias integer {size = 64; signed = true;} := int64_t;
typealias integer {size = 8; signed = false; encoding = ASCII; } := string_bounded_t;
typealias floating_point { exp_dig = 8; mant_dig = 24; } := float;
typealias floating_point { exp_dig = 11; mant_dig = 53; } := double;
trace { major = 1; minor = 8; uuid = "00112233-4455-6677-8899-aabbccddeeff"; byte_order = le;
    packet.header := struct { uint32_t magic; uint8_t uuid[16]; }; };
env { dpdk_version = "DPDK 9"; };
clock { name = "dpdk"; freq = 3000000000; offset_s = 100; offset = 1500000000; };
typealias integer { size = 48; align = 1; signed = false; map = clock.dpdk.value; } := uint48_clock_dpdk_t;
stream { packet.context := struct { uint32_t cpu_id; string_bounded_t name[32]; };
    event.header := struct { uint48_clock_dpdk_t timestamp; uint16_t id; } align(64); };
event { id = 1; name = "all"; fields := struct {
    int64_t down; float f; double d; string_bounded_t s[4]; uint8_t blob[2]; }; };
event { id = 0; name = "void"; fields := struct { }; };
"#;
/// The most that an event's line is of its bytes: a field's name and a number for each.
const LINE: usize = 256;

fn head() -> Vec<u8> {
    let uuid = (0..16_u8).map(|nth| nth * 0x11);
    let mut head: Vec<u8> = 0xc1fc_1fc1_u32
        .to_le_bytes()
        .into_iter()
        .chain(uuid)
        .collect();
    head.resize(56, b'w');
    head
}

/// All events of the streams in one form, and how many there were.
fn written(metadata: &Metadata, streams: &[&[u8]], form: Form) -> (String, usize) {
    let streams = streams
        .iter()
        .filter_map(|bytes| Stream::new(metadata, *bytes).ok())
        .collect();
    let mut merged = MergedStreams::new(streams);
    let (mut out, mut writer, mut count) = (Vec::new(), Writer::new(form), 0);
    while let Some((nth, event)) = merged.next() {
        writer.event(&mut out, merged.streams()[nth].head(), &event);
        count += 1;
    }
    (String::from_utf8(out).expect("text"), count)
}

fuzz_target!(|data: &[u8]| {
    let end = data
        .windows(2)
        .position(|pair| pair == [0, 0])
        .unwrap_or(data.len());
    let (description, stream) = data.split_at(end);
    if let Ok(metadata) = within(description.len(), 64, || Metadata::parse(description)) {
        // Kinds that have many fields, and events without bytes of their own: of these a stream has as many as fit.
        let _ = Stream::new(&metadata, stream).map(|events| events.take(1_000).count());
    }
    let metadata = Metadata::parse(DESCRIPTION.as_bytes()).expect("it is one");
    let stream = [head(), data.to_vec()].concat();
    let streams = [&stream[..], &stream[..stream.len() / 2]];
    let (text, count) = within_more(stream.len(), LINE, 1 << 16, || {
        written(&metadata, &streams, Form::Text)
    });
    assert!(count <= 2 * stream.len() / 8 && text.lines().count() == count);
    assert!(
        !text.contains(|c: char| c.is_control() && c != '\n'),
        "{text:?}"
    );
    let (lines, of_json) = written(&metadata, &streams, Form::Json);
    assert_eq!(of_json, count);
    for line in lines.lines() {
        let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert!(
            event["time_ns"].is_i64() && event["event"].is_string() && event["fields"].is_object(),
            "{line}"
        );
    }
});
