//! The data of a comparison of two captures, A before and B after. All times are in nanoseconds.

use screen::{grouped, time};

/// All data of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Name and version of the program that made the comparison.
    pub maker: String,
    /// Both captures.
    pub sides: [ComparedSide; 2],
    /// Sentence on each kind of request, the one with most time first.
    pub sentences: Vec<String>,
    /// Sentences about parts that cannot be compared.
    pub notes: Vec<String>,
    /// Kinds that both captures have, the one with most time first.
    pub kinds: Vec<ComparedKind>,
}

/// One of both captures.
#[derive(Clone, Debug, Default)]
pub struct ComparedSide {
    /// Name of the capture or file.
    pub title: String,
    /// Length of time in which its requests ended.
    pub span: u64,
    /// True if it has the kernel's events.
    pub has_kernel: bool,
}

/// Requests of one kind in both captures.
#[derive(Clone, Debug, Default)]
pub struct ComparedKind {
    /// Name for a sentence: `cnode1 (TCP_REQ)`.
    pub name: String,
    /// Whole requests.
    pub whole: ComparedTimes,
    /// Stages in the order of their tracepoints.
    pub stages: Vec<ComparedStage>,
    /// Takers of time in the mean of all requests, at most, the largest first; empty unless both
    /// captures have the kernel's events.
    pub causes: Vec<ComparedCause>,
}

/// A stage of a kind, by the tracepoints at its ends.
#[derive(Clone, Debug, Default)]
pub struct ComparedStage {
    /// Tracepoint that begins the stage.
    pub from: String,
    /// Tracepoint that ends the stage.
    pub to: String,
    /// Its times.
    pub times: ComparedTimes,
}

/// Times of requests or stages in both captures.
#[derive(Clone, Debug, Default)]
pub struct ComparedTimes {
    /// Numbers of times.
    pub counts: [u64; 2],
    /// Medians.
    pub median: ComparedTime,
    /// 99th percentiles.
    pub p99: ComparedTime,
    /// Time per request of the kind.
    pub mean: ComparedTime,
}

/// A taker of time, and what it took of each request.
#[derive(Clone, Debug, Default)]
pub struct ComparedCause {
    /// Name, without its CPU.
    pub name: String,
    /// Time per request, at most.
    pub took: ComparedTime,
}

/// A time in both captures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComparedTime {
    /// Times in A and in B; `None` if the capture has no such stage.
    pub values: [Option<u64>; 2],
    /// Meaning of the difference.
    pub difference: Difference,
}

/// Meaning of a difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Difference {
    /// The captures have too few values.
    #[default]
    TooFew,
    /// The intervals of both captures overlap.
    Noise,
    /// The intervals of both captures are apart.
    Change,
}

impl Difference {
    /// Returns the key used in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Self::TooFew => "too few",
            Self::Noise => "noise",
            Self::Change => "change",
        }
    }
}

impl ComparedTime {
    /// Returns A, B and the difference in nanoseconds, if the difference is a change.
    pub fn change(&self) -> Option<(u64, u64, i64)> {
        let [Some(a), Some(b)] = self.values else {
            return None;
        };
        let more = i64::try_from(i128::from(b) - i128::from(a)).unwrap_or(i64::MAX);
        (self.difference == Difference::Change).then_some((a, b, more))
    }

    /// Formats A, B and the difference for a table; `~` means noise.
    pub fn cells(&self) -> [String; 3] {
        let [a, b] = self
            .values
            .map(|value| value.map_or_else(|| "-".to_owned(), time));
        let difference = match (self.change(), self.values) {
            (Some((_, _, more)), _) => signed_time(more),
            (None, [Some(_), None]) => "only A".to_owned(),
            (None, [None, Some(_)]) => "only B".to_owned(),
            _ if self.difference == Difference::Noise => "~".to_owned(),
            _ => "few".to_owned(),
        };
        [a, b, difference]
    }
}

impl ComparedSide {
    /// Describes the capture for a list of both: `demo, 2.50 s, with the kernel's events`.
    pub fn describe(&self) -> String {
        let events = if self.has_kernel { "with" } else { "without" };
        let span = time(self.span);
        format!("{}, {span}, {events} the kernel's events", self.title)
    }
}

impl ComparedKind {
    /// Formats the numbers of its requests, with those of each second, as the captures may differ
    /// in length.
    pub fn counts(&self, sides: &[ComparedSide; 2]) -> String {
        let one = |nth: usize| {
            let (count, seconds) = (self.whole.counts[nth], sides[nth].span as f64 / 1e9);
            let rate = if seconds > 0.0 {
                format!(" ({} a second)", grouped((count as f64 / seconds) as u64))
            } else {
                String::new()
            };
            format!("{}{rate}", grouped(count))
        };
        format!("A {}, B {}", one(0), one(1))
    }
}

/// Explanation of the marks in the columns of differences.
pub const MARKS: &str = "~: within the noise, as the 95% intervals of A and B overlap, or below 1%; \
                         few: too few values to compare";

/// Formats a difference with its sign.
fn signed_time(nanos: i64) -> String {
    let sign = if nanos < 0 { '-' } else { '+' };
    format!("{sign}{}", time(nanos.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_change_is_shown_as_a_difference() {
        let cells = |values, difference| ComparedTime { values, difference }.cells()[2].clone();
        let both = [Some(120_000), Some(80_000)];
        assert_eq!(cells(both, Difference::Change), "-40.0 us");
        assert_eq!(cells(both, Difference::Noise), "~");
        assert_eq!(cells(both, Difference::TooFew), "few");
        assert_eq!(cells([None, Some(1)], Difference::Change), "only B");
        assert_eq!(cells([Some(1), None], Difference::TooFew), "only A");
    }
}
