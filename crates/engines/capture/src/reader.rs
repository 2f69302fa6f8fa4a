//! A whole capture, read.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use scene::{BootNanos, Clock, Disorder, KernelEvent, Tid};
use spdk_trace::{CapturedTrace, Follower, Lcore, ReadAt, StreamEnd};

use crate::chunk::Stream;
use crate::error::CaptureError;
use crate::events::{Events, KernelEvents, NamedThread, Roll};
use crate::meta::{FORMAT, MAX_META, Meta, parts_left_out};
use crate::polls::{RingsStream, Scan};
use crate::rings::Rings;

/// A file of a capture. It is read again for each pass.
pub type Source = Arc<dyn ReadAt + Send + Sync>;

/// Reads a capture. The streams are read when they are asked for, a chunk at once, and as often as one likes.
pub struct Reader {
    meta: Meta,
    /// Parts of its lists that were left out.
    parts_left_out: u64,
    rings: Option<(Source, Scan)>,
    kernel: Option<(Source, Roll)>,
    /// Late events of the kernel; read when events are first asked for.
    disorder: OnceLock<Disorder>,
}

/// The names of threads.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// By thread, then by time.
    all: Vec<NamedThread>,
}

impl Reader {
    /// Reads `meta.json`, and of the streams what is not records and events. A part that the capture does not have is `None`. One that
    /// is damaged is read as far as it goes ([`Self::ends`]), even if that is not at all.
    pub fn open(meta: &dyn ReadAt, rings: Option<Source>, kernel: Option<Source>) -> Result<Self, CaptureError> {
        let (meta, parts_left_out) = read_meta(meta)?;
        let rings = rings.map(|source| {
            let scan = Scan::of(source.as_ref());
            (source, scan)
        });
        let kernel = kernel.map(|source| {
            let roll = Roll::of(source.as_ref());
            (source, roll)
        });
        Ok(Self { meta, parts_left_out, rings, kernel, disorder: OnceLock::new() })
    }

    /// What it is of. A capture that was cut short has no [`Meta::end`].
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The clock that puts the trace's ticks and the kernel's nanoseconds on one line.
    pub fn clock(&self) -> Result<Clock, CaptureError> {
        let (_, scan) = self.rings()?;
        Ok(Clock::new(scan.anchors.clone())?)
    }

    /// The trace.
    pub fn trace(&self) -> Result<CapturedTrace, CaptureError> {
        let (source, scan) = self.rings()?;
        let head = Follower::new(&scan.tables).map_err(|error| match &scan.end {
            // What was lost of the header is the reason.
            Some(end) => CaptureError::Part { file: Rings::FILE, why: end.to_string() },
            None => error.into(),
        })?;
        let stream = RingsStream::new(Arc::clone(source), &head);
        let changes = scan.changes.iter().map(|(at, bytes)| (*at, bytes.as_slice()));
        Ok(CapturedTrace::open(scan.tables.clone(), changes, scan.common_start, Box::new(stream))?)
    }

    fn rings(&self) -> Result<&(Source, Scan), CaptureError> {
        let why = || self.meta.missing.get("trace").cloned();
        self.rings.as_ref().ok_or_else(|| CaptureError::NoPart { file: Rings::FILE, why: why() })
    }

    fn kernel(&self) -> Result<&(Source, Roll), CaptureError> {
        let why = || self.meta.missing.get("kernel").cloned();
        self.kernel.as_ref().ok_or_else(|| CaptureError::NoPart { file: Events::FILE, why: why() })
    }

    /// Returns the kernel's events in the order of time. The last item is an error if the stream is cut off or damaged.
    pub fn events(&self) -> Result<impl Iterator<Item = Result<KernelEvent, StreamEnd>>, CaptureError> {
        let written = self.written_events()?;
        Ok(self.disorder()?.in_order(written))
    }

    /// Returns how many events stand behind later ones in the file.
    pub fn late_events(&self) -> Result<u64, CaptureError> {
        Ok(self.disorder()?.count())
    }

    fn disorder(&self) -> Result<&Disorder, CaptureError> {
        let written = self.written_events()?;
        Ok(self.disorder.get_or_init(|| Disorder::find(written)))
    }

