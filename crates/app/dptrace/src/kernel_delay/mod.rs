//! `dptrace kernel-delay`: where each thread's time went, and whether the kernel is to blame.

mod args;
mod document;
mod subject;

use std::collections::BTreeSet;
use std::io::Write as _;

use errors::usage;
use host::stripped;
use kernel_delay::layout::STACK_PIECE;
use kernel_delay::live::Lost;
use kernel_delay::programs::EventOptions;
use kernel_delay::trigger::Trigger;
use kernel_delay::{
    EventCost, EventList, Header, Sampler, SamplingOptions, Show, Taken, View, json, lines,
    process_sums, report, stamp, started, verdict,
};
use screen::{Screen, counted};

use crate::interrupt::Interrupt;
use crate::messages::note;
use crate::output::{self, Output};
use crate::terminal;
pub(crate) use args::KernelDelayArgs;

/// Note for a report without source lines, because reading the program's debug information took too
/// long.
const SHORT: &str = "looking up source lines took too long: some functions are shown without lines \
                     and without inlined functions";

/// Runs the command.
pub(crate) fn run(args: &KernelDelayArgs) -> anyhow::Result<()> {
    let threads = args.thread.as_deref().map(glob::Pattern::new).transpose();
    let threads = threads.map_err(|error| usage(format!("--thread: {error}")))?;
    let subject = subject::of(args)?;
    let mut sampler = Sampler::attach(&subject, options(args), terminal::observer())?;
    Interrupt::catch()?;
    let path = args.output.as_deref();
    let screen = output::screen(path);
    let mut printer = Printer {
        args,
        threads,
        stripped: BTreeSet::new(),
        screen,
        output: Output::open(path)?,
    };
    let child = sampler.run(subject.held, &mut printer)?;
    warn_lost(&sampler.lost()?);
    printer.output.finish()?;
    subject::leave(child)
}

/// Converts the options.
fn options(args: &KernelDelayArgs) -> SamplingOptions {
    let events = args.events.syscall_events.map(|at_least| EventOptions {
        at_least,
        skip_polls: args.events.skip_syscall_poll_events,
        stacks: args.events.stack_trace_size > 0,
        copied: args.events.stack_copy.next_multiple_of(STACK_PIECE),
        ring_bytes: args.events.buffer_page_count.next_power_of_two() * 4096,
    });
    SamplingOptions {
        count: args.sample_count,
        length: args.duration.as_nanos() as u64,
        interval: args.sample_interval.as_nanos() as u64,
        start_trigger: args.start_trigger.clone(),
        stop_trigger: args.stop_trigger.clone(),
        at_least: args.trigger_delta,
        events,
        max_stacks: args.events.stack_trace_size,
        max_threads: args.max_threads,
        count_upcalls: !args.skip_upcall_stats,
        page_faults: !args.skip_page_faults,
        debug: args.debug,
    }
}

/// Prints samples as they come.
struct Printer<'a> {
    args: &'a KernelDelayArgs,
    /// Pattern of the names of threads to show.
    threads: Option<glob::Pattern>,
    /// Files already reported as stripped.
    stripped: BTreeSet<String>,
    /// Terminal for which the report is laid out.
    screen: Screen,
    output: Output,
}

