//! One lcore's ring, copied out of a file that the application may be writing to.
//!
//! The application increments `next_entry` after a record is complete, and overwrites the oldest
//! slots first (`lib/trace/trace.c`, `_spdk_trace_record`). So the copy starts at the oldest slot,
//! stays ahead of the writer, and reads the cursor after each chunk: a slot is intact if the writer
//! was not near it at that time.

mod seam;

use crate::Error;
use crate::header::RingPlace;
use crate::problems::{Problem, Problems};
use crate::slot::{self, SLOT_SIZE, Slot, Slots};
use crate::source::{ReadAt, fill, read_u64};
use crate::units::{FileOffset, Lcore, Ticks};

/// Number of slots copied between two reads of the cursor: 256 KiB.
const SLOTS_PER_READ: usize = 8192;
/// A copy of a ring's slots, oldest first. A slot that was left out has tsc 0, like one that was
/// never written.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    pub(crate) lcore: Lcore,
    pub(crate) thread_name: String,
    bytes: Vec<u8>,
    /// Offset of slot 0 of the file's ring.
    slots_at: FileOffset,
    /// Slot of the file's ring that comes first here.
    start: u64,
    /// Number of slots in the file's ring.
    pub(crate) num_slots: u64,
    /// Number of its slots that are within the file.
    present: u64,
    /// True if older slots were overwritten by newer ones.
    pub(crate) wrapped: bool,
    /// `next_entry` when the copy began.
    pub(crate) cursor: u64,
    /// True if the writer overwrote slots before they were copied.
    lost: bool,
}

impl Ring {
    /// Copies the whole ring. `max_slots` is the maximum number of slots of one record.
    pub(crate) fn copy<S: ReadAt + ?Sized>(
        place: &RingPlace,
        source: &S,
        max_slots: u64,
        problems: &mut Problems,
    ) -> Result<Self, Error> {
        let cursor = cursor(place, source)?;
        let have = source.len().saturating_sub(place.slots.0) / SLOT_SIZE as u64;
        let present = place.num_slots.min(have);
        if present < place.num_slots {
            let missing = place.num_slots - present;
            problems.add_many(
                Problem::SlotsMissing,
                Some(place.lcore),
                FileOffset(source.len()),
                missing,
            );
        }
        // An incomplete ring can't be rotated: its first slot does not follow its last one.
        let oldest = if cursor >= place.num_slots && place.num_slots > 0 {
            cursor % place.num_slots
        } else {
            0
        };
        let start = if oldest < present { oldest } else { 0 };
        let mut ring = Self {
            present,
            ..Self::empty(place, cursor, start)
        };
        ring.reserve(present)?;
        let from = cursor.saturating_sub(place.num_slots);
        ring.read_piecewise(
            place,
            source,
            start,
            present - start,
            from,
            max_slots,
            problems,
        )?;
        let whole = ring.fill_up(present - start);
        ring.read_piecewise(
            place,
            source,
            0,
            start,
            from + (place.num_slots - start),
            max_slots,
            problems,
        )?;
        let whole = ring.fill_up(present) && whole;
        if whole && present == place.num_slots {
            ring.straighten(problems);
        } else {
            ring.wrapped = cursor >= place.num_slots;
        }
        ring.trim();
        Ok(ring)
    }

    fn empty(place: &RingPlace, cursor: u64, start: u64) -> Self {
        Self {
            lcore: place.lcore,
            thread_name: place.thread_name.clone(),
            bytes: Vec::new(),
            slots_at: place.slots,
            start,
            num_slots: place.num_slots,
            present: place.num_slots,
            wrapped: false,
            cursor,
            lost: false,
        }
    }

    fn reserve(&mut self, slots: u64) -> Result<(), Error> {
        let bytes = usize::try_from(slots)
            .ok()
            .and_then(|n| n.checked_mul(SLOT_SIZE));
        if bytes.is_none_or(|n| self.bytes.try_reserve_exact(n).is_err()) {
            let source = std::io::ErrorKind::OutOfMemory.into();
            return Err(Error::Read {
                what: "a ring",
                at: self.slots_at,
                source,
            });
        }
        Ok(())
    }

    /// Appends unwritten slots, up to `slots` in all, if the file shrank during the read. Returns
    /// true if none were needed.
    fn fill_up(&mut self, slots: u64) -> bool {
        let whole = self.bytes.len() as u64 == slots * SLOT_SIZE as u64;
        self.bytes.resize(slots as usize * SLOT_SIZE, 0);
        whole
    }

