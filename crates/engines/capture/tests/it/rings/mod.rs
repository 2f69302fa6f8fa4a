//! A live trace, captured and read back: it has the same records as a follower gets, even if the
//! capture is cut or damaged.

mod damage;
mod headers;
mod late_owners;
mod past;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use capture::{FORMAT, Meta, OwnerSnapshot, Reader, RingsWriter, Source};
use scene::{Anchor, BootNanos};
use spdk_trace::{CopiedSlots, Follower, Lcore, Problem, Record, Ticks};
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
fn overwritten_slots_are_reported() {
    let mut scene = Scene::new(Era::F, 64, 1);
    let (bytes, expected, _) = scene.capture(10, 200, 1);
    let (read, problems) = records(&open(bytes));
    assert_eq!(read, expected);
    let lost = problems.count(Problem::NotCaptured);
    assert!(lost > 9 * 200 - 10 * 64, "{lost}");
}
