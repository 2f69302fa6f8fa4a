//! `--follow`: a live trace, until interrupted or until the application is gone.

use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use console::interrupt::Interrupt;
use console::messages::note;
use console::output::Output;
use console::terminal;
use live_objects::{Objects, UnknownCounts};
use ordering::Order as _;
use records::{Filter, Form, Format, Head, View};
use screen::{Screen, counted};
use spdk_trace::{Follower, Record, Ticks};
use trace_source::{Application, FileSource, HOLD_TIME, Pressure, Reader, warn_problems};

use crate::args::requests::Recording;
use crate::listing::{ListOptions, Lister};

/// Number of lcores whose losses are reported one by one.
const MAX_REPORTED_LOSSES: usize = 8;
/// Interval at which the end is checked.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Liveness poll interval for the application.
const LIVENESS_INTERVAL: Duration = Duration::from_millis(500);

/// Trace to follow, and the form of its listing.
pub(crate) struct FollowRequest {
    pub(crate) source: FileSource,
    /// Application that writes it.
    pub(crate) application: Application,
    /// Set if there is a CPU free of the application's threads.
    pub(crate) has_room: bool,
    /// Time of the first record to list.
    pub(crate) start: Ticks,
    pub(crate) form: Form,
    /// Screen of the output.
    pub(crate) screen: Screen,
    pub(crate) options: ListOptions,
    pub(crate) stop: Stop,
}

/// Reasons to stop.
pub(crate) struct Stop {
    pub(crate) interrupt: Interrupt,
    pub(crate) after: Option<Duration>,
    /// Recording that writes the trace, which is to be ended first.
    pub(crate) recording: Option<Recording>,
}

/// Follows a trace file: one thread reads ([`Reader`]), this one does the rest.
pub(crate) fn follow(
    mut follower: Follower,
    mut what: FollowRequest,
    objects: &mut Objects,
    filter: &mut Filter,
    output: &mut Output,
) -> anyhow::Result<()> {
    if what.application.is_unknown() {
        note("not permitted to see which process writes this file: following it until interrupted");
    }
    let head = Head::from_follower(&follower);
    let mut format = records::writer(what.form, &head, what.screen);
    let mut lister = what.lister(&follower);
    format.begin(&mut output.buffer, &head, &lister.view);
    let reader = Reader::start(follower.tail(), what.source.again()?, what.has_room)?;
    let mut recording = what.stop.recording.take();
    recording.iter().for_each(Recording::announce);
    let mut end = EndTracker::new(&what);
    let mut owners = FreshOwners::new(what.source.again()?);
    let why = loop {
        let batch = reader.next(STOP_POLL_INTERVAL);
        if let Some(why) = end.reached() {
            stop(recording.take(), &reader)?;
            end.why = Some(why);
        }
        // After the rings: the objects that they refer to are known by now.
        objects.learn(follower.given());
        let Some(batch) = batch else {
            continue;
        };
        let is_last = batch.is_last;
        follower.take(batch.copied, batch.at);
        if is_last {
            objects.finish();
        }
        owners.refresh(&mut follower, objects, is_last)?;
        objects.count_losses(follower.losses().map(|loss| loss.slots).sum());
        let mut annotated = lister.annotated_by(objects.annotator());
        let mut poll = Poll {
            lister: &mut annotated,
            filter,
            format: format.as_mut(),
            output,
            unknown: UnknownCounts::default(),
        };
        let flow = poll.run(&mut follower, is_last, objects)?;
        let unknown = poll.unknown;
        lister = annotated.annotated_by(None);
        objects.count_unknown(unknown);
        output.flush()?;
        follower.spare().for_each(|bytes| reader.give_back(bytes));
        if let Some(error) = batch.failed {
            return Err(error.into());
        }
        if is_last || flow.is_break() || lister.is_full() {
            break end.why.unwrap_or("stopped");
        }
    };
    objects.finish();
    lister.finish(format.as_mut(), output)?;
    warn_problems(follower.problems(), &terminal::observer());
    report_losses(&follower, lister.view.base, reader.finish());
    note(&format!(
        "{why}: {} shown of {} read",
        counted(lister.shown, "record"),
        lister.read
    ));
    Ok(())
}

/// Makes the reader poll once more, and end, after the recording that writes the trace.
fn stop(recording: Option<Recording>, reader: &Reader) -> anyhow::Result<()> {
    let ended = recording.map_or(Ok(()), Recording::finish);
    reader.stop();
    ended
}

/// Owners of the trace, re-read often enough. Records are held back for longer than that before
/// they are shown, so that their owners existed at the last reading.
struct FreshOwners {
    source: FileSource,
    read: Option<Instant>,
    /// Number of changes to the owners when the objects last learnt of them.
    changes: Option<u64>,
}

impl FreshOwners {
    fn new(source: FileSource) -> Self {
        Self {
            source,
            read: None,
            changes: None,
        }
    }

