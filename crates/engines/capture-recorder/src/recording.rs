//! The capture loop: drains every source to disk until a stop condition.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use capture::{Captured, End, Meta};
use host::Watch;
use observer::{Observer, Progress};
use scene::BootNanos;
use spdk_trace::Lcore;
use sys::clock::boot_nanos;
use text::printable::path as printable;
use trace_source::captures::{KERNEL, OBJECTS, RINGS};
use trace_source::cpus::Placement;

use super::clocks::Clocks;
use super::ending::{Ending, sync};
use super::facts;
use super::folder::Folder;
use super::kernel::{Kernel, Watching};
use super::objects::{Objects, Recording};
use super::rings::{Following, Rings};
use super::stored::Marks;
use super::summary::{self, Result as Came};

/// Limit on one wait for the next batch.
pub(crate) const WAIT: Duration = Duration::from_millis(20);
/// Interval between checks whether the process still lives.
const ALIVE: Duration = Duration::from_millis(100);
/// Time between the first two readings of its threads while a ring's writer is unknown; it doubles
/// up to [`THREADS_LAST`].
const THREADS: Duration = Duration::from_millis(500);
/// Limit of that time.
const THREADS_LAST: Duration = Duration::from_secs(30);
/// Divisor of `--max-bytes`: this part is reserved for the end.
const RESERVED: u64 = 16;
/// Divisor of `--max-bytes`: this part is reserved for the data after the kernel's events, objects
/// and `meta.json`.
const RESERVED_LAST: u64 = 64;
/// Bytes reserved for the last `meta.json` on a full disk.
const ROOM: u64 = 1 << 18;

/// Startup timeout: every source should have delivered by then.
const FLOWS: Duration = Duration::from_secs(5);

/// Sources of a capture.
pub struct Parts {
    /// Rings of the process's trace.
    pub rings: Option<Rings>,
    /// Events of the kernel.
    pub kernel: Option<Kernel>,
    /// Objects of the process.
    pub objects: Option<Objects>,
}

/// Stop conditions.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Duration of the capture.
    pub after: Option<Duration>,
    /// Size limit of all files together, in bytes.
    pub max_bytes: Option<u64>,
}

impl Limits {
    /// Returns the size limit of the parts before the end, in bytes.
    fn most(self) -> u64 {
        self.max_bytes
            .map_or(u64::MAX, |most| most - most / RESERVED)
    }
}

/// Captures until a stop condition, and reports the result.
pub fn record(
    parts: Parts,
    (folder, mut meta): (&Folder, Meta),
    pid: u32,
    limits: Limits,
    place: &Placement,
    observer: &Observer,
) -> anyhow::Result<()> {
    describe(&parts, &mut meta);
    // It is written first, so that an interrupted folder still is a capture.
    folder.write_meta(&meta)?;
    // Held until the end, which must be described on a full disk, too.
    let reserve = folder.reserve(ROOM);
    let mut lcores = Lcores::of(&parts, pid);
    let mut running = Running::begin(parts, folder, pid, place.has_room(), observer)?;
    observer.handle_stop_requests()?;
    let watch = Watch::new(pid, std::iter::empty())?;
    let flows = running.until_it_flows(limits);
    place.give_way_for(limits.after);
    observer.note(&format!(
        "capturing process {pid} into {}: Ctrl-C ends it",
        printable(folder.path())
    ));
    let on_tick = |wrote: &BTreeSet<Lcore>| {
        if lcores.refresh(wrote, &mut meta) {
            folder.write_meta_aside(&meta);
        }
    };
    let ended = flows.and_then(|why| match why {
        Some(why) => Ok(why),
        None => running.until_end(&watch, limits, on_tick),
    });
    place.hurry();
    let (why, failure) = match ended {
        Ok(why) => (why, None),
        Err(error) => (format!("writing failed: {error:#}"), Some(error)),
    };
    let (
        Came {
            end,
            pressure,
            marks,
        },
        late,
    ) = running.finish(failure.is_none(), limits);
    let failure = failure.or(late);
    let why = if failure.as_ref().is_some_and(is_full) {
        "the disk is full".to_owned()
    } else {
        why
    };
    meta.end = Some(End {
        why: why.clone(),
        ..end
    });
    drop(reserve);
    write_end(folder, &mut meta, &marks)?;
    summary::report(&why, &meta, &pressure, folder, observer);
    failure.map_or(Ok(()), |error| {
        Err(error.context(format!(
            "writing into {} failed; what was written is readable",
            printable(folder.path())
        )))
    })
}

