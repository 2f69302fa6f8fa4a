//! Damage in a trace: counted, with the offset of the first occurrence, and reported at the end. It
//! never stops the reader.

use std::collections::HashMap;
use std::fmt;

use foldhash::fast::RandomState;

use crate::units::{FileOffset, Lcore};

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Problem {
    /// The length of the file differs from the one in its header.
    WrongSize {
        /// Length stated in the header, in bytes.
        stated: u64,
        /// Actual length, in bytes.
        actual: u64,
    },
    /// The file has no tick rate.
    NoTickRate,
    /// A tracepoint descriptor that contradicts itself.
    Descriptor(&'static str),
    /// A history offset that does not point to a history.
    HistoryOutside,
    /// A history that overlaps another one.
    HistoryOverlaps,
    /// Slots of a ring that lie outside the file.
    SlotsMissing,
    /// Owners that lie outside the file.
    OwnerOutside,
    /// A record whose tracepoint has no descriptor.
    UnknownTpoint,
    /// A continuation that does not follow its record.
    OrphanContinuation,
    /// A record whose time is outside the range of its ring.
    ImplausibleTime,
    /// A record whose continuations belong to another one. The record is kept without its remaining
    /// arguments.
    ArgumentsLost,
    /// The newest record of a ring that was being written when the file was copied.
    HalfWritten,
    /// Slots that the application overwrote while they were read.
    Overwritten,
    /// Slots that were overwritten before they were captured.
    NotCaptured,
    /// A capture that ends in the middle.
    CaptureCut,
    /// A capture that is damaged at [`Finding::first`].
    CaptureBroken(&'static str),
    /// A capture that can't be read from [`Finding::first`] on.
    CaptureFailed(std::io::ErrorKind),
    /// An entry of a JSON document that is not a record.
    BrokenEntry(&'static str),
    /// A JSON document that ends in the middle.
    DocumentCut,
    /// An invalid tracepoint definition of a JSON document.
    BrokenDefinition,
}

impl Problem {
    /// Returns whether the problem loses records or parts of them.
    pub fn loses_data(self) -> bool {
        !matches!(
            self,
            Self::NoTickRate | Self::Descriptor(_) | Self::WrongSize { .. }
        )
    }
}

/// A kind of damage, its count, and its first offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Kind of damage.
    pub problem: Problem,
    /// The lcore whose ring is damaged, if any.
    pub lcore: Option<Lcore>,
    /// Offset of the first occurrence.
    pub first: FileOffset,
    /// Number of occurrences.
    pub count: u64,
}

/// All damage found, one entry for each kind and lcore.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    findings: Vec<Finding>,
    /// Index into `findings`: a file can have 65,535 lcores, all of them damaged.
    index: HashMap<(Problem, Option<Lcore>), usize, RandomState>,
}

impl Problems {
    /// Counts one occurrence.
    pub(crate) fn add(&mut self, problem: Problem, lcore: Option<Lcore>, at: FileOffset) {
        self.add_many(problem, lcore, at, 1);
    }

    /// Counts `count` occurrences, the first of them at `at`.
    pub(crate) fn add_many(
        &mut self,
        problem: Problem,
        lcore: Option<Lcore>,
        at: FileOffset,
        count: u64,
    ) {
        let next = self.findings.len();
        let place = *self.index.entry((problem, lcore)).or_insert(next);
        match self.findings.get_mut(place) {
            // A file may claim more slots than a `u64` can count.
            Some(finding) => finding.count = finding.count.saturating_add(count),
            None => self.findings.push(Finding {
                problem,
                lcore,
                first: at,
                count,
            }),
        }
    }

    /// Adds the findings of `other`.
    pub(crate) fn append(&mut self, other: Self) {
        for f in other.findings {
            self.add_many(f.problem, f.lcore, f.first, f.count);
        }
    }

    /// Iterates over the findings in the order of discovery.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter()
    }

    /// Returns the number of occurrences of a kind, over all lcores.
    pub fn count(&self, problem: Problem) -> u64 {
        self.findings
            .iter()
            .filter(|f| f.problem == problem)
            .fold(0, |n, f| n.saturating_add(f.count))
    }

    /// Returns whether no damage was found.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }
}

