//! The capture loop: drains every source to disk until a stop condition.

mod running;

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use capture::{CaptureSummary, CapturedParts, Meta};
use host::Watch;
use observer::Observer;
use spdk_trace::Lcore;
use text::printable::path as printable;
use trace_source::captures::RINGS;
use trace_source::cpus::Placement;

use super::facts;
use super::folder::Folder;
use super::kernel::Kernel;
use super::objects::Objects;
use super::rings::Rings;
use super::stored::Marks;
use super::summary::{self, Result as Came};
use crate::recording::running::ActiveParts;

/// Limit on one wait for the next batch.
pub(crate) const BATCH_TIMEOUT: Duration = Duration::from_millis(20);
/// Interval between checks whether the process still lives.
const LIVENESS_INTERVAL: Duration = Duration::from_millis(100);
/// Time between the first two readings of its threads while a ring's writer is unknown; it doubles
/// up to [`THREADS_LAST`].
const THREADS: Duration = Duration::from_millis(500);
/// Limit of that time.
const THREADS_LAST: Duration = Duration::from_secs(30);
/// Divisor of `--max-bytes`: this part is reserved for the end.
const RESERVE_DIVISOR: u64 = 16;
/// Divisor of `--max-bytes`: this part is reserved for the data after the kernel's events, objects
/// and `meta.json`.
const RESERVED_LAST: u64 = 64;
/// Bytes reserved for the last `meta.json` on a full disk.
const RESERVED_META_BYTES: u64 = 1 << 18;

/// Startup timeout: every source should have delivered by then.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(5);

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
            .map_or(u64::MAX, |most| most - most / RESERVE_DIVISOR)
    }
}

/// Captures until a stop condition, and reports the result. Returns the size of the files in bytes.
pub fn record(
    parts: Parts,
    (folder, mut meta): (&Folder, Meta),
    pid: u32,
    limits: Limits,
    place: &Placement,
    observer: &Observer,
) -> anyhow::Result<u64> {
    describe(&parts, &mut meta);
    // It is written first, so that an interrupted folder still is a capture.
    folder.write_meta(&meta)?;
    // Held until the end, which must be described on a full disk, too.
    let reserve = folder.reserve(RESERVED_META_BYTES);
    let mut lcores = Lcores::from_parts(&parts, pid);
    let mut running = ActiveParts::begin(parts, folder, place.has_room(), observer)?;
    observer.handle_stop_requests()?;
    let watch = Watch::new(pid, std::iter::empty())?;
    let flows = running.until_it_flows(limits);
    meta.recorder_threads = facts::own_threads();
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
    let bytes = end.bytes;
    meta.end = Some(CaptureSummary {
        why: why.clone(),
        ..end
    });
    drop(reserve);
    write_end(folder, &mut meta, &marks)?;
    summary::report(&why, &meta, &pressure, folder, observer);
    failure.map_or(Ok(bytes), |error| {
        Err(error.context(format!(
            "writing into {} failed; what was written is readable",
            printable(folder.path())
        )))
    })
}

/// Describes the parts before the capture starts.
fn describe(parts: &Parts, meta: &mut Meta) {
    meta.captured = CapturedParts {
        trace: parts.rings.is_some(),
        kernel: parts.kernel.is_some(),
        objects: parts.objects.is_some(),
    };
    if let Some(rings) = &parts.rings {
        rings.describe(meta);
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
    fn from_parts(parts: &Parts, pid: u32) -> Self {
        let rings = parts.rings.iter().flat_map(Rings::thread_rings);
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
        if self.rings.is_empty() || self.read.elapsed() < self.pause || wrote.iter().all(is_known) {
            return false;
        }
        (self.read, self.pause) = (Instant::now(), (2 * self.pause).min(THREADS_LAST));
        let found = |meta: &Meta| meta.lcores.iter().filter(|ring| ring.tid.is_some()).count();
        let threads = facts::describe_threads(self.pid);
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
            let shorter = marks.shorter_by(RESERVED_META_BYTES);
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

/// Reason to stop at `--max-bytes`.
const SIZE_LIMIT_REACHED: &str = "--max-bytes is reached";
