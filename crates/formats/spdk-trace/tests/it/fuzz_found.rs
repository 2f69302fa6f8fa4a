//! Regression tests for findings of the fuzz targets (fuzz/README.md): the smallest file that shows
//! each.

use std::cell::Cell;
use std::io;
use std::ops::ControlFlow;

use spdk_trace::{Finding, Follower, JsonTrace, Problem, RawTrace, ReadAt};
use testkit::{Era, Record, Tpoint, TraceBuilder, TraceFile};

/// A file like the operating system's: `first`, and `later` from a certain read on. An impossible
/// offset is an error.
struct Changing {
    first: Vec<u8>,
    later: Vec<u8>,
    reads_left: Cell<u32>,
}

impl Changing {
    fn never(bytes: Vec<u8>) -> Self {
        Self {
            first: bytes,
            later: Vec::new(),
            reads_left: Cell::new(u32::MAX),
        }
    }

    fn now(&self) -> &Vec<u8> {
        if self.reads_left.get() > 0 {
            &self.first
        } else {
            &self.later
        }
    }
}

impl ReadAt for Changing {
    fn len(&self) -> u64 {
        ReadAt::len(self.now())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        i64::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        let done = self.now().read_at(buf, offset);
        self.reads_left.set(self.reads_left.get().saturating_sub(1));
        done
    }
}

/// Creates the ring of one lcore, with `slots` slots and `records` plain records.
fn plain(slots: usize, records: u64) -> TraceFile {
    let mut trace = TraceBuilder::new(Era::C).slots(slots);
    trace.tpoint(Tpoint::new(1, "PLAIN"));
    (0..records).for_each(|i| {
        trace.record(0, Record::new(1, 1_000 + i));
    });
    trace.build_file()
}

/// Returns the times of a trace's records, in the order in which they are reported.
fn times(trace: &RawTrace) -> Vec<u64> {
    let mut times = Vec::new();
    trace.for_each(|record| {
        times.push(record.tsc.0);
        ControlFlow::Continue(())
    });
    times
}

/// Late records with continuations: each run to be sorted extends back over the one before.
#[test]
fn late_records_with_continuations_are_sorted() {
    let mut trace = TraceBuilder::new(Era::C).slots(16);
    trace
        .tpoint(Tpoint::new(1, "SHORT"))
        .tpoint(Tpoint::new(2, "LONG").str("s", 40));
    trace
        .record(0, Record::new(1, 1_000))
        .record(0, Record::new(1, 1_080));
    trace
        .record(0, Record::new(2, 1_060).str("a"))
        .record(0, Record::new(2, 1_070).str("b"));
    trace.record(0, Record::new(1, 1_090));
    let trace = RawTrace::read(&trace.build()).unwrap();
    assert_eq!(times(&trace), [1_000, 1_060, 1_070, 1_080, 1_090]);
}

/// A file is truncated while its ring is read, at any read: earlier records are reported, the rest
/// is missing.
#[test]
fn a_file_may_shrink_while_it_is_read() {
    for (records, reads_left) in [16_384, 24_576]
        .into_iter()
        .flat_map(|n| (0..16).map(move |left| (n, left)))
    {
        let file = plain(16_384, records);
        let later = file.bytes[..file.layout.slot(0, 10_000)].to_vec();
        let source = Changing {
            first: file.bytes,
            later,
            reads_left: Cell::new(reads_left),
        };
        let trace = RawTrace::read(&source).unwrap();
        let (reported, missed) = (times(&trace), trace.problems().count(Problem::SlotsMissing));
        assert!(
            reported.is_sorted() && reported.len() as u64 == trace.record_count(),
            "cut after {reads_left} reads"
        );
        assert!(
            missed > 0 || reported.len() == 16_384,
            "cut after {reads_left} reads: {} reported",
            reported.len()
        );
    }
}

/// The cursor jumps to the largest number: the writer is ahead of all slots, and none can be
/// trusted.
#[test]
fn a_cursor_may_jump_anywhere_while_it_is_read() {
    let file = plain(64, 96);
    let mut later = file.clone();
    later.set_next_entry(0, u64::MAX);
    for reads_left in 0..16 {
        let (first, later) = (file.bytes.clone(), later.bytes.clone());
        let source = Changing {
            first,
            later,
            reads_left: Cell::new(reads_left),
        };
        let trace = RawTrace::read(&source).unwrap();
        let lost = trace.problems().count(Problem::Overwritten)
            + trace.problems().count(Problem::HalfWritten);
        assert_eq!(
            trace.record_count() + lost,
            64,
            "jumped after {reads_left} reads"
        );
    }
}

/// A wrong cursor costs at most the newest record, which may be taken for half-written.
#[test]
fn a_wrong_cursor_loses_no_records() {
    for slots in [8, 64, 128] {
        let mut file = plain(slots, slots as u64 * 3 / 2);
        for cursor in slots as u64..2 * slots as u64 {
            file.set_next_entry(0, cursor);
            let trace = RawTrace::read(&file.bytes).unwrap();
            let reported = times(&trace);
            let newest = trace.problems().count(Problem::HalfWritten);
            assert!(
                reported.is_sorted() && newest <= 1,
                "{slots} slots, cursor {cursor}: {:?}",
                trace.problems()
            );
            assert_eq!(
                reported.len() as u64 + newest,
                slots as u64,
                "cursor {cursor}: {:?}",
                trace.problems()
            );
        }
    }
}