impl Problem {
    /// Returns the sentence that reports the problem, in which [`Finding`] replaces the names in
    /// braces; `{s}` is the plural's ending.
    fn template(self) -> &'static str {
        match self {
            Self::WrongSize { stated, actual } if actual < stated => {
                "the file is cut off at {actual} bytes, {missing} before the end that its header \
                     states; everything before that is read"
            }
            Self::WrongSize { .. } => {
                "the header says that the file has {stated} bytes, but it has {actual}"
            }
            Self::NoTickRate => {
                "the file has no tick rate: times are printed in ticks, not microseconds"
            }
            Self::Descriptor(_) => "{cause} ({n} time{s}, first at {first})",
            Self::HistoryOutside => {
                "left out: there is no history at {first}, although the header refers to it"
            }
            Self::HistoryOverlaps => {
                "left out: its history at {first} overlaps that of another lcore"
            }
            Self::SlotsMissing => "the file ends at {first}, {n} slot{s} before the ring's end",
            Self::OwnerOutside => "{n} owner{s} outside the file (the table begins at {first})",
            Self::UnknownTpoint => {
                "left out {n} record{s} whose tracepoint has no descriptor, first at {first}"
            }
            Self::OrphanContinuation => {
                "left out {n} continuation{s} of records that are gone, first at {first}"
            }
            Self::ImplausibleTime => {
                "left out {n} torn record{s}, older or newer than the records around, first at \
                     {first}"
            }
            Self::ArgumentsLost => {
                "{n} record{s} with overwritten arguments, of which the complete ones are \
                     printed, first at {first}"
            }
            Self::HalfWritten => "left out the newest record, which was being written, at {first}",
            Self::Overwritten => {
                "{n} slot{s} overwritten by the application while they were read, first at \
                     {first}"
            }
            Self::NotCaptured => "{n} slot{s} overwritten before they were captured",
            Self::CaptureCut => "the capture is cut off at {first}; everything before it is read",
            Self::CaptureBroken(_) => {
                "the capture is damaged at {first}: {cause}; everything before it is read"
            }
            Self::CaptureFailed(_) => "the capture can't be read from {first} on: {cause}",
            Self::BrokenEntry(_) => "left out {n} broken {entries}, first at {first}: {cause}",
            Self::DocumentCut => {
                "the document is cut off at {first}; everything before it is printed"
            }
            Self::BrokenDefinition => {
                "left out {n} broken tracepoint definition{s}, first at {first}"
            }
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(lcore) = self.lcore {
            write!(f, "lcore {lcore}: ")?;
        }
        let (s, entries) = match self.count {
            1 => ("", "entry"),
            _ => ("s", "entries"),
        };
        let mut text = self.problem.template().to_owned();
        let mut fill = |name: &str, value: &dyn fmt::Display| {
            text = text.replace(name, &value.to_string());
        };
        fill("{n}", &self.count);
        fill("{s}", &s);
        fill("{entries}", &entries);
        fill("{first}", &self.first);
        match self.problem {
            Problem::WrongSize { stated, actual } => {
                fill("{stated}", &stated);
                fill("{actual}", &actual);
                fill("{missing}", &stated.saturating_sub(actual));
            }
            Problem::Descriptor(cause)
            | Problem::CaptureBroken(cause)
            | Problem::BrokenEntry(cause) => fill("{cause}", &cause),
            Problem::CaptureFailed(cause) => fill("{cause}", &cause),
            _ => {}
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The compiler does not see a misspelt name in braces: they are replaced when a finding is
    /// printed.
    #[test]
    fn every_sentence_is_filled() {
        let all = [
            Problem::WrongSize {
                stated: 1,
                actual: 2,
            },
            Problem::WrongSize {
                stated: 2,
                actual: 1,
            },
            Problem::NoTickRate,
            Problem::Descriptor("cause"),
            Problem::HistoryOutside,
            Problem::HistoryOverlaps,
            Problem::SlotsMissing,
            Problem::OwnerOutside,
            Problem::UnknownTpoint,
            Problem::OrphanContinuation,
            Problem::ImplausibleTime,
            Problem::ArgumentsLost,
            Problem::HalfWritten,
            Problem::Overwritten,
            Problem::NotCaptured,
            Problem::CaptureCut,
            Problem::CaptureBroken("cause"),
            Problem::CaptureFailed(std::io::ErrorKind::NotFound),
            Problem::BrokenEntry("cause"),
            Problem::DocumentCut,
            Problem::BrokenDefinition,
        ];
        for problem in all {
            for count in [1, 2] {
                let finding = Finding {
                    problem,
                    lcore: None,
                    first: FileOffset(64),
                    count,
                };
                let text = finding.to_string();
                assert!(!text.contains(['{', '}']), "{text}");
            }
        }
    }
}
