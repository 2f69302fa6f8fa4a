//! Captures that are cut or damaged.

use std::sync::Arc;

use capture::{FORMAT, Meta, Reader, Source};
use proptest::prelude::*;
use spdk_trace::Problem;
use testkit::Era;

use super::{Scene, Seen, meta, open, records};

#[test]
fn a_capture_that_is_cut_is_readable_up_to_the_cut() {
    for era in [Era::A, Era::F] {
        let mut scene = Scene::new(era, 256, 2);
        let (bytes, expected, marks) = scene.capture(12, 40, 2);
        let first = marks[0].0;
        // The owner may differ from that of a follower who went on longer.
        let is_expected = |(lcore, tsc, args, _): &Seen| {
            let from = expected.partition_point(|(_, before, ..)| before < tsc);
            let same = expected[from..].iter().take_while(|(_, at, ..)| at == tsc);
            same.into_iter()
                .any(|(on, _, text, _)| (on, text) == (lcore, args))
        };
        for cut in (first..bytes.len())
            .step_by((bytes.len() - first) / 60)
            .chain([bytes.len()])
        {
            let reader = open(bytes[..cut].to_vec());
            let (read, problems) = records(&reader);
            let sure = marks
                .iter()
                .take_while(|(end, _)| *end <= cut)
                .last()
                .map_or(0, |(_, records)| *records);
            assert!(
                read.len() as u64 >= sure && read.iter().all(is_expected),
                "{era:?} {cut}"
            );
            assert!(read.is_sorted_by_key(|(_, tsc, ..)| *tsc), "{era:?} {cut}");
            let is_whole = reader.ends().next().is_none();
            assert_eq!(problems.is_empty(), is_whole, "{era:?} {cut}: {problems:?}");
            assert!(
                problems
                    .iter()
                    .all(|finding| finding.problem == Problem::CaptureCut),
                "{problems:?}"
            );
        }
        // If it is cut within the header, there is no trace, and that is reported.
        for cut in (8..first).step_by(first / 20) {
            let source: Source = Arc::new(bytes[..cut].to_vec());
            let reader = Reader::open(&meta(), Some(source), None).unwrap();
            assert!(reader.trace().is_err() || records(&reader).0.len() <= expected.len());
        }
    }
}

#[test]
fn bytes_that_are_no_capture_are_refused() {
    for bytes in [&b""[..], b"dpRINGS", b"dpRINGS\x02rest", b"a text"] {
        let source: Source = Arc::new(bytes.to_vec());
        let reader = Reader::open(&meta(), Some(Arc::clone(&source)), Some(source)).unwrap();
        let errors = [
            reader.trace().map(|_| ()).unwrap_err(),
            reader.events().map(|_| ()).unwrap_err(),
        ];
        for (error, file) in errors.iter().zip(["trace.rings", "kernel.events"]) {
            assert!(
                error
                    .to_string()
                    .contains(&format!("{file} can't be read: ")),
                "{error}"
            );
        }
        assert_eq!(reader.ends().count(), 2);
    }
    let error = open(b"dpRINGS\x01".to_vec()).trace().unwrap_err();
    assert!(error.to_string().contains("no trace"), "{error}");
    assert!(Reader::open(&b"{}".to_vec(), None, None).is_err());
    let later = Meta {
        format: FORMAT + 1,
        ..Meta::default()
    }
    .to_json()
    .unwrap()
    .into_bytes();
    let error = Reader::open(&later, None, None).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("newer"), "{error}");
    let mut none = Meta {
        format: FORMAT,
        ..Meta::default()
    };
    none.miss("trace", "the process has no trace file");
    let reader = Reader::open(&none.to_json().unwrap().into_bytes(), None, None).unwrap();
    assert!(
        reader
            .trace()
            .unwrap_err()
            .to_string()
            .contains("no trace file")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Damage is an error or a problem, never a panic.
    #[test]
    fn damage_is_reported(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut scene = Scene::new(Era::F, 64, 2);
        let (mut bytes, ..) = scene.capture(6, 20, 2);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let source: Source = Arc::new(bytes);
        let Ok(reader) = Reader::open(&meta(), Some(source), None) else { return Ok(()) };
        let _ = reader.clock();
        if let Ok(trace) = reader.trace() {
            trace.summary();
        }
    }
}
