//! The objects of a trace that goes on: known before, or recorded from the process while the trace
//! is followed.

use std::cell::RefCell;
use std::mem::take;
use std::ops::ControlFlow;
use std::time::Duration;

use bpf_session::Features;
use host::Files;
use objects::{Annotator, ObjectSpec, ProbeRequest};
use observer::Observer;
use screen::{counted, plural};
use spdk_trace::{CapturedTrace, Owners, Problem, RawTrace, Record, TickRate, Ticks, TpointTable};
use trace_source::{FileSource, HOLD_TIME};

use crate::annotate::{annotate_quietly, report_named};
use crate::find;
use crate::pointers::Pointers;
use crate::probes::{AttachPlan, RING_BYTES, Recorder, add_files, report_remarks, report_totals};
use crate::session::{PendingFinder, SHORT_INTERVAL, Session};

/// Time limit on the wait of the first records for objects already alive. Reading the debug
/// information of a large program takes less.
pub const STARTUP_TIMEOUT: Duration = Duration::from_secs(2);

/// Counts of records that point to unknown objects.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnknownCounts {
    /// Records read.
    pub read: u64,
    /// Records shown, a part of `read`.
    pub shown: u64,
}

/// Source of a trace's objects.
pub enum Objects {
    /// Existing recording, if any.
    Known(Option<Box<Annotator>>),
    /// Process, from now on.
    Live(Box<LiveObjects>),
}

/// Objects of a process, as they appear.
pub struct LiveObjects {
    session: Option<Session>,
    annotator: Annotator,
    unknown: UnknownCounts,
    /// Addresses of unknown objects that are worth reading.
    fresh: RefCell<Pointers>,
    /// Number of trace slots overwritten before they were read.
    lost: u64,
    observer: Observer,
}

impl Objects {
    /// Records the objects of a process with this trace. `text` holds the lines known already;
    /// `probes` is the interval at which the probes' events are read, or `None` to attach none.
    /// Obstacles (no permission, no probes) are reported, and the trace goes on without.
    pub fn start(
        pid: u32,
        specs: Vec<ObjectSpec>,
        text: &str,
        trace: &RawTrace,
        probes: Option<Duration>,
        observer: &Observer,
    ) -> Self {
        let (tpoints, has_owners) = (trace.tpoints(), trace.era().has_owners());
        let referred = referred(&specs, tpoints, has_owners);
        let pointers = Pointers::from_trace(&referred, trace);
        let specs_to_find = referred.clone();
        let opening = PendingFinder::start(move || find(pid, &specs_to_find, |_| pointers.clone()));
        let recorder = match probes {
            Some(interval) => attach(pid, &referred, RING_BYTES, interval, observer),
            None => Err(anyhow::anyhow!("--no-probes was given")),
        };
        let session = match recorder {
            Ok(recorder) => Session::start(opening, Some(recorder), STARTUP_TIMEOUT),
            Err(error) => {
                let finder = opening.finish();
                observer.note(&if finder.is_some() {
                    format!("objects are found only in the process's memory: {error:#}")
                } else {
                    format!("objects are not recorded, and appear as pointers: {error:#}")
                });
                Session::start(PendingFinder::ready(finder), None, Duration::ZERO)
            }
        };
        let mut session =
            session.or_later(move |pointers| find(pid, &referred, |_| pointers.clone()));
        report_alive(&mut session, observer);
        session.settle();
        let annotator = annotate_quietly(text, specs, tpoints);
        let mut live = LiveObjects {
            session: Some(session),
            annotator,
            unknown: UnknownCounts::default(),
            fresh: RefCell::default(),
            lost: 0,
            observer: observer.clone(),
        };
        live.learn_next();
        Self::Live(Box::new(live))
    }

    /// Observes the beginnings and ends in the trace up to now; later records go to
    /// [`Self::observe`].
    pub fn begin(&mut self, source: &FileSource) -> anyhow::Result<()> {
        let (annotator, session) = match self {
            Self::Known(Some(annotator)) => (annotator.as_mut(), None),
            Self::Known(None) => return Ok(()),
            Self::Live(live) => (&mut live.annotator, live.session.as_mut()),
        };
        if !annotator.needs_witness() && !session.as_ref().is_some_and(|session| session.may_find())
        {
            return Ok(());
        }
        let trace = RawTrace::read(source)?;
        observe_all(annotator, &trace, last_tsc(&trace));
        if let Some(session) =
            session.filter(|session| session.is_unwatched() && !annotator.is_covered())
        {
            session.hurry();
        }
        Ok(())
    }

