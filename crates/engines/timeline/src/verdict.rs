//! The sentence to read first: how slow requests are, and who took how much of their time.

use screen::{counted, join_some, time};

use super::first::{Subject, Times};
use super::second::{BANDS, CauseGroup, Loss, MainCause, Rest, Sum};
use super::source::Source;
use super::words;

/// Name of the time that nobody took in stages that the thread's own work ends.
pub const OWN_CODE: &str = "its own code";
/// Name of the time that nobody took in the other stages.
pub const DEVICE_OR_OWN_CODE: &str = "waiting for a device or a peer, or its own code";
/// Name of the time of which it is unknown who took it.
pub const UNKNOWN: &str = "not known: no event explains it";

/// Least number of requests in a band for a verdict on it. If there is such a band, it has that
/// many separate stalls, too: one stall says nothing about a percentile, however many requests it
/// delayed.
const MIN_REQUESTS: u64 = 5;

/// Limit on the main causes in a sentence.
const MAX_CAUSES: usize = 3;

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
    /// Creates the verdict on the first band that is slow, with a percentile of twice the median or
    /// more, and has enough requests and stalls: a wider one has more of the causes. If there is
    /// none, it is on the last band with enough of both, or else on the first with enough requests,
    /// or else on the slowest request.
    pub fn new(by: &'a [String], subject: &'a Subject, times: &'a Times, loss: &'a Loss) -> Self {
        let enough = |band: &usize| loss.whole[*band].requests >= MIN_REQUESTS;
        let is_varied = |band: &usize| loss.whole[*band].events() >= MIN_REQUESTS;
        let is_slow = |band: &usize| {
            let [median, value] = times.whole.quantiles(&[0.5, BANDS[*band].part]);
            value >= median.saturating_mul(2)
        };
        let mut bands = (1..BANDS.len()).filter(enough);
        let mut varied = bands.clone().filter(is_varied);
        let slow = varied.clone().find(is_slow);
        let band = slow.or_else(|| varied.next_back()).or_else(|| bands.next());
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

    /// Returns the name of the requests that it is about, for a sentence.
    pub fn requests(&self, source: &Source) -> String {
        words::requests(
            self.by,
            &self.subject.group,
            source.tpoint(self.subject.first),
        )
    }

    /// Returns the sentence. Each of its numbers is true of each request that it names: no share of
    /// a sum is scaled to a percentile, since requests beyond it may be of several kinds.
    pub fn sentence(&self, source: &Source) -> String {
        let (of, times) = (self.requests(source), &self.times.whole);
        let value = time(self.value());
        let longest = time(times.max());
        let head = match self.band {
            Some(band) if longest == value => format!("{} of {of} is {value}", BANDS[band].name),
            Some(band) => format!(
                "{} of {of} is {value}, the slowest took {longest}",
                BANDS[band].name
            ),
            None if times.count() == 1 => format!("the only one of {of} took {value}"),
            None => format!("the slowest of {} of {of} took {value}", times.count()),
        };
        let causes = self.causes(source);
        if causes.is_empty() {
            head
        } else {
            format!("{head}: {causes}")
        }
    }

    /// Returns the main causes of its requests, in words.
    fn causes(&self, source: &Source) -> String {
        let sum = self.sum();
        let groups = sum.groups();
        let requests = counted(sum.requests, "request");
        let which = match self.band {
            Some(band) => format!("{requests} at or beyond {}", BANDS[band].name),
            None => format!("the {} slowest", sum.requests),
        };
        let all = if self.band.is_some() { "all " } else { "" };
        let one = |count: u64, of: (&MainCause, &CauseGroup)| self.cause(count, of, source);
        match &groups[..] {
            [] => String::new(),
            [group] if sum.requests == 1 => format!("it {}", one(1, *group)),
            [group] => format!("{all}{which} {}", one(sum.requests, *group)),
            _ => {
                let (named, further) = split(&groups);
                let mut parts: Vec<String> = named
                    .iter()
                    .map(|group| format!("{} {}", group.1.requests, one(group.1.requests, *group)))
                    .collect();
                parts.extend(others(&further));
                format!("of {which}, {}", parts.join("; "))
            }
        }
    }

    /// Describes what a cause took of `count` requests, as the predicate of a sentence.
    fn cause(
        &self,
        count: u64,
        (cause, group): (&MainCause, &CauseGroup),
        source: &Source,
    ) -> String {
        let (least, most) = group.took.unwrap_or_default();
        let each = if count == 1 { "" } else { " each" };
        let ((from, to), rest) = match cause {
            MainCause::Culprit(name) => {
                let took = words::range(least, most);
                let stop = words::stop(name);
                let lost = match (stop, count) {
                    (None, _) => {
                        let until = group.wakers.until(source);
                        format!("lost {took}{each} to {name}{until}")
                    }
                    (Some(stopped), 1) => format!("was {stopped} for {took}"),
                    (Some(stopped), _) => format!("were {stopped} for {took}{each}"),
                };
                let others = match group.others_at_most {
                    0 => String::new(),
                    most => {
                        let lost = if stop.is_some() { " lost" } else { "" };
                        format!(", and{lost} {} to others", words::range(0, most))
                    }
                };
                return lost + &stalls(group.stalls.count(), count) + &others;
            }
            MainCause::Stage(stage, rest) => (*stage, *rest),
        };
        let usual = time(self.loss.usual((from, to)));
        let (from, to) = (source.tpoint(from), source.tpoint(to));
        let range = words::range(least, most);
        let why = match rest {
            _ if source.kernel.is_none() => "",
            Rest::OwnCode => ", in the thread's own code",
            Rest::DeviceOrOwnCode => {
                ", waiting for a device or a peer, or in the thread's own code"
            }
            Rest::Unknown => ", and no event explains at least half of the delay",
        };
        let others = match group.others_at_most {
            0 => String::new(),
            most => format!(" (others took at most {})", time(most)),
        };
        format!("spent {range} in {from} -> {to}, usually {usual}{why}{others}")
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
}

/// Requests of one main cause.
type Group<'a> = (&'a MainCause, &'a CauseGroup);

/// Least share of the time that all causes took, as a divisor, of a cause that is named first.
const MIN_SHARE: u64 = 100;

/// Separates the causes that a sentence names from the others. Beside culprits, a stage is named only
/// if it is the largest cause, and so is a culprit that took hardly anything: a long sentence hides
/// whom to blame.
fn split<'a>(groups: &[Group<'a>]) -> (Vec<Group<'a>>, Vec<Group<'a>>) {
    let has_culprit = groups.iter().any(is_culprit);
    let all = groups
        .iter()
        .fold(0, |sum: u64, (_, group)| sum.saturating_add(group.all));
    let is_large = |(_, group): &Group<'_>| group.all.saturating_mul(MIN_SHARE) >= all;
    let (mut named, mut further): (Vec<_>, Vec<_>) =
        groups.iter().enumerate().partition(|(at, group)| {
            *at == 0 || !has_culprit || (is_culprit(group) && is_large(group))
        });
    // A single further cause is named: its name takes no more room than its count.
    if named.len() > MAX_CAUSES + 1 {
        further.extend(named.split_off(MAX_CAUSES));
    }
    let groups = |of: Vec<(usize, &Group<'a>)>| of.into_iter().map(|(_, group)| *group).collect();
    (groups(named), groups(further))
}

fn is_culprit((cause, _): &Group<'_>) -> bool {
    matches!(cause, MainCause::Culprit(_))
}

/// Describes the requests of the causes that a sentence does not name: those with a culprit, those of
/// which nobody took half of the excess, and those that no event explains.
fn others(groups: &[Group<'_>]) -> impl Iterator<Item = String> {
    let count = |groups: &[Group<'_>]| -> u64 { groups.iter().map(|it| it.1.requests).sum() };
    let (culprits, stages): (Vec<Group<'_>>, Vec<Group<'_>>) =
        groups.iter().copied().partition(is_culprit);
    let lost = (!culprits.is_empty()).then(|| {
        let names = culprits.iter().filter_map(|(cause, _)| match cause {
            MainCause::Culprit(name) => Some(name),
            MainCause::Stage(..) => None,
        });
        let most = culprits
            .iter()
            .filter_map(|(_, group)| group.took)
            .map(|(_, most)| most);
        let (count, most) = (count(&culprits), most.max().unwrap_or_default());
        let each = if count == 1 { "" } else { " each" };
        format!(
            "{count} lost {}{each} to {}",
            words::range(0, most),
            join_some(names, MAX_CAUSES)
        )
    });
    let is_unknown = |it: &Group<'_>| matches!(it.0, MainCause::Stage(_, Rest::Unknown));
    let (unknown, own): (Vec<_>, Vec<_>) = stages.into_iter().partition(is_unknown);
    let (unknown, own) = (count(&unknown), count(&own));
    let own = (own > 0).then(|| format!("{own} lost little or nothing to others"));
    let unknown = (unknown > 0).then(|| format!("no event explains the delay of {unknown}"));
    lost.into_iter().chain(own).chain(unknown)
}

/// Formats the number of stalls that `count` requests had; empty for a single request.
fn stalls(stalls: u64, count: u64) -> String {
    match (stalls, count) {
        (_, 1) => String::new(),
        (1, _) => " (one stall)".to_owned(),
        _ => format!(" ({stalls} stalls)"),
    }
}
