//! The report of all requests: verdicts, then the slowest.

use std::io;
use std::time::Duration;

use errors::usage;
use observer::{Progress, READING};
use scene::Setting;
use screen::Screen;

use crate::inputs::Inputs;
use crate::overview::Overview;
use crate::report::{Report, verdicts};
use crate::second::SecondPass;
use crate::threads::Threads;
use crate::{away, first, json, missing, report, text};

/// Selection of listed requests, and the form of the report.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of the slowest requests to list.
    pub slowest: usize,
    /// Listed requests take longer than this; `None` lists all.
    pub over: Option<Duration>,
    /// True if the text has the stages of all listed requests.
    pub all: bool,
    /// True if the text also lists requests that are not slow: their number was asked for.
    pub lists_fast: bool,
    /// True for JSON.
    pub as_json: bool,
    /// Terminal that the text is for.
    pub screen: Screen,
}

impl Options {
    /// Returns the nanoseconds beyond which requests are listed; 0 lists all.
    fn over_nanos(&self) -> u64 {
        let nanos = |over: Duration| u64::try_from(over.as_nanos()).unwrap_or(u64::MAX);
        self.over.map_or(0, nanos)
    }
}

/// Returns the report of a capture or trace, as text or JSON, below the overview of its folder;
/// without a trace, that of the threads.
///
/// # Errors
/// Fails if JSON is wanted and there is no trace.
pub fn explanations(
    inputs: &Inputs,
    options: &Options,
    overview: Option<&Overview>,
) -> anyhow::Result<String> {
    let source = &inputs.source;
    let before = overview.map_or_else(String::new, |it| it.before(options));
    if source.trace.is_some() {
        let format = if options.as_json {
            json::json
        } else {
            text::text
        };
        return Ok(before + &format_report(inputs, options, format));
    }
    if options.as_json {
        return Err(usage(
            "the capture has no trace, so --json has no requests to print: use --ndjson",
        ));
    }
    let mut threads = Threads::new(options.slowest);
    let passed = inputs.pass(READING, source.setting(), &mut threads);
    missing::report(source, &passed, &inputs.observer);
    Ok(before + &threads.text(source, options.screen))
}

/// Returns the sentences with which the report of a capture or trace begins: the causes of its slow
/// requests. Empty without a trace.
pub fn verdict_sentences(inputs: &Inputs, screen: Screen) -> String {
    if inputs.source.trace.is_none() {
        return String::new();
    }
    let options = Options {
        slowest: 1,
        over: None,
        all: false,
        lists_fast: false,
        as_json: false,
        screen,
    };
    format_report(inputs, &options, text::verdict_sentences)
}

/// Hands each interval of all threads to `write`, as a line of JSON.
///
/// # Errors
/// Fails if there are no kernel events, or if a line cannot be written.
pub fn intervals(
    inputs: &Inputs,
    progress: Progress,
    mut write: impl FnMut(&str) -> io::Result<()>,
) -> anyhow::Result<()> {
    let source = &inputs.source;
    if source.kernel.is_none() {
        return Err(usage(
            "there are no kernel events, so --ndjson has no intervals to print",
        ));
    }
    let mut failed = Ok(());
    let write = |line: &str| {
        if failed.is_ok() {
            failed = write(line);
        }
    };
    let mut consumer = json::Intervals { source, write };
    let passed = inputs.pass_with(progress, READING, source.setting(), &mut consumer);
    failed?;
    missing::report(source, &passed, &inputs.observer);
    Ok(())
}

/// Passes over the requests twice and formats the report. Notes go to the observer of `inputs`.
fn format_report(inputs: &Inputs, options: &Options, format: fn(&Report<'_>) -> String) -> String {
    let over = options.over_nanos();
    let source = &inputs.source;
    let (mut first, passed) = first::survey(inputs, options.slowest);
    let usual = std::mem::take(&mut first.survey).finish();
    let detail_over = first.slowest_from().max(over);
    let setting = Setting {
        usual: usual.clone(),
        detail_over,
        ..source.setting()
    };
    let mut second = SecondPass::new(&mut first, options.slowest, over);
    inputs.pass("second of two passes", setting, &mut second);
    let slowest = second.take_slowest();
    if first.times.is_empty() {
        inputs.observer.note(
            "the trace has no object from its creation to its end: there is nothing to explain",
        );
    } else if over > 0 && slowest.is_empty() {
        inputs.observer.note(&format!(
            "no request took longer than {}",
            screen::time(over)
        ));
    }
    let (verdicts, beyond) = (verdicts(&first, &second, &inputs.by), second.beyond);
    let begin = passed.begin;
    let by = &inputs.by[..];
    let left_out = missing::request_notes(&passed, &first);
    let mut lines = first.still_open.json(source, passed.end);
    for line in away::json(source, &second.away, begin) {
        lines += &line;
        lines.push('\n');
    }
    if options.as_json {
        // In text they are part of the report.
        for missing in &left_out {
            inputs.observer.note(missing);
        }
    }
    format(&Report {
        source,
        begin,
        start: passed.start,
        screen: options.screen,
        by,
        verdicts,
        slowest,
        all: options.all,
        lists_fast: options.lists_fast,
        beyond,
        over,
        usual,
        still_open: report::still_open(&first, &passed),
        absences: report::absences(source, &second),
        left_out,
        lines,
    })
}
