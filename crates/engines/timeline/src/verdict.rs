//! The sentence to read first: how slow requests are, and who took how much of their time.

use scene::StageKind;
use screen::{counted, time};

use super::causes::{self, Cause, CauseKind};
use super::first::{Subject, Times};
use super::second::{BANDS, BlamedTime, Loss, Sum, scaled};
use super::source::Source;
use super::words::{self, OTHERS, Share};

/// Name of the time that nobody took in stages that the thread's own work ends.
pub const OWN_CODE: &str = "its own code";
/// Name of the time that nobody took in the other stages.
pub const DEVICE_OR_OWN_CODE: &str = "waiting for a device or a peer, or its own code";
/// Name of the time of which it is unknown who took it.
pub const UNKNOWN: &str = "not known: no event explains it";

/// Least number of requests in a band for a verdict on it.
const MIN_REQUESTS: u64 = 5;

/// Verdict on the requests of one group.
pub struct Verdict<'a> {
    /// Fields that requests are grouped by, as typed.
    by: &'a [String],
    /// Subject of the verdict.
    pub subject: &'a Subject,
    /// Lengths of its requests.
    pub times: &'a Times,
    /// Losses of its requests.
    pub loss: &'a Loss,
    /// Index of its band: the slowest with enough requests. `None` if no band has; the verdict is
    /// then about the slowest requests.
    band: Option<usize>,
}

impl<'a> Verdict<'a> {
    /// Creates the verdict on the slowest band with enough requests, or else on the slowest
    /// request.
    pub fn new(by: &'a [String], subject: &'a Subject, times: &'a Times, loss: &'a Loss) -> Self {
        let enough = |band: &usize| loss.whole[*band].requests >= MIN_REQUESTS;
        let band = (1..BANDS.len()).rev().find(enough);
        Self {
            by,
            subject,
            times,
            loss,
            band,
        }
    }

    /// Returns the losses of the requests that it is about.
    pub fn sum(&self) -> &Sum {
        &self.loss.whole[self.band.unwrap_or(BANDS.len() - 1)]
    }

    /// Returns the value of the band's quantile, or else the longest time.
    pub fn value(&self) -> u64 {
        self.band.map_or(self.times.whole.max(), |band| {
            self.times.whole.quantile(BANDS[band].part)
        })
    }

    /// Describes its group in words; empty if there are no groups.
    pub fn group(&self) -> String {
        words::group(self.by, &self.subject.group)
    }

    /// Returns the stage with the largest excess in these requests over all requests, and its time
    /// in a request as long as the value.
    fn stage(&self) -> Option<(StageKind, u64)> {
        let sum = self.sum();
        let mean = |kind: &StageKind| {
            let all = &self.times.stages[kind];
            u64::try_from(all.sum() / u128::from(all.count().max(1))).unwrap_or(u64::MAX)
        };
        let more = sum
            .stages
            .iter()
            .filter(|(kind, _)| self.times.stages.contains_key(kind));
        let most = more.max_by_key(|(kind, length)| {
            (*length / sum.requests.max(1)).saturating_sub(mean(kind))
        });
        most.map(|(kind, length)| (*kind, scaled(*length, sum.length, self.value())))
    }

    /// Returns the name of the requests that it is about, for a sentence.
    pub fn requests(&self, source: &Source) -> String {
        words::requests(
            self.by,
            &self.subject.group,
            source.tpoint(self.subject.first),
        )
    }

    /// Returns the sentence.
    pub fn sentence(&self, source: &Source) -> String {
        let of = self.requests(source);
        let value = self.value();
        let head = match self.band {
            Some(band) => format!("{} of {of} is {}", BANDS[band].name, time(value)),
            None if self.times.whole.count() == 1 => {
                format!("the only one of {of} took {}", time(value))
            }
            None => format!(
                "the slowest of {} of {of} took {}",
                self.times.whole.count(),
                time(value)
            ),
        };
        if source.kernel.is_none() {
            return format!("{head}{}", self.late_stage(source, 0));
        }
        let causes = causes::ranked(self.sum());
        let largest = causes.first().and_then(|cause| self.not_taken(cause));
        let culprit = causes
            .iter()
            .find(|cause| matches!(cause.what, CauseKind::Culprit { .. }));
        let culprit = culprit.filter(|cause| words::explains(cause.took.1, self.late()));
        let (taken, explained) =
            culprit.map_or_else(|| (self.nothing(), 0), |cause| self.taken(cause));
        // Unknown time may have been taken by them.
        let is_unknown = culprit.is_none() && self.sum().unknown.saturating_mul(2) > self.late();
        let unknown = causes
            .iter()
            .find(|cause| is_unknown && cause.what == CauseKind::Unknown);
        let said = if is_unknown {
            unknown.and_then(|cause| self.not_taken(cause))
        } else {
            Some(taken)
        };
        let mut parts: Vec<String> = largest.into_iter().chain(said).collect();
        parts.dedup();
        format!(
            "{head}: {}{}",
            parts.join("; "),
            self.late_stage(source, explained)
        )
    }