/// Describes the parts before the capture starts.
fn describe(parts: &Parts, meta: &mut Meta) {
    meta.captured = Captured {
        trace: parts.rings.is_some(),
        kernel: parts.kernel.is_some(),
        objects: parts.objects.is_some(),
    };
    if let Some(rings) = &parts.rings {
        meta.process.trace_file = Some(facts::path(&rings.path));
        meta.lcores = facts::lcore_threads(rings.follower.lcores(), &meta.process.threads);
    }
}

/// Rings whose threads may not exist yet: a process that has just been started creates its threads
/// one after the other.
struct Lcores {
    rings: Vec<(Lcore, String)>,
    pid: u32,
    read: Instant,
    pause: Duration,
}

impl Lcores {
    fn of(parts: &Parts, pid: u32) -> Self {
        let rings = parts.rings.iter().flat_map(|rings| rings.follower.lcores());
        let rings = rings
            .map(|(lcore, name)| (lcore, name.to_owned()))
            .collect();
        Self {
            rings,
            pid,
            read: Instant::now(),
            pause: THREADS,
        }
    }

    /// Reads the process's threads again, if one of the written rings still lacks its thread and
    /// the pause is over. Returns true if more are known.
    fn refresh(&mut self, wrote: &BTreeSet<Lcore>, meta: &mut Meta) -> bool {
        let is_known = |lcore: &Lcore| {
            meta.lcores
                .iter()
                .any(|ring| ring.lcore == lcore.0 && ring.tid.is_some())
        };
        if self.read.elapsed() < self.pause || wrote.iter().all(is_known) {
            return false;
        }
        (self.read, self.pause) = (Instant::now(), (2 * self.pause).min(THREADS_LAST));
        let found = |meta: &Meta| meta.lcores.iter().filter(|ring| ring.tid.is_some()).count();
        let threads = facts::of_threads(self.pid);
        let rings = self
            .rings
            .iter()
            .map(|(lcore, name)| (*lcore, name.as_str()));
        let lcores = facts::lcore_threads(rings, &threads);
        let is_more = lcores.iter().filter(|ring| ring.tid.is_some()).count() > found(meta);
        if is_more {
            (meta.lcores, meta.process.threads) = (lcores, threads);
        }
        is_more
    }
}

/// Replaces `meta.json`. If somebody else has taken the room reserved for it, cuts the end of the
/// trace's stream to make some.
fn write_end(folder: &Folder, meta: &mut Meta, marks: &Marks) -> io::Result<()> {
    match folder.write_meta(meta) {
        Err(error) if error.kind() == ErrorKind::StorageFull => {
            let shorter = marks.shorter_by(ROOM);
            folder.shorten(RINGS, shorter.bytes)?;
            if let Some(end) = &mut meta.end {
                end.bytes -= marks.last().bytes - shorter.bytes;
                (end.records, end.slots_lost) = (shorter.records, shorter.lost);
            }
            folder.write_meta(meta)
        }
        written => written,
    }
}

fn is_full(error: &anyhow::Error) -> bool {
    let kinds = [
        ErrorKind::StorageFull,
        ErrorKind::QuotaExceeded,
        ErrorKind::FileTooLarge,
    ];
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| kinds.contains(&error.kind()))
}

/// Parts that are being written.
struct Running {
    rings: Option<Following>,
    kernel: Option<Watching>,
    objects: Option<Recording>,
    /// Clocks, read if there is a trace: its ticks are put on the kernel's clock.
    clocks: Option<Clocks>,
    observer: Observer,
    /// Progress display; `None` as soon as the parts end.
    progress: Option<Progress>,
    /// End of the capture, if limited.
    until: Option<BootNanos>,
    /// Files of all parts, to cut both streams if writing fails.
    streams: [Option<File>; 3],
}

