//! `dptrace kernel-delay`: where each thread's time went, and whether the kernel is to blame.

mod args;
mod document;
mod subject;

use std::collections::BTreeSet;
use std::io::Write as _;

use console::interrupt::Interrupt;
use console::messages::note;
use console::output::{self, Output};
use console::stacks::StackFile;
use console::terminal;
use errors::usage;
use host::stripped;
use kernel_delay::layout::STACK_CHUNK_BYTES;
use kernel_delay::programs::EventOptions;
use kernel_delay::trigger::Trigger;
use kernel_delay::{
    EventCost, EventList, Events, FunctionNames, Header, SampleSink, Sampler, SamplingOptions,
    View, WindowSample, json, lines, next_step, process_sums, report, stamp, started, verdict,
};
use profiles::{Profile, Unit};
use screen::Screen;

pub(crate) use args::KernelDelayArgs;

/// Note for a report without source lines, because reading the program's debug information took too
/// long.
const NO_LINES_NOTE: &str = "looking up source lines took too long: some functions are shown without lines \
                     and without inlined functions";

/// Runs the command.
pub(crate) fn run(args: &KernelDelayArgs) -> anyhow::Result<()> {
    let threads = args.thread.as_deref().map(glob::Pattern::new).transpose();
    let threads = threads.map_err(|error| usage(format!("--thread: {error}")))?;
    let subject = subject::from_args(args)?;
    let mut sampler = Sampler::attach(&subject, options(args), terminal::observer())?;
    Interrupt::catch()?;
    let path = args.output.as_deref();
    let stacks = args
        .events
        .stacks
        .as_ref()
        .map(StackFile::create)
        .transpose()?;
    let screen = output::screen(path);
    let mut printer = Printer {
        args,
        threads,
        stripped: BTreeSet::new(),
        screen,
        output: Output::open(path)?,
        profile: Profile::new("Time of system calls", Unit::Nanoseconds),
    };
    let child = sampler.run(subject.held, &mut printer)?;
    sampler.lost()?.notes().iter().for_each(|lost| note(lost));
    printer.output.finish()?;
    if let Some(file) = stacks {
        file.write(
            &printer.profile,
            "no system call with a stack came; a longer --for has more",
        )?;
    }
    subject::leave(child)
}

/// Converts the options.
fn options(args: &KernelDelayArgs) -> SamplingOptions {
    let events = args.events.syscall_events.map(|at_least| EventOptions {
        at_least,
        skip_polls: args.events.skip_syscall_poll_events,
        stacks: args.events.stack_trace_size > 0,
        copied: args.events.stack_copy.next_multiple_of(STACK_CHUNK_BYTES),
        ring_bytes: args.events.buffer_page_count.next_power_of_two() * 4096,
    });
    // Of several samples, the first one must not take all of the command's time.
    let until_end = !args.command.is_empty() && args.sample_count == 1;
    let usual = (!until_end).then_some(args::SAMPLE_TIME);
    SamplingOptions {
        count: args.sample_count,
        length: args.duration.or(usual).map(|time| time.as_nanos() as u64),
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
    /// Time of single calls by stack.
    profile: Profile,
}

impl SampleSink for Printer<'_> {
    /// Prints a line in text mode only.
    fn line(&mut self, text: &str) -> anyhow::Result<()> {
        if !self.args.json && !self.args.summary {
            writeln!(self.output.buffer, "{text}")?;
            self.output.flush()?;
        }
        Ok(())
    }

    fn sample(&mut self, mut taken: WindowSample) -> anyhow::Result<()> {
        let sample = &mut taken.sample;
        let shown = Some(taken.processes.as_slice()).filter(|_| self.args.command.is_empty());
        let hint = taken
            .children
            .and_then(|children| children.hint(sample, shown));
        let names: BTreeSet<String> = sample
            .threads
            .iter()
            .map(|thread| thread.name.clone())
            .collect();
        let wanted = self.wanted();
        sample.threads.retain(|thread| wanted(&thread.name));
        if let Some(pattern) = self.threads.as_ref().filter(|_| sample.threads.is_empty()) {
            note_names(pattern, &names);
        }
        let cost = taken
            .events
            .as_ref()
            .map(|(events, _)| EventCost::from_sample(sample, events, taken.lost_events));
        if let Some((events, names)) = taken
            .events
            .as_ref()
            .filter(|_| self.args.events.stacks.is_some())
        {
            events.add_to(&mut self.profile, names, &wanted);
        }
        if self.args.json {
            self.write_json(taken, cost.as_ref())
        } else {
            self.write_text(taken, cost.as_ref(), hint)
        }
    }
}

