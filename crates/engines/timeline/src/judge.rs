//! Explains one slow request of a capture, and when threads were away in it: for `dptrace watch`,
//! which knows the request and has just written the capture.

use std::path::Path;

use capture::Reader;
use objects::ObjectSpec;
use observer::Observer;
use scene::{
    AbsenceTimes, AbsenceTracker, BootNanos, Consumer, Experience, Interval, Request, Setting,
    Survey, Tid,
};
use screen::shorten;
use spdk_trace::{Lcore, Ticks};

use super::away;
pub use super::away::AbsenceSentence;
use super::inputs::Inputs;
use super::pass::RequestLabels;
use super::second::{blamed, kernel_time, unknown};
use super::source::Source;
use super::words::{self, Taken};

/// Identity of a request: its first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId {
    /// Time of the first record.
    pub begin: Ticks,
    /// Lcore of the first record.
    pub lcore: Lcore,
    /// Tracepoint of the first record.
    pub first: u16,
}

/// Findings of a capture.
#[derive(Clone, Debug, Default)]
pub struct CaptureFindings {
    /// Wanted request, if the capture has it from its start.
    pub request: Option<RequestFindings>,
    /// Times in which threads that write rings were away.
    pub away: AbsenceReport,
}

/// Times in which threads were away, with a text for each thread.
#[derive(Clone, Debug, Default)]
pub struct AbsenceReport {
    /// Sentences, as `timeline` has them.
    pub sentences: Vec<AbsenceSentence>,
    /// JSON objects, as `timeline` has them.
    pub json: Vec<String>,
}

/// Findings about a request. Foreign texts are escaped.
#[derive(Clone, Debug, Default)]
pub struct RequestFindings {
    /// Name of the request, as in listings of the capture.
    pub object: String,
    /// Kind of the request, such as `TCP_REQ`.
    pub kind: String,
    /// Subsystem of the request, if it is known.
    pub subsystem: Option<String>,
    /// Connection of the request, if it is known.
    pub owner: Option<String>,
    /// Time of its first record.
    pub begin: BootNanos,
    /// Length in nanoseconds.
    pub length: u64,
    /// True if the capture ends before the request does.
    pub unfinished: bool,
    /// True if there are kernel events.
    pub has_kernel: bool,
    /// Nanoseconds that the kernel took, at least.
    pub at_least: u64,
    /// Nanoseconds that the kernel took, at most.
    pub at_most: u64,
    /// Largest taker of its time.
    pub culprit: Option<Culprit>,
    /// Nanoseconds that no event explains.
    pub unknown: u64,
    /// Longest stage: both tracepoints, and its length in nanoseconds.
    pub stage: Option<(String, String, u64)>,
    /// Tracepoint of the last record.
    pub last: String,
}

/// Taker of a request's time.
#[derive(Clone, Debug)]
pub struct Culprit {
    /// Name of the culprit.
    pub name: String,
    /// True if it took the CPU of the thread.
    pub is_taken: bool,
    /// Nanoseconds that it took, at least.
    pub at_least: u64,
    /// Nanoseconds that it took, at most.
    pub at_most: u64,
}

/// Explains the wanted request of a capture, if there is one, and finds the times away. Usual
/// lengths come from all captures and samples so far, including this one.
pub fn judge(
    dir: &Path,
    specs: &[ObjectSpec],
    wanted: Option<RequestId>,
    experience: &mut Experience,
    observer: &Observer,
) -> anyhow::Result<CaptureFindings> {
    let inputs = Inputs::open_to_judge(dir, specs, observer)?;
    let source = &inputs.source;
    let mut learning = LearningPass {
        experience,
        now: Survey::default(),
        away: away::tracker(source),
    };
    let passed = inputs.pass("judging a capture", source.setting(), &mut learning);
    let usual = learning.experience.usual(&learning.now);
    let mut looking = SearchPass {
        source,
        wanted,
        found: None,
        away: learning.away.finish(),
    };
    inputs.pass(
        "judging a capture",
        Setting {
            usual,
            ..source.setting()
        },
        &mut looking,
    );
    let SearchPass { found, away, .. } = looking;
    let request = found.map(|request| judged(&request, source));
    let (sentences, json) = (
        away::sentences(source, &away),
        away::json(source, &away, passed.begin),
    );
    Ok(CaptureFindings {
        request,
        away: AbsenceReport { sentences, json },
    })
}

/// Learns usual lengths from a capture in memory, of a time in which nothing need have been slow.
pub fn learn(
    reader: Reader,
    specs: &[ObjectSpec],
    experience: &mut Experience,
    observer: &Observer,
) -> anyhow::Result<()> {
    let inputs = Inputs::open_to_learn(reader, specs, observer)?;
    inputs.pass(
        "learning what is usual",
        inputs.source.setting(),
        experience,
    );
    Ok(())
}

/// Consumer that learns usual lengths over all captures, and of this one.
struct LearningPass<'a> {
    experience: &'a mut Experience,
    now: Survey,
    away: AbsenceTracker,
}

impl Consumer<RequestLabels> for LearningPass<'_> {
    fn interval(&mut self, tid: Tid, interval: Interval) {
        self.away.interval(tid, &interval);
    }

    fn request(&mut self, request: &Request<RequestLabels>) {
        for stage in &request.stages {
            self.experience.stage(stage);
            self.now.stage(stage);
        }
    }
}

/// Consumer that waits for one request, and counts the requests hit by times away.
struct SearchPass<'a> {
    source: &'a Source,
    wanted: Option<RequestId>,
    found: Option<Request<RequestLabels>>,
    away: AbsenceTimes,
}

