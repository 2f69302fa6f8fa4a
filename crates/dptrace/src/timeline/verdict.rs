//! The sentence that a person wants first: how slow, and who took how much of it.

use screen::{counted, time};
use timeline::StageKind;

use super::first::{Subject, Times};
use super::second::{BANDS, Blamed, Loss, Sum, scaled};
use super::source::Source;
use super::words;

/// A band says something if it has that many requests.
const FEW: u64 = 5;

/// What is to be said of one group's requests.
pub(crate) struct Verdict<'a> {
    /// The fields that requests are grouped by, as typed.
    by: &'a [String],
    pub(crate) subject: &'a Subject,
    pub(crate) times: &'a Times,
    pub(crate) loss: &'a Loss,
    /// Index of the band that it is about: the slowest that has enough requests. If none has, it is about the slowest requests.
    band: Option<usize>,
}

impl<'a> Verdict<'a> {
    /// About the slowest band that has enough requests; of very few requests, about the slowest one.
    pub(crate) fn of(by: &'a [String], subject: &'a Subject, times: &'a Times, loss: &'a Loss) -> Self {
        let enough = |band: &usize| loss.whole[*band].requests >= FEW;
        let band = (1..BANDS.len()).rev().find(enough);
        Self { by, subject, times, loss, band }
    }

    /// What the requests that it is about lost.
    pub(crate) fn sum(&self) -> &Sum {
        &self.loss.whole[self.band.unwrap_or(BANDS.len() - 1)]
    }

    /// The quantile's value, or the longest time.
    pub(crate) fn value(&self) -> u64 {
        self.band.map_or(self.times.whole.longest(), |band| self.times.whole.quantile(BANDS[band].part))
    }

    /// What distinguishes its group, in words; empty if there are no groups.
    pub(crate) fn group(&self) -> String {
        words::group(self.by, &self.subject.group)
    }

    /// The stage that took more of these requests than of all, and how long it took of one as long as the value.
    fn stage(&self) -> Option<(StageKind, u64)> {
        let sum = self.sum();
        let mean = |kind: &StageKind| {
            let all = &self.times.stages[kind];
            u64::try_from(all.sum() / u128::from(all.count().max(1))).unwrap_or(u64::MAX)
        };
        let more = sum.stages.iter().filter(|(kind, _)| self.times.stages.contains_key(kind));
        let most = more.max_by_key(|(kind, length)| (*length / sum.requests.max(1)).saturating_sub(mean(kind)));
        most.map(|(kind, length)| (*kind, scaled(*length, sum.length, self.value())))
    }

    /// The sentence.
    pub(crate) fn sentence(&self, source: &Source) -> String {
        let of = words::requests(self.by, &self.subject.group, source.tpoint(self.subject.first));
        let value = self.value();
        let head = match self.band {
            Some(band) => format!("{} of {of} is {}", BANDS[band].name, time(value)),
            None if self.times.whole.count() == 1 => format!("the only one of {of} took {}", time(value)),
            None => format!("the slowest of {} of {of} took {}", self.times.whole.count(), time(value)),
        };
        let sum = self.sum();
        let culprits = sum.culprits();
        let Some((culprit, blamed)) =
            culprits.first().filter(|(_, blamed)| words::explains(blamed.at_most, self.late()))
        else {
            return format!("{head}{}{}", self.nothing(source), self.where_else(source, 0));
        };
        let is_taken = culprit.activity.is_taken();
        let is_alone = words::is_named_alone(is_taken, blamed.at_most, sum.kernel.at_most);
        let all = if is_alone { blamed } else { &sum.kernel };
        let taken = words::taken_by(&culprit.name, is_alone, all.of_one(value));
        let (many, rest) = (in_how_many(all, sum), self.where_else(source, all.at_most));
        let comma = if is_alone || many.is_empty() { "" } else { "," };
        format!("{head}: {taken}{comma}{many}{rest}")
    }

    /// Of how many of the slow ones the kernel took at least half of what they took longer than the median.
    pub(crate) fn explained(&self) -> String {
        let Sum { requests, explained, perhaps, .. } = *self.sum();
        if requests == 1 {
            return match (explained, perhaps) {
                (1, _) => "the kernel took at least half of what the slowest object took longer than the median",
                (_, 1) => "the kernel may have taken half of what the slowest object took longer than the median",
                _ => "the kernel took less than half of what the slowest object took longer than the median",
            }
            .to_owned();
        }
        let which = match self.band {
            Some(band) => format!("{} at or beyond {}", counted(requests, "object"), BANDS[band].name),
            None => format!("the {requests} slowest objects"),
        };
        let lost = match (explained, perhaps) {
            (_, 0) => "none".to_owned(),
            (sure, may) if sure == may => sure.to_string(),
            (0, may) => format!("perhaps {may}"),
            (sure, may) => format!("{sure} (perhaps {may})"),
        };
        format!("of {which}, {lost} lost at least half of the time beyond the median to the kernel")
    }

    /// How much longer than the median the requests of the band took together.
    fn late(&self) -> u64 {
        let sum = self.sum();
        sum.length.saturating_sub(sum.requests.saturating_mul(self.times.whole.quantile(0.5)))
    }

    /// That the kernel took nothing, or that this is not known.
    fn nothing(&self, source: &Source) -> String {
        let sum = self.sum();
        if source.kernel.is_none() {
            return String::new();
        }
        let of_it = |part| time(scaled(part, sum.length, self.value()));
        if sum.unknown.saturating_mul(2) > self.late() {
            format!(": no event explains {} of it", of_it(sum.unknown))
        } else if sum.kernel.at_most == 0 {
            ": the kernel took nothing of it".to_owned()
        } else {
            format!(": the kernel took hardly anything of it (at most {})", of_it(sum.kernel.at_most))
        }
    }

    /// The stage in which they are late, if that is not explained.
    fn where_else(&self, source: &Source, explained: u64) -> String {
        if explained >= self.late() / 2 {
            return String::new();
        }
        let Some(((from, to), length)) = self.stage() else { return String::new() };
        let usual = self.times.stages[&(from, to)].quantile(0.5);
        let (from, to) = (source.tpoint(from), source.tpoint(to));
        format!("; {} of it in {from} -> {to}, usually {}", time(length), time(usual))
    }
}

/// Of how many requests something was taken; of one it goes without saying.
fn in_how_many(all: &Blamed, sum: &Sum) -> String {
    if sum.requests == 1 { String::new() } else { format!(" in {} of {} requests", all.requests, sum.requests) }
}
