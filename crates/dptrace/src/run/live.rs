//! A script at work: begin, attach, events in the order of time, end, maps.

use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bpf_program::event::{LOST, RING};
use bpf_session::{Drain, Reorder, Session};
use bt_abi::Script;
use bt_abi::{ActionKind, Attach, ScriptProbe};
use bt_runtime::table::{Table, Wish};
use sys::process::{HeldChild, PidFd};

use super::attach;
use super::events::{Event, Events, Ready};
use super::failures::{Failures, note_count};
use super::maps;
use super::options::RunArgs;
use crate::failure::note;
use crate::interrupt::{self, Interrupt};
use crate::output::Output;

/// The longest wait for events: how late the end of a process is seen at most.
const WAIT: Duration = Duration::from_millis(20);
/// How long events that came before an interruption may still take to be shown.
const AFTER_INTERRUPT: Duration = Duration::from_millis(500);
/// Asks for a line on standard output once probes are attached; bpftrace's tests do.
const NOTIFY: &str = "__BPFTRACE_NOTIFY_PROBES_ATTACHED";

/// What the counters of [`LOST`] count: see the compiler's.
const RING_FULL: usize = 0;
/// See [`RING_FULL`].
const BUSY: usize = 1;
/// What is told of events that did not fit.
const RING_IS_FULL: &str = "lost: the ring buffer was full (config = { perf_rb_pages = N } or BPFTRACE_PERF_RB_PAGES=N \
                            makes it larger)";

/// What a script is run with.
pub(super) struct Setting<'a> {
    pub(super) args: &'a RunArgs,
    pub(super) interrupt: &'a Interrupt,
    pub(super) held: Option<HeldChild>,
    /// The command once it runs.
    pub(super) child: Option<Command>,
    /// The process whose end is the end, and its number.
    pub(super) process: Option<PidFd>,
    /// See `process`.
    pub(super) pid: Option<u32>,
}

/// The command of `-c`. What we started ends with us: it may have our standard output, and whoever reads that waits for its
/// end.
pub(super) struct Command(Child);

impl Drop for Command {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            // What can't be ended goes on, as it would anyway.
            let _ = sys::process::terminate(&self.0);
        }
    }
}

/// A script at work.
pub(super) struct Live<'a> {
    script: &'a Script,
    session: Session,
    events: Events<'a>,
    output: Output,
    order: Reorder<Ready>,
    interrupt: &'a Interrupt,
    failures: Failures<'a>,
    ordered: bool,
    /// Whether output is written only when there is much of it.
    gathers: bool,
    /// Whether an event that asks for the end has come; it may wait for its turn.
    ends: bool,
}

impl<'a> Live<'a> {
    pub(super) fn new(session: Session, events: Events<'a>, output: Output, setting: &Setting<'a>) -> Self {
        let (script, interrupt, ordered) = (events.script, setting.interrupt, !setting.args.no_order);
        let gathers = setting.args.buffering.as_deref() == Some("full");
        let failures = Failures::new(script, events.text, events.printer);
        let order = Reorder::new();
        Self { script, session, events, output, order, interrupt, failures, ordered, gathers, ends: false }
    }

    /// Runs the script; gives the status that it asked for, and the session, which may still have links to close.
    pub(super) fn run(mut self, mut setting: Setting<'_>) -> anyhow::Result<(u8, Session)> {
        self.run_all(|attach| matches!(attach, Attach::Begin))?;
        let first = self.session.drain_now(RING, Event::of)?;
        self.take(first);
        let mut told = false;
        if !self.ends {
            if attach::is_live(self.script) {
                told = true;
                self.live(&mut setting)?;
            } else {
                let by_hand = attach::run_by_hand(self.script);
                if by_hand == 0 {
                    anyhow::bail!("there is nothing to attach; bench: and test: probes need --mode");
                }
            }
        }
        if !told {
            self.tell_attached(setting.args, attach::run_by_hand(self.script))?;
        }
        self.show_rest()?;
        self.finish()
    }

    /// Runs the programs of the probes of a kind, here and now.
    fn run_all(&self, wanted: impl Fn(&Attach) -> bool) -> anyhow::Result<()> {
        let probes = self.script.probes.iter().filter(|probe| wanted(&probe.attach));
        for ScriptProbe { program, name, .. } in probes {
            self.session.run(*program, &[]).with_context(|| name.clone())?;
        }
        Ok(())
    }

