//! A whole capture, read.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use scene::{BootNanos, Clock, Disorder, KernelEvent, Tid};
use spdk_trace::{CapturedTrace, Follower, Lcore, ReadAt, StreamEnd};

use crate::chunk::Stream;
use crate::error::CaptureError;
use crate::events::{Events, KernelEvents, NamedThread, StreamSummary};
use crate::meta::{FORMAT, MAX_META, Meta};
use crate::meta_lists::parts_left_out;
use crate::polls::{RingsStream, Scan};
use crate::rings::Rings;

/// File of a capture. It is read again for each pass.
pub type Source = Arc<dyn ReadAt + Send + Sync>;

/// Reader of a capture. The streams are read on demand, one chunk at a time, as often as desired.
pub struct Reader {
    meta: Meta,
    /// Number of list parts left out of it.
    parts_left_out: u64,
    rings: Option<(Source, Scan)>,
    kernel: Option<(Source, StreamSummary)>,
    /// Late events of the kernel; read with the first request for events.
    disorder: OnceLock<Disorder>,
}

/// Names of threads.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Threads, sorted by id, then by time.
    all: Vec<NamedThread>,
}

impl Reader {
    /// Reads `meta.json`, and the streams without their records and events. A part that the capture
    /// lacks is `None`. A damaged part is read as far as it goes ([`Self::ends`]), even if that is
    /// not at all.
    pub fn open(
        meta: &dyn ReadAt,
        rings: Option<Source>,
        kernel: Option<Source>,
    ) -> Result<Self, CaptureError> {
        let (meta, parts_left_out) = read_meta(meta)?;
        let rings = rings.map(|source| {
            let scan = Scan::read(source.as_ref());
            (source, scan)
        });
        let kernel = kernel.map(|source| {
            let roll = StreamSummary::read(source.as_ref());
            (source, roll)
        });
        Ok(Self {
            meta,
            parts_left_out,
            rings,
            kernel,
            disorder: OnceLock::new(),
        })
    }

    /// Returns the description. A capture that was cut short has no [`Meta::end`].
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Returns the clock that puts the trace's ticks and the kernel's nanoseconds on one line.
    pub fn clock(&self) -> Result<Clock, CaptureError> {
        let (_, scan) = self.rings()?;
        Ok(Clock::new(scan.anchors.clone())?)
    }

    /// Returns the trace.
    pub fn trace(&self) -> Result<CapturedTrace, CaptureError> {
        let (source, scan) = self.rings()?;
        let head = Follower::new(&scan.tables).map_err(|error| match &scan.end {
            // The lost part of the header is the reason.
            Some(end) => CaptureError::Part {
                file: Rings::FILE,
                why: end.to_string(),
            },
            None => error.into(),
        })?;
        let stream = RingsStream::new(Arc::clone(source), &head);
        let changes = scan
            .changes
            .iter()
            .map(|(at, bytes)| (*at, bytes.as_slice()));
        Ok(CapturedTrace::open(
            scan.tables.clone(),
            changes,
            scan.common_start,
            Box::new(stream),
        )?)
    }

    fn rings(&self) -> Result<&(Source, Scan), CaptureError> {
        let why = || self.meta.missing.get("trace").cloned();
        self.rings.as_ref().ok_or_else(|| CaptureError::NoPart {
            file: Rings::FILE,
            why: why(),
        })
    }

    fn kernel(&self) -> Result<&(Source, StreamSummary), CaptureError> {
        let why = || self.meta.missing.get("kernel").cloned();
        self.kernel.as_ref().ok_or_else(|| CaptureError::NoPart {
            file: Events::FILE,
            why: why(),
        })
    }

    /// Returns the kernel's events in the order of time. The last item is an error if the stream is
    /// cut off or damaged.
    pub fn events(
        &self,
    ) -> Result<impl Iterator<Item = Result<KernelEvent, StreamEnd>>, CaptureError> {
        let written = self.written_events()?;
        Ok(self.disorder()?.in_order(written))
    }