    /// Starts with the records made from now on, some of which may be left out. Their beginnings
    /// and ends would be missed, so the memory is read more often if nothing else shows ends.
    pub fn begin_now(&mut self) {
        let Self::Live(live) = self else { return };
        live.annotator.extend_from(Ticks(sys::clock::ticks()));
        if let Some(session) = live
            .session
            .as_mut()
            .filter(|session| session.is_unwatched())
        {
            session.hurry();
        }
    }

    /// Takes in a record that may report a beginning or an end, before later records are annotated.
    #[inline]
    pub fn observe(&self, record: &Record<'_>) {
        if let Some(annotator) = self.annotator() {
            annotator.observe(record);
        }
    }

    /// Returns how long records are held back for their names to arrive. This is longer if only the
    /// next reading of the memory proves who they belong to.
    pub fn hold(&self) -> Duration {
        match self {
            Self::Live(live)
                if live.session.as_ref().is_some_and(Session::is_unwatched)
                    && !live.annotator.is_covered() =>
            {
                HOLD_TIME + 2 * SHORT_INTERVAL
            }
            _ => HOLD_TIME,
        }
    }

    /// Notes the number of slots overwritten unread so far: their beginnings and ends are unknown.
    pub fn count_losses(&mut self, slots: u64) {
        if let Self::Live(live) = self
            && slots > live.lost
        {
            live.lost = slots;
            live.annotator.lose_until(Ticks(sys::clock::ticks()));
        }
    }

    /// Takes in new lines. Records from before `shown` will not be requested any more.
    pub fn learn(&mut self, shown: Ticks) {
        if let Self::Live(live) = self {
            live.learn_next();
            live.annotator.forget_if_many(shown);
        }
    }

    /// Takes over the owners of the trace.
    pub fn know_owners(&mut self, owners: &Owners, rate: TickRate) {
        let annotator = match self {
            Self::Known(annotator) => annotator.as_deref_mut(),
            Self::Live(live) => Some(&mut live.annotator),
        };
        if let Some(annotator) = annotator {
            annotator.know_owners(owners.all(), owners.are_all(), rate);
        }
    }

    /// Stops recording, and takes in the remaining lines.
    pub fn finish(&mut self) {
        let Self::Live(live) = self else { return };
        if let Some(session) = live.session.take() {
            let (lines, totals) = session.finish();
            live.annotator.learn(&lines);
            match totals {
                Some(Ok(totals)) => report_totals("objects", &totals, &live.observer),
                Some(Err(error)) => live.observer.note(&format!("objects: {error}")),
                None => {}
            }
        }
    }

    /// Returns the current annotator.
    pub fn annotator(&self) -> Option<&Annotator> {
        match self {
            Self::Known(annotator) => annotator.as_deref(),
            Self::Live(live) => Some(&live.annotator),
        }
    }

    /// Returns true if the record is to be counted with [`Self::count_unknown`].
    pub fn is_unknown(&self, record: &Record<'_>) -> bool {
        let Self::Live(live) = self else { return false };
        let Some((spec, address)) = live.annotator.unknown(record) else {
            return false;
        };
        if live.session.as_ref().is_some_and(Session::wants_addresses) {
            // Their number is limited: addresses beyond it wait for the next time.
            let _ = live.fresh.borrow_mut().add(&spec.name, address);
        }
        true
    }

    /// Counts records with unknown objects.
    pub fn count_unknown(&mut self, more: UnknownCounts) {
        if let Self::Live(live) = self {
            live.unknown.read += more.read;
            live.unknown.shown += more.shown;
        }
    }