/// A ring that claims to be larger than any file is followed to the end of the file.
#[test]
fn a_ring_without_end_can_be_followed() {
    let mut file = plain(64, 96);
    file.set_u64(file.layout.num_entries(0), 1 << 62);
    for cursor in [0, 64, 1 << 61, 1 << 62, (1 << 62) + (1 << 61), u64::MAX] {
        file.set_next_entry(0, cursor);
        let source = Changing::never(file.bytes.clone());
        let mut follower = Follower::new(&source).unwrap();
        let mut reported = 0;
        let _ = follower.poll(&source, true, |_| {
            reported += 1;
            ControlFlow::Continue(())
        });
        assert!(reported <= 64, "cursor {cursor:#x}: {reported} records");
    }
}

/// An impossible offset counts as outside of the file, not as an error of the operating system.
#[test]
fn an_offset_that_no_file_can_have_is_left_out() {
    for era in Era::ALL {
        for offset in [u64::MAX, u64::MAX - 100, 1 << 63] {
            let mut trace = TraceBuilder::new(era).slots(16);
            trace.tpoint(Tpoint::new(1, "PLAIN"));
            trace
                .record(0, Record::new(1, 1_000))
                .record(1, Record::new(1, 1_001));
            let mut file = trace.build_file();
            file.set_u64(file.layout.lcore_offset(1), offset);
            let trace = RawTrace::read(&Changing::never(file.bytes)).unwrap();
            assert_eq!(times(&trace), [1_000], "{era:?}");
            assert_eq!(
                trace.problems().count(Problem::HistoryOutside),
                1,
                "{era:?}"
            );
        }
    }
}

/// Rings that together claim more slots than a `u64` can count.
#[test]
fn the_count_of_missing_records_saturates() {
    let mut trace = TraceBuilder::new(Era::C).slots(16);
    trace.tpoint(Tpoint::new(1, "PLAIN"));
    trace
        .record(0, Record::new(1, 1_000))
        .record(1, Record::new(1, 1_001));
    let mut file = trace.build_file();
    file.set_u64(file.layout.num_entries(0), u64::MAX);
    file.set_u64(file.layout.num_entries(1), u64::MAX);
    let trace = RawTrace::read(&file.bytes).unwrap();
    assert_eq!(times(&trace), [1_000, 1_001]);
    assert_eq!(trace.problems().count(Problem::SlotsMissing), u64::MAX);
}

/// The maximum number of lcores, all with one history: reported one by one, in linear time.
#[test]
fn a_problem_of_every_lcore_is_found_fast() {
    let mut trace = TraceBuilder::new(Era::F)
        .slots(16)
        .tpoint_count(2)
        .owner_count(1)
        .lcore_count(65_535);
    trace.tpoint(Tpoint::new(1, "PLAIN"));
    trace.record(0, Record::new(1, 1_000));
    let mut file = trace.build_file();
    let history = file.layout.history(0) as u64;
    for lcore in 1..65_535 {
        file.set_u64(file.layout.lcore_offset(lcore), history);
    }
    let trace = RawTrace::read(&file.bytes).unwrap();
    assert_eq!(times(&trace), [1_000]);
    // The history belongs to lcore 0.
    assert_eq!(trace.problems().count(Problem::HistoryOutside), 65_534);
}

/// The maximum number of owners: the last id is the largest but one.
#[test]
fn the_last_of_all_owners_is_reported() {
    let mut trace = TraceBuilder::new(Era::F)
        .slots(16)
        .tpoint_count(2)
        .owner_count(65_535)
        .owner_description_size(2);
    trace
        .tpoint(Tpoint::new(1, "PLAIN"))
        .owner(65_534, 0, 1, "x");
    let trace = RawTrace::read(&trace.build()).unwrap();
    assert_eq!(
        trace.owners().all().map(|(id, _)| id).collect::<Vec<_>>(),
        [65_534]
    );
}

/// Entries that seem to continue into the next one: reading each up to the end of the document
/// would take minutes.
#[test]
fn a_broken_entry_does_not_reach_into_the_next() {
    let entries = r#"{":K":x","b},"#.repeat(50_000);
    let text =
        format!(r#"{{"tsc_rate":1,"tpoints":[{{"name":"A","id":1}}],"entries":[{entries}0]}}"#);
    let trace = JsonTrace::parse(text.into_bytes()).unwrap();
    let problems = trace.for_each(|_| panic!("no entry is whole"));
    let broken = |finding: &&Finding| matches!(finding.problem, Problem::BrokenEntry(_));
    assert_eq!(
        problems
            .iter()
            .filter(broken)
            .map(|finding| finding.count)
            .sum::<u64>(),
        50_001
    );
}

/// More arguments than SPDK has room for: those after the 256th have no index.
#[test]
fn a_relation_names_the_right_argument_or_none() {
    for (at, named) in [(0, Some(0)), (255, Some(255)), (256, None), (257, None)] {
        let mut args = vec!["1".to_owned(); 300];
        args[at] = "77".to_owned();
        let text = format!(
            r#"{{"tsc_rate":1,"tpoints":[{{"name":"A","id":1,"new_object":true}}],"entries":[
            {{"lcore":0,"tpoint":1,"tsc":1,"object":{{"id":"r0","value":77}},"related":"r0","args":[{}]}}]}}"#,
            args.join(",")
        );
        let mut related = None;
        let problems = JsonTrace::parse(text.into_bytes())
            .unwrap()
            .for_each(|record| {
                related = record.related;
                ControlFlow::Continue(())
            });
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(related.map(|related| related.arg), Some(named), "at {at}");
    }
}
