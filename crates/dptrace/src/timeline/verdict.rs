//! The sentence that a person wants first: how slow, and who took how much of it.

use screen::time;
use timeline::StageKind;

use super::first::{Subject, Times};
use super::second::{BANDS, Loss, Sum};
use super::source::Source;
use super::words;

/// A band says something if it has that many requests.
const FEW: u64 = 5;

/// What is to be said of one group's requests.
pub(super) struct Verdict<'a> {
    pub(super) subject: &'a Subject,
    pub(super) times: &'a Times,
    pub(super) loss: &'a Loss,
    /// Index of the band that it is about.
    pub(super) band: usize,
}

impl<'a> Verdict<'a> {
    /// About the slowest band that has enough requests; of very few requests, about the slowest one.
    pub(super) fn of(subject: &'a Subject, times: &'a Times, loss: &'a Loss) -> Self {
        let enough = |band: &usize| loss.whole[*band].requests >= FEW;
        let band = (1..BANDS.len()).rev().find(enough).unwrap_or(BANDS.len() - 1);
        Self { subject, times, loss, band }
    }

    pub(super) fn sum(&self) -> &Sum {
        &self.loss.whole[self.band]
    }

    /// The quantile's value.
    pub(super) fn value(&self) -> u64 {
        self.times.whole.quantile(BANDS[self.band].part)
    }

    /// The stage that took more of these requests than of all, and how long it took of each.
    pub(super) fn stage(&self) -> Option<(StageKind, u64)> {
        let sum = self.sum();
        let mean = |kind: &StageKind| {
            let all = &self.times.stages[kind];
            u64::try_from(all.sum() / u128::from(all.count().max(1))).unwrap_or(u64::MAX)
        };
        let more = sum.stages.iter().filter(|(kind, _)| self.times.stages.contains_key(kind));
        let more = more.map(|(kind, length)| (*kind, length / sum.requests.max(1)));
        more.max_by_key(|(kind, length)| length.saturating_sub(mean(kind)))
    }

    /// The sentence.
    pub(super) fn sentence(&self, source: &Source) -> String {
        let of = match &self.subject.group[..] {
            [] => source.tpoint(self.subject.first).to_owned(),
            group => words::group(group),
        };
        let value = self.value();
        let head = format!("{} of {of} is {}", BANDS[self.band].name, time(value));
        let sum = self.sum();
        let culprits = sum.culprits();
        let Some((culprit, blamed)) = culprits.first().filter(|(_, blamed)| blamed.at_most * 20 >= self.late()) else {
            return format!("{head}{}{}", self.nothing(source), self.where_else(source, 0));
        };
        // Either one took most of it, or many together.
        let is_alone = !culprit.activity.is_taken() || blamed.at_most * 10 >= sum.kernel.at_most * 6;
        let all = if is_alone { blamed } else { &sum.kernel };
        let (at_least, at_most) = all.of_one(value);
        let (bounds, who) = (words::bounds(at_least, at_most), &culprit.name);
        let who = if is_alone { who.clone() } else { format!("other threads and interrupts, first of all {who},") };
        let rest = self.where_else(source, all.at_most);
        format!("{head}: {bounds} of it {who} in {} of {} requests{rest}", all.requests, sum.requests)
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
        let (_, at_most) = sum.kernel.mean(sum.requests);
        if sum.unknown * 2 > self.late() {
            let unknown = time(sum.unknown / sum.requests.max(1));
            format!(": no event explains {unknown} of each of {} requests", sum.requests)
        } else if at_most == 0 {
            ": the kernel took nothing of it".to_owned()
        } else {
            format!(": the kernel took hardly anything of it (at most {})", time(at_most))
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
        format!("; of each {} are {from} -> {to}, usually {}", time(length), time(usual))
    }
}
