//! A script at work: begin, attach, events in the order of time, end, maps.

mod command;
mod events;
mod failures;
mod finish;
mod hits;
mod run;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use bpf_program::event::RING;
use bpf_session::{Delivery, Reorder, RingReader};
use bt_abi::map::{FollowedProcess, IS_FOLLOWED};
use bt_abi::wire::WrongSize;
use bt_abi::{Attach, EventHead, Script, ScriptProbe};
use bt_runtime::Decoder;
use host::FilePlace;
use sys::process::{HeldChild, PidFd};

use crate::builder::Builder;
use crate::event::{DecodedEvent, RawEvent, is_exit};
use crate::facts::{Facts, all_ended};
use crate::lookups::Machine;
use crate::observe::SharedObserver;
use crate::{Error, attach};

use command::Command;
pub use events::Events;
use failures::Failures;
pub use failures::{FailureCount, RuntimeFailure};
pub use finish::{Benchmark, SessionResult, TestResult, Totals};

/// A script whose programs are in the kernel. Dropping it detaches everything and ends a command
/// that it started.
#[must_use = "a session that is dropped detaches everything"]
pub struct Session {
    script: Script,
    bpf: bpf_session::Session,
    machine: Machine,
    reader: Option<RingReader<RawEvent>>,
    order: Reorder<DecodedEvent>,
    failures: Failures,
    observer: SharedObserver,
    is_ordered: bool,
    /// Command of the target, while it waits.
    held: Option<HeldChild>,
    /// Command of the target, once it runs.
    child: Option<Command>,
    /// Processes whose end is the session's end.
    processes: Vec<PidFd>,
    /// Numbers of these processes; none for a command.
    pids: Vec<u32>,
    /// Files that probes are attached to by their descriptors, and that symbols are read from.
    _files: Vec<FilePlace>,
    /// True if an event that asks for the end has come; it may wait for its turn.
    exit_requested: bool,
    /// Error about data of a wrong form while events were handed out: [`Events`] can't fail.
    wrong: Option<WrongSize>,
    /// Status of an `exit` that was handed out.
    exit: Option<u8>,
    /// Status of an `exit` before `end` probes ran.
    first_exit: Option<u8>,
    /// True if there is nothing left to wait for.
    is_over: bool,
}

/// Result of attaching.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AttachSummary {
    /// Number of probes, including those that are run rather than attached (`begin`, `end`).
    pub probes: usize,
    /// True if anything may still come. If not, there are only `begin` and `end` probes, or `begin`
    /// has asked for the end.
    pub is_live: bool,
}

impl Session {
    pub(crate) fn new(
        script: Script,
        bpf: bpf_session::Session,
        facts: &Facts,
        held: Option<HeldChild>,
        builder: &Builder,
    ) -> Self {
        let observer = SharedObserver::clone(&builder.observer);
        let folders = facts.files.debug_folders().clone();
        let symbols = facts.kernel_symbols();
        let files = attach::files(&script);
        let machine = Machine::new(
            symbols,
            &script.config,
            files,
            folders,
            SharedObserver::clone(&observer),
        );
        let failures = Failures::new(&script);
        let pids = facts.running();
        Self {
            script,
            bpf,
            machine,
            reader: None,
            order: Reorder::new(),
            failures,
            observer,
            is_ordered: builder.options.ordered,
            held,
            child: None,
            processes: Vec::new(),
            pids,
            _files: facts.files.held(),
            exit_requested: false,
            wrong: None,
            exit: None,
            first_exit: None,
            is_over: false,
        }
    }

    /// Returns the signals that run probes of the script (`self:signal:SIGUSR1`). The engine
    /// catches none: a caller that catches one calls [`run_signal`](Self::run_signal).
    pub fn signals(&self) -> Vec<i32> {
        let signal = |probe: &ScriptProbe| match probe.attach {
            Attach::Signal { signal } => Some(signal),
            _ => None,
        };
        self.script.probes.iter().filter_map(signal).collect()
    }

    /// Runs the script's probes of a signal.
    pub fn run_signal(&self, signal: i32) -> Result<(), Error> {
        self.run_all(|attach| matches!(attach, Attach::Signal { signal: own } if *own == signal))
    }

    /// Runs `begin` probes, then attaches all others. The output of `begin` probes is then
    /// [pending](Self::pending).
    pub fn attach(&mut self) -> Result<AttachSummary, Error> {
        self.watch_processes()?;
        self.run_all(|attach| matches!(attach, Attach::Begin))?;
        let first = self.bpf.drain_now(RING, RawEvent::copy)?;
        self.take(first)?;
        let by_hand = attach::run_by_hand(&self.script);
        let idle = AttachSummary {
            probes: by_hand,
            is_live: false,
        };
        if self.exit_requested {
            return Ok(idle);
        }
        if !attach::is_live(&self.script) {
            self.is_over = true;
            return if by_hand == 0 {
                Err(Error::NothingToAttach)
            } else {
                Ok(idle)
            };
        }
        self.also_trace(
            &self
                .held
                .as_ref()
                .map_or_else(|| self.pids.clone(), |held| vec![held.pid()]),
        )?;
        self.reader = Some(RingReader::start(&self.bpf, RING, RawEvent::copy)?);
        Ok(AttachSummary {
            probes: self.attach_only()? + by_hand,
            is_live: true,
        })
    }

    /// Attaches the probes, runs none and receives no events: to find out whether that works.
    /// Returns their number.
    pub fn attach_only(&mut self) -> Result<usize, Error> {
        let attached = attach::all(&self.script, &mut self.bpf, &*self.observer);
        // A process may end at any moment.
        attached.map_err(|error| all_ended(&self.pids).unwrap_or(error))
    }

