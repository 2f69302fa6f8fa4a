//! A running script: its output, and its end.

use std::time::{Duration, Instant};

use bt_engine::{Event, Session, Totals};
use console::interrupt::{self, Interrupt};
use console::messages::is_bpftrace_compat;
use console::output::{self, Output};

use super::events::EventPrinter;
use super::failures::{note_count, report_never_hit, report_totals};
use super::options::RunArgs;
use super::signals::Signals;
use super::untraced::UntracedChildren;
use crate::run::engine_error::engine_error;

/// Longest wait for events, and so the largest delay until the end of a process is noticed.
const BATCH_TIMEOUT: Duration = Duration::from_millis(20);
/// Time limit for showing events that came before an interruption.
const AFTER_INTERRUPT: Duration = Duration::from_millis(500);
/// Environment variable that requests a line on standard output once probes are attached;
/// bpftrace's tests set it.
const NOTIFY: &str = "__BPFTRACE_NOTIFY_PROBES_ATTACHED";
/// Note on events that did not fit.
const RING_IS_FULL: &str = "lost: the ring buffer was full (config = { perf_rb_pages = N } or \
    BPFTRACE_PERF_RB_PAGES=N makes it larger)";

/// A running script.
pub(super) struct RunningScript<'a> {
    pub(super) session: Session,
    pub(super) untraced: Option<UntracedChildren>,
    pub(super) shown: EventPrinter<'a>,
    pub(super) output: Output,
    pub(super) interrupt: &'a Interrupt,
    pub(super) args: &'a RunArgs,
}

