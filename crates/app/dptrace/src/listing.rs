//! Walks through a trace and writes its selected records.

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;

use console::output::Output;
use console::terminal;
use objects::Annotator;
use observer::{Progress, READING, Reading};
use records::{Context, Filter, Form, Format, Head, View};
use screen::Screen;
use spdk_trace::{Problems, Record, Ticks, Trace};
use trace_source::LoadedTrace;

use crate::args::filter::FilterArgs;

/// Options of a listing.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct ListOptions {
    pub(crate) tsc: bool,
    pub(crate) delta: bool,
    pub(crate) head: Option<u64>,
    pub(crate) tail: Option<usize>,
    pub(crate) common: bool,
    /// Times count from the common start itself, as in SPDK's listing, rather than from the first
    /// record after it.
    pub(crate) from_common_start: bool,
    /// Number of records to come, if known.
    pub(crate) expected: Option<u64>,
}

/// Outcome of a walk.
pub(crate) struct ListingOutcome {
    /// Records read, wanted or not.
    pub(crate) read: u64,
    /// Records written.
    pub(crate) shown: u64,
    pub(crate) problems: Problems,
}

/// Writes the selected records of `trace`.
pub(crate) fn list(
    (trace, head, annotator): (&Trace, &Head<'_>, Option<&Annotator>),
    filter: &mut Filter,
    options: ListOptions,
    format: &mut dyn Format,
    output: &mut Output,
) -> io::Result<ListingOutcome> {
    let mut lister = Lister::new(View {
        rate: trace.tick_rate(),
        base: Ticks(0),
        previous: None,
        show_tsc: options.tsc,
        show_delta: options.delta,
        annotator,
    });
    if let Some(most) = options.tail {
        lister.keep_last(most);
    }
    lister.head = options.head.unwrap_or(u64::MAX);
    lister.start_at(
        if options.common {
            trace.common_start()
        } else {
            Ticks(0)
        },
        options.from_common_start,
    );
    format.begin(&mut output.buffer, head, &lister.view);
    let mut failed = None;
    let mut reading = Reading::new(
        Progress::new(&terminal::observer_beside(output)),
        READING,
        options.expected,
    );
    let problems = trace.for_each(|record| {
        reading.count();
        lister
            .record(record, filter, format, output)
            .unwrap_or_else(|error| {
                failed = Some(error);
                ControlFlow::Break(())
            })
    });
    drop(reading);
    if let Some(error) = failed {
        return Err(error);
    }
    lister.finish(format, output)?;
    Ok(ListingOutcome {
        read: lister.read,
        shown: lister.shown,
        problems,
    })
}

/// Last lines, if only those are wanted.
struct Tail {
    most: usize,
    lines: VecDeque<Vec<u8>>,
}

/// Listing in progress.
pub(crate) struct Lister<'a> {
    pub(crate) view: View<'a>,
    base: Option<Ticks>,
    start: Ticks,
    pub(crate) head: u64,
    tail: Option<Tail>,
    pub(crate) read: u64,
    pub(crate) shown: u64,
}

impl<'a> Lister<'a> {
    pub(crate) fn new(view: View<'a>) -> Self {
        Self {
            view,
            base: None,
            start: Ticks(0),
            head: u64::MAX,
            tail: None,
            read: 0,
            shown: 0,
        }
    }

    /// Returns the same listing with another annotator.
    pub(crate) fn annotated_by(self, annotator: Option<&Annotator>) -> Lister<'_> {
        let View {
            rate,
            base,
            previous,
            show_tsc,
            show_delta,
            ..
        } = self.view;
        let view = View {
            rate,
            base,
            previous,
            show_tsc,
            show_delta,
            annotator,
        };
        let Self {
            base,
            start,
            head,
            tail,
            read,
            shown,
            ..
        } = self;
        Lister {
            view,
            base,
            start,
            head,
            tail,
            read,
            shown,
        }
    }

    /// Skips records before `start`; times count from there if `from_start`, else from the first
    /// record shown.
    pub(crate) fn start_at(&mut self, start: Ticks, from_start: bool) {
        self.start = start;
        self.base = Some(start).filter(|&start| from_start && start > Ticks(0));
    }

    /// Keeps only the last `most` records, and writes them at the end.
    pub(crate) fn keep_last(&mut self, most: usize) {
        self.tail = Some(Tail {
            most,
            lines: VecDeque::new(),
        });
    }

    /// Returns whether everything requested has been shown.
    pub(crate) fn is_full(&self) -> bool {
        self.shown >= self.head
    }

    /// Writes one record, if it is selected.
    #[inline]
    pub(crate) fn record(
        &mut self,
        record: &Record<'_>,
        filter: &mut Filter,
        format: &mut dyn Format,
        output: &mut Output,
    ) -> io::Result<ControlFlow<()>> {
        if self.is_full() {
            return Ok(ControlFlow::Break(()));
        }
        self.read += 1;
        if record.tsc < self.start {
            return Ok(ControlFlow::Continue(()));
        }
        let base = *self.base.get_or_insert(record.tsc);
        self.view.base = base;
        let context = Context {
            rate: self.view.rate,
            annotator: self.view.annotator,
        };
        if !filter.wants(record, base, &context) {
            return Ok(ControlFlow::Continue(()));
        }
        match &mut self.tail {
            None => {
                if self.shown > 0 {
                    output.buffer.extend_from_slice(format.separator());
                }
                format.record(&mut output.buffer, record, &self.view);
                output.drain()?;
            }
            Some(tail) => tail.push(|line| format.keep(line, record, &self.view)),
        }
        self.view.previous = Some(record.tsc);
        self.shown += 1;
        // Not with the next record, which may be long in coming.
        Ok(if self.is_full() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    }

    pub(crate) fn finish(
        &mut self,
        format: &mut dyn Format,
        output: &mut Output,
    ) -> io::Result<()> {
        if let Some(tail) = self.tail.take() {
            self.shown = tail.lines.len() as u64;
            for (i, line) in tail.lines.iter().enumerate() {
                if i > 0 {
                    output.buffer.extend_from_slice(format.separator());
                }
                format.put(&mut output.buffer, line);
                output.drain()?;
            }
        }
        format.end(&mut output.buffer);
        output.flush()
    }
}

impl Tail {
    /// Adds a line; reuses the buffer of the line that drops out.
    fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.most == 0 {
            return;
        }
        let mut line = if self.lines.len() < self.most {
            Vec::new()
        } else {
            self.lines.pop_front().unwrap_or_default()
        };
        line.clear();
        write(&mut line);
        self.lines.push_back(line);
    }
}

/// Writes the first records of a trace as text, for the demo.
pub(crate) fn first_records(
    loaded: &LoadedTrace,
    annotator: Option<&Annotator>,
    head: u64,
    output: &mut Output,
) -> anyhow::Result<()> {
    let trace = &loaded.trace;
    let mut filter =
        FilterArgs::default().resolve(trace.tpoints().all(), &[], trace.tick_rate())?;
    let options = ListOptions {
        head: Some(head),
        ..ListOptions::default()
    };
    let head = Head::from_trace(trace, Form::Text, &[])?;
    let mut format = records::writer(Form::Text, &head, Screen::stdout());
    list(
        (trace, &head, annotator),
        &mut filter,
        options,
        format.as_mut(),
        output,
    )?;
    Ok(())
}
