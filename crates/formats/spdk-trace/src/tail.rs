//! The reading half of a live trace: copies only the slots of each ring that are new since the last poll.
//!
//! The application increments a ring's cursor after a record is complete, and overwrites the oldest slots first. So the slots
//! before the cursor are copied, and then the cursor is read again: slots that the writer may have reached in the meantime
//! are left out and counted, and so are those that were overwritten before.

use crate::Error;
use crate::header::RingPlace;
use crate::ring::cursor;
use crate::slot::{self, SLOT_SIZE};
use crate::source::{ReadAt, fill};
use crate::units::{FileOffset, Lcore};

/// Slots that are copied between two reads of the cursor: 256 KiB.
const PIECE: u64 = 8192;

/// Copies what is new in the rings of a live trace, for [`crate::Follower::take`]. The two can be in different threads.
#[derive(Clone, Debug)]
pub struct Tail {
    rings: Vec<TailRing>,
    /// The most slots that one record takes: the writer may be within that many behind the cursor.
    max_slots: u64,
}

#[derive(Clone, Debug)]
struct TailRing {
    place: RingPlace,
    /// The cursor's value at the first slot that was not copied yet; `None` before the first poll.
    next: Option<u64>,
    /// The most slots that a poll copies.
    most: u64,
    /// Slots that were copied, and lost, since the first poll.
    total: Total,
}

/// What became of the slots of a ring that were written since the first poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Those that were copied.
    pub copied: u64,
    /// Those that were overwritten before, or left out ([`Tail::keep_newest`]).
    pub lost: u64,
}

/// What polls have copied: raw slots, a heap for each ring.
#[derive(Debug, Default)]
pub struct Copied {
    pub(crate) rings: Vec<CopiedRing>,
}

/// What was copied out of one ring.
#[derive(Debug, Default)]
pub(crate) struct CopiedRing {
    pub(crate) bytes: Vec<u8>,
    pub(crate) runs: Vec<Run>,
    /// The cursor's value after the last slot.
    end: u64,
    /// Where the file ended, if it did before the ring.
    pub(crate) cut: Option<(FileOffset, u64)>,
}

/// Slots that were written one after another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Its first slot among those that were copied.
    pub(crate) index: usize,
    /// The number of the write that this slot holds.
    pub(crate) seq: u64,
    /// How many slots before it were overwritten before they could be copied.
    pub(crate) lost: u64,
}

/// The result of a poll.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Poll {
    /// Slots copied, of all rings.
    pub slots: u64,
    /// Slots that were overwritten before they could be copied, of all rings.
    pub lost: u64,
    /// The largest share of a ring that was written since the last poll; 1 or more if the writer overtook the reader.
    pub fill: f64,
}

impl Tail {
    pub(crate) fn new(places: impl Iterator<Item = RingPlace>, max_slots: u64) -> Self {
        let ring = |place| TailRing { place, next: None, most: u64::MAX, total: Total::default() };
        Self { rings: places.map(ring).collect(), max_slots }
    }

    /// From now on a poll copies at most this many slots of each ring: the newest ones. Older ones count as lost.
    pub fn keep_newest(&mut self, slots: u64) {
        self.rings.iter_mut().for_each(|ring| ring.most = slots);
    }

    /// What became of the slots of each ring since the first poll, which itself does not count.
    pub fn totals(&self) -> impl Iterator<Item = (Lcore, Total)> {
        self.rings.iter().map(|ring| (ring.place.lcore, ring.total))
    }

    /// The lcores and the slots of their rings.
    pub fn rings(&self) -> impl Iterator<Item = (Lcore, u64)> {
        self.rings.iter().map(|ring| (ring.place.lcore, ring.place.num_slots))
    }

    /// Leaves out what is in the rings now: the next poll copies what is written from now on.
    pub fn skip<S: ReadAt + ?Sized>(&mut self, source: &S) -> Result<(), Error> {
        for ring in &mut self.rings {
            ring.next = Some(cursor(&ring.place, source)?);
        }
        Ok(())
    }