    fn refresh(
        &mut self,
        follower: &mut Follower,
        objects: &mut Objects,
        must: bool,
    ) -> anyhow::Result<()> {
        if !must && self.read.is_some_and(|read| read.elapsed() < HOLD_TIME / 2) {
            return Ok(());
        }
        follower.refresh_owners(&self.source)?;
        self.read = Some(Instant::now());
        let changes = Some(follower.owners().changes());
        if self.changes != changes {
            self.changes = changes;
            objects.know_owners(follower.owners(), follower.tick_rate());
        }
        Ok(())
    }
}

/// Tracks whether the following is over.
struct EndTracker<'a> {
    what: &'a FollowRequest,
    started: Instant,
    last_alive: Instant,
    gone: bool,
    why: Option<&'static str>,
}

impl<'a> EndTracker<'a> {
    fn new(what: &'a FollowRequest) -> Self {
        let now = Instant::now();
        Self {
            what,
            started: now,
            last_alive: now,
            gone: what.application.is_gone(),
            why: None,
        }
    }

    /// Returns the reason to stop, once.
    fn reached(&mut self) -> Option<&'static str> {
        if self.why.is_some() {
            return None;
        }
        if self.last_alive.elapsed() >= LIVENESS_INTERVAL {
            self.gone = self.what.application.is_gone();
            self.last_alive = Instant::now();
        }
        if self.gone {
            Some("the application is gone")
        } else if self
            .what
            .stop
            .after
            .is_some_and(|after| self.started.elapsed() >= after)
        {
            Some("the time is up")
        } else {
            self.what.stop.interrupt.is_requested().then_some("stopped")
        }
    }
}

/// Reports the slots that were overwritten before they were read, the reason, and the remedy.
fn report_losses(follower: &Follower, base: Ticks, pressure: Pressure) {
    let (mut lost, mut largest) = (0, 0);
    let mut losses: Vec<_> = follower.losses().collect();
    losses.order_by_key(|loss| std::cmp::Reverse(loss.slots));
    for loss in losses.iter().take(MAX_REPORTED_LOSSES) {
        note(&format!(
            "lcore {}: {} overwritten between two reads, the first after {} us",
            loss.lcore,
            counted(loss.slots, "slot"),
            follower
                .tick_rate()
                .nanos(Ticks(loss.since.0.saturating_sub(base.0)))
        ));
    }
    for loss in &losses {
        (lost, largest) = (lost + loss.slots, largest.max(loss.ring));
    }
    if follower.late() > 0 {
        let records = counted(follower.late(), "record");
        note(&format!(
            "{records} written so late that they are printed after newer ones"
        ));
    }
    if pressure.lost_to_output > 0 {
        note(&format!(
            "{} of the overwritten slots were lost because the output is slower than the trace: \
             print fewer records (--tpoint, --lcore, --where) or write to a file (-o FILE)",
            pressure.lost_to_output
        ));
    }
    if lost > pressure.lost_to_output {
        let more = largest.saturating_mul(8).next_power_of_two();
        note(&format!(
            "{} overwritten because dptrace read the rings too late, up to {:.1} ms apart: use \
             larger rings (start the application with --num-trace-entries {more}), or keep a CPU \
             free for dptrace",
            overwritten(lost - pressure.lost_to_output),
            pressure.longest.as_secs_f64() * 1e3
        ));
    }
}

impl FollowRequest {
    fn lister(&self, follower: &Follower) -> Lister<'static> {
        let mut lister = Lister::new(View {
            rate: follower.tick_rate(),
            base: Ticks(0),
            previous: None,
            show_tsc: self.options.tsc,
            show_delta: self.options.delta,
            annotator: None,
        });
        lister.head = self.options.head.unwrap_or(u64::MAX);
        lister.start_at(self.start, self.options.from_common_start);
        if let Some(most) = self.options.tail {
            lister.keep_last(most);
        }
        lister
    }
}

/// One poll of the rings.
struct Poll<'a, 'l> {
    lister: &'a mut Lister<'l>,
    filter: &'a mut Filter,
    format: &'a mut dyn Format,
    output: &'a mut Output,
    unknown: UnknownCounts,
}

impl Poll<'_, '_> {
    fn run(
        &mut self,
        follower: &mut Follower,
        all: bool,
        objects: &Objects,
    ) -> anyhow::Result<ControlFlow<()>> {
        let mut failed: Option<io::Error> = None;
        let each = |record: &Record<'_>| {
            objects.observe(record);
            let shown = self.lister.shown;
            let flow = self
                .lister
                .record(record, self.filter, self.format, self.output);
            if objects.is_unknown(record) {
                self.unknown.read += 1;
                self.unknown.shown += u64::from(self.lister.shown > shown);
            }
            flow.unwrap_or_else(|error| {
                failed = Some(error);
                ControlFlow::Break(())
            })
        };
        let flow = if all {
            follower.give_all(each)
        } else {
            follower.give(objects.hold(), each)
        };
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(flow),
        }
    }
}
/// Formats `1 slot was`, `2 slots were`.
fn overwritten(slots: u64) -> String {
    format!(
        "{} {}",
        screen::counted(slots, "slot"),
        if slots == 1 { "was" } else { "were" }
    )
}