impl Show for Printer<'_> {
    /// Prints a line in text mode only.
    fn line(&mut self, text: &str) -> anyhow::Result<()> {
        if !self.args.json && !self.args.summary {
            writeln!(self.output.buffer, "{text}")?;
            self.output.flush()?;
        }
        Ok(())
    }

    fn sample(&mut self, taken: Taken) -> anyhow::Result<()> {
        let Taken {
            number,
            window,
            mut sample,
            around,
            children,
            pid,
            processes,
            events,
            lost,
            lost_events,
        } = taken;
        let shown = Some(processes.as_slice()).filter(|_| self.args.command.is_empty());
        let hint = children.and_then(|children| children.hint(&sample, shown));
        let threads = self.threads.clone();
        let wanted = |name: &str| threads.as_ref().is_none_or(|pattern| pattern.matches(name));
        let names: BTreeSet<String> = sample
            .threads
            .iter()
            .map(|thread| thread.name.clone())
            .collect();
        sample.threads.retain(|thread| wanted(&thread.name));
        if let Some(pattern) = threads.as_ref().filter(|_| sample.threads.is_empty()) {
            note_names(pattern, &names);
        }
        let cost = events
            .as_ref()
            .map(|(events, _)| EventCost::of(&sample, events, lost_events));
        let triggered = self.args.start_trigger.is_some() || self.args.stop_trigger.is_some();
        let buffer = &mut self.output.buffer;
        if self.args.json {
            let mut object = json(&sample);
            object["sample"] = number.into();
            object["pid"] = pid.into();
            object["pids"] = processes.into();
            object["started"] = started(window.start).into();
            object["start_trigger"] = self
                .args
                .start_trigger
                .as_ref()
                .map(Trigger::to_string)
                .into();
            object["stop_trigger"] = self
                .args
                .stop_trigger
                .as_ref()
                .map(Trigger::to_string)
                .into();
            object["children"] = children.map(|children| children.json()).into();
            around.add_to(&mut object);
            object["lost"] = lost.json();
            let Some((mut events, names)) = events else {
                writeln!(
                    buffer,
                    "{}",
                    text::json::document("kernel-delay.sample", &object)
                )?;
                return Ok(self.output.flush()?);
            };
            object["syscall_events"] = events.json(&names, wanted);
            object["syscall_events"]["cost"] = cost.map(|cost| cost.json()).into();
            object["syscall_events"]["lines_cut"] = names.are_short().into();
            return document::write(&mut self.output, &object, &mut events, &names, wanted);
        }
        let mut without_names = Vec::new();
        // If threads are selected by name, all of them are shown.
        let screen = self.screen;
        let view = View {
            all: self.args.all || self.threads.is_some(),
            screen,
        };
        let further = around
            .lines(window.length())
            .into_iter()
            .chain(cost.map(|cost| cost.line()));
        for line in verdict(&sample, view, self.args.summary)
            .into_iter()
            .chain(hint)
            .chain(further)
        {
            lines::verdict(
                buffer,
                screen,
                if self.args.summary { "" } else { "# " },
                &line,
            )?;
        }
        lines::sums(buffer, screen, &process_sums(&sample), view.all)?;
        if !self.args.summary {
            lines::cut(
                buffer,
                screen,
                &report(
                    &sample,
                    &Header {
                        triggered,
                        stamp: stamp(),
                    },
                    view,
                ),
            )?;
            if let Some((mut events, names)) = events {
                let output = &mut self.output;
                let listed = if self.args.events.each_event {
                    EventList::Each
                } else {
                    EventList::Folded(view)
                };
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
        for file in without_names
            .into_iter()
            .filter(|file| self.stripped.insert(file.clone()))
        {
            note(&stripped(&file));
        }
        Ok(())
    }
}

/// Limit on the number of thread names in a note.
const NAMES: usize = 12;

/// Reports that no thread matched, and lists the existing names.
fn note_names(pattern: &glob::Pattern, names: &BTreeSet<String>) {
    let some: Vec<&str> = names.iter().take(NAMES).map(String::as_str).collect();
    let more = if names.len() > NAMES { ", ..." } else { "" };
    note(&format!(
        "no thread is called {pattern}; there are: {}{more}",
        some.join(", ")
    ));
}

/// Reports the parts missing from the report.
fn warn_lost(lost: &Lost) {
    let Lost {
        threads,
        preemptors,
        interrupts,
        events,
        upcalls,
        processes,
        triggers,
        skipped,
    } = *lost;
    for (count, noun, what) in [
        (
            threads,
            "thread",
            "did not fit (--max-threads makes more room)",
        ),
        (
            preemptors,
            "time",
            "did not fit the list of what ran instead (--max-threads makes more room)",
        ),
        (
            interrupts,
            "interrupt",
            "did not fit (--max-threads makes more room)",
        ),
        (
            events,
            "system call event",
            "did not fit the ring (--buffer-page-count makes it larger)",
        ),
        (
            upcalls,
            "upcall",
            "did not fit: too many CPUs with too many errors",
        ),
        (
            triggers,
            "start trigger",
            "came between samples, during a report or --sample-interval",
        ),
        (
            skipped,
            "program",
            "skipped by the kernel because another one was running on that CPU",
        ),
    ] {
        if count > 0 {
            note(&format!("{} {what}", counted(count, noun)));
        }
    }
    if processes > 0 {
        note(&format!(
            "{processes} {} did not fit",
            if processes == 1 {
                "process"
            } else {
                "processes"
            }
        ));
    }
}
