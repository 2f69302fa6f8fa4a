//! A whole capture, read.

use std::collections::HashMap;
use std::sync::Arc;

use spdk_trace::{CapturedTrace, Follower, Lcore, ReadAt, StreamEnd};
use timeline::{BootNanos, Clock, Tid};

use crate::chunk::check_magic;
use crate::error::CaptureError;
use crate::events::{KernelEvents, NamedThread, Roll};
use crate::meta::{FORMAT, Meta};
use crate::polls::{RingsStream, Scan};
use crate::{events, rings};

/// The most bytes of `meta.json`.
const MAX_META: u64 = 1 << 24;
/// The files of the streams, for messages.
const RINGS: &str = "trace.rings";
const KERNEL: &str = "kernel.events";

/// A file of a capture. It is read again for each pass.
pub type Source = Arc<dyn ReadAt + Send + Sync>;

/// Reads a capture. The streams are read when they are asked for, a chunk at once, and as often as one likes.
pub struct Reader {
    meta: Meta,
    rings: Option<(Source, Scan)>,
    kernel: Option<(Source, Roll)>,
}

/// The names of threads.
#[derive(Clone, Debug, Default)]
pub struct Names {
    by_tid: HashMap<Tid, Vec<(BootNanos, [u8; 16])>>,
}

impl Reader {
    /// Reads `meta.json`, and of the streams what is not records and events. A part that the capture does not have is `None`.
    pub fn open(meta: &dyn ReadAt, rings: Option<Source>, kernel: Option<Source>) -> Result<Self, CaptureError> {
        let meta = read_meta(meta)?;
        let check = |source: &Source, magic, file| {
            check_magic(source.as_ref(), magic).map_err(|end| CaptureError::Part { file, end })
        };
        let rings = rings.map(|source| {
            check(&source, rings::MAGIC, RINGS)?;
            let scan = Scan::of(source.as_ref());
            Ok::<_, CaptureError>((source, scan))
        });
        let kernel = kernel.map(|source| {
            check(&source, events::MAGIC, KERNEL)?;
            let roll = Roll::of(source.as_ref());
            Ok::<_, CaptureError>((source, roll))
        });
        Ok(Self { meta, rings: rings.transpose()?, kernel: kernel.transpose()? })
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
        let stream = RingsStream::new(Arc::clone(source), &Follower::new(&scan.tables)?);
        let changes = scan.changes.iter().map(|(at, bytes)| (*at, bytes.as_slice()));
        Ok(CapturedTrace::open(scan.tables.clone(), changes, scan.common_start, Box::new(stream))?)
    }

    fn rings(&self) -> Result<&(Source, Scan), CaptureError> {
        let why = || self.meta.missing.get("trace").cloned();
        self.rings.as_ref().ok_or_else(|| CaptureError::NoPart { file: RINGS, why: why() })
    }

    fn kernel(&self) -> Result<&(Source, Roll), CaptureError> {
        let why = || self.meta.missing.get("kernel").cloned();
        self.kernel.as_ref().ok_or_else(|| CaptureError::NoPart { file: KERNEL, why: why() })
    }

    /// The kernel's events, in the order of time but for the few that came too late for it. The last item is an error if the
    /// stream is cut off or damaged.
    pub fn events(&self) -> Result<KernelEvents<'_>, CaptureError> {
        let (source, _) = self.kernel()?;
        Ok(KernelEvents::new(source.as_ref()))
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
        let rings = self.rings.iter().filter_map(|(_, scan)| Some((RINGS, scan.end.as_ref()?)));
        rings.chain(self.kernel.iter().filter_map(|(_, roll)| Some((KERNEL, roll.end.as_ref()?))))
    }

    /// The threads of the process, those that ended included.
    pub fn threads(&self) -> &[NamedThread] {
        self.kernel.as_ref().map_or(&[], |(_, roll)| &roll.roster)
    }

    /// The names of all threads that the capture mentions.
    pub fn names(&self) -> Names {
        let mut by_tid: HashMap<Tid, Vec<_>> = HashMap::new();
        let named = self.kernel.iter().flat_map(|(_, roll)| roll.roster.iter().chain(&roll.names));
        for thread in named {
            by_tid.entry(thread.tid).or_default().push((thread.since, thread.name));
        }
        for names in by_tid.values_mut() {
            names.sort_by_key(|(since, _)| *since);
        }
        Names { by_tid }
    }

    /// The thread that writes each lcore's ring, where it was found.
    pub fn lcore_threads(&self) -> HashMap<Lcore, Tid> {
        self.meta.lcores.iter().filter_map(|found| Some((Lcore(found.lcore), Tid(found.tid?)))).collect()
    }
}

impl Names {
    /// What a thread was called at that time, or before and after if that is all that is known. Foreign text.
    pub fn name(&self, tid: Tid, at: BootNanos) -> Option<&[u8]> {
        let names = self.by_tid.get(&tid)?;
        let index = names.partition_point(|(since, _)| *since <= at).saturating_sub(1);
        let (_, name) = names.get(index)?;
        name.split(|&byte| byte == 0).next()
    }

    /// The last name of each thread.
    pub fn all(&self) -> impl Iterator<Item = (Tid, &[u8])> {
        self.by_tid.keys().filter_map(|&tid| Some((tid, self.name(tid, BootNanos(u64::MAX))?)))
    }
}

fn read_meta(source: &dyn ReadAt) -> Result<Meta, CaptureError> {
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
    if (1..=FORMAT).contains(&meta.format) { Ok(meta) } else { Err(CaptureError::Format { format: meta.format }) }
}
