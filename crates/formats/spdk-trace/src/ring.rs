//! One lcore's ring, copied out of a file that the application may be writing to.
//!
//! The application increments `next_entry` after a record is complete, and overwrites the oldest slots first
//! (`lib/trace/trace.c`, `_spdk_trace_record`). So the copy starts at the oldest slot, stays ahead of the writer, and reads the
//! cursor after each chunk: a slot is intact if the writer was not near it at that time.

use crate::Error;
use crate::header::RingPlace;
use crate::problems::{Problem, Problems};
use crate::slot::{self, SLOT_SIZE, Slot, Slots};
use crate::source::{ReadAt, fill, read_u64};
use crate::units::{FileOffset, Lcore, Ticks};

/// Slots that are copied between two reads of the cursor: 256 KiB.
const PIECE: usize = 8192;
/// Slots at either end of a ring that say which end is newer. More than one record takes, since a record may be written
/// with the tsc of an earlier moment.
const ENDS: usize = 32;

/// A copy of a ring's slots, oldest first. A slot that was left out has tsc 0, like one that was never written.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    pub(crate) lcore: Lcore,
    pub(crate) thread_name: String,
    bytes: Vec<u8>,
    /// Slot 0 of the file's ring.
    slots_at: FileOffset,
    /// Which slot of the file's ring comes first here.
    start: u64,
    /// Slots of the file's ring.
    pub(crate) num_slots: u64,
    /// How many of them the file has.
    present: u64,
    /// Older slots were overwritten by newer ones.
    pub(crate) wrapped: bool,
    /// `next_entry` when the copy began.
    pub(crate) cursor: u64,
    /// The writer came round and overwrote slots before they were copied.
    lost: bool,
}

