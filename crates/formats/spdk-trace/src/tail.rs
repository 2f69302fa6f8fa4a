//! The reading half of following a live trace: copies only the slots of each ring that are new
//! since the last poll.
//!
//! The application increments a ring's cursor after a record is complete, and overwrites the oldest
//! slots first. So the slots before the cursor are copied, and then the cursor is read again. Slots
//! that the writer may have reached in the meantime are left out and counted, and so are those
//! overwritten earlier.

use crate::Error;
use crate::header::RingPlace;
use crate::ring::cursor;
use crate::slot::{self, SLOT_SIZE};
use crate::source::{ReadAt, fill};
use crate::units::{FileOffset, Lcore};

/// Number of slots copied between two reads of the cursor: 256 KiB.
const SLOTS_PER_READ: u64 = 8192;

/// Reader of new slots from the rings of a live trace, for [`crate::Follower::take`]. The two can
/// be in different threads.
#[derive(Clone, Debug)]
pub struct Tail {
    rings: Vec<TailRing>,
    /// Maximum number of slots of one record: the writer may be up to this many slots past the
    /// cursor.
    max_slots: u64,
}

#[derive(Clone, Debug)]
struct TailRing {
    place: RingPlace,
    /// Value of the cursor at the first slot not copied yet; `None` before the first poll.
    next: Option<u64>,
    /// Maximum number of slots copied by a poll.
    most: u64,
    /// Number of slots copied and lost since the first poll.
    total: Total,
}

/// Number of slots of a ring copied and lost since the first poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Number of slots copied.
    pub copied: u64,
    /// Number of slots overwritten before they were copied, or left out ([`Tail::keep_newest`]).
    pub lost: u64,
}

/// Raw slots copied by one or more polls, ring by ring.
#[derive(Debug, Default)]
pub struct CopiedSlots {
    pub(crate) rings: Vec<CopiedRing>,
}

/// Slots copied from one ring.
#[derive(Debug, Default)]
pub(crate) struct CopiedRing {
    pub(crate) bytes: Vec<u8>,
    pub(crate) runs: Vec<Run>,
    /// Value of the cursor after the last slot.
    end: u64,
    /// Offset of the file's end and number of missing slots, if the file ended before the ring.
    pub(crate) cut: Option<(FileOffset, u64)>,
}

/// Slots that were written consecutively.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Index of the first slot among the copied ones.
    pub(crate) index: usize,
    /// Sequence number of that slot's write.
    pub(crate) seq: u64,
    /// Number of slots lost before the first one: overwritten before they could be copied.
    pub(crate) lost: u64,
}

/// The result of a poll.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Poll {
    /// Number of slots copied, of all rings.
    pub slots: u64,
    /// Number of slots overwritten before they could be copied, of all rings.
    pub lost: u64,
    /// Largest share of a ring written since the last poll; 1 or more if the writer overtook the
    /// reader.
    pub fill: f64,
}

impl Tail {
    pub(crate) fn new(places: impl Iterator<Item = RingPlace>, max_slots: u64) -> Self {
        let ring = |place| TailRing {
            place,
            next: None,
            most: u64::MAX,
            total: Total::default(),
        };
        Self {
            rings: places.map(ring).collect(),
            max_slots,
        }
    }

    /// Limits each following poll to the newest `slots` slots of each ring. Older ones count as
    /// lost.
    pub fn keep_newest(&mut self, slots: u64) {
        self.rings.iter_mut().for_each(|ring| ring.most = slots);
    }

    /// Iterates over the totals of each ring since the first poll, which itself does not count.
    pub fn totals(&self) -> impl Iterator<Item = (Lcore, Total)> {
        self.rings.iter().map(|ring| (ring.place.lcore, ring.total))
    }

    /// Iterates over the lcores and the number of slots in their rings.
    pub fn rings(&self) -> impl Iterator<Item = (Lcore, u64)> {
        self.rings
            .iter()
            .map(|ring| (ring.place.lcore, ring.place.num_slots))
    }

    /// Skips the current contents of the rings: the next poll copies only slots written from now
    /// on.
    pub fn skip<S: ReadAt + ?Sized>(&mut self, source: &S) -> Result<(), Error> {
        for ring in &mut self.rings {
            ring.next = Some(cursor(&ring.place, source)?);
        }
        Ok(())
    }

    /// Appends the new slots to `into`, after those of earlier polls. The first poll copies the
    /// whole rings; slots overwritten before that are not counted.
    pub fn poll<S: ReadAt + ?Sized>(
        &mut self,
        source: &S,
        into: &mut CopiedSlots,
    ) -> Result<Poll, Error> {
        into.rings
            .resize_with(self.rings.len(), CopiedRing::default);
        let mut poll = Poll::default();
        for (ring, copied) in self.rings.iter_mut().zip(&mut into.rings) {
            ring.poll(source, self.max_slots, copied, &mut poll)?;
        }
        Ok(poll)
    }
}