    /// Returns what the largest cause took, unless that is a culprit.
    fn not_taken(&self, cause: &Cause<'_>) -> Option<String> {
        let took = time(scaled(cause.took.1, self.sum().length, self.value()));
        match cause.what {
            CauseKind::Culprit { .. } => None,
            CauseKind::OwnCode => Some(format!("{took} of it {OWN_CODE}")),
            CauseKind::DeviceOrOwnCode => Some(format!("{took} of it {DEVICE_OR_OWN_CODE}")),
            CauseKind::Unknown => Some(format!("no event explains {took} of it")),
        }
    }

    /// Returns what the largest culprit took, alone or with others, and how many nanoseconds that
    /// explains.
    fn taken(&self, cause: &Cause<'_>) -> (String, u64) {
        let (sum, value) = (self.sum(), self.value());
        let CauseKind::Culprit {
            name,
            activity,
            each,
        } = &cause.what
        else {
            return (String::new(), 0);
        };
        let share = Share::new(activity.is_taken(), cause.took.1, sum.kernel.at_most);
        let (who, all, share) = match &each[..] {
            [(culprit, blamed)] if share == Share::All => (&culprit.name, blamed, share),
            [(culprit, _)] => (&culprit.name, &sum.kernel, share),
            // The number of requests in which it was on one of these CPUs is unknown.
            _ => (
                name,
                &sum.kernel,
                if share == Share::All {
                    Share::Most
                } else {
                    share
                },
            ),
        };
        let is_alone = share == Share::All;
        let taken = words::taken_by(who, share, all.scaled_to(value));
        let many = in_how_many(all, sum);
        let comma = if is_alone || many.is_empty() { "" } else { "," };
        (format!("{taken}{comma}{many}"), all.at_most)
    }

    /// Returns the number of slow requests of which others took at least half of the excess over
    /// the median, in words.
    pub fn explained(&self) -> String {
        let Sum {
            requests,
            explained,
            perhaps,
            ..
        } = *self.sum();
        if requests == 1 {
            return match (explained, perhaps) {
                (1, _) => {
                    "others took at least half of the slowest object's excess over the median"
                }
                (_, 1) => {
                    "others may have taken half of the slowest object's excess over the median"
                }
                _ => "others took less than half of the slowest object's excess over the median",
            }
            .to_owned();
        }
        let which = match self.band {
            Some(band) => format!(
                "{} at or beyond {}",
                counted(requests, "object"),
                BANDS[band].name
            ),
            None => format!("the {requests} slowest objects"),
        };
        let lost = match (explained, perhaps) {
            (_, 0) => "none".to_owned(),
            (sure, may) if sure == may => sure.to_string(),
            (0, may) => format!("perhaps {may}"),
            (sure, may) => format!("{sure} (perhaps {may})"),
        };
        format!("{lost} of {which} lost at least half of their excess over the median to others")
    }

    /// Returns the total excess of the band's requests over the median, in nanoseconds.
    fn late(&self) -> u64 {
        let sum = self.sum();
        sum.length
            .saturating_sub(sum.requests.saturating_mul(self.times.whole.quantile(0.5)))
    }

    /// Returns the words for a band of which others took nothing, or hardly anything.
    fn nothing(&self) -> String {
        let sum = self.sum();
        if sum.kernel.at_most == 0 {
            return format!("{OTHERS} took none of it");
        }
        let most = time(scaled(sum.kernel.at_most, sum.length, self.value()));
        format!("{OTHERS} took hardly any of it (at most {most})")
    }

    /// Returns the stage in which the requests are late, in words; empty if enough of the delay is
    /// explained.
    fn late_stage(&self, source: &Source, explained: u64) -> String {
        if explained >= self.late() / 2 {
            return String::new();
        }
        let Some(((from, to), length)) = self.stage() else {
            return String::new();
        };
        let usual = self.times.stages[&(from, to)].quantile(0.5);
        let (from, to) = (source.tpoint(from), source.tpoint(to));
        format!(
            "; {} of it in {from} -> {to}, usually {}",
            time(length),
            time(usual)
        )
    }
}

/// Returns in how many requests something was taken, in words; empty if there is only one.
fn in_how_many(all: &BlamedTime, sum: &Sum) -> String {
    if sum.requests == 1 {
        String::new()
    } else {
        format!(" in {} of {} requests", all.requests, sum.requests)
    }
}
