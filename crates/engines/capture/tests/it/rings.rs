//! A live trace, captured and read back: it has the same records as a follower gets, even if the
//! capture is cut or damaged.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use capture::{FORMAT, Meta, OwnerSnapshot, Reader, RingHistory, RingsWriter, Source};
use proptest::prelude::*;
use scene::{Anchor, BootNanos};
use spdk_trace::{CopiedSlots, FileOffset, Follower, Lcore, Problem, Record, Ticks};
use testkit::{Era, LiveTrace, Rng, Tpoint, TraceBuilder};

const SHORT: u16 = 64;
const LONG: u16 = 65;

/// Lcore, time, arguments as text, and owner of a record.
type Seen = (u16, u64, String, Option<String>);

fn seen(record: &Record<'_>) -> Seen {
    let args: Vec<_> = record.args.iter().map(|(_, value)| value).collect();
    (
        record.lcore.0,
        record.tsc.0,
        format!("{args:?}"),
        record.owner.map(str::to_owned),
    )
}

/// Trace that is written, captured, and followed at the same time.
struct Scene {
    live: LiveTrace,
    has_owners: bool,
    rng: Rng,
    tsc: u64,
    nanos: u64,
    _folder: tempfile::TempDir,
}

impl Scene {
    fn new(era: Era, slots: usize, lcores: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut trace = TraceBuilder::new(era).slots(slots);
        let has_owners = era.spec().owners.is_some();
        if has_owners {
            trace = trace.owner_count(300);
        }
        trace
            .tpoint(Tpoint::new(SHORT, "SHORT").int("n", 8))
            .tpoint(Tpoint::new(LONG, "LONG").int("n", 8).str("text", 40));
        for lcore in 0..lcores {
            trace.lcore(lcore * 2);
        }
        let live = LiveTrace::create(folder.path().join("trace"), &trace).unwrap();
        Self {
            live,
            has_owners,
            rng: Rng::new(7),
            tsc: 0,
            nanos: 1_000_000_000,
            _folder: folder,
        }
    }

    fn write(&mut self, records: u64, lcores: u32) {
        for _ in 0..records {
            self.tsc += 1 + self.rng.below(3);
            let lcore = 2 * self.rng.below(lcores.into()) as u32;
            let long = self.rng.below(4) == 0;
            let record =
                testkit::Record::new(if long { LONG } else { SHORT }, self.tsc).int(!self.tsc);
            let record = if long {
                record.str(&format!("the record of {}", self.tsc))
            } else {
                record
            };
            let record = if self.has_owners {
                record.owner(256 + (self.tsc % 4) as u16)
            } else {
                record
            };
            self.live.record(lcore, &record).unwrap();
        }
        if self.has_owners {
            let id = 256 + self.rng.below(4) as u16;
            self.live
                .owner(id, 0x30, self.tsc, &format!("owner since {}", self.tsc))
                .unwrap();
        }
    }

    /// Captures the trace over some polls, with this many records between two. Returns the bytes,
    /// the records that a follower got, and for each poll the numbers of bytes and records so far.
    fn capture(
        &mut self,
        polls: u64,
        records: u64,
        lcores: u32,
    ) -> (Vec<u8>, Vec<Seen>, Vec<(usize, u64)>) {
        let mut follower = Follower::new(&self.live.snapshot().bytes).unwrap();
        let of: Vec<Lcore> = follower.rings().map(|(lcore, _)| lcore).collect();
        let mut tail = follower.tail();
        let mut bytes = Vec::new();
        let mut writer = RingsWriter::begin(&mut bytes).unwrap();
        let mut around =
            OwnerSnapshot::begin(&self.live.snapshot().bytes, &follower, &mut writer).unwrap();
        let (mut expected, mut marks, mut come) = (Vec::new(), Vec::new(), 0);
        let mut each = |record: &Record<'_>| {
            expected.push(seen(record));
            ControlFlow::Continue(())
        };
        for _ in 0..polls {
            self.write(records, lcores);
            self.nanos += 30_000_000;
            let mut copied = CopiedSlots::default();
            tail.poll(&self.live.snapshot().bytes, &mut copied).unwrap();
            around
                .refresh(&self.live.snapshot().bytes, &mut writer)
                .unwrap();
            writer.poll(&copied, &of, BootNanos(self.nanos)).unwrap();
            let (ticks, nanos) = (Ticks(self.tsc), BootNanos(self.nanos));
            writer
                .anchor(Anchor {
                    ticks,
                    nanos,
                    bracket: Ticks(1),
                })
                .unwrap();
            come += copied
                .runs()
                .map(|run| run.records(follower.tpoints().continuation_id()).0)
                .sum::<u64>();
            marks.push((writer.bytes() as usize, come));
            follower.take(copied, Duration::from_nanos(self.nanos));
            follower
                .refresh_owners(&self.live.snapshot().bytes)
                .unwrap();
            let _ = follower.give(Duration::from_millis(50), &mut each);
        }
        let _ = follower.give_all(&mut each);
        writer.flush().unwrap();
        (bytes, expected, marks)
    }
}

