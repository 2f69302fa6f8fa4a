//! The report as text: sentences, the table of slow requests, their waterfalls, and the summary.

mod summary;
mod waterfall;
mod whose;

use std::fmt::Write as _;

use scene::{BootNanos, Request, StageOfRequest};
use screen::{HEAD, Screen, counted, pad, time, wrap};

use super::first::Subject;
use super::pass::RequestLabels;
use super::report::Report;
use super::second::{blamed, kernel_time, unknown};
use super::source::Source;
use super::verdict::Verdict;
use super::{stalls, words};

/// Width of a report that goes to a file, in columns.
pub const USUAL_WIDTH: usize = 100;
/// Width of a time, with a blank before it, in columns.
pub const TIME_WIDTH: usize = 9;

/// Limit on the sentences printed.
const MAX_SENTENCES: usize = 8;

/// Least width of the cell with the cause if it wraps, in columns.
const MIN_CAUSE_WIDTH: usize = 24;

/// Limit on the requests whose stages are shown by default: a waterfall fills a screen.
const MAX_WATERFALLS: usize = 3;

/// Formats the report.
pub fn text(report: &Report<'_>) -> String {
    let mut page = Page::new(report);
    page.write(report);
    page.text
}

/// Formats its sentences on slow requests: their causes and connections, and the times in which
/// threads were away.
pub fn verdict_sentences(report: &Report<'_>) -> String {
    let mut page = Page::new(report);
    page.first_verdict(report);
    page.sentences(report.whole_verdicts().skip(1), "");
    for sentence in &report.absences {
        page.wrapped(sentence, "");
    }
    page.text
}

/// Formats one request with its stages; `label` names it, and times count from `start`.
pub fn waterfall(
    source: &Source,
    start: BootNanos,
    screen: Screen,
    label: &str,
    request: &Request<RequestLabels>,
) -> String {
    let mut page = Page {
        source,
        start,
        screen,
        text: String::new(),
    };
    page.waterfall(label, request);
    page.text
}

struct Page<'a> {
    source: &'a Source,
    /// Origin of printed times.
    start: BootNanos,
    screen: Screen,
    text: String,
}

impl<'a> Page<'a> {
    fn new(report: &Report<'a>) -> Self {
        Self {
            source: report.source,
            start: report.start,
            screen: report.screen,
            text: String::new(),
        }
    }

    /// Writes the first verdict and the table, then what else there is to know: who reads the first
    /// lines only has the answer.
    fn write(&mut self, report: &Report<'_>) {
        self.first_verdict(report);
        let slowest = listed(report);
        let same = stalls::first_of_each(slowest);
        if !slowest.is_empty() {
            self.table(report, slowest, &same);
        }
        let before = self.text.len();
        self.text.push('\n');
        let begin = self.text.len();
        self.sentences(report.whole_verdicts().skip(1), ": see the summary below");
        for sentence in report.absences.iter().chain(&report.left_out) {
            self.wrapped(sentence, "");
        }
        self.next(report);
        if self.text.len() == begin {
            self.text.truncate(before);
        }
        self.waterfalls(report, slowest, &same);
        self.summary(&report.verdicts);
    }

    /// Adds the sentence on requests that had not ended, and the first verdict.
    fn first_verdict(&mut self, report: &Report<'_>) {
        if let Some(sentence) = &report.still_open {
            self.wrapped(sentence, "");
        }
        if let Some(verdict) = report.whole_verdicts().next() {
            self.wrapped(&verdict.sentence(self.source), "");
            self.whose(verdict);
        }
    }

