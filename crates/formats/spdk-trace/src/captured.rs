//! A captured trace: the polls of a live one, one after the other, as a stream that is read again for each pass.

use std::collections::BTreeMap;
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
use crate::record::{Each, Record};
use crate::slot::Slots;
use crate::tables::Tables;
use crate::tail::Copied;
use crate::units::{FileOffset, Lcore, TickRate, Ticks};

/// For how long a record is held back, in case an older one of another ring still comes, as if the trace were followed.
const HOLD: Duration = Duration::from_millis(50);

/// What one poll of all rings copied, or several.
#[derive(Debug, Default)]
pub struct CapturedPoll {
    /// The slots.
    pub copied: Copied,
    /// What has changed of the trace file outside its rings' slots: where, and the bytes.
    pub changes: Vec<(FileOffset, Vec<u8>)>,
    /// When the last of the polls began, by any clock that does not stand still.
    pub at: Duration,
}

/// Why a stream of polls gives no more.
#[derive(Debug)]
pub enum StreamEnd {
    /// It ends in the middle, as when its writer was killed.
    Cut {
        /// Where, in the stream's file.
        at: FileOffset,
    },
    /// It is damaged.
    Broken {
        /// Where, in the stream's file.
        at: FileOffset,
        /// What is wrong there.
        what: &'static str,
    },
    /// It can't be read.
    Failed {
        /// Where, in the stream's file.
        at: FileOffset,
        /// The operating system's reason.
        source: io::Error,
    },
}

/// A stream of polls, which can be read from its beginning any number of times.
pub trait Polls {
    /// The polls from the first on. After an error there is nothing more.
    fn polls(&self) -> Box<dyn Iterator<Item = Result<CapturedPoll, StreamEnd>> + '_>;
}

/// A captured trace. Its records are read from the stream whenever they are asked for; of these, no more is kept than what
/// was written within a moment.
pub struct CapturedTrace {
    tables: Tables,
    stream: Box<dyn Polls>,
    head: Follower,
    /// Every owner that was there while the trace was captured: its number may have been used several times.
    owners: BTreeMap<(u16, Ticks), Owner>,
    common_start: Ticks,
}

/// What one pass over a captured trace found.
#[derive(Clone, Debug, Default)]
pub struct CapturedSummary {
    /// For each lcore its records.
    pub rings: Vec<CapturedRing>,
    /// What could not be read.
    pub problems: Problems,
}

/// What was captured of one lcore's ring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedRing {
    /// Whose it is.
    pub lcore: Lcore,
    /// Name of its thread; empty if the file has none.
    pub thread_name: String,
    /// Slots in the ring.
    pub slots: u64,
    /// Records that were captured.
    pub records: u64,
    /// Slots that were overwritten before they were copied.
    pub lost: u64,
    /// Times of its first and its last record.
    pub span: Option<(Ticks, Ticks)>,
}

/// A time of which records of one lcore are missing: they were overwritten before they were copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedGap {
    /// Whose.
    pub lcore: Lcore,
    /// The time of the last slot before it, and of the first one after it.
    pub from: Ticks,
    /// See above.
    pub to: Ticks,
    /// Slots that were lost.
    pub slots: u64,
}

/// Gaps that are handed out: more than that can't be shown.
const MOST_GAPS: usize = 65_536;

impl CapturedTrace {
    /// Reads the tables. `changes` are those of the whole stream, in its order; `common_start` is the time of the newest of
    /// the rings' oldest slots at the first poll, if a ring had wrapped by then, and else 0.
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
        for (at, bytes) in changes {
            owners.extend(now.change(at, bytes).map(of));
        }
        Ok(Self { tables, stream, head, owners, common_start })
    }

    /// The era of its layout.
    pub fn era(&self) -> Era {
        self.head.era()
    }

    /// Ticks a second, as the file states it.
    pub fn tick_rate(&self) -> TickRate {
        self.head.tick_rate()
    }

    /// The tracepoints.
    pub fn tpoints(&self) -> &TpointTable {
        self.head.tpoints()
    }

    /// Every owner that was there while the trace was captured, by its number, and those of one number by their times.
    pub fn owners(&self) -> impl Iterator<Item = (u16, &Owner)> {
        self.owners.iter().map(|((id, _), owner)| (*id, owner))
    }

    /// Returns whether these are all owners there ever were: no id was used a second time before the trace was captured.
    pub fn are_all_owners(&self) -> bool {
        self.head.owners().are_all()
    }

    /// The slots of each lcore's ring.
    pub fn rings(&self) -> impl Iterator<Item = (Lcore, u64)> {
        self.head.rings()
    }

    /// From when on every lcore has data: what is older was in some rings when the capture began, and in others overwritten.
    pub fn common_start(&self) -> Ticks {
        self.common_start
    }

    /// Gives every record to `each`, in the order of time, until it breaks off; returns all that could not be read.
    pub fn for_each(&self, mut each: impl FnMut(&Record<'_>) -> ControlFlow<()>) -> Problems {
        self.walk(&mut each).1
    }

    /// Reads it once, and counts what there is.
    pub fn summary(&self) -> CapturedSummary {
        let rings = self.head.rings().zip(self.head.lcores()).map(|((lcore, slots), (_, name))| {
            (lcore, CapturedRing { lcore, thread_name: name.to_owned(), slots, ..CapturedRing::default() })
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
        CapturedSummary { rings: counted.into_values().collect(), problems }
    }

    /// When records were lost, in the order of the stream: the first 65,536 gaps.
    pub fn gaps(&self) -> Vec<CapturedGap> {
        let lcores: Vec<Lcore> = self.head.rings().map(|(lcore, _)| lcore).collect();
        let mut last = vec![None; lcores.len()];
        let mut gaps = Vec::new();
        for poll in self.stream.polls().map_while(Result::ok) {
            for run in poll.copied.runs() {
                let (Some(lcore), Some(last)) = (lcores.get(run.ring), last.get_mut(run.ring)) else { continue };
                let slots = Slots::new(run.slots);
                let Some(end) = slots.len().checked_sub(1) else { continue };
                let to = slots.at(0).tsc();
                if run.lost > 0
                    && let Some(from) = *last
                    && from < to
                    && gaps.len() < MOST_GAPS
                {
                    gaps.push(CapturedGap { lcore: *lcore, from, to, slots: run.lost });
                }
                *last = Some(slots.at(end).tsc());
            }
        }
        gaps
    }

    fn walk(&self, each: &mut Each<'_>) -> (Option<Follower>, Problems) {
        // It was read once already, from the same bytes.
        let Ok(mut follower) = Follower::new(&self.tables) else { return (None, Problems::default()) };
        let mut end = None;
        let mut flow = ControlFlow::Continue(());
        for poll in self.stream.polls() {
            let CapturedPoll { copied, changes, at } = match poll {
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
            flow = follower.give(HOLD, &mut *each);
            // There is nobody who would use them again.
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
            problems.add_many(Problem::NotCaptured, Some(loss.lcore), FileOffset(0), loss.slots);
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
            Self::Failed { at, source } => problems.add(Problem::CaptureFailed(source.kind()), None, *at),
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
        f.debug_struct("CapturedTrace").field("head", &self.head).finish_non_exhaustive()
    }
}