/// Follows a trace over some polls. Returns its past, all records, and for each poll its time and
/// the number of records so far.
fn past(
    scene: &mut Scene,
    polls: u64,
    most: usize,
    kept: u64,
) -> (RingHistory, Vec<Seen>, Vec<(u64, usize)>) {
    let mut follower = Follower::new(&scene.live.snapshot().bytes).unwrap();
    let of: Vec<Lcore> = follower.rings().map(|(lcore, _)| lcore).collect();
    let mut tail = follower.tail();
    tail.skip(&scene.live.snapshot().bytes).unwrap();
    let around = OwnerSnapshot::read_now(&scene.live.snapshot().bytes, &follower).unwrap();
    let mut past = RingHistory::new(
        around,
        of,
        follower.tpoints().continuation_id(),
        BootNanos(scene.nanos),
        most,
    );
    let (mut expected, mut marks) = (Vec::new(), Vec::new());
    for _ in 0..polls {
        scene.write(20, 3);
        scene.nanos += 30_000_000;
        let mut copied = CopiedSlots::default();
        tail.poll(&scene.live.snapshot().bytes, &mut copied)
            .unwrap();
        past.refresh(&scene.live.snapshot().bytes, |at, owner| {
            follower.change(at, owner);
        })
        .unwrap();
        let oldest = BootNanos(scene.nanos.saturating_sub(kept));
        assert_eq!(
            past.push(&copied, BootNanos(scene.nanos), oldest).unwrap(),
            0
        );
        past.anchor(Anchor {
            ticks: Ticks(scene.tsc),
            nanos: BootNanos(scene.nanos),
            bracket: Ticks(1),
        });
        follower.take(copied, Duration::from_nanos(scene.nanos));
        let _ = follower.give_all(|record| {
            expected.push(seen(record));
            ControlFlow::Continue(())
        });
        marks.push((scene.nanos, expected.len()));
    }
    (past, expected, marks)
}

#[test]
fn a_cut_of_the_past_is_a_capture_of_that_time() {
    for era in [Era::A, Era::F] {
        let mut scene = Scene::new(era, 256, 3);
        scene.write(500, 3);
        let (past, expected, marks) = past(&mut scene, 30, usize::MAX, u64::MAX);
        for (first, last) in [(0, 29), (7, 7), (12, 20), (25, 40)] {
            let at = |index: usize| marks.get(index).map_or(u64::MAX, |(at, _)| *at);
            let cut = past.cut(BootNanos(at(first)), BootNanos(at(last).saturating_sub(1)));
            let mut bytes = Vec::new();
            cut.write(
                &scene.live.snapshot().bytes,
                &mut RingsWriter::begin(&mut bytes).unwrap(),
            )
            .unwrap();
            let reader = open(bytes);
            let (read, problems) = records(&reader);
            // The piece before may have some of it, too.
            let begin = if first < 2 { 0 } else { marks[first - 2].1 };
            let expected = &expected[begin..marks[last.min(29)].1];
            assert_eq!(read.len(), expected.len(), "{era:?} {first}..{last}");
            for (read, expected) in read.iter().zip(expected) {
                assert_eq!(
                    (read.0, read.1, &read.2),
                    (expected.0, expected.1, &expected.2),
                    "{era:?} {first}..{last}"
                );
            }
            // Records are held back when they are read: by then, some have lost their owners to
            // later ones.
            let named = |all: &[Seen]| all.iter().filter(|(.., owner)| owner.is_some()).count();
            assert!(
                2 * named(&read) >= named(expected),
                "{era:?} {first}..{last}"
            );
            assert!(
                problems.is_empty() && cut.records == read.len() as u64,
                "{problems:?}"
            );
            assert!(first == 0 || cut.since == BootNanos(at(first - 1)));
            assert!(cut.until == BootNanos(at(last.min(29))));
            assert_eq!(
                reader.clock().unwrap().nanos(Ticks(scene.tsc)),
                BootNanos(scene.nanos)
            );
        }
    }
}

