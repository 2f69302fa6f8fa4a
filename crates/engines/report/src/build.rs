//! Builds the data of a report from a capture or a trace: the passes of `dptrace timeline`, and one
//! for the figures of `dptrace latency`.

use std::collections::HashMap;
use std::path::Path;

use latency::figures::{self, TraceFigures};
use live_objects::ObjectSources;
use observer::Observer;
use page::{Connection, Group, Intruder, Report, TimeBounds, TimeCauses, Verdict};
use scene::{BootNanos, Setting};
use spdk_trace::TickRate;
use text::printable::path as printable;
use timeline::first::{FirstPass, survey};
use timeline::inputs::Inputs;
use timeline::missing;
use timeline::pass::PassStats;
use timeline::report::{absences, still_open, verdicts};
use timeline::source::{Source, Ticker};
use timeline::words;
use trace_source::Place;

use super::collect::Collector;
use super::{facts, gaps, spent, waterfall};

/// Limit on the problems of a trace named.
const MAX_PROBLEMS: usize = 8;
/// Limit on the sentences at the top.
const MAX_VERDICTS: usize = 8;

/// Reads a capture or a trace and collects the data of its page; `by` are the fields that verdicts
/// are grouped by, and `slowest` the number of waterfalls.
///
/// # Errors
/// Returns an error if it cannot be read, or has no such field.
pub fn build(
    path: &Path,
    objects: &ObjectSources,
    by: &[String],
    slowest: usize,
    observer: &Observer,
) -> anyhow::Result<Report> {
    let inputs = Inputs::open(path, objects, by, observer)?;
    let specs = objects.for_place(&Place::File(path.to_owned())).specs()?;
    let source = &inputs.source;
    let figures = match &source.trace {
        Some(trace) => {
            // The requests of all parts of the page are the same.
            let counts = |tsc| !source.is_early(source.ticker.at(tsc));
            figures::figures(
                trace,
                source.meta.as_ref(),
                rate(source),
                inputs.annotator.as_ref(),
                &specs,
                counts,
                observer,
            )?
        }
        None => TraceFigures::default(),
    };
    let title = format!(
        "{} {}",
        if path.is_dir() { "Capture" } else { "Trace" },
        printable(path)
    );
    Ok(passes(&inputs, title, slowest, figures))
}

/// Returns the rate of the trace's ticks, as `dptrace latency` uses it.
fn rate(source: &Source) -> TickRate {
    match &source.ticker {
        Ticker::Measured(clock) => clock.rate(),
        Ticker::Stated(rate) => *rate,
    }
}

/// Returns the notes of the source, and what is missing in it.
fn notes(source: &Source, passed: &PassStats) -> Vec<String> {
    let mut notes = source.notes.clone();
    let problems = passed.problems.iter().take(MAX_PROBLEMS);
    notes.extend(problems.map(ToString::to_string));
    notes.extend(missing::notes(source, passed));
    notes
}

/// Returns the sentences at the top: verdicts on requests, or on intruders if there are none.
fn sentences(
    found: &[timeline::verdict::Verdict<'_>],
    source: &Source,
    intruders: &[Intruder],
) -> Vec<Verdict> {
    if found.is_empty() {
        return without_requests(intruders);
    }
    let sentence = |it: &timeline::verdict::Verdict<'_>| Verdict {
        sentence: as_sentence(&it.sentence(source)),
        explained: explained(&it.explained(), source),
    };
    found.iter().take(MAX_VERDICTS).map(sentence).collect()
}

/// Adds to each connection with a name what it lost.
fn with_losses(
    mut connections: Vec<Connection>,
    mut lost: HashMap<String, (TimeBounds, u64)>,
) -> Vec<Connection> {
    for connection in &mut connections {
        connection.lost = connection.name.as_ref().and_then(|name| lost.remove(name));
    }
    connections
}