    /// Appends the new slots to `into`, after those of earlier polls. The first poll copies everything in the rings; slots
    /// that were overwritten before that are not counted.
    pub fn poll<S: ReadAt + ?Sized>(&mut self, source: &S, into: &mut Copied) -> Result<Poll, Error> {
        into.rings.resize_with(self.rings.len(), CopiedRing::default);
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
        // A cursor that went back is another application's.
        let before = self.next.filter(|&next| next <= written);
        let from = before.unwrap_or(oldest);
        if before.is_some() {
            poll.fill = poll.fill.max((written - from) as f64 / n as f64);
        }
        let (slots_before, lost_before) = (poll.slots, poll.lost);
        let mut seq = from.max(oldest);
        let mut lost = seq - from;
        while seq < written {
            let piece = (written - seq).min(PIECE).min(n - seq % n);
            let copied = self.copy(source, seq, piece, into)?;
            // Slots that the writer may have reached meanwhile are not intact.
            let intact = cursor(&self.place, source)?.saturating_add(max_slots).saturating_sub(n);
            let torn = intact.saturating_sub(seq).min(copied);
            into.drop_first_of_last(copied, torn);
            lost += torn;
            poll.slots += copied - torn;
            if copied > torn {
                let gap = if before.is_some() { std::mem::take(&mut lost) } else { 0 };
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

    /// Appends the slots from `seq` on, as far as the file has them; gives how many these are.
    fn copy<S: ReadAt + ?Sized>(&self, source: &S, seq: u64, slots: u64, into: &mut CopiedRing) -> Result<u64, Error> {
        let at = slot::place(self.place.slots, seq % self.place.num_slots.max(1));
        let failed = |source| Error::Read { what: "a ring", at, source };
        let (begin, size) = (into.bytes.len(), slots as usize * SLOT_SIZE);
        into.bytes.try_reserve(size).map_err(|_| failed(std::io::ErrorKind::OutOfMemory.into()))?;
        into.bytes.resize(begin + size, 0);
        let got = fill(source, &mut into.bytes[begin..], at.0).map_err(failed)? / SLOT_SIZE;
        into.bytes.truncate(begin + got * SLOT_SIZE);
        Ok(got as u64)
    }
}

impl CopiedRing {
    /// Of the last `copied` slots, takes the first `torn` away again.
    fn drop_first_of_last(&mut self, copied: u64, torn: u64) {
        if torn > 0 {
            let begin = self.bytes.len() - copied as usize * SLOT_SIZE;
            self.bytes.drain(begin..begin + torn as usize * SLOT_SIZE);
        }
    }

    /// Notes that the last `slots` slots are those from `seq` on, and that `lost` were lost before them.
    pub(crate) fn ran(&mut self, seq: u64, slots: u64, lost: u64) {
        if self.runs.is_empty() || lost > 0 || seq != self.end {
            self.runs.push(Run { index: self.bytes.len() / SLOT_SIZE - slots as usize, seq, lost });
        }
        self.end = seq.saturating_add(slots);
    }
}

impl Copied {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.rings.iter().all(|ring| ring.runs.is_empty() && ring.cut.is_none())
    }

    /// Bytes of slots in it.
    pub fn bytes(&self) -> usize {
        self.rings.iter().map(|ring| ring.bytes.len()).sum()
    }

    /// Gives it memory to copy into, one buffer for each ring as far as there are some ([`crate::Follower::spare`]).
    pub fn prepare(&mut self, rings: usize, mut spare: impl FnMut() -> Option<Vec<u8>>) {
        self.rings.resize_with(rings, CopiedRing::default);
        for ring in self.rings.iter_mut().filter(|ring| ring.bytes.capacity() == 0) {
            let Some(mut bytes) = spare() else { return };
            bytes.clear();
            ring.bytes = bytes;
        }
    }
}
