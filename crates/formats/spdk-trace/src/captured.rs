//! A captured trace: the consecutive polls of a live one, as a stream that each pass reads again.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use crate::Error;
use crate::era::Era;
use crate::follow::Follower;
use crate::header::TpointTable;
use crate::owners::Owner;
use crate::problems::{Problem, Problems};
use crate::record::{Record, RecordSink};
use crate::slot::Slots;
use crate::tables::Tables;
use crate::tail::CopiedSlots;
use crate::units::{FileOffset, Lcore, TickRate, Ticks};

/// Time a record is held back for an older one of another ring, as when following a live trace.
const HOLD_TIME: Duration = Duration::from_millis(50);

/// Data copied by one or more polls of all rings.
#[derive(Debug, Default)]
pub struct CapturedPoll {
    /// The slots.
    pub copied: CopiedSlots,
    /// Changed bytes of the trace file outside the rings' slots, with their offsets.
    pub changes: Vec<(FileOffset, Vec<u8>)>,
    /// Start of the last of the polls, by any clock that does not stand still.
    pub at: Duration,
}

/// Reason for which a stream of polls ended early.
#[derive(Debug)]
pub enum StreamEnd {
    /// The stream ends in the middle, as when its writer was killed.
    Cut {
        /// Offset in the stream's file.
        at: FileOffset,
    },
    /// The stream is damaged.
    Broken {
        /// Offset in the stream's file.
        at: FileOffset,
        /// Description of the damage.
        what: &'static str,
    },
    /// The stream can't be read.
    Failed {
        /// Offset in the stream's file.
        at: FileOffset,
        /// The operating system's reason.
        source: io::Error,
    },
}

/// A stream of polls, which can be read from its beginning any number of times.
pub trait Polls {
    /// Iterates over the polls from the first one. After an error there are no more.
    fn polls(&self) -> Box<dyn Iterator<Item = Result<CapturedPoll, StreamEnd>> + '_>;
}

/// A captured trace. Each pass reads its records from the stream; only those of the last moment are
/// in memory.
pub struct CapturedTrace {
    tables: Tables,
    stream: Box<dyn Polls>,
    head: Follower,
    /// Every owner that existed during the capture. One id may have been used several times.
    owners: BTreeMap<(u16, Ticks), Owner>,
    /// Changes that register the first owner of an id. They hold from the start of a pass, since an
    /// owner has later records only: a recorder without a CPU writes changes long after records.
    first_owners: Vec<(FileOffset, Box<[u8]>)>,
    common_start: Ticks,
}

/// Result of one pass over a captured trace.
#[derive(Clone, Debug, Default)]
pub struct CapturedSummary {
    /// Captured records of each lcore.
    pub rings: Vec<CapturedRing>,
    /// Damage found on the way.
    pub problems: Problems,
}

/// Captured part of one lcore's ring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedRing {
    /// The lcore.
    pub lcore: Lcore,
    /// Name of the lcore's thread; empty if the file has none.
    pub thread_name: String,
    /// Slots in the ring.
    pub slots: u64,
    /// Number of captured records.
    pub records: u64,
    /// Number of slots overwritten before they were copied.
    pub lost: u64,
    /// Times of the first and the last record.
    pub span: Option<(Ticks, Ticks)>,
}

/// A time span in which records of one lcore are missing: they were overwritten before they were
/// copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedGap {
    /// The lcore.
    pub lcore: Lcore,
    /// Time of the last slot before the gap.
    pub from: Ticks,
    /// Time of the first slot after the gap.
    pub to: Ticks,
    /// Number of lost slots.
    pub slots: u64,
}

/// Limit on returned gaps; more could not be shown.
const MAX_GAPS: usize = 65_536;

impl CapturedTrace {
    /// Reads the tables. `changes` are the changes of the whole stream, in order. `common_start` is
    /// the time of the newest of the rings' oldest slots at the first poll, or 0 if no ring had
    /// wrapped by then.
    pub fn open<'a>(
        tables: Tables,
        changes: impl Iterator<Item = (FileOffset, &'a [u8])>,
        common_start: Ticks,
        stream: Box<dyn Polls>,
    ) -> Result<Self, Error> {
        let head = Follower::new(&tables)?;
        let of = |(id, owner): (u16, &Owner)| ((id, owner.since), owner.clone());
        let mut owners: BTreeMap<_, _> = head.owners().all().map(of).collect();
        let mut now = head.owners().clone();
        let mut used: HashSet<u16> = owners.keys().map(|(id, _)| *id).collect();
        let mut first_owners = Vec::new();
        for (at, bytes) in changes {
            let news: Vec<_> = now.change(at, bytes).map(of).collect();
            let is_first = news.iter().all(|((id, _), _)| !used.contains(id));
            if is_first && !news.is_empty() {
                first_owners.push((at, bytes.into()));
            }
            used.extend(news.iter().map(|((id, _), _)| *id));
            owners.extend(news);
        }
        Ok(Self {
            tables,
            stream,
            head,
            owners,
            first_owners,
            common_start,
        })
    }

    /// Returns the era of the file.
    pub fn era(&self) -> Era {
        self.head.era()
    }

    /// Returns the ticks per second, as stated in the file.
    pub fn tick_rate(&self) -> TickRate {
        self.head.tick_rate()
    }

    /// Returns the tracepoints.
    pub fn tpoints(&self) -> &TpointTable {
        self.head.tpoints()
    }

