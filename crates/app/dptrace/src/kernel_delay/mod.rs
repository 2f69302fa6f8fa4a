//! `dptrace kernel-delay`: where each thread's time went, and whether the kernel is to blame.

mod args;
mod document;
mod subject;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use errors::usage;
use host::stripped;
use kernel_delay::layout::{STACK_PIECE, armed};
use kernel_delay::live::{self, AttachOptions, Collector, Facts, Lost, PlacedTrigger, Tracer, WindowState};
use kernel_delay::programs::{EventOptions, TriggerUse};
use kernel_delay::trigger::Trigger;
use kernel_delay::{
    Around, Before, Children, EventCost, EventList, Events, FunctionNames, Header, StackWalkers, Subject, View, Window,
    grouped, json, lines, process_sums, report, stamp, started, trigger_places, verdict,
};
use observer::Progress;
use screen::{Screen, counted};
use symbolize::Warn;
use sys::clock::monotonic_nanos;
use sys::process::{HeldChild, PidFd};
use text::printable;

use crate::interrupt::Interrupt;
use crate::messages::{note, warn_symbols};
use crate::output::{self, Output};
use crate::terminal;
pub(crate) use args::KernelDelayArgs;

/// What is reported where reading the program's debug information took too long.
const SHORT: &str =
    "looking for source lines took too long: some functions are shown without theirs and without what was inlined";
/// How often the process and our own signals are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Runs the command.
pub(crate) fn run(args: &KernelDelayArgs) -> anyhow::Result<()> {
    let (length, interval) = (args.duration.as_nanos() as u64, args.sample_interval.as_nanos() as u64);
    let threads = args.thread.as_deref().map(glob::Pattern::new).transpose();
    let threads = threads.map_err(|error| usage(format!("--thread: {error}")))?;
    let subject = subject::of(args)?;
    let begun = monotonic_nanos();
    let wanted: Vec<&Trigger> = [&args.start_trigger, &args.stop_trigger].into_iter().flatten().collect();
    let facts = Facts::read(&wanted)?;
    let mut held: Vec<PidFd> = Vec::new();
    for &pid in &subject.pids {
        match PidFd::open(pid) {
            Ok(process) => held.push(process),
            // Of several, one may have ended meanwhile.
            Err(error) if subject.pids.len() == 1 => {
                return Err(anyhow::Error::new(error).context(format!("no process has the pid {pid}")));
            }
            Err(_) => {}
        }
    }
    let tracer = attach(args, &subject, &facts)?;
    let (copied, warn) = (copied(&args.events), symbolize::once(warn_symbols()));
    let walkers = (copied > 0).then(|| StackWalkers::new(copied, Arc::clone(&warn)));
    let interrupt = Interrupt::catch()?;
    if args.debug {
        note(&format!("attached in {} us", (monotonic_nanos() - begun) / 1000));
    }
    let path = args.output.as_deref();
    let mut run = Run {
        args,
        tracer,
        processes: held,
        interrupt,
        threads,
        length,
        made: 0,
        skipped: 0,
        lost_events: 0,
        walkers,
        warn,
        stripped: BTreeSet::new(),
        children: None,
        screen: output::screen(path),
        output: Output::open(path)?,
    };
    let child = run.samples(subject.held, interval)?;
    warn_lost(&run.tracer.lost()?);
    run.output.finish()?;
    subject::leave(child)
}

/// Finds the triggers in the process, and attaches all programs.
fn attach(args: &KernelDelayArgs, subject: &Subject, facts: &Facts) -> anyhow::Result<Tracer> {
    let events = args.events.syscall_events.map(|at_least| EventOptions {
        at_least,
        skip_polls: args.events.skip_syscall_poll_events,
        stacks: args.events.stack_trace_size > 0,
        copied: copied(&args.events),
        ring_bytes: args.events.buffer_page_count.next_power_of_two() * 4096,
    });
    // Two programs at one place would start and stop at the same hit.
    let uses = if args.start_trigger == args.stop_trigger {
        vec![(&args.start_trigger, TriggerUse::Both)]
    } else {
        vec![(&args.start_trigger, TriggerUse::Start), (&args.stop_trigger, TriggerUse::Stop)]
    };
    let named = uses.into_iter().filter_map(|(trigger, to)| Some((trigger.as_ref()?, to)));
    let placed = |(trigger, to)| {
        Ok(PlacedTrigger { trigger, to, places: trigger_places(subject, trigger, &terminal::observer())? })
    };
    let triggers = named.map(placed).collect::<anyhow::Result<_>>()?;
    let (max_threads, count_upcalls) = (args.max_threads, !args.skip_upcall_stats);
    let (pids, children) = (subject.pids.clone(), subject.children);
    let options = AttachOptions {
        pids,
        children,
        absences: None,
        max_threads,
        events,
        triggers,
        count_upcalls,
        page_faults: !args.skip_page_faults,
        observer: terminal::observer(),
    };
    let attached = live::attach(facts, options)?;
    for (trigger, whose) in &attached.triggers {
        note(&format!("the trigger {trigger} fires for {whose}"));
    }
    if let Some(why) = &attached.uncounted_upcalls {
        note(&format!("Open vSwitch's upcalls can't be counted (--skip-upcall-stats says no more): {why}"));
    }
    if let Some(why) = &attached.unseen_faults {
        note(&format!(
            "page faults can't be seen and are part of the threads' own code (--skip-page-faults says no more): {why}"
        ));
    }
    Ok(attached.tracer)
}

