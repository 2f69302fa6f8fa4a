//! Waterfall of one request: a bar for each stage, and what its thread did.

use std::fmt::Write as _;

use scene::{Request, StageOfRequest};
use screen::{HEAD, LARGEST, NAME, QUIET, pad, pad_left, shorten, time, wrap};

use super::{Page, TIME_WIDTH, common_start};
use crate::pass::RequestLabels;
use crate::second::kernel_of_stage;
use crate::words;

/// Least width of a bar, in columns.
const MIN_BAR_WIDTH: usize = 12;

/// Largest width of a bar, in columns.
const MAX_BAR_WIDTH: usize = 48;

/// A stage shorter than its request divided by this is shown without its thread's activities.
const DETAIL_DIVISOR: u64 = 100;

impl Page<'_> {
    /// Names a stage by its tracepoints, without the `common` first bytes of their names.
    fn label(&self, stage: &StageOfRequest, common: usize) -> String {
        let short = |id| self.source.tpoint(id).get(common..).unwrap_or("?");
        format!("{} -> {}", short(stage.from), short(stage.to))
    }

    pub(super) fn waterfall(&mut self, label: &str, request: &Request<RequestLabels>) {
        let last = request.stages.last();
        let place = last.map_or_else(String::new, |stage| self.place(stage, request));
        let title = format!(
            "{label}: {}, {}{place}",
            self.object(request),
            time(request.length())
        );
        self.line(&self.screen.paint(HEAD, title).to_string());
        if let Some(owner) = &request.data.owner {
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
        let room = self.width().saturating_sub(2 + 2 * TIME_WIDTH + 2);
        let bar = room
            .saturating_sub(longest + 1)
            .clamp(MIN_BAR_WIDTH, MAX_BAR_WIDTH);
        let longest = longest.min(room.saturating_sub(bar + 1));
        let head = if names.is_empty() {
            "stage".to_owned()
        } else {
            format!("stage ({names}...)")
        };
        let head = format!(
            "  {}{:>TIME_WIDTH$}{:>TIME_WIDTH$}",
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
                pad_left(&at, TIME_WIDTH),
                pad_left(&time(stage.length()), TIME_WIDTH)
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
        let at = time(request.begin().0.saturating_sub(self.start.0));
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
        if stage.length() < request.length() / DETAIL_DIVISOR
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
            format!("; taken from the thread: {}", words::bounds(least, most))
        } else {
            String::new()
        };
        let line = format!("{done}{taken}");
        for line in wrap(&line, self.width() - 6) {
            let _ = writeln!(self.text, "      {}", self.screen.paint(QUIET, line));
        }
    }
}