    /// Copies `count` slots from slot `start` on; `seq` is the sequence number of the first one's
    /// write.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call in two places; a struct would name the same seven things"
    )]
    fn read_piecewise<S: ReadAt + ?Sized>(
        &mut self,
        place: &RingPlace,
        source: &S,
        start: u64,
        count: u64,
        seq: u64,
        max_slots: u64,
        problems: &mut Problems,
    ) -> Result<(), Error> {
        let mut done = 0;
        while done < count {
            let at = slot::place(place.slots, start + done);
            let slots = (count - done).min(SLOTS_PER_READ as u64);
            let begin = self.bytes.len();
            self.bytes.resize(begin + slots as usize * SLOT_SIZE, 0);
            let got =
                fill(source, &mut self.bytes[begin..], at.0).map_err(|source| Error::Read {
                    what: "a ring",
                    at,
                    source,
                })?;
            if got < self.bytes.len() - begin {
                // The file has shrunk since its length was read.
                self.bytes.truncate(begin + got / SLOT_SIZE * SLOT_SIZE);
                problems.add_many(Problem::SlotsMissing, Some(self.lcore), at, count - done);
                return Ok(());
            }
            let is_changed = self.changed_since_copied(source, begin, seq + done, max_slots, at)?;
            let now = self::cursor(place, source)?;
            if now != self.cursor || is_changed {
                self.drop_overwritten(
                    begin / SLOT_SIZE,
                    seq + done,
                    now.saturating_add(max_slots),
                    at,
                    problems,
                );
            }
            done += slots;
        }
        Ok(())
    }

    /// Returns whether the slots of the writer's next record changed since they were copied. The
    /// writer fills them before it moves the cursor, and in a full ring they are the oldest ones.
    ///
    /// They are compared because a file that nobody writes to must not lose its oldest records.
    /// The copy starts at byte `begin` with the slot numbered `seq`, which is at `at` in the file.
    fn changed_since_copied<S: ReadAt + ?Sized>(
        &self,
        source: &S,
        begin: usize,
        seq: u64,
        max_slots: u64,
        at: FileOffset,
    ) -> Result<bool, Error> {
        let end = self
            .cursor
            .saturating_add(max_slots)
            .saturating_sub(self.num_slots);
        let copied = &self.bytes[begin..];
        let in_reach = end
            .saturating_sub(seq)
            .min((copied.len() / SLOT_SIZE) as u64) as usize;
        let mut now = vec![0; in_reach * SLOT_SIZE];
        let failed = |source| Error::Read {
            what: "a ring",
            at,
            source,
        };
        let got = fill(source, &mut now, at.0).map_err(failed)?;
        Ok(now[..got] != copied[..got])
    }

    /// Erases the slots from index `begin` on that the writer, now at `writer`, may have touched.
    fn drop_overwritten(
        &mut self,
        begin: usize,
        seq: u64,
        writer: u64,
        at: FileOffset,
        problems: &mut Problems,
    ) {
        let lost_before = writer.saturating_sub(self.num_slots);
        let end = self.bytes.len() / SLOT_SIZE;
        let overwritten = lost_before.saturating_sub(seq).min((end - begin) as u64) as usize;
        for index in begin..begin + overwritten {
            self.erase(index);
        }
        if overwritten > 0 {
            self.lost = true;
            problems.add_many(
                Problem::Overwritten,
                Some(self.lcore),
                at,
                overwritten as u64,
            );
        }
        // Slots after the initial cursor are being written now, if they are not from the round
        // before.
        if self.cursor < self.num_slots {
            for index in begin..end {
                if seq + (index - begin) as u64 >= self.cursor {
                    self.erase(index);
                }
            }
        }
    }

    /// Drops the slots after the newest record: a ring is large, and seldom full.
    fn trim(&mut self) {
        let used = (0..self.slots().len())
            .rev()
            .find(|&i| self.slots().at(i).tsc() != Ticks(0));
        self.bytes
            .truncate(used.map_or(0, |last| (last + 1) * SLOT_SIZE));
        // In the eras that list all lcores, most rings of a file are unused.
        if self.bytes.len() < self.bytes.capacity() / 2 {
            self.bytes.shrink_to_fit();
        }
    }

    /// Returns whether the slot was overwritten while the ring was read.
    #[inline]
    pub(crate) fn is_overwritten(&self, index: usize) -> bool {
        self.lost && self.slots().at(index).tsc() == Ticks(0)
    }

    /// Marks a slot as empty.
    pub(crate) fn erase(&mut self, index: usize) {
        self.bytes[index * SLOT_SIZE..][..8].fill(0);
    }

    /// Returns the slots, oldest first.
    #[inline]
    pub(crate) fn slots(&self) -> Slots<'_> {
        Slots::new(&self.bytes)
    }

    /// Returns the offset of a slot in the file.
    pub(crate) fn offset(&self, index: usize) -> FileOffset {
        slot::place(
            self.slots_at,
            (self.start + index as u64) % self.present.max(1),
        )
    }

    /// Returns the first written slot, if any.
    pub(crate) fn oldest(&self) -> Option<Slot<'_>> {
        let slots = self.slots();
        (0..slots.len())
            .map(|i| slots.at(i))
            .find(|slot| slot.tsc() != Ticks(0))
    }
}

/// Reads the current cursor of the ring; 0 if it is outside the file.
pub(crate) fn cursor<S: ReadAt + ?Sized>(place: &RingPlace, source: &S) -> Result<u64, Error> {
    let at = place.cursor;
    let cursor = read_u64(source, at.0).map_err(|source| Error::Read {
        what: "a ring's cursor",
        at,
        source,
    })?;
    Ok(cursor.unwrap_or_default())
}