impl Printer<'_> {
    /// Returns the test for the names of threads to show.
    fn wanted(&self) -> impl Fn(&str) -> bool + use<> {
        let threads = self.threads.clone();
        move |name| threads.as_ref().is_none_or(|pattern| pattern.matches(name))
    }

    fn write_json(&mut self, taken: WindowSample, cost: Option<&EventCost>) -> anyhow::Result<()> {
        let trigger = |trigger: &Option<Trigger>| trigger.as_ref().map(Trigger::to_string);
        let mut object = json(&taken.sample);
        object["sample"] = taken.number.into();
        object["pid"] = taken.pid.into();
        object["pids"] = taken.processes.into();
        object["started"] = started(taken.window.start).into();
        object["start_trigger"] = trigger(&self.args.start_trigger).into();
        object["stop_trigger"] = trigger(&self.args.stop_trigger).into();
        object["children"] = taken.children.map(|children| children.json()).into();
        taken.around.add_to(&mut object);
        object["lost"] = taken.lost.json();
        let Some((mut events, names)) = taken.events else {
            let text = text::json::document("kernel-delay.sample", &object);
            writeln!(self.output.buffer, "{text}")?;
            return Ok(self.output.flush()?);
        };
        let wanted = self.wanted();
        object["syscall_events"] = events.json(&names, &wanted);
        object["syscall_events"]["cost"] = cost.map(EventCost::json).into();
        object["syscall_events"]["lines_cut"] = names.are_short().into();
        document::write(&mut self.output, &object, &mut events, &names, wanted)
    }

    fn write_text(
        &mut self,
        taken: WindowSample,
        cost: Option<&EventCost>,
        hint: Option<String>,
    ) -> anyhow::Result<()> {
        let (args, sample) = (self.args, &taken.sample);
        // If threads are selected by name, all of them are shown.
        let view = View {
            all: args.all || self.threads.is_some(),
            exact: args.digits,
            screen: self.screen,
        };
        let (buffer, screen) = (&mut self.output.buffer, self.screen);
        let further = taken.around.lines(taken.window.length());
        let verdicts = verdict(sample, view, args.summary).into_iter().chain(hint);
        let prefix = if args.summary { "" } else { "# " };
        let cost = cost.map(EventCost::line).into_iter();
        for line in verdicts.chain(further).chain(cost).chain(next_step(sample)) {
            lines::verdict(buffer, screen, prefix, &line)?;
        }
        lines::sums(buffer, screen, &process_sums(sample), view.all)?;
        if args.summary {
            return Ok(self.output.flush()?);
        }
        let header = Header {
            triggered: args.start_trigger.is_some() || args.stop_trigger.is_some(),
            stamp: stamp(),
        };
        // All digits are worth more than whole lines.
        let fitted = if args.digits {
            Screen::default()
        } else {
            screen
        };
        lines::cut(buffer, fitted, &report(sample, &header, view))?;
        let stripped_files = match taken.events {
            Some((events, names)) => self.list_events(events, &names, view)?,
            None => Vec::new(),
        };
        self.output.flush()?;
        for file in stripped_files {
            if self.stripped.insert(file.clone()) {
                note(&stripped(&file));
            }
        }
        Ok(())
    }

    /// Lists the single system calls; returns the files without names.
    fn list_events(
        &mut self,
        mut events: Events,
        names: &FunctionNames,
        view: View,
    ) -> anyhow::Result<Vec<String>> {
        let listed = if self.args.events.each_event {
            EventList::Each
        } else {
            EventList::Folded(view)
        };
        let wanted = self.wanted();
        let output = &mut self.output;
        events.text(names, wanted, listed, |piece| {
            lines::cut(&mut output.buffer, view.screen, piece)?;
            output.drain()
        })?;
        if names.are_short() {
            note(NO_LINES_NOTE);
        }
        Ok(names.stripped_files())
    }
}

/// Limit on the number of thread names in a note.
const MAX_NAMES: usize = 12;

/// Reports that no thread matched, and lists the existing names.
fn note_names(pattern: &glob::Pattern, names: &BTreeSet<String>) {
    note(&format!(
        "no thread is called {pattern}; there are: {}",
        screen::join_some(names, MAX_NAMES)
    ));
}