    /// Attaches, and shows events until there is a reason to stop.
    fn live(&mut self, setting: &mut Setting<'_>) -> anyhow::Result<()> {
        for signal in self.signals() {
            sys::signal::catch(signal)?;
        }
        self.follow(setting)?;
        let drain = Drain::start(&self.session, RING, Event::of)?;
        let attached = attach::all(self.script, &mut self.session, setting.args.verbose > 0)?;
        // What BEGIN said stands before what the attached probes say.
        self.show_rest()?;
        self.tell_attached(setting.args, attached + attach::run_by_hand(self.script))?;
        let child = setting.held.take().map(HeldChild::go).transpose().context("running the command")?;
        if let Some(pid) = child.as_ref().map(Child::id).or(setting.pid) {
            self.events.machine.remember(pid);
        }
        let goes_on = attach::goes_on(self.script) || child.is_some();
        setting.child = child.map(Command);
        let deadline = setting.args.duration.and_then(|duration| Instant::now().checked_add(duration));
        while !self.ends {
            if self.failures.is_time_to_look() {
                self.look_for_failures();
            }
            let events = drain.next(WAIT);
            let is_idle = events.is_empty();
            self.take(events);
            self.show_ready()?;
            let mut process_ended = || has_ended(setting.process.as_ref(), setting.child.as_mut());
            if self.interrupt.is_wished()
                || deadline.is_some_and(|at| Instant::now() >= at)
                || is_idle && (process_ended() || !goes_on)
            {
                break;
            }
            for signal in self.signals() {
                if sys::signal::take(signal) {
                    self.run_all(|attach| matches!(attach, Attach::Signal { signal: own } if *own == signal))?;
                }
            }
        }
        // What `system` runs may want to see the programs, and it takes a while; nothing else does.
        if !self.script.actions.iter().any(|action| matches!(action.kind, ActionKind::System { .. })) {
            self.session.rest();
        }
        self.show_rest()?;
        // END must be the last to change maps. Without it nobody sees the difference, and the wait is saved.
        if !self.session.rest() && self.has_end() {
            self.session.close();
        }
        let mut rest = Vec::new();
        drain.finish(|batch| rest.extend(batch));
        self.take(rest);
        Ok(())
    }

    /// Puts the process whose forks are followed among those that count.
    fn follow(&self, setting: &Setting<'_>) -> anyhow::Result<()> {
        let pid = setting.held.as_ref().map(HeldChild::pid).or(setting.pid);
        let followed = self.script.followed.as_ref().and_then(|name| self.session.map(name));
        if let (Some(map), Some(pid)) = (followed, pid) {
            map.update(&u64::from(pid).to_ne_bytes(), &1_u64.to_ne_bytes()).context("following forks")?;
        }
        Ok(())
    }

    /// Whether anything runs at the end. Where nothing does, probes may still be there then, and what they send is no
    /// longer wanted.
    fn has_end(&self) -> bool {
        self.script.probes.iter().any(|probe| probe.attach == Attach::End)
    }

    fn signals(&self) -> Vec<i32> {
        let signal = |probe: &ScriptProbe| match probe.attach {
            Attach::Signal { signal } => Some(signal),
            _ => None,
        };
        self.script.probes.iter().filter_map(signal).collect()
    }

    fn tell_attached(&mut self, args: &RunArgs, count: usize) -> anyhow::Result<()> {
        use std::io::Write as _;
        if !args.quiet {
            let plural = if count == 1 { "" } else { "s" };
            if !self.events.printer.is_json() {
                // Where standard error is gone, there is nobody to tell.
                let _ = writeln!(std::io::stderr(), "Attached {count} probe{plural}");
            }
            self.output.buffer.extend(self.events.printer.attached_probes(count).as_bytes());
        }
        self.output.flush()?;
        if std::env::var_os(NOTIFY).is_some() {
            let mut standard = std::io::stdout();
            writeln!(standard, "{NOTIFY}")?;
            standard.flush()?;
        }
        Ok(())
    }

    fn take(&mut self, events: Vec<Event>) {
        for event in events {
            // Symbols are looked up for it, which can take a while.
            interrupt::step();
            let time = event.time;
            if let Some((ready, is_exit)) = self.events.take(event) {
                self.ends |= is_exit;
                self.order.push(if self.ordered { time } else { 0 }, time, ready);
            }
        }
    }

