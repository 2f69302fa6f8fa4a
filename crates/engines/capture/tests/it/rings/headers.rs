//! Headers of captures, which are bounded.

use capture::{Reader, RingsWriter};
use scene::{Anchor, BootNanos};
use spdk_trace::{FileOffset, Ticks};
use testkit::Era;

use super::{Scene, open, records};

/// Returns the header of a small trace in the form of a capture.
fn header() -> Vec<u8> {
    let mut scene = Scene::new(Era::F, 64, 1);
    scene.capture(1, 4, 1).0
}

fn left_out(reader: &Reader) -> Vec<(&'static str, u64)> {
    reader.left_out().collect()
}

#[test]
fn kept_owners_and_readings_are_bounded() {
    let mut bytes = header();
    let mut writer = RingsWriter::begin(&mut bytes).unwrap();
    let begin = writer.bytes() as usize;
    // Changes outside the owners count all the same: 34 MiB of them.
    for _ in 0..34 {
        writer
            .section(FileOffset(u64::MAX - (1 << 30)), &vec![7; 1 << 20])
            .unwrap();
    }
    for n in 1..=300_000 {
        writer
            .anchor(Anchor {
                ticks: Ticks(1_000 + 2 * n),
                nanos: BootNanos((1 << 40) + n),
                bracket: Ticks(1),
            })
            .unwrap();
    }
    writer.flush().unwrap();
    // The second beginning is no part of it.
    let first = header().len();
    bytes.drain(first..first + begin);
    let reader = open(bytes);
    assert!(reader.ends().next().is_none(), "{:?}", reader.ends().next());
    let all = left_out(&reader);
    let count = |what: &str| {
        all.iter()
            .find(|(of, _)| *of == what)
            .map_or(0, |(_, count)| *count)
    };
    assert!((2..=3).contains(&count("owner change")), "{all:?}");
    assert!(
        (300_000 - (1 << 18)..=300_001 - (1 << 17)).contains(&count("clock reading")),
        "{all:?}"
    );
    assert_eq!(
        reader.clock().unwrap().nanos(Ticks(1_000 + 2 * 299_000)),
        BootNanos((1 << 40) + 299_000)
    );
    assert_eq!(records(&reader).0.len(), records(&open(header())).0.len());
}

#[test]
fn a_header_is_no_longer_than_that_of_a_trace() {
    let mut bytes = Vec::new();
    let mut writer = RingsWriter::begin(&mut bytes).unwrap();
    writer
        .head(1 << 40, FileOffset(0), &vec![1; 33 << 20])
        .unwrap();
    writer.flush().unwrap();
    let error = open(bytes).trace().map(|_| ()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("more of a header than a trace has"),
        "{error}"
    );
}
