//! The oldest slot of a ring: the cursor points to it, unless the file was copied during a write.

use super::Ring;
use crate::problems::{Problem, Problems};
use crate::slot::SLOT_SIZE;
use crate::units::Ticks;

/// Number of slots at either end of a ring that are compared to find the newer end. More than one
/// record takes, since a record may be written with the tsc of an earlier moment.
const ENDS: usize = 32;

impl Ring {
    /// Rotates the ring so that the oldest slot comes first, even if the cursor does not point to
    /// it.
    pub(super) fn straighten(&mut self, problems: &mut Problems) {
        let Some(last) = self.slots().len().checked_sub(1) else {
            return;
        };
        let file_last = (self.num_slots - 1 + self.num_slots - self.start) % self.num_slots;
        let lapped = self.lost && self.cursor >= self.num_slots;
        if self.slots().at(file_last as usize).tsc() == Ticks(0) && !lapped {
            // The ring is not full, despite the cursor: slot 0 is the oldest.
            self.rotate(((self.num_slots - self.start) % self.num_slots) as usize);
            self.drop_half_written_after_cursor(problems);
            return;
        }
        self.wrapped = true;
        // If the file was copied during a write, its header is older than its slots: the cursor
        // points to slots newer than all others. The newest of them may be half-written.
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

    /// Returns whether the first slots are newer than the last ones. Compares the newest of each,
    /// for a cursor that lags a little, and the middle ones, for any other cursor.
    fn begins_with_the_newest(&self) -> bool {
        let slots = self.slots();
        // If the cursor was never moved, the slots at the ends may be of any age.
        let ends = if self.cursor < self.num_slots {
            1
        } else {
            ENDS.min(slots.len() / 2).max(1)
        };
        let sorted = |range: std::ops::Range<usize>| {
            let mut times: Vec<_> = range.map(|i| slots.at(i).tsc()).collect();
            times.sort_unstable();
            times
        };
        let (first, last) = (sorted(0..ends), sorted(slots.len() - ends..slots.len()));
        // Take the lower of two middle ones: if the newest slot is among the last 16,
        // `order::check` finds it there.
        let middle = (ends - 1) / 2;
        first[ends - 1] > last[ends - 1] || first[middle] > last[middle]
    }

    /// Returns the index of the oldest slot: the one after the largest step back in time.
    fn seam(&self) -> usize {
        let slots = self.slots();
        let mut written = (0..slots.len()).filter(|&i| slots.at(i).tsc() != Ticks(0));
        let mut before = written.next().map_or(0, |i| slots.at(i).tsc().0);
        let steps = written.map(|i| {
            (
                std::mem::replace(&mut before, slots.at(i).tsc().0).saturating_sub(before),
                i,
            )
        });
        steps
            .max_by_key(|&(step, i)| (step, std::cmp::Reverse(i)))
            .map_or(0, |(_, i)| i)
    }

    /// Drops a record after the cursor in a ring that is not full: it was being written.
    fn drop_half_written_after_cursor(&mut self, problems: &mut Problems) {
        let written = usize::try_from(self.cursor).unwrap_or(usize::MAX);
        let slots = self.slots();
        if written == 0 || written >= slots.len() || slots.at(written).tsc() == Ticks(0) {
            return;
        }
        let newest = (written..slots.len())
            .take_while(|&i| slots.at(i).tsc() != Ticks(0))
            .last();
        self.drop_newest(written, newest.unwrap_or(written), problems);
    }

    /// Erases the record that ends at slot `last`, with its continuations, which all have its tsc.
    /// Slots before `unfinished` were complete.
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
}
