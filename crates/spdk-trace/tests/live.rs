//! Rings that are written to while they are read: nothing that is read was not written.

#[path = "common/live.rs"]
mod common;

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{FileSource, Place, check, empty, record};
use spdk_trace::{Problem, RawTrace, ReadAt};
use testkit::{Era, LiveTrace};

/// A file whose writer goes on whenever the reader has read a part of it.
struct Racing {
    file: FileSource,
    writer: RefCell<LiveTrace>,
    lcores: u32,
    /// The tsc of the next record.
    next: Cell<u64>,
    /// Records that are written between two reads.
    burst: u64,
    /// No read gives more bytes than this.
    most: usize,
}

impl Racing {
    fn new(place: &Place, era: Era, slots: usize, lcores: u32) -> Self {
        let writer = LiveTrace::create(&place.0, &empty(era, slots, lcores));
        let writer = RefCell::new(writer.unwrap_or_else(|error| panic!("{}: {error}", place.0.display())));
        Self { file: place.open(), writer, lcores, next: Cell::new(1), burst: 0, most: usize::MAX }
    }

    fn write(&self, records: u64) {
        for _ in 0..records {
            let tsc = self.next.replace(self.next.get() + 1);
            let lcore = (tsc / 3) as u32 % self.lcores;
            let written = self.writer.borrow_mut().record(lcore, &record(tsc));
            assert!(written.is_ok(), "{written:?}");
        }
    }
}

impl ReadAt for Racing {
    fn len(&self) -> u64 {
        self.file.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        // The header is read in peace: its fields don't change, and it is large.
        let history = self.writer.borrow().snapshot().layout.history(0) as u64;
        if offset < history {
            return self.file.read_at(buf, offset);
        }
        self.write(self.burst);
        let most = buf.len().min(self.most);
        self.file.read_at(&mut buf[..most], offset)
    }
}

/// Reads once while it is written; gives how many slots were lost.
fn read_racing(racing: &Racing) -> u64 {
    let first_new = racing.next.get();
    let trace = RawTrace::read(racing).unwrap_or_else(|error| panic!("{error}"));
    let seen = check(&trace);
    // What was there before and is there still was never touched, and so must have been read. The reader leaves out
    // what the writer may be about to overwrite: as many slots as the longest record takes.
    let survivors = racing.writer.borrow().surviving();
    for lcore in 0..racing.lcores {
        let untouched = survivors.iter().filter(|record| record.lcore == lcore && record.tsc < first_new);
        for record in untouched.skip(3) {
            assert!(seen.contains(&(lcore, record.tsc)), "tsc {} of lcore {lcore} was not read", record.tsc);
        }
    }
    for finding in trace.problems().iter() {
        assert!(matches!(finding.problem, Problem::Overwritten | Problem::ArgumentsLost), "{finding}");
    }
    trace.problems().count(Problem::Overwritten)
}

#[test]
fn a_writer_that_goes_on_between_two_reads() {
    for era in Era::ALL {
        let place = Place::new(&format!("between-{era:?}"));
        for (written, burst) in [(0, 1), (20, 1), (20, 9), (40, 2), (64, 1), (150, 3), (1_000, 8), (1_000, 200)] {
            let mut racing = Racing::new(&place, era, 64, 2);
            racing.write(written);
            racing.burst = burst;
            read_racing(&racing);
        }
    }
}

#[test]
fn a_writer_that_goes_on_within_a_slot() {
    let place = Place::new("within");
    let mut lost = 0;
    for era in [Era::C, Era::F] {
        for most in [8, 13, 32, 100, 1000] {
            for (written, burst) in
                [(0, 1), (30, 1), (63, 1), (64, 1), (65, 1), (150, 1), (151, 2), (153, 5), (160, 70)]
            {
                let mut racing = Racing::new(&place, era, 64, 2);
                racing.write(written);
                (racing.burst, racing.most) = (burst, most);
                lost += read_racing(&racing);
            }
        }
    }
    assert!(lost > 1000, "only {lost} slots were overwritten: the writer never came round");
}

#[test]
fn a_large_ring_that_is_overwritten_from_its_oldest_slot_on() {
    // More than the reader copies in one go, so that one part is whole when the writer reaches the next.
    let place = Place::new("large");
    for written in [20_000, 31_000] {
        for burst in [500, 2_000, 5_000, 9_000] {
            let mut racing = Racing::new(&place, Era::F, 32_768, 1);
            racing.write(written);
            racing.burst = burst;
            read_racing(&racing);
        }
    }
}

#[test]
fn a_writer_in_its_own_thread() {
    for era in [Era::C, Era::E, Era::F] {
        let place = Place::new(&format!("thread-{era:?}"));
        let writer = LiveTrace::create(&place.0, &empty(era, 128, 2));
        let mut writer = writer.unwrap_or_else(|error| panic!("{}: {error}", place.0.display()));
        let file = place.open();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for tsc in 1_u64.. {
                    if stop.load(Ordering::Relaxed) || writer.record((tsc % 2) as u32, &record(tsc)).is_err() {
                        break;
                    }
                }
            });
            // Stops the writer also when a check fails, which would wait for it otherwise.
            let stopped = StopWhenDropped(&stop);
            for _ in 0..100 {
                let trace = RawTrace::read(&file).unwrap_or_else(|error| panic!("{error}"));
                check(&trace);
            }
            drop(stopped);
        });
        let trace = RawTrace::read(&file).unwrap_or_else(|error| panic!("{error}"));
        assert!(!check(&trace).is_empty());
        assert!(trace.problems().is_empty(), "the writer has stopped");
    }
}

struct StopWhenDropped<'a>(&'a AtomicBool);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