impl Running {
    fn begin(
        parts: Parts,
        folder: &Folder,
        pid: u32,
        has_room: bool,
        observer: &Observer,
    ) -> anyhow::Result<Self> {
        let mut streams = [const { None }; 3];
        let mut open = |index: usize, name: &str| -> anyhow::Result<File> {
            let file = folder.file(name)?;
            streams[index] = Some(file.try_clone()?);
            Ok(file)
        };
        // The kernel's events start before the first record, so that no record lacks them.
        let kernel = parts
            .kernel
            .map(|kernel| kernel.follow(open(1, KERNEL)?, pid))
            .transpose()?;
        let mut clocks = None;
        let rings = parts.rings.map(|rings| {
            let mut rings = rings.follow(open(0, RINGS)?, has_room)?;
            let (started, first) = Clocks::start()?;
            rings.anchor(first)?;
            clocks = Some(started);
            anyhow::Ok(rings)
        });
        let rings = rings.transpose()?;
        let objects = parts
            .objects
            .map(|objects| anyhow::Ok(objects.follow(open(2, OBJECTS)?)));
        let objects = objects.transpose()?;
        folder.sync()?;
        Ok(Self {
            rings,
            kernel,
            objects,
            clocks,
            observer: observer.clone(),
            progress: Some(Progress::new(observer)),
            until: None,
            streams,
        })
    }

    /// Writes until every source has delivered, or is late: a capture killed after that has all
    /// parts. Returns the reason to stop, if there is one.
    fn until_it_flows(&mut self, limits: Limits) -> anyhow::Result<Option<String>> {
        let (started, most) = (Instant::now(), limits.most());
        let flows = |this: &Self| {
            this.rings
                .as_ref()
                .is_none_or(|rings| rings.reached > BootNanos(0))
                && this.kernel.as_ref().is_none_or(Watching::flows)
        };
        while !flows(self) && started.elapsed() < FLOWS && !self.observer.is_stop_requested() {
            if let Some(why) = self.step(most)? {
                return Ok(Some(why));
            }
        }
        let nanos = |after: Duration| u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        self.until = limits
            .after
            .map(|after| BootNanos(boot_nanos().saturating_add(nanos(after))));
        // This holds however late this thread gets to its end.
        if let Some((kernel, until)) = self.kernel.as_mut().zip(self.until) {
            kernel.end_at(until);
        }
        Ok(None)
    }

    /// Returns true if everything until the planned end has arrived.
    fn is_over(&self) -> bool {
        let Some(until) = self.until else {
            return false;
        };
        let has_records = |rings: &Following| rings.is_idle || rings.reached >= until;
        BootNanos(boot_nanos()) >= until && self.rings.as_ref().is_none_or(has_records)
    }

    /// Writes until there is a reason to stop, and returns it.
    fn until_end(
        &mut self,
        watch: &Watch,
        limits: Limits,
        mut now_and_then: impl FnMut(&BTreeSet<Lcore>),
    ) -> anyhow::Result<String> {
        let (mut asked, most) = (Instant::now(), limits.most());
        loop {
            if let Some(why) = self.step(most)? {
                return Ok(why);
            }
            if self.observer.is_stop_requested() {
                return Ok("stopped".to_owned());
            }
            if self.is_over() {
                return Ok("the time is over".to_owned());
            }
            if asked.elapsed() >= ALIVE {
                asked = Instant::now();
                if let Some(why) = watch.ended() {
                    return Ok(why);
                }
                self.rings
                    .iter()
                    .for_each(|rings| now_and_then(&rings.wrote));
            }
            self.show(limits);
        }
    }

