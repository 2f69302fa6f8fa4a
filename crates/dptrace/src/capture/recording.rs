//! A capture that goes on: what comes of all parts is written, until there is a reason to stop.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use ::capture::{Captured, End, Meta};
use kernel_events::Totals;
use spdk_trace::Lcore;

use super::clocks::Clocks;
use super::facts;
use super::folder::Folder;
use super::kernel::{Ended, Kernel, Watching};
use super::life::Life;
use super::objects::{Objects, Recording};
use super::open::{KERNEL, OBJECTS, RINGS};
use super::rings::{Following, Rings};
use super::summary::{self, Result as Came};
use crate::failure::note;
use crate::interrupt::{self, Interrupt};
use crate::target::{Watch, printable};
use crate::trace::reader::Pressure;

/// The longest wait for what comes next.
const WAIT: Duration = Duration::from_millis(20);
/// Time between two looks at the process.
const ALIVE: Duration = Duration::from_millis(100);
/// Time between two looks at its threads, until all are known that write rings.
const THREADS: Duration = Duration::from_millis(500);
/// Of `--max-bytes`, this part is kept for what comes at the end.
const RESERVED: u64 = 16;
/// And this part for what comes after the kernel's events: objects, and `meta.json`.
const RESERVED_LAST: u64 = 64;
/// How much of the trace's stream makes room for `meta.json` on a full disk.
const ROOM: u64 = 1 << 18;

/// What is captured.
pub(super) struct Parts {
    pub(super) rings: Option<Rings>,
    pub(super) kernel: Option<Kernel>,
    pub(super) objects: Option<Objects>,
}

/// When to stop.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) after: Option<Duration>,
    pub(super) max_bytes: Option<u64>,
}

/// Captures until there is a reason to stop, and says what came of it.
pub(super) fn record(
    parts: Parts,
    (folder, mut meta): (&Folder, Meta),
    pid: u32,
    limits: Limits,
    has_room: bool,
) -> anyhow::Result<()> {
    describe(&parts, &mut meta);
    // First: whatever else is there then, it is a capture.
    folder.write_meta(&meta)?;
    let mut lcores = Lcores::of(&parts, pid);
    let mut running = Running::begin(parts, folder, pid, has_room)?;
    let interrupt = Interrupt::catch()?;
    let watch = Watch::new(pid, std::iter::empty())?;
    note(&format!("capturing process {pid} into {}: Ctrl-C ends it", printable(folder.path())));
    let ended = running.until_end(&watch, limits, interrupt, || {
        if lcores.look(&mut meta) { folder.write_meta(&meta) } else { Ok(()) }
    });
    let (why, failure) = match ended {
        Ok(why) => (why, None),
        Err(error) if is_full(&error) => ("the disk is full".to_owned(), Some(error)),
        Err(error) => (format!("writing failed: {error:#}"), Some(error)),
    };
    let (came, late) = running.finish(failure.is_none(), limits);
    let failure = failure.or(late);
    let Came { end, pressure } = &came;
    meta.end = Some(End { why: why.clone(), ..end.clone() });
    write_end(folder, &meta)?;
    summary::report(&why, &meta, pressure, folder);
    failure.map_or(Ok(()), |error| {
        Err(error.context(format!("writing into {} failed; what was written is readable", printable(folder.path()))))
    })
}

/// What is known of the parts before the capture begins.
fn describe(parts: &Parts, meta: &mut Meta) {
    meta.captured =
        Captured { trace: parts.rings.is_some(), kernel: parts.kernel.is_some(), objects: parts.objects.is_some() };
    if let Some(rings) = &parts.rings {
        meta.process.trace_file = Some(facts::path(&rings.path));
        meta.lcores = facts::lcore_threads(rings.follower.lcores(), &meta.process.threads);
    }
}

/// Rings whose threads may not be there yet: a process that has just been started begins its threads one after the other.
struct Lcores {
    rings: Vec<(Lcore, String)>,
    pid: u32,
    looked: Instant,
}

impl Lcores {
    fn of(parts: &Parts, pid: u32) -> Self {
        let rings = parts.rings.iter().flat_map(|rings| rings.follower.lcores());
        let rings = rings.map(|(lcore, name)| (lcore, name.to_owned())).collect();
        Self { rings, pid, looked: Instant::now() }
    }