/// Returns where the time went in the first verdict, if it is on whole requests, which come first.
fn spent_on_whole(found: &[timeline::verdict::Verdict<'_>], source: &Source) -> TimeCauses {
    found
        .first()
        .filter(|it| !it.subject.is_part)
        .map(|it| spent::spent(it, source))
        .unwrap_or_default()
}

/// Returns the connections without those of groups whose requests are only parts of others.
fn whole_connections(
    mut connections: Vec<Connection>,
    groups: &[Group],
    first: &FirstPass<'_>,
    source: &Source,
) -> Vec<Connection> {
    let is_part = |first_point: &str| {
        let mut of = first
            .times
            .keys()
            .filter(|subject| source.tpoint(subject.first) == first_point)
            .peekable();
        of.peek().is_some() && of.all(|subject| subject.is_part)
    };
    connections.retain(|connection| {
        groups
            .get(connection.group)
            .is_some_and(|group| !is_part(&group.first))
    });
    connections
}

/// Runs both passes of the timeline; the second also collects the data of charts.
fn passes(inputs: &Inputs, title: String, slowest: usize, figures: TraceFigures) -> Report {
    let source = &inputs.source;
    let (mut first, passed) = survey(inputs, slowest);
    let usual = std::mem::take(&mut first.survey).finish();
    let setting = Setting {
        usual,
        detail_over: first.slowest_from(),
        ..source.setting()
    };
    let axis = Axis::from_pass(&passed);
    let mut collector = Collector::new(&mut first, slowest, axis);
    inputs.pass("second of two passes", setting, &mut collector);
    let notes = notes(source, &passed);
    let left_out = missing::request_notes(&passed, &first);
    let slow = collector.second.take_slowest();
    let waterfalls = slow
        .iter()
        .enumerate()
        .map(|(rank, it)| waterfall::waterfall(rank, it, source, passed.start))
        .collect();
    let threads = std::mem::take(&mut collector.threads).finish(source, axis);
    let found = verdicts(&first, &collector.second, &inputs.by);
    let spent = spent_on_whole(&found, source);
    let verdicts = sentences(&found, source, &threads.intruders);
    let still_open = still_open(&first, &passed).map(|text| as_sentence(&text));
    let absences = absences(source, &collector.second);
    let absences = absences.iter().map(|text| as_sentence(text)).collect();
    let left_out = left_out.iter().map(|text| as_sentence(text)).collect();
    let holes = gaps::holes(&gaps::find(source), &passed, axis);
    let TraceFigures {
        groups,
        connections,
        left_out: connections_left_out,
    } = figures;
    let connections = whole_connections(connections, &groups, &first, source);
    let connections = with_losses(connections, collector.take_lost());
    Report {
        title,
        maker: concat!("dptrace ", env!("CARGO_PKG_VERSION")).to_owned(),
        facts: facts::facts(source, &passed),
        offset: axis.begin.0.saturating_sub(passed.start.0),
        span: axis.span(),
        has_kernel: source.kernel.is_some(),
        still_open,
        absences,
        verdicts,
        perfetto: None,
        left_out,
        spent,
        notes,
        heat: collector.heat.finish(axis.span(), holes),
        lanes: threads.lanes,
        budgets: threads.budgets,
        budgets_left_out: threads.budgets_left_out,
        intruders: threads.intruders,
        intruders_left_out: threads.intruders_left_out,
        waterfalls,
        groups,
        connections,
        connections_left_out,
    }
}

/// Time range of the charts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) begin: BootNanos,
    pub(crate) end: BootNanos,
}

impl Axis {
    /// Starts at the origin of printed times: earlier requests are in no figure.
    pub(crate) fn from_pass(passed: &PassStats) -> Self {
        let begin = passed.start;
        Self {
            begin,
            end: passed.end.max(begin),
        }
    }

    pub(crate) fn span(self) -> u64 {
        self.end.0 - self.begin.0
    }

    /// Returns a time as nanoseconds after the begin, within the range.
    pub(crate) fn at(self, time: BootNanos) -> u64 {
        time.0.clamp(self.begin.0, self.end.0) - self.begin.0
    }
}

fn explained(text: &str, source: &Source) -> String {
    if source.kernel.is_none() {
        return String::new();
    }
    as_sentence(text)
}

/// Makes a sentence with a capital letter, unless the first word has a digit, as names of
/// percentiles do.
fn as_sentence(text: &str) -> String {
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    let mut letters = first.chars();
    match letters.next() {
        Some(letter) if !first.contains(|c: char| c.is_ascii_digit()) => {
            format!(
                "{}{} {rest}.",
                letter.to_ascii_uppercase(),
                letters.as_str()
            )
        }
        _ => format!("{text}."),
    }
}

/// Returns a verdict for a capture without requests.
fn without_requests(intruders: &[Intruder]) -> Vec<Verdict> {
    let Some(most) = intruders.first() else {
        return Vec::new();
    };
    let on = most
        .cpu
        .map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
    let all = intruders.iter().map(|it| it.total).sum();
    let how = match words::is_most(most.total, all) {
        false => "the largest part ",
        true if intruders.len() > 1 => "mainly ",
        true => "",
    };
    let who = &most.name;
    let sentence = format!(
        "There is no trace, so there are no requests. Others had {} of the threads' time, \
         {how}{who}{on}: {} in all, {} at once.",
        screen::time(all),
        screen::time(most.total),
        screen::time(most.longest)
    );
    vec![Verdict {
        sentence,
        explained: String::new(),
    }]
}