impl Ring {
    /// Copies the whole ring. `max_slots` is the most slots that one record takes.
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
            problems.add_many(Problem::SlotsMissing, Some(place.lcore), FileOffset(source.len()), missing);
        }
        // A ring that is not wholly there can't be turned: what follows its last slot is not its first.
        let oldest = if cursor >= place.num_slots && place.num_slots > 0 { cursor % place.num_slots } else { 0 };
        let start = if oldest < present { oldest } else { 0 };
        let mut ring = Self { present, ..Self::empty(place, cursor, start) };
        ring.reserve(present)?;
        let from = cursor.saturating_sub(place.num_slots);
        ring.read_piecewise(place, source, start, present - start, from, max_slots, problems)?;
        let whole = ring.fill_up(present - start);
        ring.read_piecewise(place, source, 0, start, from + (place.num_slots - start), max_slots, problems)?;
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
        let bytes = usize::try_from(slots).ok().and_then(|n| n.checked_mul(SLOT_SIZE));
        if bytes.is_none_or(|n| self.bytes.try_reserve_exact(n).is_err()) {
            let source = std::io::ErrorKind::OutOfMemory.into();
            return Err(Error::Read { what: "a ring", at: self.slots_at, source });
        }
        Ok(())
    }

    /// Puts unwritten slots where the file shrank while it was read, up to `slots` in all; says whether there was no
    /// need to.
    fn fill_up(&mut self, slots: u64) -> bool {
        let whole = self.bytes.len() as u64 == slots * SLOT_SIZE as u64;
        self.bytes.resize(slots as usize * SLOT_SIZE, 0);
        whole
    }

    /// Copies `count` slots from slot `start` on; `seq` is the number of the write that the first of them holds.
    #[expect(clippy::too_many_arguments, reason = "one call in two places; a struct would name the same seven things")]
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
            let slots = (count - done).min(PIECE as u64);
            let begin = self.bytes.len();
            self.bytes.resize(begin + slots as usize * SLOT_SIZE, 0);
            let got = fill(source, &mut self.bytes[begin..], at.0).map_err(|source| Error::Read {
                what: "a ring",
                at,
                source,
            })?;
            if got < self.bytes.len() - begin {
                // The file shrank since its length was taken.
                self.bytes.truncate(begin + got / SLOT_SIZE * SLOT_SIZE);
                problems.add_many(Problem::SlotsMissing, Some(self.lcore), at, count - done);
                return Ok(());
            }
            let now = self::cursor(place, source)?;
            if now != self.cursor {
                self.drop_overwritten(begin / SLOT_SIZE, seq + done, now.saturating_add(max_slots), at, problems);
            }
            done += slots;
        }
        Ok(())
    }

    /// Leaves out the slots from index `begin` on that the writer, having come to `writer`, may have touched.
    fn drop_overwritten(&mut self, begin: usize, seq: u64, writer: u64, at: FileOffset, problems: &mut Problems) {
        let lost_before = writer.saturating_sub(self.num_slots);
        let end = self.bytes.len() / SLOT_SIZE;
        let overwritten = lost_before.saturating_sub(seq).min((end - begin) as u64) as usize;
        for index in begin..begin + overwritten {
            self.erase(index);
        }
        if overwritten > 0 {
            self.lost = true;
            problems.add_many(Problem::Overwritten, Some(self.lcore), at, overwritten as u64);
        }
        // What lies behind the cursor as it was is being written right now, if it is not from the round before.
        if self.cursor < self.num_slots {
            for index in begin..end {
                if seq + (index - begin) as u64 >= self.cursor {
                    self.erase(index);
                }
            }
        }
    }

    /// Makes the oldest slot the first, also where the cursor does not point to it.
    fn straighten(&mut self, problems: &mut Problems) {
        let Some(last) = self.slots().len().checked_sub(1) else { return };
        let file_last = (self.num_slots - 1 + self.num_slots - self.start) % self.num_slots;
        let lapped = self.lost && self.cursor >= self.num_slots;
        if self.slots().at(file_last as usize).tsc() == Ticks(0) && !lapped {
            // Not full, whatever the cursor says: slot 0 is the oldest.
            self.rotate(((self.num_slots - self.start) % self.num_slots) as usize);
            self.drop_half_written_after_cursor(problems);
            return;
        }
        self.wrapped = true;
        // Of a file that was copied while it was written, the header is older than the slots: the cursor points to
        // slots that are newer than all others. The newest of them may be half written.
        if self.begins_with_the_newest() {
            let newer = self.seam();
            self.rotate(newer);
            if self.cursor > 0 {
                self.drop_newest(last + 1 - newer, last, problems);
            }
        } else if (1..self.num_slots).contains(&self.cursor) {
            self.drop_newest(self.cursor as usize, last, problems);
        }
    }

    /// Whether the first slots are newer than the last ones: the newest of them where the cursor is a little behind, the
    /// middle one where it is anywhere.
    fn begins_with_the_newest(&self) -> bool {
        let slots = self.slots();
        // Where the cursor was never moved, anything may be at the ends.
        let ends = if self.cursor < self.num_slots { 1 } else { ENDS.min(slots.len() / 2).max(1) };
        let sorted = |range: std::ops::Range<usize>| {
            let mut times: Vec<_> = range.map(|i| slots.at(i).tsc()).collect();
            times.sort_unstable();
            times
        };
        let (first, last) = (sorted(0..ends), sorted(slots.len() - ends..slots.len()));
        // The lower of two middle ones: if the newest slot is among the last 16, `order::check` finds it there.
        let middle = (ends - 1) / 2;
        first[ends - 1] > last[ends - 1] || first[middle] > last[middle]
    }

    /// Where the oldest slot is: behind the largest step back in time.
    fn seam(&self) -> usize {
        let slots = self.slots();
        let mut written = (0..slots.len()).filter(|&i| slots.at(i).tsc() != Ticks(0));
        let mut before = written.next().map_or(0, |i| slots.at(i).tsc().0);
        let steps = written.map(|i| (std::mem::replace(&mut before, slots.at(i).tsc().0).saturating_sub(before), i));
        steps.max_by_key(|&(step, i)| (step, std::cmp::Reverse(i))).map_or(0, |(_, i)| i)
    }

    /// In a ring that is not full, a record behind the cursor was being written.
    fn drop_half_written_after_cursor(&mut self, problems: &mut Problems) {
        let written = usize::try_from(self.cursor).unwrap_or(usize::MAX);
        let slots = self.slots();
        if written == 0 || written >= slots.len() || slots.at(written).tsc() == Ticks(0) {
            return;
        }
        let newest = (written..slots.len()).take_while(|&i| slots.at(i).tsc() != Ticks(0)).last();
        self.drop_newest(written, newest.unwrap_or(written), problems);
    }

    /// Leaves out the record that ends at slot `last`, its continuations included: they all have its tsc. What is
    /// before slot `unfinished` was whole.
    fn drop_newest(&mut self, unfinished: usize, last: usize, problems: &mut Problems) {
        let tsc = self.slots().at(last).tsc();
        let mut first = last;
        while first > unfinished && self.slots().at(first - 1).tsc() == tsc {
            first -= 1;
        }
        problems.add(Problem::HalfWritten, Some(self.lcore), self.offset(first));
        (first..=last).for_each(|index| self.erase(index));
    }

    fn rotate(&mut self, slots: usize) {
        self.bytes.rotate_left(slots * SLOT_SIZE);
        self.start = (self.start + slots as u64) % self.present.max(1);
    }

    /// Drops the slots behind the newest record: a ring is large, and seldom full.
    fn trim(&mut self) {
        let used = (0..self.slots().len()).rev().find(|&i| self.slots().at(i).tsc() != Ticks(0));
        self.bytes.truncate(used.map_or(0, |last| (last + 1) * SLOT_SIZE));
        // Files of the eras that list all lcores are mostly rings that nobody wrote to.
        if self.bytes.len() < self.bytes.capacity() / 2 {
            self.bytes.shrink_to_fit();
        }
    }

    /// Returns whether the slot was overwritten while the ring was read.
    #[inline]
    pub(crate) fn is_overwritten(&self, index: usize) -> bool {
        self.lost && self.slots().at(index).tsc() == Ticks(0)
    }

    /// Marks a slot as not there.
    pub(crate) fn erase(&mut self, index: usize) {
        self.bytes[index * SLOT_SIZE..][..8].fill(0);
    }

    /// The slots, oldest first.
    #[inline]
    pub(crate) fn slots(&self) -> Slots<'_> {
        Slots::new(&self.bytes)
    }

    /// Where a slot stands in the file.
    pub(crate) fn offset(&self, index: usize) -> FileOffset {
        slot::place(self.slots_at, (self.start + index as u64) % self.present.max(1))
    }

    /// The first slot that was written, if there is one.
    pub(crate) fn oldest(&self) -> Option<Slot<'_>> {
        let slots = self.slots();
        (0..slots.len()).map(|i| slots.at(i)).find(|slot| slot.tsc() != Ticks(0))
    }
}

/// The ring's cursor at this moment.
pub(crate) fn cursor<S: ReadAt + ?Sized>(place: &RingPlace, source: &S) -> Result<u64, Error> {
    let at = place.cursor;
    let cursor = read_u64(source, at.0).map_err(|source| Error::Read { what: "a ring's cursor", at, source })?;
    Ok(cursor.unwrap_or_default())
}