    /// Looks at the process again, if it is time for that; says whether more is known.
    fn look(&mut self, meta: &mut Meta) -> bool {
        let found = |meta: &Meta| meta.lcores.iter().filter(|ring| ring.tid.is_some()).count();
        if self.looked.elapsed() < THREADS || found(meta) == self.rings.len() {
            return false;
        }
        self.looked = Instant::now();
        let threads = facts::of_threads(self.pid);
        let rings = self.rings.iter().map(|(lcore, name)| (*lcore, name.as_str()));
        let lcores = facts::lcore_threads(rings, &threads);
        let is_more = lcores.iter().filter(|ring| ring.tid.is_some()).count() > found(meta);
        if is_more {
            (meta.lcores, meta.process.threads) = (lcores, threads);
        }
        is_more
    }
}

/// Replaces `meta.json`. On a full disk the end of the trace's stream makes room for it: readers take it for a cut.
fn write_end(folder: &Folder, meta: &Meta) -> io::Result<()> {
    match folder.write_meta(meta) {
        Err(error) if error.kind() == ErrorKind::StorageFull => {
            folder.shorten(RINGS, ROOM)?;
            folder.write_meta(meta)
        }
        written => written,
    }
}

fn is_full(error: &anyhow::Error) -> bool {
    let kinds = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge];
    error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(|error| kinds.contains(&error.kind()))
}

/// The parts, which are being written.
struct Running {
    rings: Option<Following>,
    kernel: Option<Watching>,
    objects: Option<Recording>,
    clocks: Clocks,
    life: Life,
    /// Files of both streams, to cut them where writing failed.
    streams: [Option<File>; 2],
}

impl Running {
    fn begin(parts: Parts, folder: &Folder, pid: u32, has_room: bool) -> anyhow::Result<Self> {
        let mut streams = [None, None];
        let mut open = |index: usize, name: &str| -> anyhow::Result<File> {
            let file = folder.file(name)?;
            streams[index] = Some(file.try_clone()?);
            Ok(file)
        };
        // The kernel's events are there before the first record is, so that none is without.
        let kernel = parts.kernel.map(|kernel| kernel.follow(open(1, KERNEL)?, pid)).transpose()?;
        let mut clocks = Clocks::new();
        let rings = parts.rings.map(|rings| {
            let mut rings = rings.follow(open(0, RINGS)?, has_room)?;
            rings.anchor(clocks.now())?;
            anyhow::Ok(rings)
        });
        let rings = rings.transpose()?;
        let objects = parts.objects.map(|objects| Ok::<_, anyhow::Error>(objects.follow(folder.file(OBJECTS)?)));
        Ok(Self { rings, kernel, objects: objects.transpose()?, clocks, life: Life::new(), streams })
    }

    /// Writes until there is a reason to stop, and says which.
    fn until_end(
        &mut self,
        watch: &Watch,
        limits: Limits,
        interrupt: Interrupt,
        mut now_and_then: impl FnMut() -> io::Result<()>,
    ) -> anyhow::Result<String> {
        let (started, mut looked) = (Instant::now(), Instant::now());
        let most = limits.max_bytes.map_or(u64::MAX, |most| most - most / RESERVED);
        loop {
            if let Some(why) = self.step(most)? {
                return Ok(why);
            }
            if interrupt.is_requested() {
                return Ok("stopped".to_owned());
            }
            if limits.after.is_some_and(|after| started.elapsed() >= after) {
                return Ok("the time is over".to_owned());
            }
            if looked.elapsed() >= ALIVE {
                looked = Instant::now();
                if let Some(why) = watch.ended() {
                    return Ok(why);
                }
                now_and_then()?;
            }
            let (bytes, records) = (self.bytes(), self.rings.as_ref().map(|rings| rings.records));
            self.life.show(started.elapsed(), bytes, records);
        }
    }

    /// Writes what came next; says why to stop, if there is a reason.
    fn step(&mut self, most: u64) -> anyhow::Result<Option<String>> {
        let before = self.bytes();
        if let Some(rings) = &mut self.rings {
            if let Some(batch) = rings.next(WAIT) {
                if let Some(error) = &batch.failed {
                    return Ok(Some(format!("the trace can't be read any more: {error}")));
                }
                if before + batch.copied.bytes() as u64 > most {
                    return Ok(Some(LARGE.to_owned()));
                }
                rings.write(batch)?;
            }
            rings.refresh(false)?;
            if let Some(anchor) = self.clocks.due() {
                rings.anchor(anchor)?;
            }
            rings.writer.flush()?;
        }
        let room = most.saturating_sub(self.bytes());
        if let Some(kernel) = &mut self.kernel
            && !kernel.next(if self.rings.is_some() { Duration::ZERO } else { WAIT }, room)?
        {
            return Ok(Some(LARGE.to_owned()));
        }
        if let Some(objects) = &mut self.objects {
            objects.next()?;
        }
        Ok((self.bytes() > most).then(|| LARGE.to_owned()))
    }

