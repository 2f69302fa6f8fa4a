//! `--follow`: a live trace, until interrupted or until the application is gone.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use spdk_trace::{Follower, Ticks};

use super::filter::Filter;
use super::format::{self, Format, FormatName, Head, View};
use super::list::{Lister, Look};
use super::live::Objects;
use super::tell_problems;
use crate::application::Application;
use crate::failure::note;
use crate::input::FileSource;
use crate::interrupt::Interrupt;
use crate::output::Output;

/// Time between two looks at the rings.
const LOOK: Duration = Duration::from_millis(100);
/// Time between two looks at the application.
const ALIVE: Duration = Duration::from_millis(500);

/// What to follow, and how it is to look.
pub(crate) struct Following<'a> {
    pub(crate) path: &'a Path,
    /// Nothing before this.
    pub(crate) start: Ticks,
    pub(crate) format: FormatName,
    pub(crate) look: Look,
    pub(crate) stop: Stop,
}

/// When to stop.
pub(crate) struct Stop {
    pub(crate) interrupt: Interrupt,
    pub(crate) after: Option<Duration>,
}

/// Follows a trace file.
pub(crate) fn follow(
    mut follower: Follower,
    what: &Following<'_>,
    objects: &mut Objects,
    filter: &mut Filter,
    output: &mut Output,
) -> anyhow::Result<()> {
    let source = FileSource::open(what.path)?;
    let application = Application::of(what.path);
    if application.is_unknown() {
        note("not permitted to see which process writes this file: going on until interrupted");
    }
    let head = Head::of_follower(&follower);
    let mut format = format::writer(what.format, &head);
    let mut lister = what.lister(&follower);
    format.begin(&mut output.buffer, &head, &lister.view);
    let started = Instant::now();
    let mut last_alive = Instant::now();
    let mut gone = application.is_gone();
    let mut over = false;
    let why = loop {
        let timed_out = what.stop.after.is_some_and(|after| started.elapsed() >= after);
        over |= what.stop.interrupt.is_wished() || gone || timed_out;
        if over {
            objects.finish(follower.tpoints());
        }
        let mut annotated = lister.annotated_by(objects.annotator());
        let mut look = Looking { lister: &mut annotated, filter, format: format.as_mut(), output, unknown: 0 };
        let flow = look.at(&mut follower, &source, over, objects)?;
        let unknown = look.unknown;
        lister = annotated.annotated_by(None);
        objects.count_unknown(unknown);
        output.flush()?;
        if over || flow.is_break() || lister.is_full() {
            break if gone {
                "the application is gone"
            } else if timed_out {
                "the time is over"
            } else {
                "stopped"
            };
        }
        objects.wait(LOOK, follower.tpoints());
        if last_alive.elapsed() >= ALIVE {
            gone = application.is_gone();
            last_alive = Instant::now();
        }
    };
    lister.finish(format.as_mut(), output)?;
    tell_problems(follower.problems());
    note(&format!("{why}: {} records shown of {} read", lister.shown, lister.read));
    Ok(())
}

impl Following<'_> {
    fn lister(&self, follower: &Follower) -> Lister<'static> {
        let mut lister = Lister::new(View {
            rate: follower.tick_rate(),
            base: Ticks(0),
            previous: None,
            show_tsc: self.look.tsc,
            show_delta: self.look.delta,
            annotator: None,
        });
        lister.head = self.look.head.unwrap_or(u64::MAX);
        lister.start_at(self.start, self.look.from_common_start);
        if let Some(most) = self.look.tail {
            lister.keep_last(most);
        }
        lister
    }
}

/// One look at the rings.
struct Looking<'a, 'l> {
    lister: &'a mut Lister<'l>,
    filter: &'a mut Filter,
    format: &'a mut dyn Format,
    output: &'a mut Output,
    /// Records shown of which an object is not known.
    unknown: u64,
}

impl Looking<'_, '_> {
    fn at(
        &mut self,
        follower: &mut Follower,
        source: &FileSource,
        all: bool,
        objects: &Objects,
    ) -> anyhow::Result<ControlFlow<()>> {
        let mut failed: Option<io::Error> = None;
        let flow = follower.poll(source, all, |record| {
            let shown = self.lister.shown;
            let flow = self.lister.record(record, self.filter, self.format, self.output);
            self.unknown += u64::from(self.lister.shown > shown && objects.is_unknown(record));
            flow.unwrap_or_else(|error| {
                failed = Some(error);
                ControlFlow::Break(())
            })
        })?;
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(flow),
        }
    }
}
