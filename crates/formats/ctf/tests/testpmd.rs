//! Compares a trace of DPDK's testpmd with the output of babeltrace2, and reads damaged variants of
//! it.

#![expect(clippy::unwrap_used, reason = "a test says what it saw by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use ctf::{Form, MergedStreams, Metadata, Problem, Stream, Writer};

/// Reads the description and the streams of a folder, in the order of their names.
fn read(folder: &Path) -> (Vec<u8>, Vec<Vec<u8>>) {
    let metadata = fs::read(folder.join("metadata")).unwrap();
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let streams = files
        .iter()
        .filter(|path| !path.ends_with("metadata"))
        .map(|path| fs::read(path).unwrap());
    (metadata, streams.collect())
}

fn written(metadata: &Metadata, streams: &[Vec<u8>], form: Form) -> (String, Vec<Problem>) {
    let streams = streams
        .iter()
        .map(|bytes| Stream::new(metadata, bytes.as_slice()).unwrap())
        .collect();
    let mut merged = MergedStreams::new(streams);
    let (mut out, mut writer) = (Vec::new(), Writer::new(form));
    while let Some((nth, event)) = merged.next() {
        writer.event(&mut out, merged.streams()[nth].head(), &event);
    }
    (
        String::from_utf8(out).unwrap(),
        merged
            .streams()
            .iter()
            .filter_map(Stream::problem)
            .collect(),
    )
}

#[test]
fn text_is_that_of_babeltrace2() {
    let Some(data) = testkit::shared_data("ovs/testpmd") else {
        return;
    };
    let folder = data.join("ctf-22.11");
    let (metadata, streams) = read(&folder);
    let metadata = Metadata::parse(&metadata).unwrap();
    let (text, problems) = written(&metadata, &streams, Form::Text);
    assert_eq!(problems, []);
    let expected = fs::read_to_string(data.join("ctf-22.11.babeltrace2.txt")).unwrap();
    for (line, expected) in text.lines().zip(expected.lines()) {
        assert_eq!(line, expected);
    }
    assert_eq!(text.lines().count(), expected.lines().count());
    assert_eq!(
        metadata.env,
        [("dpdk_version", "DPDK 22.11.11"), ("tracer_name", "dpdk")]
            .map(|(a, b)| (a.into(), b.into()))
    );
}

/// A description like DPDK's, with each of its types.
const OWN: &str = r#"/* CTF 1.8 */
typealias integer {size = 8; base = x;} := uint8_t;
typealias integer {size = 16; base = x;} := uint16_t;
typealias integer {size = 32; base = x;} := uint32_t;
typealias integer {size = 16; signed = true;} := int16_t;
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
event { id = 7; name = "a.b"; fields := struct {
    int16_t down; float f; double d; string_bounded_t s[4]; uint8_t blob[2]; }; };
event { id = 0; name = "void"; fields := struct { }; };
"#;