    /// Waits for events, at most `timeout`, and hands out those that are due: an ordered event
    /// waits until no earlier one can come. The first call lets a
    /// [`Target::Command`](crate::Target::Command) run.
    pub fn poll(&mut self, timeout: Duration) -> Result<Events<'_>, Error> {
        self.start_command()?;
        if self.failures.is_due() {
            self.look_for_failures()?;
        }
        let delivery = self.reader.as_ref().map(|reader| reader.deliver(timeout));
        let is_idle = !matches!(delivery, Some(Delivery::Events(_)));
        match delivery {
            Some(Delivery::Events(events)) => self.take(events)?,
            Some(Delivery::Idle(until)) => self.order.reach(until),
            None => {}
        }
        self.check()?;
        self.is_over |= self.exit_requested || is_idle && (self.has_ended() || !self.goes_on());
        Ok(if self.is_ordered {
            Events::due(self)
        } else {
            Events::all(self)
        })
    }

    /// Returns all events that have come, in order, without a wait for earlier ones.
    pub fn pending(&mut self) -> Events<'_> {
        Events::all(self)
    }

    /// Returns true if there is nothing left to wait for: the script has asked for the end, its
    /// process has ended, or nothing more can come. Events that are held back for their order may
    /// still be there: [`Session::finish`] returns them.
    pub fn is_over(&self) -> bool {
        self.is_over || self.exit_requested
    }

    /// Returns the descriptors whose closing takes the kernel a while, for a caller that ends with
    /// the session open.
    pub fn slow_to_close(&self) -> Vec<BorrowedFd<'_>> {
        self.bpf.slow_to_close()
    }

    /// Returns true if something is still attached, or to be closed.
    pub fn has_links(&self) -> bool {
        self.bpf.has_links()
    }

    /// Runs the programs of the probes of a kind, here and now.
    fn run_all(&self, wanted: impl Fn(&Attach) -> bool) -> Result<(), Error> {
        let probes = self
            .script
            .probes
            .iter()
            .filter(|probe| wanted(&probe.attach));
        for ScriptProbe { program, name, .. } in probes {
            self.bpf.run(*program, &[]).map_err(|source| Error::Probe {
                probe: name.clone(),
                source,
            })?;
        }
        Ok(())
    }

    /// Holds the processes whose end is the session's end. Some of several may have ended by now.
    fn watch_processes(&mut self) -> Result<(), Error> {
        let mut gone = None;
        for &pid in &self.pids {
            match PidFd::open(pid) {
                Ok(process) => self.processes.push(process),
                Err(source) => gone = Some(Error::Process { pid, source }),
            }
        }
        match gone.filter(|_| self.processes.is_empty()) {
            Some(error) => Err(all_ended(&self.pids).unwrap_or(error)),
            None => Ok(()),
        }
    }

    /// Traces these processes, too, from now on: ones that a process of the target started before
    /// its forks were followed. Does nothing unless forks are followed, or several processes are
    /// traced.
    pub fn also_trace(&self, pids: &[u32]) -> Result<(), Error> {
        let Some(map) = self
            .script
            .followed
            .as_ref()
            .and_then(|name| self.bpf.map(name))
        else {
            return Ok(());
        };
        for pid in pids {
            let process = FollowedProcess::from(*pid).to_ne_bytes();
            map.update(&process, &IS_FOLLOWED.to_ne_bytes())
                .map_err(|source| Error::Follow { source })?;
        }
        Ok(())
    }

    /// Lets the command run, once.
    fn start_command(&mut self) -> Result<(), Error> {
        if let Some(held) = self.held.take() {
            // If that is not permitted, its symbols are known as long as it lives.
            let log = sys::CodeLog::begin(held.pid(), &host::cpus::online());
            let _ = log.map(|log| self.machine.read_log(log));
            let child = held.go().map_err(|source| Error::Run { source })?;
            self.machine.remember(child.id());
            self.child = Some(Command(child));
        }
        for pid in std::mem::take(&mut self.pids) {
            self.machine.remember(pid);
        }
        Ok(())
    }

    fn goes_on(&self) -> bool {
        attach::goes_on(&self.script) || self.child.is_some()
    }

    /// Returns true if the target's processes have ended. A child of ours is asked for its status,
    /// or it would never be gone.
    fn has_ended(&mut self) -> bool {
        let child_ended = self.child.as_mut().is_some_and(Command::has_ended);
        let have_ended = || {
            self.processes
                .iter()
                .all(|process| process.has_ended().unwrap_or(true))
        };
        child_ended || !self.processes.is_empty() && have_ended()
    }

    /// Returns true if anything runs at the end. If nothing does, probes may still be attached
    /// then, and their events are no longer wanted.
    fn has_end(&self) -> bool {
        self.script
            .probes
            .iter()
            .any(|probe| probe.attach == Attach::End)
    }

    /// Decodes events, which then wait for their turn.
    fn take(&mut self, events: Vec<RawEvent>) -> Result<(), WrongSize> {
        let decoder = Decoder::new(&self.machine, &self.script.config.str_trunc_trailer);
        for RawEvent(bytes) in events {
            // Symbols are looked up for it, which can take a while.
            self.observer.step();
            let EventHead { time, action, .. } = EventHead::parse(&bytes)?;
            let number = action as usize;
            if let Some(action) = self.script.actions.get(number) {
                let values = decoder.event(action, &bytes)?;
                self.exit_requested |= is_exit(&action.kind);
                let place = if self.is_ordered { time } else { 0 };
                self.order.push(
                    place,
                    time,
                    DecodedEvent {
                        action: number,
                        values,
                        bytes,
                    },
                );
            }
        }
        Ok(())
    }

    /// Returns the error about data of a wrong form, from handing out events, which can't fail.
    fn check(&self) -> Result<(), WrongSize> {
        self.wrong.clone().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests;