    /// Shows what has waited long enough.
    fn show_ready(&mut self) -> anyhow::Result<()> {
        let now = if self.ordered { sys::clock::monotonic_nanos() } else { u64::MAX };
        while let Some(ready) = self.order.pop(now) {
            self.show(&ready)?;
            if self.interrupt.is_wished() {
                break;
            }
        }
        if self.gathers {
            return Ok(self.output.drain()?);
        }
        Ok(self.output.flush()?)
    }

    /// Shows all that waits; after an interruption, what can be shown in a short while.
    fn show_rest(&mut self) -> anyhow::Result<()> {
        let until = self.interrupt.is_wished().then(|| Instant::now() + AFTER_INTERRUPT);
        let mut left_out = 0_u64;
        while let Some(ready) = self.order.pop_any() {
            if until.is_some_and(|until| Instant::now() >= until) {
                left_out += 1;
            } else {
                self.show(&ready)?;
            }
        }
        if left_out > 0 {
            note(&format!("{left_out} events that came before the interruption are not shown"));
        }
        Ok(self.output.flush()?)
    }

    fn show(&mut self, ready: &Ready) -> anyhow::Result<()> {
        if self.events.exit.is_some() {
            return Ok(());
        }
        self.events.show(ready, &self.session, &mut self.output)?;
        interrupt::step();
        Ok(self.output.drain()?)
    }

    /// END, the maps, and what was lost.
    fn finish(mut self) -> anyhow::Result<(u8, Session)> {
        let status = self.events.exit.take();
        if self.has_end() {
            self.run_all(|attach| matches!(attach, Attach::End))?;
            let final_events = self.session.drain_now(RING, Event::of)?;
            self.take(final_events);
            while let Some(ready) = self.order.pop_any() {
                self.show(&ready)?;
            }
        }
        self.look_for_failures();
        let lost = self.counted(RING_FULL);
        let printer = self.events.printer;
        if lost > 0 {
            self.output.buffer.extend(printer.lost_events(lost).as_bytes());
        }
        self.output.buffer.extend(printer.end().as_bytes());
        if self.script.config.print_maps_on_exit {
            for map in &self.script.maps {
                let elements = maps::elements(&self.session, map);
                let table = Table::of(map, &elements, Wish::default(), &self.events.decoder);
                self.output.buffer.extend(printer.map(&table).as_bytes());
                self.output.drain()?;
            }
        }
        self.output.flush()?;
        self.tell_totals(lost);
        Ok((self.events.exit.or(status).unwrap_or_default(), self.session))
    }

    /// Tells what has failed for the first time.
    fn look_for_failures(&mut self) {
        if self.events.warnings {
            let shown = self.failures.look(&self.session, self.events.machine);
            self.output.buffer.extend(shown.as_bytes());
        }
    }

    fn tell_totals(&self, lost: u64) {
        let totals = [
            (self.counted(BUSY), "hit", "left out: programs interrupted one another too deeply"),
            (lost, "event", RING_IS_FULL),
            (self.session.misses(), "hit", "skipped by the kernel: another program was running on that CPU"),
            (self.order.late(), "line", "not in place: too late for the order of time"),
        ];
        if self.events.warnings {
            for (count, noun, what) in totals {
                note_count(count, noun, what);
            }
            self.failures.tell_totals();
        }
    }

    /// What programs counted.
    fn counted(&self, what: usize) -> u64 {
        let counted = self.session.map(LOST).and_then(|map| map.lookup(&0_u32.to_ne_bytes()).ok().flatten());
        let (counters, _) = counted.as_deref().unwrap_or_default().as_chunks::<8>();
        counters.get(what).copied().map_or(0, u64::from_ne_bytes)
    }
}

/// Whether the process that all is about has ended. A child of ours is asked for its status, or it would never be gone.
fn has_ended(process: Option<&PidFd>, child: Option<&mut Command>) -> bool {
    let child_ended = child.is_some_and(|Command(child)| child.try_wait().is_ok_and(|status| status.is_some()));
    child_ended || process.is_some_and(|process| process.has_ended().unwrap_or(true))
}

#[cfg(test)]
mod tests;