    fn bytes(&self) -> u64 {
        let rings = self.rings.as_ref().map_or(0, |rings| rings.writer.bytes());
        let kernel = self.kernel.as_ref().map_or(0, Watching::bytes);
        rings + kernel + self.objects.as_ref().map_or(0, |objects| objects.written.bytes)
    }

    /// Ends all parts, the trace first: what the kernel did until its last record is wanted. Writes what remains, if that works.
    fn finish(mut self, works: bool, limits: Limits) -> (Came, Option<anyhow::Error>) {
        self.life.erase();
        let mut ending = Ending { works, ..Ending::default() };
        // Half of it is for the kernel's events, which come later than the records of the same time.
        let room = limits.max_bytes.map(|most| most.saturating_sub(self.bytes()) / 2);
        if let Some(rings) = self.rings.take() {
            ending.end_trace(rings, self.streams[0].as_ref(), (&mut self.clocks, room));
        }
        ending.end.at = facts::now();
        if let Some(kernel) = self.kernel.take() {
            let most = limits.max_bytes.map_or(u64::MAX, |most| most - most / RESERVED_LAST);
            let room = most.saturating_sub(ending.end.bytes + kernel.bytes() + self.bytes());
            ending.end_kernel(kernel, self.streams[1].as_ref(), room);
        }
        if let Some(objects) = self.objects.take() {
            ending.end.join = self.clocks.join_error(&objects.hits());
            ending.end_objects(objects);
        }
        (Came { end: ending.end, pressure: ending.pressure }, ending.failed)
    }
}

/// The end of all parts.
#[derive(Default)]
struct Ending {
    end: End,
    pressure: Pressure,
    /// Whether the disk takes what is written.
    works: bool,
    failed: Option<anyhow::Error>,
}

impl Ending {
    fn end_trace(&mut self, mut rings: Following, file: Option<&File>, (clocks, room): (&mut Clocks, Option<u64>)) {
        if self.works {
            self.failed = end_rings(&mut rings, clocks, room);
        }
        let (mut stream, records, lost, pressure) = rings.finish();
        (self.end.records, self.end.slots_lost, self.pressure) = (records, lost, pressure);
        if !self.works || stream.flush().is_err() {
            cut(file, stream.flushed());
        }
        self.end.bytes += stream.flushed();
    }

    fn end_kernel(&mut self, kernel: Watching, file: Option<&File>, room: u64) {
        let Ended { bytes, totals, until } = kernel.finish(self.works.then_some(room));
        self.end.events_until_boot_nanos = until.map(|until| until.0);
        if !self.works || totals.is_err() {
            cut(file, bytes);
        }
        self.end.bytes += bytes;
        match totals {
            Ok(Totals { events, lost, skipped, .. }) => {
                (self.end.events, self.end.events_lost, self.end.events_skipped) = (events, lost, skipped);
            }
            Err(error) => self.failed = self.failed.take().or(Some(error)),
        }
    }

    fn end_objects(&mut self, objects: Recording) {
        let (written, result) = objects.finish(self.works);
        if !self.works || result.is_err() {
            // If that fails, too, a line that is not whole remains: it is left out with a note.
            let _ = written.cut();
        }
        self.end.object_lines = written.lines;
        self.end.bytes += written.bytes;
    }
}

/// Why it stops at `--max-bytes`.
const LARGE: &str = "--max-bytes is reached";

/// Has the reader poll once more, and writes what it has copied, as far as there is room.
fn end_rings(rings: &mut Following, clocks: &mut Clocks, room: Option<u64>) -> Option<anyhow::Error> {
    rings.stop();
    let begin = rings.writer.bytes();
    let mut write = || -> io::Result<()> {
        loop {
            interrupt::step();
            let Some(batch) = rings.next(WAIT) else { continue };
            let is_last = batch.is_last;
            let written = rings.writer.bytes() - begin;
            if room.is_none_or(|room| written + (batch.copied.bytes() as u64) < room) {
                rings.write(batch)?;
            }
            if is_last {
                break;
            }
        }
        rings.refresh(true)?;
        rings.anchor(clocks.now())?;
        rings.writer.flush()
    };
    write().err().map(Into::into)
}

/// Cuts a file where its last whole chunk ends.
fn cut(file: Option<&File>, bytes: u64) {
    // If that fails, too, the chunk that is not whole is what readers take for the cut.
    let _ = file.map(|file| file.set_len(bytes));
}
