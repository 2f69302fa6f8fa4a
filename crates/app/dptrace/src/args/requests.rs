//! Options that choose where requests come from, the same for all commands.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use capture_recorder::{ProcessSet, RequestSource, Rings, SocketRequests, report_sockets};
use clap::{Args, ValueEnum};
use console::interrupt::Interrupt;
use console::messages::note;
use console::terminal;
use host::{Pid, proc};
use observer::Observer;
use process_selector::{ProcessCount, ProcessSelector, Role, check_process};
use trace_source::cpus::{self, Placement};
use trace_source::{Application, FileSource};

/// Interval at which the end of a recording is checked.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Source of requests, as typed.
#[derive(Args, Clone, Debug)]
pub(crate) struct RequestArgs {
    /// Take requests from this source: trace (of SPDK) or sockets
    ///
    /// trace: the SPDK trace that the process writes. sockets: requests of any server that gets them
    /// at TCP or Unix sockets. A request begins when data arrives on a connection after the last
    /// reply, and ends with the last send before the next data arrives. The processes that the
    /// server starts belong to it.
    #[arg(long = "requests", value_name = "SOURCE")]
    requests: Option<TypedSource>,
}

/// Source of requests.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum TypedSource {
    Trace,
    Sockets,
}

impl RequestArgs {
    /// Returns the source.
    pub(crate) fn source(&self) -> RequestSource {
        match self.requests {
            Some(TypedSource::Sockets) => RequestSource::Sockets,
            Some(TypedSource::Trace) | None => RequestSource::Trace,
        }
    }

    /// Chooses the source if none is typed: the sockets of a server that writes no SPDK trace, with a
    /// note.
    pub(crate) fn or_found(mut self, selector: &ProcessSelector, command: &'static str) -> Self {
        let role = Role {
            command,
            takes: ProcessCount::All("found"),
            starts: false,
        };
        let is_open = self.requests.is_none();
        let Some(pids) = is_open
            .then(|| selector.all(role, &Observer::silent()).ok())
            .flatten()
        else {
            return self;
        };
        let is_server = !pids.iter().any(|pid| trace_source::writes_trace(*pid))
            && pids.iter().any(|pid| proc::listens(Pid(*pid)));
        if is_server {
            note("there is no SPDK trace: requests are taken from sockets (--requests sockets)");
            self.requests = Some(TypedSource::Sockets);
        }
        self
    }

    /// Finds the process that writes a trace, or all processes of a server: that which started the
    /// others first. `done` is the word for what the command does with several: "measured".
    pub(crate) fn processes(
        &self,
        selector: &ProcessSelector,
        (command, done): (&'static str, &'static str),
    ) -> anyhow::Result<ProcessSet> {
        let observer = terminal::observer();
        let role = |takes| Role {
            command,
            takes,
            starts: false,
        };
        match self.source() {
            RequestSource::Trace => {
                let role = role(ProcessCount::OneTraced(trace_source::writes_trace));
                Ok(ProcessSet::one(selector.one(role, &observer)?))
            }
            RequestSource::Sockets => {
                let role = role(ProcessCount::All(done));
                let mut pids = selector.all(role, &observer)?;
                let founders = process_selector::founders(&pids);
                pids.sort_by_key(|pid| !founders.contains(pid));
                Ok(ProcessSet {
                    pids,
                    children: true,
                })
            }
        }
    }
}

/// Requests that are being recorded at a server's sockets.
pub(crate) struct Recording {
    sockets: SocketRequests,
    processes: ProcessSet,
    /// Placement of the threads that record, and of those that read.
    pub(crate) place: Placement,
}

impl Recording {
    /// Starts to record; returns the trace, too.
    pub(crate) fn start(processes: ProcessSet) -> anyhow::Result<(Self, FileSource)> {
        check_process(processes.first())?;
        // Must precede the start of any thread: threads inherit the affinity.
        let place = cpus::keep_off(processes.pids.iter().copied(), &terminal::observer());
        let rings = Rings::open_source(RequestSource::Sockets, &processes)?;
        let sockets = rings.sockets.context("the requests are not recorded")?;
        let recording = Self {
            sockets,
            processes,
            place,
        };
        Ok((recording, rings.source))
    }

    /// Returns the first process of the server.
    pub(crate) fn pid(&self) -> u32 {
        self.processes.first()
    }

    /// Prints that its requests are followed from now on.
    pub(crate) fn announce(&self) {
        note(&format!(
            "following the requests of process {}: Ctrl-C ends it",
            self.pid()
        ));
    }

    /// Returns the server, whose end ends the recording.
    pub(crate) fn application(&self) -> Application {
        Application::of([self.pid()])
    }

    /// Records until the time is up, a signal arrives or the server ends; returns the number of
    /// requests.
    pub(crate) fn run_for(self, duration: Option<Duration>) -> anyhow::Result<u64> {
        let interrupt = Interrupt::catch()?;
        let (began, application) = (Instant::now(), self.application());
        if duration.is_none() {
            note("recording requests until Ctrl-C: --for 3s sets a time");
        }
        self.place.give_way_for(duration);
        let why = loop {
            if interrupt.is_requested() {
                break "stopped";
            }
            if application.is_gone() {
                break "the process has ended";
            }
            let left = duration.map_or(STOP_POLL_INTERVAL, |it| it.saturating_sub(began.elapsed()));
            if left.is_zero() {
                break "the time is up";
            }
            std::thread::sleep(left.min(STOP_POLL_INTERVAL));
        };
        self.place.finish();
        let totals = self.sockets.finish().context("recording sockets")?;
        note(&format!(
            "{why}: {} on {}",
            screen::counted(totals.requests, "request"),
            screen::counted(totals.connections, "connection")
        ));
        report_sockets(totals, &terminal::observer());
        Ok(totals.requests)
    }

    /// Ends the recording: all requests seen until now are in the trace after that.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        let totals = self.sockets.finish().context("recording sockets")?;
        report_sockets(totals, &terminal::observer());
        Ok(())
    }
}