    /// Iterates over every owner that existed during the capture, by id and then by time.
    pub fn owners(&self) -> impl Iterator<Item = (u16, &Owner)> {
        self.owners.iter().map(|((id, _), owner)| (*id, owner))
    }

    /// Returns whether these are all owners that ever existed: no id had been reused before the
    /// capture.
    pub fn are_all_owners(&self) -> bool {
        self.head.owners().are_all()
    }

    /// Iterates over the lcores and the number of slots in their rings.
    pub fn rings(&self) -> impl Iterator<Item = (Lcore, u64)> {
        self.head.rings()
    }

    /// Returns the time from which every lcore has data. Older records had been overwritten in some
    /// rings when the capture began.
    pub fn common_start(&self) -> Ticks {
        self.common_start
    }

    /// Calls `each` with every record in time order, until it breaks; returns the damage found.
    pub fn for_each(&self, mut each: impl FnMut(&Record<'_>) -> ControlFlow<()>) -> Problems {
        self.walk(&mut each).1
    }

    /// Reads the whole stream, and counts records and losses.
    pub fn summary(&self) -> CapturedSummary {
        let rings = self
            .head
            .rings()
            .zip(self.head.lcores())
            .map(|((lcore, slots), (_, name))| {
                (
                    lcore,
                    CapturedRing {
                        lcore,
                        thread_name: name.to_owned(),
                        slots,
                        ..CapturedRing::default()
                    },
                )
            });
        let mut counted: BTreeMap<Lcore, CapturedRing> = rings.collect();
        let (follower, problems) = self.walk(&mut |record| {
            if let Some(ring) = counted.get_mut(&record.lcore) {
                ring.records += 1;
                let (first, last) = ring.span.unwrap_or((record.tsc, record.tsc));
                ring.span = Some((first.min(record.tsc), last.max(record.tsc)));
            }
            ControlFlow::Continue(())
        });
        for loss in follower.iter().flat_map(Follower::losses) {
            counted.entry(loss.lcore).or_default().lost = loss.slots;
        }
        CapturedSummary {
            rings: counted.into_values().collect(),
            problems,
        }
    }

    /// Returns the gaps in the order of the stream, at most the first 65,536.
    pub fn gaps(&self) -> Vec<CapturedGap> {
        let lcores: Vec<Lcore> = self.head.rings().map(|(lcore, _)| lcore).collect();
        let mut last = vec![None; lcores.len()];
        let mut gaps = Vec::new();
        for poll in self.stream.polls().map_while(Result::ok) {
            for run in poll.copied.runs() {
                let (Some(lcore), Some(last)) = (lcores.get(run.ring), last.get_mut(run.ring))
                else {
                    continue;
                };
                let slots = Slots::new(run.slots);
                let Some(end) = slots.len().checked_sub(1) else {
                    continue;
                };
                let to = slots.at(0).tsc();
                if run.lost > 0
                    && let Some(from) = *last
                    && from < to
                    && gaps.len() < MAX_GAPS
                {
                    gaps.push(CapturedGap {
                        lcore: *lcore,
                        from,
                        to,
                        slots: run.lost,
                    });
                }
                *last = Some(slots.at(end).tsc());
            }
        }
        gaps
    }

    fn walk(&self, each: &mut RecordSink<'_>) -> (Option<Follower>, Problems) {
        // `open` has already read the header from the same bytes.
        let Ok(mut follower) = Follower::new(&self.tables) else {
            return (None, Problems::default());
        };
        for (at, owner) in &self.first_owners {
            follower.change(*at, owner);
        }
        let mut end = None;
        let mut flow = ControlFlow::Continue(());
        for poll in self.stream.polls() {
            let CapturedPoll {
                copied,
                changes,
                at,
            } = match poll {
                Ok(poll) => poll,
                Err(why) => {
                    end = Some(why);
                    break;
                }
            };
            follower.take(copied, at);
            for (at, bytes) in &changes {
                follower.change(*at, bytes);
            }
            flow = follower.give(HOLD_TIME, &mut *each);
            // The buffers are not reused here.
            follower.spare().for_each(drop);
            if flow.is_break() {
                break;
            }
        }
        if flow.is_continue() {
            let _ = follower.give_all(each);
        }
        let mut problems = follower.problems().clone();
        for loss in follower.losses() {
            problems.add_many(
                Problem::NotCaptured,
                Some(loss.lcore),
                FileOffset(0),
                loss.slots,
            );
        }
        if let Some(end) = end {
            end.report(&mut problems);
        }
        (Some(follower), problems)
    }
}

impl StreamEnd {
    fn report(&self, problems: &mut Problems) {
        match self {
            Self::Cut { at } => problems.add(Problem::CaptureCut, None, *at),
            Self::Broken { at, what } => problems.add(Problem::CaptureBroken(what), None, *at),
            Self::Failed { at, source } => {
                problems.add(Problem::CaptureFailed(source.kind()), None, *at);
            }
        }
    }
}

impl fmt::Display for StreamEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut { at } => write!(f, "it is cut off at {at}"),
            Self::Broken { at, what } => write!(f, "it is damaged at {at}: {what}"),
            Self::Failed { at, source } => write!(f, "it can't be read at {at}: {source}"),
        }
    }
}

impl std::error::Error for StreamEnd {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed { source, .. } => Some(source),
            Self::Cut { .. } | Self::Broken { .. } => None,
        }
    }
}

impl fmt::Debug for CapturedTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CapturedTrace")
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}