/// How many bytes of a stack are copied.
fn copied(events: &args::EventArgs) -> u32 {
    events.stack_copy.next_multiple_of(STACK_PIECE)
}

/// Samples in the making.
struct Run<'a> {
    args: &'a KernelDelayArgs,
    tracer: Tracer,
    /// Those that were asked for.
    processes: Vec<PidFd>,
    interrupt: Interrupt,
    threads: Option<glob::Pattern>,
    length: u64,
    /// Samples that were made, and windows that were shorter than wanted.
    made: u32,
    skipped: u32,
    /// Events that were lost before the present sample.
    lost_events: u64,
    /// None where stacks are not copied.
    walkers: Option<StackWalkers>,
    /// What reports what is left out of stacks: each text once, in whatever sample.
    warn: Warn,
    /// Files that were reported to have no names.
    stripped: BTreeSet<String>,
    /// What the processes that are not measured had used before the present sample, where that is asked for.
    children: Option<Children>,
    /// What the report is laid out for.
    screen: Screen,
    output: Output,
}

impl Run<'_> {
    /// Makes the samples; the process that waits to be started is let go in the first one.
    fn samples(&mut self, held: Option<HeldChild>, interval: u64) -> anyhow::Result<Option<std::process::Child>> {
        let mut held = held;
        let mut child = None;
        while self.made < self.args.sample_count {
            if self.made > 0 {
                self.wait_until(monotonic_nanos() + interval)?;
            }
            if self.is_over()? && held.is_none() {
                break;
            }
            self.tracer.prepare()?;
            let before = Before::read(&self.tracer.processes()?);
            let collector = self.collector()?;
            self.children = self.unmeasured()?;
            let begun = self.begin()?;
            if let Some(held) = held.take() {
                child = Some(held.go().context("starting the command")?);
            }
            let Some(window) = self.window(begun)? else { break };
            self.tracer.close(&window)?;
            if window.length() < self.args.trigger_delta {
                self.skipped += 1;
                self.line(&format!("# Sample dump skipped, delta {} ns {}", grouped(window.length()), stamp()))?;
                continue;
            }
            self.made += 1;
            let around = before.since(&self.tracer.processes()?);
            self.report(window, collector, &around)?;
            if self.made < self.args.sample_count {
                self.line("")?;
            }
        }
        self.warn_missing()?;
        Ok(child)
    }

    /// Says what was left out, and why there are fewer samples than were asked for.
    fn warn_missing(&self) -> anyhow::Result<()> {
        let (made, wanted) = (self.made, self.args.sample_count);
        if self.skipped > 0 {
            let windows = counted(self.skipped.into(), "window");
            let were = if self.skipped == 1 { "was" } else { "were" };
            note(&format!("{windows} {were} shorter than --trigger-delta and left out"));
        }
        if made >= wanted {
            return Ok(());
        }
        let why = if self.have_ended()? { "the process has ended" } else { "it was interrupted" };
        let waiting = if self.args.start_trigger.is_some() { " while it waited for the start trigger" } else { "" };
        note(&format!("{made} of {}: {why}{waiting}", counted(wanted.into(), "sample")));
        Ok(())
    }

    /// Who takes the events out of the ring, where they are wanted, and what the addresses in them are called.
    fn collector(&mut self) -> anyhow::Result<Option<(Collector, FunctionNames)>> {
        if self.args.events.syscall_events.is_none() {
            return Ok(None);
        }
        let events = &self.args.events;
        let processes = self.tracer.processes()?;
        let unwinder = self.walkers.as_ref().map(|walkers| walkers.begin(&processes));
        let names = FunctionNames::of(&processes, Arc::clone(&self.warn), terminal::observer());
        Ok(Some((self.tracer.collector(events.stack_trace_size, unwinder)?, names)))
    }

    /// The children, where they are not measured. Once is enough, and between triggers there is no time for it.
    fn unmeasured(&self) -> anyhow::Result<Option<Children>> {
        let args = self.args;
        let is_measured = args.children || args.cgroup.is_some();
        if is_measured || self.made > 0 || args.start_trigger.is_some() || args.stop_trigger.is_some() {
            return Ok(None);
        }
        Ok(Some(Children::read(&self.tracer.processes()?)))
    }

    /// Opens a window, or gives that to the start trigger.
    fn begin(&mut self) -> anyhow::Result<Option<Window>> {
        let length = self.args.stop_trigger.is_none().then_some(self.length);
        if self.args.start_trigger.is_some() {
            self.tracer.arm(length)?;
            self.debug("waiting for the start trigger");
            return Ok(None);
        }
        let armed = if length.is_none() { armed::FOR_STOP } else { armed::NO };
        let opened = self.tracer.open(length, armed)?;
        // What is let go, or waits for our line, must find the window open.
        sleep_until(opened.start);
        self.line(&format!("# Start sampling {}", stamp()))?;
        self.debug("a window is open");
        Ok(Some(opened))
    }

    /// Waits for the end of a window, and for its begin if a trigger has that; none if no trigger came.
    fn window(&mut self, begun: Option<Window>) -> anyhow::Result<Option<Window>> {
        if begun.is_none() {
            self.until(|state| state.has_begun)?;
            let WindowState { window, has_begun, .. } = self.tracer.window()?;
            if !has_begun {
                return Ok(None);
            }
            self.line(&format!("# Start sampling (trigger@{}) {}", window.start, stamp()))?;
        }
        let stops = self.args.stop_trigger.is_some();
        let whole = match begun.filter(|_| !stops) {
            Some(opened) => self.wait_until(opened.stop)?,
            None => {
                self.until(|state| if stops { state.is_stopped } else { state.window.stop <= monotonic_nanos() })?
            }
        };
        if self.have_ended()? {
            self.tracer.wait_for_last()?;
        }
        let window = if whole { self.tracer.window()?.window } else { self.tracer.cut()? };
        sleep_until(window.stop);
        let trigger = if whole && stops { format!("(trigger@{}) ", window.stop) } else { String::new() };
        self.line(&format!("# Stop sampling {trigger}{}", stamp()))?;
        Ok(Some(window))
    }

    /// Waits until something is so; false if there is a reason not to.
    fn until(&self, is_so: impl Fn(&WindowState) -> bool) -> anyhow::Result<bool> {
        let mut progress = Progress::new(&terminal::observer());
        loop {
            if is_so(&self.tracer.window()?) {
                return Ok(true);
            }
            progress.show(|since| format!("waiting for the trigger, {} s so far (Ctrl-C ends it)", since.as_secs()));
            if self.is_over()? {
                return Ok(false);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn debug(&self, text: &str) {
        if self.args.debug {
            note(text);
        }
    }

    /// Whether all processes that were asked for have ended.
    fn have_ended(&self) -> anyhow::Result<bool> {
        for process in &self.processes {
            if !process.has_ended()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_over(&self) -> anyhow::Result<bool> {
        Ok(self.interrupt.is_requested() || self.have_ended()?)
    }

    /// Waits for a moment; false if there is a reason not to.
    fn wait_until(&self, moment: u64) -> anyhow::Result<bool> {
        let mut progress =
            Progress::expected(&terminal::observer(), Duration::from_nanos(moment.saturating_sub(monotonic_nanos())));
        loop {
            let left = moment.saturating_sub(monotonic_nanos());
            if left == 0 {
                return Ok(true);
            }
            progress.show(|_| format!("sampling, {:.1} s left", left as f64 / 1e9));
            if self.is_over()? {
                return Ok(false);
            }
            std::thread::sleep(POLL_INTERVAL.min(Duration::from_nanos(left)));
        }
    }

    /// A line that the text has and JSON has not.
    fn line(&mut self, text: &str) -> anyhow::Result<()> {
        if !self.args.json && !self.args.summary {
            writeln!(self.output.buffer, "{text}")?;
            self.output.flush()?;
        }
        Ok(())
    }

    fn report(
        &mut self,
        window: Window,
        collector: Option<(Collector, FunctionNames)>,
        around: &Around,
    ) -> anyhow::Result<()> {
        let children = self.children.take().map(|children| children.since());
        let mut sample = self.tracer.sample(window)?;
        around.limit(&mut sample);
        let processes = self.tracer.processes()?;
        let shown = Some(processes.as_slice()).filter(|_| self.args.command.is_empty());
        let hint = children.and_then(|children| children.hint(&sample, shown));
        let threads = self.threads.clone();
        let wanted = |name: &str| threads.as_ref().is_none_or(|pattern| pattern.matches(name));
        let names: BTreeSet<String> = sample.threads.iter().map(|thread| thread.name.clone()).collect();
        sample.threads.retain(|thread| wanted(&thread.name));
        if let Some(pattern) = threads.as_ref().filter(|_| sample.threads.is_empty()) {
            note_names(pattern, &names);
        }
        let events = collector.map(|events| finish(events, &processes)).transpose()?;
        if let (Some((_, names)), Some(walkers)) = (&events, &self.walkers) {
            names.adopt(walkers.take_seen());
        }
        let lost = self.tracer.lost()?;
        let lost_here = lost.events - std::mem::replace(&mut self.lost_events, lost.events);
        let cost = events.as_ref().map(|(events, _)| EventCost::of(&sample, events, lost_here));
        let triggered = self.args.start_trigger.is_some() || self.args.stop_trigger.is_some();
        let buffer = &mut self.output.buffer;
        if self.args.json {
            let mut object = json(&sample);
            object["sample"] = self.made.into();
            object["pid"] = self.tracer.pid().into();
            object["pids"] = processes.into();
            object["started"] = started(window.start).into();
            object["start_trigger"] = self.args.start_trigger.as_ref().map(Trigger::to_string).into();
            object["stop_trigger"] = self.args.stop_trigger.as_ref().map(Trigger::to_string).into();
            object["children"] = children.map(|children| children.json()).into();
            around.add_to(&mut object);
            object["lost"] = lost.json();
            let Some((mut events, names)) = events else {
                writeln!(buffer, "{}", printable::json_document(object.to_string()))?;
                return Ok(self.output.flush()?);
            };
            object["syscall_events"] = events.json(&names, wanted);
            object["syscall_events"]["cost"] = cost.map(|cost| cost.json()).into();
            object["syscall_events"]["lines_cut"] = names.are_short().into();
            return document::write(&mut self.output, &object, &mut events, &names, wanted);
        }
        let mut without_names = Vec::new();
        // Who names threads wants to see them.
        let screen = self.screen;
        let view = View { all: self.args.all || self.threads.is_some(), screen };
        let further = around.lines(window.length()).into_iter().chain(cost.map(|cost| cost.line()));
        for line in verdict(&sample, view, self.args.summary).into_iter().chain(hint).chain(further) {
            lines::verdict(buffer, screen, if self.args.summary { "" } else { "# " }, &line)?;
        }
        lines::sums(buffer, screen, &process_sums(&sample), view.all)?;
        if !self.args.summary {
            lines::cut(buffer, screen, &report(&sample, &Header { triggered, stamp: stamp() }, view))?;
            if let Some((mut events, names)) = events {
                let output = &mut self.output;
                let listed = if self.args.events.each_event { EventList::Each } else { EventList::Folded(view) };
                events.text(&names, wanted, listed, |piece| {
                    lines::cut(&mut output.buffer, screen, piece)?;
                    output.drain()
                })?;
                if names.are_short() {
                    note(SHORT);
                }
                without_names = names.stripped_files();
            }
        }
        self.output.flush()?;
        for file in without_names.into_iter().filter(|file| self.stripped.insert(file.clone())) {
            note(&stripped(&file));
        }
        Ok(())
    }
}

/// Takes the rest of the events. The process is asked once more what it has mapped: it may end soon.
fn finish(
    (collector, names): (Collector, FunctionNames),
    processes: &[u32],
) -> anyhow::Result<(Events, FunctionNames)> {
    names.renew(processes);
    Ok((collector.finish()?, names))
}

/// How many names of threads are listed.
const NAMES: usize = 12;

/// No thread was wanted: lists those that there were.
fn note_names(pattern: &glob::Pattern, names: &BTreeSet<String>) {
    let some: Vec<&str> = names.iter().take(NAMES).map(String::as_str).collect();
    let more = if names.len() > NAMES { ", ..." } else { "" };
    note(&format!("no thread is called {pattern}; there are: {}{more}", some.join(", ")));
}

/// Waits for a moment that is very near.
fn sleep_until(moment: u64) {
    std::thread::sleep(Duration::from_nanos(moment.saturating_sub(monotonic_nanos())));
}

/// Says what is missing in the report.
fn warn_lost(lost: &Lost) {
    let Lost { threads, preemptors, interrupts, events, upcalls, processes, triggers, skipped } = *lost;
    for (count, noun, what) in [
        (threads, "thread", "found no room (--max-threads makes more)"),
        (preemptors, "time", "found no room for who ran instead (--max-threads makes more)"),
        (interrupts, "interrupt", "found no room (--max-threads makes more)"),
        (events, "system call event", "found no room in the ring (--buffer-page-count makes it larger)"),
        (upcalls, "upcall", "found no room: too many CPUs with too many errors"),
        (triggers, "start trigger", "came between samples, while a report was made or --sample-interval passed"),
        (skipped, "program", "skipped by the kernel because another one was running on that CPU"),
    ] {
        if count > 0 {
            note(&format!("{} {what}", counted(count, noun)));
        }
    }
    if processes > 0 {
        note(&format!("{processes} {} found no room", if processes == 1 { "process" } else { "processes" }));
    }
}