impl TailRing {
    fn poll<S: ReadAt + ?Sized>(
        &mut self,
        source: &S,
        max_slots: u64,
        into: &mut CopiedRing,
        poll: &mut Poll,
    ) -> Result<(), Error> {
        let written = cursor(&self.place, source)?;
        let n = self.place.num_slots.max(1);
        let oldest = written.saturating_sub(n.min(self.most));
        // A cursor that went back belongs to another application.
        let before = self.next.filter(|&next| next <= written);
        let from = before.unwrap_or(oldest);
        if before.is_some() {
            poll.fill = poll.fill.max((written - from) as f64 / n as f64);
        }
        let (slots_before, lost_before) = (poll.slots, poll.lost);
        let mut seq = from.max(oldest);
        let mut lost = seq - from;
        while seq < written {
            let piece = (written - seq).min(SLOTS_PER_READ).min(n - seq % n);
            let copied = self.copy(source, seq, piece, into)?;
            // Slots that the writer may have reached meanwhile are not intact.
            let intact = cursor(&self.place, source)?
                .saturating_add(max_slots)
                .saturating_sub(n);
            let torn = intact.saturating_sub(seq).min(copied);
            into.drop_first_of_last(copied, torn);
            lost += torn;
            poll.slots += copied - torn;
            if copied > torn {
                let gap = if before.is_some() {
                    std::mem::take(&mut lost)
                } else {
                    0
                };
                poll.lost += gap;
                into.ran(seq + torn, copied - torn, gap);
            }
            seq += copied;
            if copied < piece {
                into.cut = Some((slot::place(self.place.slots, seq % n), written - seq));
                break;
            }
            let skipped = intact.min(written).saturating_sub(seq);
            (seq, lost) = (seq + skipped, lost + skipped);
        }
        if lost > 0 && before.is_some() {
            poll.lost += lost;
            into.ran(seq, 0, lost);
        }
        self.next = Some(seq);
        if before.is_some() {
            self.total.copied += poll.slots - slots_before;
            self.total.lost += poll.lost - lost_before;
        }
        Ok(())
    }

    /// Appends the slots from `seq` on, as far as the file has them; returns their number.
    fn copy<S: ReadAt + ?Sized>(
        &self,
        source: &S,
        seq: u64,
        slots: u64,
        into: &mut CopiedRing,
    ) -> Result<u64, Error> {
        let at = slot::place(self.place.slots, seq % self.place.num_slots.max(1));
        let failed = |source| Error::Read {
            what: "a ring",
            at,
            source,
        };
        let (begin, size) = (into.bytes.len(), slots as usize * SLOT_SIZE);
        into.bytes
            .try_reserve(size)
            .map_err(|_| failed(std::io::ErrorKind::OutOfMemory.into()))?;
        into.bytes.resize(begin + size, 0);
        let got = fill(source, &mut into.bytes[begin..], at.0).map_err(failed)? / SLOT_SIZE;
        into.bytes.truncate(begin + got * SLOT_SIZE);
        Ok(got as u64)
    }
}

impl CopiedRing {
    /// Removes the first `torn` of the last `copied` slots.
    fn drop_first_of_last(&mut self, copied: u64, torn: u64) {
        if torn > 0 {
            let begin = self.bytes.len() - copied as usize * SLOT_SIZE;
            self.bytes.drain(begin..begin + torn as usize * SLOT_SIZE);
        }
    }

    /// Notes that the last `slots` slots have numbers from `seq` on, and that `lost` were lost
    /// before them.
    pub(crate) fn ran(&mut self, seq: u64, slots: u64, lost: u64) {
        if self.runs.is_empty() || lost > 0 || seq != self.end {
            self.runs.push(Run {
                index: self.bytes.len() / SLOT_SIZE - slots as usize,
                seq,
                lost,
            });
        }
        self.end = seq.saturating_add(slots);
    }
}

impl CopiedSlots {
    /// Returns whether nothing was copied.
    pub fn is_empty(&self) -> bool {
        self.rings
            .iter()
            .all(|ring| ring.runs.is_empty() && ring.cut.is_none())
    }

    /// Returns the number of bytes of copied slots.
    pub fn bytes(&self) -> usize {
        self.rings.iter().map(|ring| ring.bytes.len()).sum()
    }

    /// Lends a buffer to each ring, as long as `spare` returns one ([`crate::Follower::spare`]).
    pub fn prepare(&mut self, rings: usize, mut spare: impl FnMut() -> Option<Vec<u8>>) {
        self.rings.resize_with(rings, CopiedRing::default);
        for ring in self
            .rings
            .iter_mut()
            .filter(|ring| ring.bytes.capacity() == 0)
        {
            let Some(mut bytes) = spare() else { return };
            bytes.clear();
            ring.bytes = bytes;
        }
    }
}
