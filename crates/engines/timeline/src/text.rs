//! The report as text: sentences, the table of slow requests, their waterfalls, and the summary.

use std::fmt::Write as _;

use scene::{BootNanos, Request, StageOfRequest};
use screen::{HEAD, LARGEST, NAME, QUIET, Screen, counted, pad, pad_left, shorten, time, wrap};

use super::pass::RequestLabels;
use super::report::Report;
use super::second::{BANDS, blamed, kernel_of, kernel_of_stage, unknown};
use super::source::Source;
use super::verdict::Verdict;
use super::{stalls, words};

/// Width of a report that goes to a file, in columns.
const USUAL_WIDTH: usize = 100;
/// Width of a time, with a blank before it, in columns.
const TIME: usize = 9;
/// Least width of a bar, in columns.
const LEAST_BAR: usize = 12;
/// Largest width of a bar, in columns.
const MOST_BAR: usize = 48;
/// Limit on the sentences printed.
const MOST_SENTENCES: usize = 8;
/// A stage shorter than its request divided by this is shown without its thread's activities.
const SMALL: u64 = 100;
/// Limit on the requests whose stages are shown by default: a waterfall fills a screen.
const MOST_WATERFALLS: usize = 3;

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
        for sentence in &report.sentences {
            self.wrapped(sentence, "");
        }
        self.sentences(&report.verdicts);
        for sentence in &report.left_out {
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
            MOST_WATERFALLS
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
        for verdict in whole().take(MOST_SENTENCES) {
            let sentence = verdict.sentence(self.source);
            self.wrapped(&sentence, "");
        }
        let left = whole().count().saturating_sub(MOST_SENTENCES);
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
            "{:>3} {} {:>TIME$} {:>TIME$}  {}",
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
                "{:>3} {name} {at:>TIME$} {:>TIME$}  {took}",
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
            let (least, most) = kernel_of(&by);
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

    /// Names a stage by its tracepoints, without the `common` first bytes of their names.
    fn label(&self, stage: &StageOfRequest, common: usize) -> String {
        let short = |id| self.source.tpoint(id).get(common..).unwrap_or("?");
        format!("{} -> {}", short(stage.from), short(stage.to))
    }

    fn waterfall(&mut self, label: &str, request: &Request<RequestLabels>) {
        let last = request.stages.last();
        let place = last.map_or_else(String::new, |stage| self.place(stage, request));
        let title = format!(
            "{label}: {}, {}{place}",
            self.object(request),
            time(request.length())
        );
        self.line(&self.screen.paint(HEAD, title).to_string());
        if let Some(owner) = &request.kept.owner {
            let owner = format!("  whose: {}", self.screen.paint(NAME, owner));
            self.line(&owner);
        }
        let names = common_start(
            request
                .stages
                .iter()
                .flat_map(|it| [it.from, it.to])
                .map(|id| self.source.tpoint(id)),
        );
        let labels: Vec<String> = request
            .stages
            .iter()
            .map(|it| self.label(it, names.len()))
            .collect();
        let longest = labels.iter().map(String::len).max().unwrap_or(0).max(12);
        let room = self.width().saturating_sub(2 + 2 * TIME + 2);
        let bar = room.saturating_sub(longest + 1).clamp(LEAST_BAR, MOST_BAR);
        let longest = longest.min(room.saturating_sub(bar + 1));
        let head = if names.is_empty() {
            "stage".to_owned()
        } else {
            format!("stage ({names}...)")
        };
        let head = format!(
            "  {}{:>TIME$}{:>TIME$}",
            pad(&shorten(&head, longest), longest),
            "at",
            "took"
        );
        self.line(&self.screen.paint(HEAD, head).to_string());
        let most = request.stages.iter().map(StageOfRequest::length).max();
        for (stage, label) in request.stages.iter().zip(&labels) {
            let at = time(stage.begin.0.saturating_sub(request.begin().0));
            let name = pad(&shorten(label, longest), longest);
            let drawn = self.bar(stage, request, bar);
            let row = format!(
                "  {name}{}{}  {drawn}",
                pad_left(&at, TIME),
                pad_left(&time(stage.length()), TIME)
            );
            let style = if Some(stage.length()) == most {
                LARGEST
            } else {
                screen::Style::new()
            };
            self.line(&self.screen.paint(style, row).to_string());
            self.did(stage, request);
        }
    }

    /// Formats the place of a request: thread, CPU, and time.
    fn place(&self, stage: &StageOfRequest, request: &Request<RequestLabels>) -> String {
        let thread = stage.tid.filter(|_| self.source.kernel.is_some());
        let thread = thread.map(|tid| format!(", {}", self.source.thread(tid, stage.end)));
        let cpu = stage
            .cpu
            .map(|cpu| format!(" on CPU {}", cpu.0))
            .unwrap_or_default();
        let at = time(request.begin().0.saturating_sub(self.begin.0));
        let when = if self.source.kernel.is_some() {
            format!(", {at} after the start")
        } else {
            String::new()
        };
        let lcore = if thread.is_none() {
            format!(", lcore {}", stage.lcore)
        } else {
            String::new()
        };
        format!("{}{cpu}{lcore}{when}", thread.unwrap_or_default())
    }

    fn bar(
        &self,
        stage: &StageOfRequest,
        request: &Request<RequestLabels>,
        width: usize,
    ) -> String {
        let whole = request.length().max(1);
        let at = |time: u64| {
            usize::try_from(u128::from(time) * width as u128 / u128::from(whole)).unwrap_or(width)
        };
        let from = at(stage.begin.0.saturating_sub(request.begin().0)).min(width - 1);
        let to = at(stage.end.0.saturating_sub(request.begin().0)).clamp(from + 1, width);
        let block = if self.screen.has_unicode() {
            '█'
        } else {
            '#'
        };
        let mut bar = " ".repeat(from);
        bar.extend(std::iter::repeat_n(block, to - from));
        bar
    }

    /// Adds what the thread did in a stage, if it is worth a line.
    fn did(&mut self, stage: &StageOfRequest, request: &Request<RequestLabels>) {
        let is_plain = stage
            .sums
            .iter()
            .all(|sum| sum.activity == scene::Activity::Runs);
        if stage.length() < request.length() / SMALL
            || (is_plain && stage.unknown == 0)
            || self.source.kernel.is_none()
        {
            return;
        }
        let done = match &stage.sums[..] {
            [] => format!("unknown {}", time(stage.unknown)),
            sums => words::all_done(self.source, sums, stage.end),
        };
        let (least, most) = kernel_of_stage(stage);
        let taken = if most > 0 {
            format!("; delayed by others: {}", words::bounds(least, most))
        } else {
            String::new()
        };
        let line = format!("{done}{taken}");
        for line in wrap(&line, self.width() - 6) {
            let _ = writeln!(self.text, "      {}", self.screen.paint(QUIET, line));
        }
    }

    fn summary(&mut self, verdicts: &[Verdict<'_>]) {
        for verdict in verdicts {
            self.text.push('\n');
            let of = verdict.group();
            let of = if of.is_empty() {
                String::new()
            } else {
                format!(", {of}")
            };
            let count = counted(verdict.times.whole.count(), "object");
            let title = format!(
                "{count} {} from {}{of}",
                verdict.subject.prefix,
                self.source.tpoint(verdict.subject.first)
            );
            self.line(&self.screen.paint(HEAD, title).to_string());
            if self.source.kernel.is_some() {
                self.explained(verdict);
            }
            self.stages(verdict);
        }
    }

    fn explained(&mut self, verdict: &Verdict<'_>) {
        let sum = verdict.sum();
        if sum.requests == 0 {
            return;
        }
        self.wrapped(&verdict.explained(), "  ");
        let culprits = sum.culprits();
        for (culprit, blamed) in culprits.iter().take(3) {
            let (least, most) = blamed.mean(blamed.requests);
            let (took, of) = (
                words::bounds(least, most),
                counted(blamed.requests, "object"),
            );
            let mean = if blamed.requests == 1 {
                ""
            } else {
                " in the mean"
            };
            let line = format!("  {}: {took}{mean}, of {of}", culprit.name);
            self.line(&line);
        }
    }

    /// Adds a row for each stage: its quantiles, and what the kernel took of them.
    fn stages(&mut self, verdict: &Verdict<'_>) {
        let (times, source) = (verdict.times, self.source);
        let has_kernel = source.kernel.is_some();
        let names = times
            .stages
            .keys()
            .flat_map(|(from, to)| [*from, *to])
            .map(|id| source.tpoint(id));
        let start = common_start(names).to_owned();
        let short = |id| source.tpoint(id).strip_prefix(&*start).unwrap_or("?");
        let label = |(from, to): &(u16, u16)| format!("{} -> {}", short(*from), short(*to));
        let columns = BANDS.len() * if has_kernel { 2 * TIME } else { TIME };
        let longest = times
            .stages
            .keys()
            .map(|kind| label(kind).len())
            .max()
            .unwrap_or(0)
            .max(12);
        let longest = longest
            .min(self.width().saturating_sub(columns + 2))
            .max(12);
        let head = if start.is_empty() {
            "stage".to_owned()
        } else {
            format!("stage ({start}...)")
        };
        let mut line = format!("  {}", pad(&shorten(&head, longest), longest));
        for band in &BANDS {
            let _ = write!(line, "{:>TIME$}", band.name);
            line += if has_kernel { "   kernel" } else { "" };
        }
        self.line(&self.screen.paint(HEAD, line).to_string());
        let mut kinds: Vec<_> = times.stages.keys().copied().collect();
        kinds.sort_unstable();
        for kind in kinds {
            let lengths = &times.stages[&kind];
            let mut line = format!("  {}", pad(&shorten(&label(&kind), longest), longest));
            for (index, band) in BANDS.iter().enumerate() {
                let value = lengths.quantile(band.part);
                let _ = write!(line, "{}", pad_left(&time(value), TIME));
                if has_kernel {
                    let loss = verdict.loss.stages.get(&kind).map(|loss| loss.bands[index]);
                    let (least, most) = loss.unwrap_or_default().of_one(value);
                    let took = if most == 0 {
                        "-".to_owned()
                    } else {
                        kernel_took(least, most)
                    };
                    let _ = write!(line, "{}", pad_left(&took, TIME));
                }
            }
            self.line(&line);
        }
    }
}

/// Formats what the kernel took at most, with a `<` if that is not certain.
fn kernel_took(least: u64, most: u64) -> String {
    let most_text = time(most);
    if time(least) == most_text {
        most_text
    } else {
        format!("<{most_text}")
    }
}

/// Returns the common prefix of all names, up to an underscore.
fn common_start<'a>(mut names: impl Iterator<Item = &'a str>) -> &'a str {
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
