//! Joins the observations: for each thread its slow milliseconds with their causes, its time, and
//! its own figures.

mod json;
mod text;

use std::collections::HashMap;

use ::text::printable;
use kernel_events::{RecordedIntervals, ThreadIntervals};
use ordering::Order as _;
use scene::{Activity, Interrupt, Interval, Tid};

use crate::ask::{Answers, TimedAnswer};
use crate::subject::PollThread;
use crate::telemetry::Ports;
use crate::{
    Cause, Counters, ExplainedStretch, Figures, History, Names, OffCpu, Queue, Sample, Section,
    Subject, Text, explain, sentence,
};

const MILLISECOND: u64 = 1_000_000;
/// System calls that only let time pass.
const SLEEPS: [&str; 2] = ["nanosleep", "clock_nanosleep"];

/// Report of a sample.
pub struct Report {
    pub(crate) pid: u32,
    /// Duration of the sample, in nanoseconds.
    pub(crate) nanos: u64,
    pub(crate) threads: Vec<ThreadReport>,
    /// Settings of the database: untrusted text.
    pub(crate) settings: Option<Vec<(String, String)>>,
    /// Recommended changes, with commands.
    pub(crate) advice: Vec<String>,
    /// Growth of the ports' counters.
    pub(crate) ports: Ports,
    /// Missing parts, with reasons.
    pub notes: Vec<String>,
    pub(crate) names: ThreadNames,
}

/// Report of a thread.
pub(crate) struct ThreadReport {
    pub(crate) thread: PollThread,
    /// Slow stretches; `None` if the thread has no history of milliseconds.
    pub(crate) slow: Option<Vec<ExplainedStretch>>,
    /// Number of the history's milliseconds within the sample.
    pub(crate) milliseconds: usize,
    pub(crate) holes: usize,
    pub(crate) off: OffCpu,
    /// Threads that had its CPU while it waited, longest first.
    pub(crate) takers: Vec<(String, u64)>,
    pub(crate) figures: Option<Figures>,
    pub(crate) queues: Vec<Queue>,
    pub(crate) is_isolated: Option<bool>,
}

impl ThreadReport {
    /// Formats the sentence.
    pub(crate) fn sentence(&self, names: &ThreadNames) -> String {
        match &self.slow {
            Some(slow) => sentence(&self.thread.name, slow, names),
            None if self.thread.core.is_some() => {
                format!("{}: its slow milliseconds are not known", self.thread.name)
            }
            None => {
                let absent = self.off.waited + self.off.stopped + self.off.interrupted;
                format!(
                    "{}: off its own code for {}",
                    self.thread.name,
                    screen::time(absent)
                )
            }
        }
    }
}

impl Report {
    /// Makes the report of a sample. Milliseconds that took longer than `over` are slow. The caller
    /// names interrupts.
    pub fn new(
        subject: &Subject,
        sample: Sample,
        over: u64,
        interrupt: fn(Interrupt) -> String,
    ) -> Self {
        let Sample {
            found,
            answers,
            offset,
        } = sample;
        let joined = JoinedData {
            found: &found,
            answers: &answers,
            offset,
            over,
        };
        let threads: Vec<ThreadReport> = subject
            .threads
            .iter()
            .map(|thread| joined.thread(thread))
            .collect();
        let mut notes = losses(&found);
        notes.extend(
            threads
                .iter()
                .filter(|thread| thread.holes > 0)
                .map(|thread| {
                    let holes = screen::counted(thread.holes as u64, "gap");
                    format!(
                        "{}: the history has {holes}, because it was read too late",
                        thread.thread.name
                    )
                }),
        );
        let ports = match answers.ports.as_slice() {
            [before, .., after] => after.since(before),
            _ => Ports::default(),
        };
        let advice = advice(&threads, &answers);
        notes.extend(answers.notes);
        let names = ThreadNames {
            names: found.names,
            interrupt,
        };
        let nanos = found.to.0.saturating_sub(found.from.0);
        Self {
            pid: subject.pid,
            nanos,
            threads,
            settings: answers.settings,
            advice,
            ports,
            notes,
            names,
        }
    }