#[test]
fn the_past_has_its_bounds() {
    let most = 8 << 10;
    let (past, ..) = past(&mut Scene::new(Era::F, 256, 3), 60, most, u64::MAX);
    assert!(
        past.bytes() <= most && past.bytes() > most / 2,
        "{}",
        past.bytes()
    );
    let has = |past: &RingHistory| (past.until().0 - past.since().0) / 30_000_000;
    assert!((2..30).contains(&has(&past)), "{}", has(&past));
    let (past, ..) = self::past(&mut Scene::new(Era::F, 256, 3), 60, usize::MAX, 150_000_000);
    assert_eq!(has(&past), 6);
}

fn meta() -> Vec<u8> {
    Meta {
        format: FORMAT,
        ..Meta::default()
    }
    .to_json()
    .unwrap()
    .into_bytes()
}

fn open(rings: Vec<u8>) -> Reader {
    let source: Source = Arc::new(rings);
    Reader::open(&meta(), Some(source), None).unwrap()
}

fn records(reader: &Reader) -> (Vec<Seen>, spdk_trace::Problems) {
    let mut read = Vec::new();
    let problems = reader.trace().unwrap().for_each(|record| {
        read.push(seen(record));
        ControlFlow::Continue(())
    });
    (read, problems)
}

#[test]
fn a_capture_has_what_whoever_follows_is_given() {
    for era in Era::ALL {
        let mut scene = Scene::new(era, 64, 3);
        scene.write(500, 3);
        let (bytes, expected, marks) = scene.capture(40, 30, 3);
        let reader = open(bytes);
        let (read, problems) = records(&reader);
        assert_eq!(read, expected, "{era:?}");
        assert!(problems.is_empty(), "{era:?}: {problems:?}");
        assert_eq!(read.len() as u64, marks[marks.len() - 1].1, "{era:?}");
        // A second pass returns the same.
        assert_eq!(records(&reader).0, expected);
        assert_eq!(
            reader.clock().unwrap().nanos(Ticks(scene.tsc)),
            BootNanos(scene.nanos)
        );
        assert_eq!(reader.last(), Some(BootNanos(scene.nanos)));
        let trace = reader.trace().unwrap();
        let summary = trace.summary();
        assert_eq!(
            summary.rings.iter().map(|ring| ring.records).sum::<u64>(),
            read.len() as u64
        );
        assert!(trace.common_start() > Ticks(0) && summary.rings.iter().all(|ring| ring.lost == 0));
        // All owners that ever existed, not only the last ones.
        let owners = trace.owners().filter(|(id, _)| *id >= 256).count();
        assert!(
            if scene.has_owners {
                owners > 20
            } else {
                owners == 0
            },
            "{era:?}: {owners} owners"
        );
    }
}

#[test]
fn what_was_overwritten_is_reported() {
    let mut scene = Scene::new(Era::F, 64, 1);
    let (bytes, expected, _) = scene.capture(10, 200, 1);
    let (read, problems) = records(&open(bytes));
    assert_eq!(read, expected);
    let lost = problems.count(Problem::NotCaptured);
    assert!(lost > 9 * 200 - 10 * 64, "{lost}");
}

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

/// Returns the header of a small trace in the form of a capture.
fn header() -> Vec<u8> {
    let mut scene = Scene::new(Era::F, 64, 1);
    scene.capture(1, 4, 1).0
}

fn left_out(reader: &Reader) -> Vec<(&'static str, u64)> {
    reader.left_out().collect()
}

#[test]
fn of_many_owners_and_readings_some_are_kept() {
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