impl Consumer<RequestLabels> for SearchPass<'_> {
    fn request(&mut self, request: &Request<RequestLabels>) {
        away::count(&mut self.away, self.source, request);
        let first = request.records.first();
        let matches = first.is_some_and(|mark| {
            Some(RequestId {
                begin: mark.ticks,
                lcore: mark.lcore,
                first: mark.tpoint,
            }) == self.wanted
        });
        if matches
            && self
                .found
                .as_ref()
                .is_none_or(|known| known.length() < request.length())
        {
            self.found = Some(request.clone());
        }
    }
}

pub(crate) fn judged(request: &Request<RequestLabels>, source: &Source) -> RequestFindings {
    let by = blamed(request, source);
    let (at_least, at_most) = kernel_time(&by);
    let culprit = by.first().map(|(culprit, blamed)| Culprit {
        name: culprit.full_name(source),
        is_taken: culprit.activity.is_taken(),
        at_least: blamed.at_least,
        at_most: blamed.at_most,
    });
    let stage = request.stages.iter().max_by_key(|stage| stage.length());
    let named = |id| source.tpoint(id).to_owned();
    RequestFindings {
        object: request.name.to_string(),
        kind: words::kind(source.tpoint(request.first())).to_owned(),
        subsystem: request
            .data
            .group
            .first()
            .cloned()
            .flatten()
            .map(|name| words::short(&name)),
        owner: request.data.owner.as_deref().map(str::to_owned),
        begin: request.begin(),
        length: request.length(),
        unfinished: request.unfinished,
        has_kernel: source.kernel.is_some(),
        at_least,
        at_most,
        culprit,
        unknown: if source.kernel.is_some() {
            unknown(request)
        } else {
            0
        },
        stage: stage.map(|stage| (named(stage.from), named(stage.to), stage.length())),
        last: request
            .records
            .last()
            .map(|mark| named(mark.tpoint))
            .unwrap_or_default(),
    }
}

impl RequestFindings {
    /// Returns the request with its connection: `r57 (TCP_REQ) of cnode2, 10.0.0.3:4420 qid:1`.
    pub fn name(&self) -> String {
        let owner = self.owner.as_deref().map(connection);
        let of = [self.subsystem.clone(), owner];
        let of = of.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let name = format!("{} ({})", self.object, self.kind);
        if of.is_empty() {
            name
        } else {
            format!("{name} of {of}")
        }
    }

    /// Names the culprit in words, as the verdicts of `dptrace timeline` do.
    pub fn blame(&self) -> String {
        let Some(culprit) = self
            .culprit
            .as_ref()
            .filter(|it| words::explains(it.at_most, self.length))
        else {
            return self.no_blame();
        };
        let own = (culprit.at_least, culprit.at_most);
        let taken = Taken::new(culprit.is_taken, own, (self.at_least, self.at_most));
        let took = words::bounds(own.0, own.1);
        format!("{took} of it {}{}", culprit.name, taken.others())
    }

    fn no_blame(&self) -> String {
        let time = screen::time;
        let why = if !self.has_kernel {
            "no kernel events".to_owned()
        } else if self.unknown.saturating_mul(2) > self.length {
            format!("no event explains {} of it", time(self.unknown))
        } else if self.at_most == 0 {
            "no time to others".to_owned()
        } else {
            format!("hardly any time to others (at most {})", time(self.at_most))
        };
        let Some((from, to, length)) = &self.stage else {
            return why;
        };
        if self.unfinished {
            why
        } else {
            format!("{why}; {} of it in {from} -> {to}", time(*length))
        }
    }
}

/// Limit on the columns of a connection.
const CONNECTION_WIDTH: usize = 60;

/// Returns a connection without the names of its subsystem and host, which take a whole line.
fn connection(owner: &str) -> String {
    let words = owner.split(' ').filter(|word| !word.starts_with("nqn."));
    shorten(&words.collect::<Vec<_>>().join(" "), CONNECTION_WIDTH).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn culprit(name: &str, is_taken: bool, at_least: u64, at_most: u64) -> Culprit {
        Culprit {
            name: name.to_owned(),
            is_taken,
            at_least,
            at_most,
        }
    }

    #[test]
    fn blame_is_in_words() {
        let stage = Some(("A".to_owned(), "B".to_owned(), 900_000));
        let quiet = RequestFindings {
            length: 1_000_000,
            has_kernel: true,
            stage,
            ..RequestFindings::default()
        };
        let blamed = |at_least, at_most, culprit| {
            RequestFindings {
                at_least,
                at_most,
                culprit: Some(culprit),
                ..quiet.clone()
            }
            .blame()
        };
        assert_eq!(quiet.blame(), "no time to others; 900 us of it in A -> B");
        assert_eq!(
            blamed(0, 800_000, culprit("rustc on CPU 0", true, 0, 700_000)),
            "at most 700 us of it rustc on CPU 0; others, at most 100 us"
        );
        assert_eq!(
            blamed(0, 800_000, culprit("rustc on CPU 0", true, 0, 300_000)),
            "at most 300 us of it rustc on CPU 0; others, at most 500 us"
        );
        assert_eq!(
            blamed(10, 900, culprit("timer tick", true, 10, 900)),
            "hardly any time to others (at most 900 ns); 900 us of it in A -> B"
        );
        let own = culprit(
            "its own call nanosleep, which blocked",
            false,
            500_000,
            500_000,
        );
        assert_eq!(
            blamed(0, 0, own),
            "500 us of it its own call nanosleep, which blocked"
        );
        let unknown = RequestFindings {
            unknown: 600_000,
            ..quiet.clone()
        };
        assert_eq!(
            unknown.blame(),
            "no event explains 600 us of it; 900 us of it in A -> B"
        );
        let none = RequestFindings {
            has_kernel: false,
            unfinished: true,
            ..quiet
        };
        assert_eq!(none.blame(), "no kernel events");
    }
}