    /// Adds the command that finds the sender of the signals that stopped threads, if the capture does
    /// not have it.
    fn next(&mut self, report: &Report<'_>) {
        let is_stopped = |verdict: &Verdict<'_>| {
            let mut by = verdict.sum().by.values();
            by.any(|(culprit, _)| culprit.activity == scene::Activity::Stopped(None))
        };
        let meta = self.source.meta.as_ref();
        if let Some(meta) = meta.filter(|_| report.verdicts.iter().any(is_stopped)) {
            let pid = meta.process.pid;
            let line = format!(
                "next: dptrace run signals -p {pid} --for 5s shows who sends the signal that stops it"
            );
            self.wrapped(&line, "");
        }
    }

    /// Adds the waterfalls of all requests, or of the first ones that different stalls delayed.
    fn waterfalls(
        &mut self,
        report: &Report<'_>,
        slowest: &[Request<RequestLabels>],
        same: &[Option<usize>],
    ) {
        let most = if report.all {
            usize::MAX
        } else {
            MAX_WATERFALLS
        };
        let is_shown = |(rank, _): &(usize, _)| report.all || same[*rank].is_none();
        let mut shown = 0;
        for (rank, request) in slowest.iter().enumerate().filter(is_shown).take(most) {
            self.text.push('\n');
            self.waterfall(&format!("slowest {}", rank + 1), request);
            shown += 1;
        }
        let left = slowest.len() - shown;
        if left > 0 {
            self.text.push('\n');
            self.line(&format!(
                "the stages of {} are not shown: --all",
                counted(left as u64, "more request")
            ));
        }
    }

    fn width(&self) -> usize {
        self.screen.width().unwrap_or(USUAL_WIDTH)
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(&self.screen.cut(line));
        self.text.push('\n');
    }

    /// Adds a text, wrapped into lines.
    fn wrapped(&mut self, text: &str, indent: &str) {
        for line in wrap(text, self.width() - indent.len()) {
            let _ = writeln!(self.text, "{indent}{line}");
        }
    }

    /// Adds the sentences of these verdicts; `elsewhere` says where further ones are.
    fn sentences<'b>(
        &mut self,
        mut verdicts: impl Iterator<Item = &'b Verdict<'b>>,
        elsewhere: &str,
    ) {
        for verdict in verdicts.by_ref().take(MAX_SENTENCES - 1) {
            let sentence = verdict.sentence(self.source);
            self.wrapped(&sentence, "");
        }
        let left = verdicts.count();
        if left > 0 {
            let (groups, are) = (
                counted(left as u64, "more group"),
                if left == 1 { "is" } else { "are" },
            );
            let line = format!("and {groups}, which {are} faster{elsewhere}");
            self.line(&line);
        }
    }

    /// Adds the table of slow requests. The last cell has the cause first, and wraps on a terminal:
    /// it is the answer.
    fn table(
        &mut self,
        report: &Report<'_>,
        slowest: &[Request<RequestLabels>],
        same: &[Option<usize>],
    ) {
        let beyond = report.beyond.saturating_sub(report.slowest.len() as u64);
        let more = if report.over > 0 && beyond > 0 {
            format!(", and {beyond} more")
        } else {
            String::new()
        };
        let over = if report.over > 0 {
            format!(", over {}", time(report.over))
        } else {
            String::new()
        };
        self.text.push('\n');
        let many = if slowest.len() == 1 {
            String::new()
        } else {
            format!("{} ", slowest.len())
        };
        let title = format!("the {many}slowest{over}{more}");
        self.line(&self.screen.paint(HEAD, title).to_string());
        let object = slowest
            .iter()
            .map(|it| self.object(it).len())
            .max()
            .unwrap_or(0)
            .max(6);
        let head = format!(
            "{:>3} {} {:>TIME_WIDTH$} {:>TIME_WIDTH$}  {}",
            "",
            pad("object", object),
            "at",
            "took",
            "lost to"
        );
        self.line(&self.screen.paint(HEAD, head).to_string());
        for (rank, request) in slowest.iter().enumerate() {
            let at = time(request.begin().0.saturating_sub(self.start.0));
            let name = pad(&self.object(request), object);
            let stall = same[rank].map_or_else(String::new, |first| {
                format!(" (same stall as {})", first + 1)
            });
            let row = format!(
                "{:>3} {name} {at:>TIME_WIDTH$} {:>TIME_WIDTH$}  ",
                rank + 1,
                time(request.length())
            );
            let row = self::row(
                self.screen,
                &row,
                &format!("{}{stall}", self.taken(request)),
            );
            self.text.push_str(&row);
        }
        self.not_listed(report.slowest.len() - slowest.len());
    }

    /// Adds a line on the number of fast requests that are not in the table, if there are any.
    fn not_listed(&mut self, fast: usize) {
        let line = match fast {
            0 => return,
            1 => "1 more took less than twice the median of its kind: --slowest 20 lists it"
                .to_owned(),
            _ => {
                format!(
                    "{fast} more took less than twice the median of their kind: --slowest 20 lists them"
                )
            }
        };
        self.wrapped(&line, "    ");
    }

    /// Formats a request's name and kind: objects of two kinds may have the same name.
    fn object(&self, request: &Request<RequestLabels>) -> String {
        format!(
            "{} ({})",
            request.name,
            words::kind(self.source.tpoint(request.first()))
        )
    }

    /// Names the largest taker of a request's time, or else its longest stage.
    fn taken(&self, request: &Request<RequestLabels>) -> String {
        let by = blamed(request, self.source);
        let by_whom = by.first();
        if let Some((culprit, blamed)) =
            by_whom.filter(|(_, blamed)| words::explains(blamed.at_most, request.length()))
        {
            let taken = blamed.taken(culprit, kernel_time(&by));
            let took = words::bounds(taken.own.0, taken.own.1);
            let name = culprit.full_name(self.source);
            return format!("{name}, {took}{}", taken.others());
        }
        let longest = request.stages.iter().max_by_key(|stage| stage.length());
        let nothing = match &self.source.kernel {
            None => "",
            Some(_) if unknown(request).saturating_mul(2) > request.length() => "unknown; ",
            Some(_) => "nobody; ",
        };
        longest.map_or_else(String::new, |stage| {
            format!("{nothing}{} in {}", time(stage.length()), self.stage(stage))
        })
    }

    fn stage(&self, stage: &StageOfRequest) -> String {
        format!(
            "{} -> {}",
            self.source.tpoint(stage.from),
            self.source.tpoint(stage.to)
        )
    }
}