impl RunningScript<'_> {
    /// Runs the script; returns the status that it requested, and the session, which may still have
    /// links to close.
    pub(super) fn run(mut self) -> anyhow::Result<(u8, Session)> {
        let signals = Signals::catch(self.session.signals())?;
        let attached = self.session.attach().map_err(engine_error)?;
        if self.args.children && attached.is_live {
            // Processes that were started while probes were being attached.
            self.session
                .also_trace(&host::family::descendants(&self.args.pids))
                .map_err(engine_error)?;
        }
        // Before the output of BEGIN, which may be the head of a table.
        self.report_attached(attached.probes)?;
        if attached.is_live {
            // Output of BEGIN precedes that of the attached probes.
            self.show_rest()?;
            self.live(&signals)?;
        }
        self.show_rest()?;
        self.finish(attached.is_live)
    }

    /// Shows events until there is a reason to stop, and detaches.
    fn live(&mut self, signals: &Signals) -> anyhow::Result<()> {
        let deadline = self
            .args
            .duration
            .and_then(|duration| Instant::now().checked_add(duration));
        while !self.session.is_over() {
            self.show_ready()?;
            // Checked before the signals are taken: the signal that ends us must find its probe.
            let is_requested = self.interrupt.is_requested();
            for signal in signals.take() {
                self.session.run_signal(signal).map_err(engine_error)?;
            }
            if is_requested {
                self.begin_line();
                break;
            }
            if deadline.is_some_and(|at| Instant::now() >= at) {
                break;
            }
        }
        if let Some(untraced) = &self.untraced {
            untraced.report_later();
        }
        self.session.disable();
        self.show_rest()?;
        self.session.detach();
        Ok(())
    }

    /// Begins a new line: Ctrl-C leaves `^C` in the terminal's last line.
    fn begin_line(&mut self) {
        if output::screen(self.args.output.as_deref())
            .width()
            .is_some()
        {
            self.output.buffer.push(b'\n');
        }
    }

    fn report_attached(&mut self, count: usize) -> anyhow::Result<()> {
        use std::io::{IsTerminal as _, Write as _};
        if !self.args.quiet {
            let plural = if count == 1 { "" } else { "s" };
            let printer = self.shown.printer;
            if !printer.is_json() {
                let mut errors = std::io::stderr();
                let is_endless = self.args.duration.is_none() && self.args.command.is_none();
                let is_told = is_endless && errors.is_terminal() && !is_bpftrace_compat();
                let end = if is_told { "; Ctrl-C ends it" } else { "" };
                // If standard error is gone, nobody reads it.
                let _ = writeln!(errors, "Attached {count} probe{plural}{end}");
            }
            self.output
                .buffer
                .extend(printer.attached_probes(count).as_bytes());
        }
        self.output.flush()?;
        if std::env::var_os(NOTIFY).is_some() {
            let mut standard = std::io::stdout();
            writeln!(standard, "{NOTIFY}")?;
            standard.flush()?;
        }
        Ok(())
    }

    /// Shows the events that have waited long enough.
    fn show_ready(&mut self) -> anyhow::Result<()> {
        for event in self.session.poll(BATCH_TIMEOUT).map_err(engine_error)? {
            self.shown.show(event, &mut self.output)?;
            interrupt::step();
            self.output.drain()?;
            if self.interrupt.is_requested() {
                break;
            }
        }
        // With -B full, output is written only when there is much of it.
        if self.args.buffering.as_deref() == Some("full") {
            return Ok(self.output.drain()?);
        }
        Ok(self.output.flush()?)
    }

    /// Shows all waiting events; after an interruption, only those that a short time allows.
    fn show_rest(&mut self) -> anyhow::Result<()> {
        let until = self
            .interrupt
            .is_requested()
            .then(|| Instant::now() + AFTER_INTERRUPT);
        let mut left_out = 0_u64;
        let mut events = self.session.pending();
        loop {
            if until.is_some_and(|until| Instant::now() >= until) {
                left_out = events.skip_rest();
                break;
            }
            let Some(event) = events.next() else { break };
            self.shown.show(event, &mut self.output)?;
            interrupt::step();
            self.output.drain()?;
        }
        if left_out > 0 {
            note_count(
                left_out,
                "event",
                "not shown: too much was left when the run was interrupted",
            );
        }
        Ok(self.output.flush()?)
    }

    /// Runs END, and prints the maps and the losses.
    fn finish(mut self, was_live: bool) -> anyhow::Result<(u8, Session)> {
        for event in self.session.end().map_err(engine_error)? {
            self.shown.show(event, &mut self.output)?;
            interrupt::step();
            self.output.drain()?;
        }
        let totals = self.session.totals().map_err(engine_error)?;
        let printer = self.shown.printer;
        if totals.lost > 0 {
            self.output
                .buffer
                .extend(printer.lost_events(totals.lost).as_bytes());
        }
        self.output.buffer.extend(printer.end().as_bytes());
        if self.session.prints_maps() {
            for table in self.session.maps() {
                let table = Event::Map(table.map_err(engine_error)?);
                self.shown.show(table, &mut self.output)?;
                self.output.drain()?;
            }
        }
        self.output.flush()?;
        if self.shown.warnings {
            self.report_totals(totals);
            if was_live {
                let never_hit = self.session.never_hit().map_err(engine_error)?;
                report_never_hit(&never_hit, self.shown.text);
            }
        }
        self.session.end_command();
        self.output.finish()?;
        if let Some(stacks) = self.shown.stacks {
            stacks.finish()?;
        }
        Ok((self.session.exit_status(), self.session))
    }

    fn report_totals(&self, totals: Totals) {
        let parts = [
            (
                totals.too_deep,
                "hit",
                "left out: programs interrupted one another too deeply",
            ),
            (totals.lost, "event", RING_IS_FULL),
            (
                totals.skipped,
                "hit",
                "skipped by the kernel: another program was running on that CPU",
            ),
            (
                totals.late,
                "line",
                "out of order: it came too late to be sorted by time",
            ),
        ];
        for (count, noun, what) in parts {
            note_count(count, noun, what);
        }
        report_totals(&self.session.failure_counts(), self.shown.text);
    }
}