/// Creates a stream of this trace, with these events after its head.
fn stream(cpu: u32, events: &[(u64, u16, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = 0xc1fc_1fc1_u32.to_le_bytes().to_vec();
    bytes.extend((0..16).map(|nth| nth * 0x11));
    bytes.extend(cpu.to_le_bytes());
    bytes.extend(*b"worker\x1b[31m\0");
    bytes.resize(56, 0);
    for (ticks, id, fields) in events {
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend(&ticks.to_le_bytes()[..6]);
        bytes.extend(id.to_le_bytes());
        bytes.extend(fields);
    }
    bytes
}

fn fields() -> Vec<u8> {
    let mut fields = (-2_i16).to_le_bytes().to_vec();
    fields.extend(0.5_f32.to_le_bytes());
    fields.extend(1e300_f64.to_le_bytes());
    fields.extend(*b"a\"\0z\x01\xff");
    fields
}

#[test]
fn every_type_is_read_and_threads_are_merged() {
    let metadata = Metadata::parse(OWN.as_bytes()).unwrap();
    let one = stream(1, &[(0, 0, vec![]), (3_000_000_000, 7, fields())]);
    let two = stream(2, &[(1_500_000_000, 0, vec![])]);
    let (text, problems) = written(&metadata, &[one.clone(), two.clone()], Form::Text);
    assert_eq!(problems, []);
    let head = |cpu| format!(r#"{{ cpu_id = 0x{cpu}, name = "worker\x1b[31m" }}"#);
    let own = r#"{ down = -2, f = 0.5, d = 1e+300, s = "a"", blob = [ [0] = 0x1, [1] = 0xFF ] }"#;
    let expected = format!(
        "[00:01:40.500000000] (+?.?????????) void: {}, {{ }}\n[00:01:41.000000000] (+0.500000000) void: {}, {{ }}\n\
         [00:01:41.500000000] (+0.500000000) a.b: {}, {own}\n",
        head(1),
        head(2),
        head(1)
    );
    assert_eq!(text, expected);
    let (json, _) = written(&metadata, &[one, two], Form::Json);
    let fields = r#""fields":{"down":-2,"f":0.5,"d":1e300,"s":"a\"","blob":[1,255]}}"#;
    let last = format!(
        r#"{{"version":1,"type":"trace.event","time_ns":101500000000,"event":"a.b","cpu":1,"thread":"worker\u001b[31m",{fields}"#
    );
    assert_eq!(json.lines().nth(2), Some(last.as_str()));
}

#[test]
fn cut_or_unknown_parts_are_reported_and_the_rest_is_read() {
    let metadata = Metadata::parse(OWN.as_bytes()).unwrap();
    let whole = stream(1, &[(0, 0, vec![]), (1, 7, fields())]);
    let count = |bytes: &[u8]| {
        let mut stream = Stream::new(&metadata, bytes).unwrap();
        (stream.by_ref().count(), stream.problem())
    };
    assert_eq!(count(&whole), (2, None));
    assert_eq!(
        count(&whole[..whole.len() - 1]),
        (1, Some(Problem::Cut(64)))
    );
    assert_eq!(count(&whole[..66]), (1, Some(Problem::Cut(64))));
    assert_eq!(count(&whole[..56]), (0, None));
    let unknown = stream(1, &[(0, 3, vec![])]);
    assert_eq!(count(&unknown), (0, Some(Problem::UnknownKind(56, 3))));
    for (at, message) in [(0, "it is not a CTF 1.8 stream"), (4, "UUIDs differ")] {
        let mut other = whole.clone();
        other[at] ^= 1;
        let error = Stream::new(&metadata, other.as_slice())
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{error}");
    }
    assert!(Stream::new(&metadata, &whole[..55]).is_err());
}

#[test]
fn descriptions_that_dpdk_does_not_write_are_refused_with_their_line() {
    let refused = |text: &str| Metadata::parse(text.as_bytes()).unwrap_err().to_string();
    for (from, to, expected) in [
        (
            "string_bounded_t s[4]",
            "missing_t s[4]",
            "line 17: the type \"missing_t\", which is not defined before",
        ),
        (
            "uint8_t blob[2]",
            "uint8_t blob[9999999999]",
            "line 17: with the field \"blob\" a structure is longer than 1048576 bytes",
        ),
        (
            "size = 16; base = x",
            "size = 12; base = x",
            "line 3: an integer of 12 bits, which DPDK does not write",
        ),
        (
            "id = 0;",
            "id = 7;",
            "line 18: a second event with the id 7",
        ),
        (
            "freq = 3000000000",
            "freq = 0",
            "line 18: up to there it has no clock with a rate (freq)",
        ),
        (
            "align(64)",
            "align(48)",
            "line 15: an alignment of 48 bits, which DPDK does not write",
        ),
        (
            "env {",
            "callsite {",
            "line 11: a block \"callsite\", which DPDK does not write",
        ),
        (
            "uint16_t id; }",
            "uint16_t id;",
            "line 15: the type \"align\", which is not defined before",
        ),
    ] {
        let error = refused(&OWN.replacen(from, to, 1));
        assert!(error.starts_with(expected), "{error}");
    }
    assert!(refused("").contains("no clock"));
    assert!(
        Metadata::parse(b"\x75\xd1\x1d\x57")
            .unwrap_err()
            .to_string()
            .contains("in packets")
    );
    // Truncated anywhere, it is rejected or lacks only its last kinds, and nothing panics.
    for end in 0..OWN.len() {
        let _ = Metadata::parse(&OWN.as_bytes()[..end]);
    }
}
