//! The report as text: sentences, the table of slow requests, their waterfalls, and the summary.

mod summary;
mod waterfall;

use std::fmt::Write as _;

use scene::{BootNanos, Request, StageOfRequest};
use screen::{HEAD, Screen, counted, pad, time, wrap};

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

/// Limit on the requests whose stages are shown by default: a waterfall fills a screen.
const MAX_WATERFALLS: usize = 3;

/// Formats the report.
pub fn text(report: &Report<'_>) -> String {
    let page = Page {
        source: report.source,
        begin: report.begin,
        screen: report.screen,
        text: String::new(),
    };
    page.write(report)
}

/// Formats one request with its stages; `label` names it, and times count from `begin`.
pub fn waterfall(
    source: &Source,
    begin: BootNanos,
    screen: Screen,
    label: &str,
    request: &Request<RequestLabels>,
) -> String {
    let mut page = Page {
        source,
        begin,
        screen,
        text: String::new(),
    };
    page.waterfall(label, request);
    page.text
}

struct Page<'a> {
    source: &'a Source,
    begin: BootNanos,
    screen: Screen,
    text: String,
}

impl Page<'_> {
    fn write(mut self, report: &Report<'_>) -> String {
        if let Some(sentence) = &report.still_open {
            self.wrapped(sentence, "");
        }
        self.sentences(&report.verdicts);
        for sentence in report.absences.iter().chain(&report.left_out) {
            self.wrapped(sentence, "");
        }
        let same = stalls::first_of_each(&report.slowest);
        if !report.slowest.is_empty() {
            self.table(report, &same);
        }
        self.waterfalls(report, &same);
        self.summary(&report.verdicts);
        self.text
    }

    /// Adds the waterfalls of all requests, or of the first ones that different stalls delayed.
    fn waterfalls(&mut self, report: &Report<'_>, same: &[Option<usize>]) {
        let most = if report.all {
            usize::MAX
        } else {
            MAX_WATERFALLS
        };
        let is_shown = |(rank, _): &(usize, _)| report.all || same[*rank].is_none();
        let mut shown = 0;
        for (rank, request) in report
            .slowest
            .iter()
            .enumerate()
            .filter(is_shown)
            .take(most)
        {
            self.text.push('\n');
            self.waterfall(&format!("slowest {}", rank + 1), request);
            shown += 1;
        }
        let left = report.slowest.len() - shown;
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

    fn sentences(&mut self, verdicts: &[Verdict<'_>]) {
        let whole = || verdicts.iter().filter(|verdict| !verdict.subject.is_part);
        for verdict in whole().take(MAX_SENTENCES) {
            let sentence = verdict.sentence(self.source);
            self.wrapped(&sentence, "");
        }
        let left = whole().count().saturating_sub(MAX_SENTENCES);
        if left > 0 {
            let (groups, are) = (
                counted(left as u64, "more group"),
                if left == 1 { "is" } else { "are" },
            );
            let line = format!("and {groups}, which {are} faster: see the summary below");
            self.line(&line);
        }
    }

    fn table(&mut self, report: &Report<'_>, same: &[Option<usize>]) {
        let slowest = &report.slowest;
        let beyond = report.beyond.saturating_sub(slowest.len() as u64);
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
            "of it, taken"
        );
        self.line(&self.screen.paint(HEAD, head).to_string());
        for (rank, request) in slowest.iter().enumerate() {
            let at = time(request.begin().0.saturating_sub(self.begin.0));
            let name = pad(&self.object(request), object);
            let stall =
                same[rank].map_or_else(String::new, |first| format!("stall of {}: ", first + 1));
            let took = format!("{stall}{}", self.taken(request));
            let row = format!(
                "{:>3} {name} {at:>TIME_WIDTH$} {:>TIME_WIDTH$}  {took}",
                rank + 1,
                time(request.length())
            );
            self.line(&row);
        }
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
        if let Some((culprit, blamed)) = by.first()
            && blamed.at_most.saturating_mul(20) >= request.length()
        {
            let (least, most) = kernel_time(&by);
            // The culprit alone if it took nearly all, otherwise all takers together with the
            // largest one's name.
            if culprit.activity.is_taken()
                && blamed.at_most.saturating_mul(10) < most.saturating_mul(9)
            {
                return format!("{} {} and others", words::bounds(least, most), culprit.name);
            }
            return format!(
                "{} {}",
                words::bounds(blamed.at_least, blamed.at_most),
                culprit.name
            );
        }
        let longest = request.stages.iter().max_by_key(|stage| stage.length());
        let nothing = match &self.source.kernel {
            None => "",
            Some(_) if unknown(request).saturating_mul(2) > request.length() => "unknown; ",
            Some(_) => "nothing; ",
        };
        longest.map_or_else(String::new, |stage| {
            format!("{nothing}{} {}", time(stage.length()), self.stage(stage))
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