    /// Returns the kernel's events in the order of the file.
    fn written_events(&self) -> Result<KernelEvents<'_>, CaptureError> {
        let (source, roll) = self.kernel()?;
        match &roll.end {
            Some(end) if !roll.is_stream => Err(CaptureError::Part { file: Events::FILE, why: end.to_string() }),
            _ => Ok(KernelEvents::new(source.as_ref())),
        }
    }

    /// From when on no event is missing but what others report as lost.
    pub fn events_started(&self) -> Option<BootNanos> {
        self.kernel.as_ref()?.1.started
    }

    /// Whether the kernel's events reach until the end of the capture, as far as its files show without reading each event. They
    /// don't in one that was cut short, whose file was cut or damaged, or that had no room for all.
    pub fn has_last_events(&self) -> bool {
        let end = self.meta.end.as_ref().filter(|end| end.events_until_boot_nanos.is_none());
        self.kernel.as_ref().zip(end).is_some_and(|((_, roll), end)| roll.end.is_none() && roll.events >= end.events)
    }

    /// The end of what was captured: stated by a capture that was ended, and of one that was cut short the last poll of the rings
    /// and an event that is hardly before the last one.
    pub fn last(&self) -> Option<BootNanos> {
        let stated = self.meta.end.as_ref().map(|end| BootNanos(end.at.boot_nanos));
        let polled = self.rings.as_ref().and_then(|(_, scan)| scan.last);
        stated.or(polled.max(self.kernel.as_ref().and_then(|(_, roll)| roll.last)))
    }

    /// What of the streams can't be read: the file, and why.
    pub fn ends(&self) -> impl Iterator<Item = (&'static str, &StreamEnd)> {
        let rings = self.rings.iter().filter_map(|(_, scan)| Some((Rings::FILE, scan.end.as_ref()?)));
        rings.chain(self.kernel.iter().filter_map(|(_, roll)| Some((Events::FILE, roll.end.as_ref()?))))
    }

    /// What was left out so that memory is bounded: of what, and how many.
    pub fn left_out(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let scan = self.rings.as_ref().map(|(_, scan)| scan);
        let of_rings =
            scan.map(|scan| [("owner change", scan.changes_left_out), ("clock reading", scan.anchors_left_out())]);
        let names = self.kernel.as_ref().map(|(_, roll)| ("thread name", roll.left_out));
        let parts = std::iter::once(("meta.json list item", self.parts_left_out));
        of_rings.into_iter().flatten().chain(names).chain(parts).filter(|(_, count)| *count > 0)
    }

    /// The threads of the process, those that ended included.
    pub fn threads(&self) -> &[NamedThread] {
        self.kernel.as_ref().map_or(&[], |(_, roll)| &roll.roster)
    }

    /// The names of all threads that the capture mentions.
    pub fn names(&self) -> Names {
        let named = self.kernel.iter().flat_map(|(_, roll)| roll.roster.iter().chain(&roll.names));
        let mut all: Vec<_> = named.copied().collect();
        all.sort_by_key(|thread| (thread.tid, thread.since));
        Names { all }
    }

    /// The thread that writes each lcore's ring, where it was found.
    pub fn lcore_threads(&self) -> HashMap<Lcore, Tid> {
        self.meta.lcores.iter().filter_map(|found| Some((Lcore(found.lcore), Tid(found.tid?)))).collect()
    }
}

impl Names {
    /// What a thread was called at that time, or before and after if that is all that is known: the bytes that the thread's owner
    /// chose.
    pub fn name(&self, tid: Tid, at: BootNanos) -> Option<&[u8]> {
        let next = self.all.partition_point(|thread| (thread.tid, thread.since) <= (tid, at));
        let of = |index: usize| self.all.get(index).filter(|thread| thread.tid == tid);
        text(next.checked_sub(1).and_then(of).or_else(|| of(next))?)
    }

    /// The last name of each thread.
    pub fn all(&self) -> impl Iterator<Item = (Tid, &[u8])> {
        let threads = self.all.chunk_by(|a, b| a.tid == b.tid);
        threads.filter_map(|names| names.last()).filter_map(|thread| Some((thread.tid, text(thread)?)))
    }
}

fn text(thread: &NamedThread) -> Option<&[u8]> {
    thread.name.split(|&byte| byte == 0).next()
}

/// The description, and how many parts of its lists were left out.
fn read_meta(source: &dyn ReadAt) -> Result<(Meta, u64), CaptureError> {
    let len = source.len();
    let size = usize::try_from(len).ok().filter(|_| len <= MAX_META).ok_or(CaptureError::LargeMeta { len })?;
    let (mut bytes, mut done) = (vec![0; size], 0);
    while done < size {
        match source.read_at(&mut bytes[done..], done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(source) => return Err(CaptureError::ReadMeta { source }),
        }
    }
    let meta: Meta = serde_json::from_slice(&bytes[..done])?;
    if !(1..=FORMAT).contains(&meta.format) {
        return Err(CaptureError::Format { format: meta.format });
    }
    Ok((meta, parts_left_out(&bytes[..done])?))
}