    /// Reports the number of unknown objects, and the reason if no record has a pointer.
    pub fn report(&self, without_pointers: Option<&str>, observer: &Observer) {
        self.annotator()
            .into_iter()
            .for_each(|annotator| report_named(annotator, without_pointers, false, true, observer));
        let Self::Live(live) = self else { return };
        let UnknownCounts { read, shown } = live.unknown;
        let points = |count: u64| {
            let point = plural(count, "points", "point");
            format!("{point} to objects that can't be identified for certain")
        };
        if shown > 0 {
            observer.note(&format!(
                "{shown} of the records shown {}: such objects are printed as pointers",
                points(shown)
            ));
        }
        if let hidden @ 1.. = read.saturating_sub(shown) {
            observer.note(&format!(
                "{hidden} of the records not shown {}, and so {} no conditions on objects",
                points(hidden),
                plural(hidden, "meets", "meet")
            ));
        }
    }
}

impl LiveObjects {
    fn learn_next(&mut self) {
        let Some(session) = &mut self.session else {
            return;
        };
        if !self.fresh.get_mut().is_empty() {
            session.look_at(take(self.fresh.get_mut()));
        }
        let had_finder = session.has_finder();
        let lines = session.next_unordered();
        report_alive(session, &self.observer);
        if session.has_finder()
            && !had_finder
            && session.is_unwatched()
            && !self.annotator.is_covered()
        {
            session.hurry();
        }
        self.annotator.learn(&lines);
    }
}

fn report_alive(session: &mut Session, observer: &Observer) {
    if let Some(found) = session.first_found() {
        observer.note(&format!(
            "{} found alive in the process's memory",
            counted(found as u64, "object")
        ));
    }
}

/// Returns the time of the last record.
pub fn last_tsc(trace: &RawTrace) -> Ticks {
    trace
        .rings()
        .filter_map(|ring| ring.span)
        .map(|(_, last)| last)
        .max()
        .unwrap_or_default()
}

/// Takes in the beginnings and ends of objects in a trace until `to`. The trace has all of them,
/// unless slots were overwritten while it was read.
pub fn observe_all(annotator: &mut Annotator, trace: &RawTrace, to: Ticks) {
    let (mut first, mut has_holes) = (None, false);
    trace.for_each(|record| {
        annotator.observe(record);
        first.get_or_insert(record.tsc);
        has_holes |= record.lost_since.is_some();
        ControlFlow::Continue(())
    });
    annotator.extend(first.unwrap_or(to), to);
    if !has_holes {
        annotator.cover(trace.tpoints(), trace.common_start(), to);
    }
}

/// Takes in the beginnings and ends in a captured trace, unless slots were lost.
pub fn observe_captured(annotator: &mut Annotator, trace: &CapturedTrace) {
    let (mut first, mut last) = (None, Ticks(0));
    let problems = trace.for_each(|record| {
        annotator.observe(record);
        first.get_or_insert(record.tsc);
        last = last.max(record.tsc);
        ControlFlow::Continue(())
    });
    annotator.extend(first.unwrap_or(last), last);
    if problems.count(Problem::NotCaptured) == 0 {
        annotator.cover(trace.tpoints(), trace.common_start(), last);
    }
}

/// Returns the specs of objects to which the trace's records can refer.
pub fn referred(specs: &[ObjectSpec], tpoints: &TpointTable, has_owners: bool) -> Vec<ObjectSpec> {
    let names = |name: &String| {
        tpoints
            .all()
            .iter()
            .any(|tpoint| tpoint.args.iter().any(|arg| arg.name == *name))
    };
    let is_owner = |spec: &ObjectSpec| has_owners && !spec.owner.is_empty();
    specs
        .iter()
        .filter(|spec| spec.tracepoint_args.iter().any(names) || is_owner(spec))
        .cloned()
        .collect()
}

/// Attaches to the probes of these objects, with a ring buffer of `ring_bytes` that is read at this
/// interval.
pub fn attach(
    pid: u32,
    referred: &[ObjectSpec],
    ring_bytes: u32,
    interval: Duration,
    observer: &Observer,
) -> anyhow::Result<Recorder> {
    let wanted = ProbeRequest::from_specs(referred)?;
    if wanted.is_empty() {
        anyhow::bail!("no tracepoint of this trace has an argument that points to an object");
    }
    let mut plan = AttachPlan::new(
        &wanted,
        Features::for_probes()?.for_process(Some(pid)),
        ring_bytes,
    );
    let (files, place) = Files::from_process(pid)?;
    add_files(&mut plan, &files, &place, observer)?;
    report_remarks(&plan, observer);
    Ok(Recorder::start_every(&plan, pid, interval)?)
}
