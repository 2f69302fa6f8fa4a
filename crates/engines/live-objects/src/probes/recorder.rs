//! A running recording: attached programs, and events as lines in the order of time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bpf_program::event::{RING, UNSENT};
use bpf_program::payload::{Payload, Value};
use bpf_program::wire::read_values;
use bpf_session::{
    Delivery, EventClock, POLL_INTERVAL, Reorder, RingReader, Session, SessionError, Uprobes,
};
use objects::TSC;
use sys::clock::{Moment, monotonic_nanos};
use text::printable;

use crate::probes::Error;
use crate::probes::plan::{AttachPlan, EventSchema};
use crate::probes::ticks::TickClock;

/// Limit on the distance between a probe's own ticks and the kernel's time of its hit, in ticks: a
/// thread that was held up in between for some minutes at most. A value further off is no time.
const MAX_TICK_DISTANCE: u64 = 1 << 40;
/// Limit on pairs of ticks and nanoseconds that wait for [`Recorder::take_pairs`].
const MAX_PAIRS: usize = 1 << 16;

/// Totals of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Lines returned.
    pub events: u64,
    /// Hits lost because the ring was full.
    pub lost: u64,
    /// Hits for which the kernel did not run our program.
    pub skipped: u64,
    /// Arguments that could not be read.
    pub unreadable: u64,
    /// Strings cut because they exceed the recorded length.
    pub cut: u64,
    /// Lines that come after later ones.
    pub late: u64,
}

impl Totals {
    /// Returns the number of hits without a line.
    pub fn missing(&self) -> u64 {
        self.lost + self.skipped
    }
}

/// Running recording.
pub struct Recorder {
    session: Session,
    reader: Option<RingReader<Option<Event>>>,
    forms: Arc<[EventSchema]>,
    order: Reorder<Event>,
    clock: TickClock,
    totals: Totals,
    /// Ticks and nanoseconds of hits with their own ticks.
    pairs: Vec<(u64, u64)>,
}

#[derive(Debug)]
struct Event {
    time: u64,
    /// Sort key and, if the probe passes no ticks, its ticks: set when it is taken from the ring.
    tsc: u64,
    form: usize,
    values: Vec<OwnedValue>,
}

/// Value copied from the ring.
#[derive(Debug)]
enum OwnedValue {
    Number(u64),
    Text { bytes: Box<[u8]>, cut: bool },
    Unreadable,
}

impl Recorder {
    /// Loads the plan's programs, starts to empty the ring, and attaches them.
    pub fn start(plan: &AttachPlan, pid: u32) -> Result<Self, SessionError> {
        Self::start_every(plan, pid, POLL_INTERVAL)
    }

    /// Does the same with an interval for reading the ring, for callers that need no event at once.
    pub fn start_every(
        plan: &AttachPlan,
        pid: u32,
        interval: Duration,
    ) -> Result<Self, SessionError> {
        let clock = TickClock::start();
        let mut session = Session::load(&plan.module, plan.features())?;
        let forms: Arc<[EventSchema]> = plan.forms.clone().into();
        let known = Arc::clone(&forms);
        let read = move |bytes: &[u8]| Some(Event::decode(bytes, &known));
        let reader =
            RingReader::start_every(&session, RING, interval, EventClock::Monotonic, read)?;
        for attachment in &plan.attachments {
            let to = Uprobes {
                path: &attachment.path,
                places: &attachment.places,
                pid: Some(pid),
            };
            session.attach_uprobes(attachment.program, &to)?;
        }
        let (order, totals) = (Reorder::new(), Totals::default());
        Ok(Self {
            session,
            reader: Some(reader),
            forms,
            order,
            clock,
            totals,
            pairs: Vec::new(),
        })
    }

    /// Returns the recording's lines that are due, without newlines. Waits at most `at_most` for
    /// more.
    pub fn next(&mut self, at_most: Duration) -> Vec<String> {
        match self.reader.as_ref().map(|reader| reader.deliver(at_most)) {
            Some(Delivery::Events(events)) => self.take(events),
            Some(Delivery::Idle(until)) => self.order.reach(until),
            None => {}
        }
        let mut lines = Vec::new();
        while let Some(event) = self.order.pop() {
            lines.push(self.line(&event));
        }
        lines
    }

