//! The part of a stream that has reached its file: a capture reports what the disk has.

use std::collections::VecDeque;

/// State of a stream after a successful write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    /// Length of the file, in bytes.
    pub(crate) bytes: u64,
    /// Records in it.
    pub(crate) records: u64,
    /// Slots known to be missing between them.
    pub(crate) lost: u64,
}

/// Last states of a stream, so that its file can be cut at one of them.
#[derive(Debug, Default)]
pub(crate) struct Marks(VecDeque<Checkpoint>);

/// Bytes at the end of a file for which states are kept.
const KEPT_BYTES: u64 = 1 << 20;

impl Marks {
    /// Adds the state after a write.
    pub(crate) fn add(&mut self, stored: Checkpoint) {
        match self.0.back_mut() {
            Some(last) if last.bytes == stored.bytes => *last = stored,
            _ => self.0.push_back(stored),
        }
        // One state from before the kept bytes remains.
        while self
            .0
            .get(1)
            .is_some_and(|second| second.bytes + KEPT_BYTES <= stored.bytes)
        {
            self.0.pop_front();
        }
    }

    /// Returns the last state.
    pub(crate) fn last(&self) -> Checkpoint {
        self.0.back().copied().unwrap_or_default()
    }

    /// Returns the last state in which the file was at least this number of bytes shorter; the
    /// first known one if there is none.
    pub(crate) fn shorter_by(&self, bytes: u64) -> Checkpoint {
        let most = self.last().bytes.saturating_sub(bytes);
        let found = self.0.iter().rfind(|stored| stored.bytes <= most);
        found.or(self.0.front()).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_cut_where_its_records_are_known() {
        let mut marks = Marks::default();
        assert_eq!(
            (marks.last(), marks.shorter_by(5)),
            (Checkpoint::default(), Checkpoint::default())
        );
        let at = |mib: u64| Checkpoint {
            bytes: mib << 20,
            records: mib,
            lost: 0,
        };
        for mib in 1..=9 {
            marks.add(at(mib));
        }
        marks.add(Checkpoint {
            records: 10,
            ..at(9)
        });
        assert_eq!((marks.last().records, marks.0.len()), (10, 2));
        assert_eq!(marks.shorter_by(1), at(8));
        assert_eq!(marks.shorter_by(1 << 20), at(8));
        // Earlier states are gone.
        assert_eq!(marks.shorter_by(5 << 20), at(8));
    }
}