    /// Formats the report for people.
    pub fn text(&self) -> String {
        text::report(self)
    }

    /// Formats the report for programs: one JSON object, followed by a newline.
    pub fn json(&self) -> String {
        json::document(self)
    }
}

struct JoinedData<'a> {
    found: &'a RecordedIntervals,
    answers: &'a Answers,
    offset: u64,
    over: u64,
}

impl JoinedData<'_> {
    fn thread(&self, thread: &PollThread) -> ThreadReport {
        let none = ThreadIntervals::default();
        let seen = self.found.threads.get(&Tid(thread.tid)).unwrap_or(&none);
        let sleeps: Vec<u32> = SLEEPS
            .iter()
            .filter_map(|name| kernel_delay::call_number(name))
            .collect();
        let mut off = OffCpu::default();
        seen.sums
            .iter()
            .for_each(|(activity, nanos)| off.add(*activity, *nanos, &sleeps));
        let history = thread.core.and_then(|core| self.history(core));
        let (from, to) = (
            self.millisecond(self.found.from.0),
            self.millisecond(self.found.to.0),
        );
        let intervals: Vec<Interval> = seen.intervals.iter().copied().collect();
        let explained = |history: &History| {
            let slow = history.slow(from, to, self.over).into_iter();
            // A stretch that began before the sample is explained only in part.
            let whole = slow.filter(|stretch| stretch.from >= from);
            let name = |tid| thread_name(tid, &self.found.names);
            whole
                .map(|stretch| explain(&stretch, &intervals, self.offset, name))
                .collect()
        };
        let queues = thread
            .core
            .and_then(|core| section(self.answers.queues.as_ref()?, core));
        ThreadReport {
            thread: thread.clone(),
            slow: history.as_ref().map(explained),
            milliseconds: history
                .as_ref()
                .map_or(0, |history| history.count(from, to)),
            holes: history.as_ref().map_or(0, History::holes),
            takers: takers(seen, self.found),
            figures: thread.core.and_then(|core| self.figures(core, &off)),
            off,
            queues: queues
                .map(|section| section.queues.clone())
                .unwrap_or_default(),
            is_isolated: queues.and_then(|section| Some(section.word("isolated")? == "true")),
        }
    }

    /// Converts the intervals' clock to milliseconds of the history's.
    fn millisecond(&self, boot: u64) -> u64 {
        boot.saturating_sub(self.offset) / MILLISECOND
    }

    /// Returns the joined history of a thread; `None` if no answer has one.
    fn history(&self, core: u32) -> Option<History> {
        let mut history: Option<History> = None;
        for TimedAnswer { asked, text } in &self.answers.perf {
            if let Some(rows) =
                section(text, core).and_then(|section| section.milliseconds.as_ref())
            {
                history
                    .get_or_insert_default()
                    .add(rows, asked / MILLISECOND);
            }
        }
        history
    }

    /// Returns the thread's figures: the difference between the end and the begin.
    fn figures(&self, core: u32, off: &OffCpu) -> Option<Figures> {
        let (first, last) = (self.answers.stats.first()?, self.answers.stats.last()?);
        let perf = |shown: Option<&TimedAnswer>| {
            shown.and_then(|shown| section(&shown.text, core)).cloned()
        };
        let (before, after) = (
            perf(self.answers.perf.first()),
            perf(self.answers.perf.last()),
        );
        let before = Counters::from_sections(section(&first.text, core), before.as_ref());
        let after = Counters::from_sections(section(&last.text, core), after.as_ref());
        let nanos = last.asked.saturating_sub(first.asked);
        (nanos > 0).then_some(())?;
        Some(Figures::from_counters(
            after.since(&before)?,
            nanos,
            self.answers.hertz,
            off,
        ))
    }
}

fn section(text: &Text, core: u32) -> Option<&Section> {
    text.sections.iter().find(|section| section.core == core)
}