/// Formats a row whose last cell wraps, if the terminal has room for a part of it.
pub(crate) fn row(screen: Screen, row: &str, last: &str) -> String {
    let indent = row.len();
    match screen.width() {
        Some(width) if width >= indent + MIN_CAUSE_WIDTH => {
            let lines = wrap(last, width - indent).join(&format!("\n{:indent$}", ""));
            format!("{row}{lines}\n")
        }
        _ => format!("{}\n", screen.cut(&format!("{row}{last}"))),
    }
}

/// Returns the listed requests: without the last ones that took less than twice the median of their
/// kind, if others took longer, and if neither a threshold nor their number was asked for. Fast
/// requests are noise among slow ones.
fn listed<'a>(report: &'a Report<'_>) -> &'a [Request<RequestLabels>] {
    let is_slow = |request: &Request<RequestLabels>| {
        let subject = Subject::from_request(request);
        let verdict = report.verdicts.iter().find(|it| *it.subject == subject);
        let median = verdict.map_or(0, |it| it.times.whole.quantile(0.5));
        request.length() >= median.saturating_mul(2)
    };
    let slowest = &report.slowest[..];
    match slowest.iter().rposition(is_slow) {
        Some(last) if report.over == 0 && !report.lists_fast => &slowest[..=last],
        _ => slowest,
    }
}

/// Returns the common prefix of all names, up to an underscore.
pub fn common_start<'a>(mut names: impl Iterator<Item = &'a str>) -> &'a str {
    let first = names.next().unwrap_or_default();
    let common = names.fold(first.len(), |common, name| {
        let same = first
            .bytes()
            .zip(name.bytes())
            .take_while(|(a, b)| a == b)
            .count();
        common.min(same)
    });
    let end = first.as_bytes()[..common]
        .iter()
        .rposition(|byte| *byte == b'_')
        .map_or(0, |at| at + 1);
    &first[..end]
}