    /// Returns the number of events that are after later ones in the file.
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
            Some(end) if !roll.is_stream => Err(CaptureError::Part {
                file: Events::FILE,
                why: end.to_string(),
            }),
            _ => Ok(KernelEvents::new(source.as_ref())),
        }
    }

    /// Returns the time from which no event is missing, except those reported as lost.
    pub fn events_started(&self) -> Option<BootNanos> {
        self.kernel.as_ref()?.1.started
    }

    /// Returns true if the kernel's events reach until the end of the capture, as far as its files
    /// show without reading each event. They don't if the capture was cut short, if its file was
    /// cut or damaged, or if it had no room for all.
    pub fn has_last_events(&self) -> bool {
        let end = self
            .meta
            .end
            .as_ref()
            .filter(|end| end.events_until_boot_nanos.is_none());
        self.kernel
            .as_ref()
            .zip(end)
            .is_some_and(|((_, roll), end)| roll.end.is_none() && roll.events >= end.events)
    }

    /// Returns the end of the captured time. A complete capture states it; otherwise the last poll
    /// of the rings and an event shortly before the last one show it.
    pub fn last(&self) -> Option<BootNanos> {
        let stated = self
            .meta
            .end
            .as_ref()
            .map(|end| BootNanos(end.at.boot_nanos));
        let polled = self.rings.as_ref().and_then(|(_, scan)| scan.last);
        stated.or(polled.max(self.kernel.as_ref().and_then(|(_, roll)| roll.last)))
    }

    /// Returns the streams that end early, with reasons.
    pub fn ends(&self) -> impl Iterator<Item = (&'static str, &StreamEnd)> {
        let rings = self
            .rings
            .iter()
            .filter_map(|(_, scan)| Some((Rings::FILE, scan.end.as_ref()?)));
        rings.chain(
            self.kernel
                .iter()
                .filter_map(|(_, roll)| Some((Events::FILE, roll.end.as_ref()?))),
        )
    }

    /// Returns the kinds of parts left out to bound memory, with their numbers.
    pub fn left_out(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let scan = self.rings.as_ref().map(|(_, scan)| scan);
        let of_rings = scan.map(|scan| {
            [
                ("owner change", scan.changes_left_out),
                ("clock reading", scan.anchors_left_out()),
            ]
        });
        let names = self
            .kernel
            .as_ref()
            .map(|(_, roll)| ("thread name", roll.left_out));
        let parts = std::iter::once(("meta.json list item", self.parts_left_out));
        of_rings
            .into_iter()
            .flatten()
            .chain(names)
            .chain(parts)
            .filter(|(_, count)| *count > 0)
    }

    /// Returns the threads of the process, those that ended included.
    pub fn threads(&self) -> &[NamedThread] {
        self.kernel.as_ref().map_or(&[], |(_, roll)| &roll.roster)
    }

    /// Returns the names of all threads that the capture mentions.
    pub fn names(&self) -> Names {
        let named = self
            .kernel
            .iter()
            .flat_map(|(_, roll)| roll.roster.iter().chain(&roll.names));
        let mut all: Vec<_> = named.copied().collect();
        all.sort_by_key(|thread| (thread.tid, thread.since));
        Names { all }
    }

    /// Returns the thread that writes each lcore's ring, if it was found.
    pub fn lcore_threads(&self) -> HashMap<Lcore, Tid> {
        self.meta
            .lcores
            .iter()
            .filter_map(|found| Some((Lcore(found.lcore), Tid(found.tid?))))
            .collect()
    }
}

impl Names {
    /// Returns the name of a thread at this time, or its next one if none is known yet: the bytes
    /// that the thread's owner chose.
    pub fn name(&self, tid: Tid, at: BootNanos) -> Option<&[u8]> {
        let next = self
            .all
            .partition_point(|thread| (thread.tid, thread.since) <= (tid, at));
        let of = |index: usize| self.all.get(index).filter(|thread| thread.tid == tid);
        text(next.checked_sub(1).and_then(of).or_else(|| of(next))?)
    }

    /// Returns the last name of each thread.
    pub fn all(&self) -> impl Iterator<Item = (Tid, &[u8])> {
        let threads = self.all.chunk_by(|a, b| a.tid == b.tid);
        threads
            .filter_map(|names| names.last())
            .filter_map(|thread| Some((thread.tid, text(thread)?)))
    }
}

fn text(thread: &NamedThread) -> Option<&[u8]> {
    thread.name.split(|&byte| byte == 0).next()
}

/// Reads the description; returns it with the number of list parts left out.
fn read_meta(source: &dyn ReadAt) -> Result<(Meta, u64), CaptureError> {
    let len = source.len();
    let size = usize::try_from(len)
        .ok()
        .filter(|_| len <= MAX_META)
        .ok_or(CaptureError::LargeMeta { len })?;
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
        return Err(CaptureError::Format {
            format: meta.format,
        });
    }
    Ok((meta, parts_left_out(&bytes[..done])?))
}