    /// Returns all lines that have arrived, in the order of time as far as known; always waits for
    /// the whole of `wait`.
    pub fn next_unordered(&mut self, wait: Duration) -> Vec<String> {
        let deadline = Instant::now() + wait;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let events = self
                .reader
                .as_ref()
                .map(|reader| reader.next(left))
                .unwrap_or_default();
            let is_over = left.is_zero() && events.is_empty();
            self.take(events);
            if is_over {
                return self.rest();
            }
        }
    }

    /// Detaches the programs; returns the remaining lines and the totals. The lines are complete
    /// even if the totals are an error.
    ///
    /// # Errors
    /// The totals are an error if the number of lost events could not be read.
    pub fn finish(mut self) -> (Vec<String>, Result<Totals, Error>) {
        self.session.detach();
        let mut rest = Vec::new();
        if let Some(reader) = self.reader.take() {
            reader.finish(|batch| rest.extend(batch));
        }
        self.take(rest);
        let lines = self.rest();
        (lines, self.totals())
    }

    /// Returns the totals of the recording so far.
    ///
    /// # Errors
    /// Returns an error if the number of lost events could not be read.
    pub fn totals(&self) -> Result<Totals, Error> {
        let lost = self.totals.lost + self.unsent()?;
        Ok(Totals {
            lost,
            skipped: self.session.misses(),
            late: self.order.late(),
            ..self.totals
        })
    }

    /// Returns the lines of all waiting events, in order.
    fn rest(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(event) = self.order.pop_any() {
            lines.push(self.line(&event));
        }
        lines
    }

    /// Takes events in. An unknown event counts as lost.
    fn take(&mut self, events: Vec<Option<Event>>) {
        let now = Moment::now(monotonic_nanos);
        for event in events {
            let Some(mut event) = event else {
                self.totals.lost += 1;
                continue;
            };
            let own;
            (event.tsc, own) = self.tsc(&event, now);
            if own && self.pairs.len() < MAX_PAIRS {
                self.pairs.push((event.tsc, event.time));
            }
            self.order.push(event.tsc, event.time, event);
        }
    }

    /// Takes the pairs since the last call: for hits that passed their own ticks, these, and the
    /// kernel's time (`CLOCK_MONOTONIC`, in nanoseconds) at which the program ran for the same hit.
    /// Only the first 65,536 are kept.
    pub fn take_pairs(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.pairs)
    }

    /// Returns the event's ticks, and whether they are its own. SPDK's probes without ticks (v23.05
    /// on) pass 0: then they are computed from the kernel's clock.
    fn tsc(&self, event: &Event, now: Moment) -> (u64, bool) {
        let computed = self.clock.ticks_at(event.time, now);
        let args = self.forms[event.form].args.iter().zip(&event.values);
        let own = args.into_iter().find_map(|(arg, value)| match value {
            OwnedValue::Number(ticks) if arg.name == TSC => Some(*ticks),
            _ => None,
        });
        // On a machine that has just booted, 0 is near the current ticks, too.
        let own = own.filter(|&own| own != 0 && own.abs_diff(computed) < MAX_TICK_DISTANCE);
        (own.unwrap_or(computed), own.is_some())
    }

    fn line(&mut self, event: &Event) -> String {
        let tsc = event.tsc;
        let form = &self.forms[event.form];
        let texts: Vec<_> = event.values.iter().map(OwnedValue::text).collect();
        let values = form
            .args
            .iter()
            .zip(&event.values)
            .zip(&texts)
            .map(|((arg, value), text)| {
                let value = match (value, text) {
                    (OwnedValue::Number(_), _) if arg.name == TSC => objects::Value::Int(tsc),
                    (OwnedValue::Number(number), _) => objects::Value::Int(*number),
                    (_, Some(text)) => objects::Value::Str(text),
                    (_, None) if arg.string => objects::Value::Str(""),
                    (_, None) => objects::Value::Int(0),
                };
                (arg.name.as_str(), value)
            });
        let mut text = String::new();
        // SANITY: writing to a string fails only if formatting a number does, which it does not.
        let _ = objects::write_line(&mut text, &form.probe, values);
        self.totals.events += 1;
        for value in &event.values {
            self.totals.unreadable += u64::from(matches!(value, OwnedValue::Unreadable));
            self.totals.cut += u64::from(matches!(value, OwnedValue::Text { cut: true, .. }));
        }
        text
    }

    /// Returns the number of events that found no room in the ring, summed over all CPUs.
    fn unsent(&self) -> Result<u64, Error> {
        let Some(map) = self.session.map(UNSENT) else {
            return Ok(0);
        };
        let counted = map.lookup(&0_u32.to_ne_bytes()).map_err(Error::Unsent)?;
        let cpus = read_values::<u64>(UNSENT, &counted.unwrap_or_default())?;
        Ok(cpus.into_iter().sum())
    }
}

impl Event {
    fn decode(bytes: &[u8], forms: &[EventSchema]) -> Option<Self> {
        let payload = Payload::new(bytes)?;
        let form = payload.id() as usize;
        let layout = &forms.get(form)?.layout;
        let values = payload
            .values(layout)?
            .map(OwnedValue::from_value)
            .collect();
        Some(Self {
            time: payload.time(),
            tsc: 0,
            form,
            values,
        })
    }
}

impl OwnedValue {
    fn from_value(value: Value<'_>) -> Self {
        match value {
            Value::Number(number) => Self::Number(number),
            Value::Text { bytes, cut } => Self::Text {
                bytes: bytes.into(),
                cut,
            },
            Value::Unreadable => Self::Unreadable,
        }
    }

    fn text(&self) -> Option<std::borrow::Cow<'_, str>> {
        match self {
            Self::Text { bytes, .. } => Some(printable::text(bytes)),
            _ => None,
        }
    }
}
