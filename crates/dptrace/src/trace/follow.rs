//! `--follow`: a live trace, until interrupted or until the application is gone.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use objects::Annotator;
use spdk_trace::{Follower, Ticks};

use super::filter::Filter;
use super::format::{self, Format, FormatName, Head, View};
use super::list::{Lister, Look};
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

/// Follows the trace file at `path`.
pub(crate) fn follow(
    mut follower: Follower,
    path: &Path,
    annotator: Option<&Annotator>,
    filter: &mut Filter,
    (name, look): (FormatName, Look),
    output: &mut Output,
) -> anyhow::Result<()> {
    let source = FileSource::open(path)?;
    let stop = Interrupt::catch()?;
    let application = Application::of(path);
    if application.is_unknown() {
        note("not permitted to see which process writes this file: going on until interrupted");
    }

    let mut lister = Lister::new(View {
        rate: follower.tick_rate(),
        base: Ticks(0),
        previous: None,
        show_tsc: look.tsc,
        show_delta: look.delta,
        annotator,
    });
    lister.head = look.head.unwrap_or(u64::MAX);
    let head = Head::of_follower(&follower);
    let mut format = format::writer(name, &head);
    format.begin(&mut output.buffer, &head, &lister.view);
    let mut last_alive = Instant::now();
    let mut gone = application.is_gone();
    loop {
        let over = stop.is_wished() || gone;
        let flow = look_once(&mut follower, &source, over, &mut lister, filter, format.as_mut(), output)?;
        output.flush()?;
        if over || flow.is_break() || lister.is_full() {
            break;
        }
        std::thread::sleep(LOOK);
        if last_alive.elapsed() >= ALIVE {
            gone = application.is_gone();
            last_alive = Instant::now();
        }
    }
    lister.finish(format.as_mut(), output)?;
    tell_problems(follower.problems());
    let why = if gone { "the application is gone" } else { "stopped" };
    note(&format!("{why}: {} records shown of {} read", lister.shown, lister.read));
    Ok(())
}

fn look_once(
    follower: &mut Follower,
    source: &FileSource,
    all: bool,
    lister: &mut Lister<'_>,
    filter: &mut Filter,
    format: &mut dyn Format,
    output: &mut Output,
) -> anyhow::Result<ControlFlow<()>> {
    let mut failed: Option<io::Error> = None;
    let flow = follower.poll(source, all, |record| {
        lister.record(record, filter, format, output).unwrap_or_else(|error| {
            failed = Some(error);
            ControlFlow::Break(())
        })
    })?;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(flow),
    }
}