    /// Writes the next batch of each part; returns the reason to stop, if there is one.
    fn step(&mut self, most: u64) -> anyhow::Result<Option<String>> {
        let before = self.bytes();
        if let Some(rings) = &mut self.rings {
            let batch = rings.next(WAIT);
            rings.is_idle = batch.is_none();
            if let Some(batch) = batch {
                if let Some(error) = &batch.failed {
                    return Ok(Some(format!("the trace can no longer be read: {error}")));
                }
                if before + batch.copied.bytes() as u64 > most {
                    return Ok(Some(LARGE.to_owned()));
                }
                rings.write(batch)?;
            }
            rings.refresh(false)?;
            for anchor in self.clocks.iter_mut().flat_map(Clocks::next) {
                rings.anchor(anchor)?;
            }
            rings.flush()?;
        }
        let room = most.saturating_sub(self.bytes());
        if let Some(kernel) = &mut self.kernel
            && !kernel.next(
                if self.rings.is_some() {
                    Duration::ZERO
                } else {
                    WAIT
                },
                room,
            )?
        {
            return Ok(Some(LARGE.to_owned()));
        }
        if let Some(objects) = &mut self.objects {
            objects.next()?;
            if let Some(clocks) = &mut self.clocks {
                clocks.hits(objects.take_hits());
            }
        }
        Ok((self.bytes() > most).then(|| LARGE.to_owned()))
    }

    /// Shows the elapsed time, and the amount captured.
    fn show(&mut self, limits: Limits) {
        let bytes = self.bytes();
        let Self {
            progress, rings, ..
        } = self;
        let Some(progress) = progress else { return };
        progress.show(|since| {
            let of = limits
                .after
                .map_or_else(String::new, |after| match after.subsec_nanos() {
                    0 => format!(" of {} s", after.as_secs()),
                    _ => format!(" of {:.1} s", after.as_secs_f64()),
                });
            let rings = rings.as_ref().map_or_else(String::new, |rings| {
                summary::records(rings.records, rings.lost) + ", "
            });
            format!(
                "capturing: {} s{of}, {rings}{}",
                since.as_secs(),
                screen::size(bytes)
            )
        });
    }

    fn bytes(&self) -> u64 {
        let rings = self.rings.as_ref().map_or(0, |rings| rings.writer.bytes());
        let kernel = self.kernel.as_ref().map_or(0, Watching::bytes);
        rings
            + kernel
            + self
                .objects
                .as_ref()
                .map_or(0, |objects| objects.written.bytes)
    }

    /// Ends all parts, the trace first: the kernel's events until its last record are needed.
    /// Writes the rest, if `works`.
    fn finish(mut self, works: bool, limits: Limits) -> (Came, Option<anyhow::Error>) {
        drop(self.progress.take());
        let mut ending = Ending {
            works,
            ..Ending::default()
        };
        // Half of it is for the kernel's events, which come later than the records of the same
        // time.
        let room = limits
            .max_bytes
            .map(|most| most.saturating_sub(self.bytes()) / 2);
        if let Some(rings) = self.rings.take() {
            ending.end_trace(
                rings,
                self.streams[0].as_ref(),
                (self.clocks.as_mut(), room),
                self.until,
                &self.observer,
            );
        }
        ending.end.at = facts::now();
        if let Some(mut kernel) = self.kernel.take() {
            if let Some(until) = self.until {
                // All sources end at one time, however late this one is stopped.
                let until = BootNanos(until.max(ending.reached).0.min(ending.end.at.boot_nanos));
                kernel.end_at(until);
                ending.end.at = facts::at(until);
            }
            let most = limits
                .max_bytes
                .map_or(u64::MAX, |most| most - most / RESERVED_LAST);
            let room = most.saturating_sub(ending.end.bytes + kernel.bytes() + self.bytes());
            ending.end_kernel(kernel, self.streams[1].as_ref(), room);
        }
        if let Some(mut objects) = self.objects.take() {
            if let Some(clocks) = &mut self.clocks {
                clocks.hits(objects.take_hits());
            }
            ending.end_objects(objects);
        }
        if let Some(clocks) = self.clocks.take() {
            ending.end.state_clock(&clocks.finish());
        }
        if ending.works
            && let Err(error) = sync(self.streams.into_iter().flatten().collect(), &self.observer)
        {
            ending.failed = ending.failed.or(Some(error.into()));
        }
        (
            Came {
                end: ending.end,
                pressure: ending.pressure,
                marks: ending.marks,
            },
            ending.failed,
        )
    }
}

/// Reason to stop at `--max-bytes`.
const LARGE: &str = "--max-bytes is reached";