/// Returns the threads that had the CPU while the thread waited for it, by name.
fn takers(seen: &ThreadIntervals, found: &RecordedIntervals) -> Vec<(String, u64)> {
    let mut named: HashMap<String, u64> = HashMap::new();
    for (activity, nanos) in &seen.sums {
        if let Activity::Waits(by) | Activity::Woken(by) = activity {
            *named.entry(thread_name(*by, &found.names)).or_default() += nanos;
        }
    }
    let mut named: Vec<(String, u64)> = named.into_iter().collect();
    named.order_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    named
}

fn losses(found: &RecordedIntervals) -> Vec<String> {
    let (totals, mut notes) = (&found.totals, Vec::new());
    if totals.lost + totals.skipped > 0 {
        notes.push(format!(
            "{} of the kernel {} lost: what the threads did then is unknown",
            screen::counted(totals.lost + totals.skipped, "event"),
            screen::plural(totals.lost + totals.skipped, "was", "were")
        ));
    }
    notes
}

/// Returns recommended changes.
fn advice(threads: &[ThreadReport], answers: &Answers) -> Vec<String> {
    let mut advice = Vec::new();
    let is_answered = !answers.perf.is_empty();
    if is_answered
        && threads
            .iter()
            .any(|thread| thread.thread.core.is_some() && thread.slow.is_none())
    {
        advice.push(
            "pmd-perf-metrics is off, so there is no millisecond history; switch it on with: \
             ovs-vsctl set Open_vSwitch . other_config:pmd-perf-metrics=true"
                .to_owned(),
        );
    }
    for thread in threads.iter().filter(|thread| thread.thread.cpu.is_none()) {
        advice.push(format!("{} is not pinned to one CPU", thread.thread.name));
    }
    let cpus: Vec<String> = threads
        .iter()
        .filter(|thread| thread.off.waited > 0)
        .filter_map(|thread| Some(thread.thread.cpu?.to_string()))
        .collect();
    if !cpus.is_empty() {
        let cpus = cpus.join(",");
        advice.push(format!(
            "others ran on CPU {cpus}; to see which settings let them: dptrace cpus --check {cpus}"
        ));
    }
    let setting = |name: &str| {
        let settings = answers.settings.as_deref().unwrap_or_default();
        settings
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    };
    if answers.settings.is_some() && is_answered && setting("pmd-cpu-mask").is_none() {
        advice.push(
            "pmd-cpu-mask is not set: Open vSwitch polls on one CPU of its choice per NUMA node; \
             set it with: ovs-vsctl set Open_vSwitch . other_config:pmd-cpu-mask=MASK"
                .to_owned(),
        );
    }
    advice
}

/// Names on this machine.
pub(crate) struct ThreadNames {
    names: HashMap<Tid, [u8; 16]>,
    interrupt: fn(Interrupt) -> String,
}

impl Names for ThreadNames {
    fn thread(&self, tid: Tid) -> String {
        thread_name(tid, &self.names)
    }

    fn call(&self, number: u32) -> String {
        kernel_delay::call_name(number)
    }

    fn interrupt(&self, interrupt: Interrupt) -> String {
        (self.interrupt)(interrupt)
    }
}

impl ThreadNames {
    /// Formats a cause in words.
    pub(crate) fn cause(&self, cause: Cause) -> String {
        match cause {
            Cause::Waited(tid) => format!("waited for {}", self.thread(tid)),
            Cause::Stopped => "stopped".to_owned(),
            Cause::Interrupted(interrupt) => self.interrupt(interrupt),
            Cause::Blocked(Some(call)) => format!("blocked in {}", self.call(call)),
            Cause::Blocked(None) => "blocked".to_owned(),
            Cause::InCall(call) => format!("in {}", self.call(call)),
            Cause::Unknown => "unknown".to_owned(),
            Cause::OwnWork => "its own work".to_owned(),
        }
    }
}

fn thread_name(tid: Tid, names: &HashMap<Tid, [u8; 16]>) -> String {
    if tid == Tid(0) {
        return "the idle CPU".to_owned();
    }
    match names.get(&tid) {
        Some(name) => {
            printable::text(name.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
        }
        None => format!("thread {}", tid.0),
    }
}
