//! Queries Open vSwitch during the sample, on a thread of its own: a daemon that does not answer
//! does not hold up the rest.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use host::Pid;
use host::control::{Connection, ListeningSocket, SocketKind, SocketOwner};
use sys::clock::{Moment, monotonic_nanos};
use text::printable;

use crate::telemetry::Ports;
use crate::{Framer, Query, QueryError, Text, answered_text, database, parse};

/// Time limit for one answer.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval between two queries of the history, which holds one second.
const HISTORY_INTERVAL: Duration = Duration::from_millis(800);

/// Limit on the milliseconds kept of all answers, at about 60 bytes each.
const MAX_MILLISECONDS: usize = 4 << 20;

/// Parsed answer, and the time of its query in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug)]
pub(crate) struct TimedAnswer {
    pub(crate) asked: u64,
    pub(crate) text: Text,
}

/// Answers of Open vSwitch and DPDK.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// Answers at the begin and at the end.
    pub(crate) stats: Vec<TimedAnswer>,
    /// Answers at the begin, at the end, and in between.
    pub(crate) perf: Vec<TimedAnswer>,
    pub(crate) queues: Option<Text>,
    /// Settings of the database.
    pub(crate) settings: Option<Vec<(String, String)>>,
    /// Counters of DPDK's ports, at the begin and at the end.
    pub(crate) ports: Vec<Ports>,
    /// Processor cycles per second.
    pub(crate) hertz: f64,
    /// Missing parts, with reasons.
    pub(crate) notes: Vec<String>,
}

impl Answers {
    /// Returns true if there is room for more of the history; otherwise adds a note.
    fn has_room(&mut self) -> bool {
        let kept: usize = self
            .perf
            .iter()
            .map(|shown| shown.text.milliseconds())
            .sum();
        let has_room = kept < MAX_MILLISECONDS;
        if !has_room {
            let note = format!(
                "only {kept} milliseconds of the daemon's history are kept: use a shorter sample"
            );
            self.notes.push(note);
        }
        has_room
    }
}

/// Process to query, and its sockets.
pub(crate) struct QueryTarget {
    pub(crate) pid: u32,
    pub(crate) control: Option<PathBuf>,
    pub(crate) telemetry: Option<PathBuf>,
}

impl QueryTarget {
    /// Finds the sockets to query among those at which the process listens.
    pub(crate) fn find(pid: u32, sockets: &[ListeningSocket]) -> Self {
        let find = |kind: SocketKind, end: &str| {
            let mut of_kind = sockets.iter().filter(|socket| socket.kind == kind);
            of_kind
                .find(|socket| socket.path.to_str().is_some_and(|path| path.ends_with(end)))
                .map(|socket| socket.path.clone())
        };
        Self {
            pid,
            control: find(SocketKind::Stream, ".ctl"),
            telemetry: find(SocketKind::Packets, "/dpdk_telemetry.v2"),
        }
    }

    /// Starts the queries.
    pub(crate) fn start(self, is_ovs: bool) -> anyhow::Result<QueryThread> {
        let (end, ends) = channel();
        let asks = std::thread::Builder::new().name("questions".to_owned());
        let thread = asks
            .spawn(move || self.ask(is_ovs, &ends))
            .context("starting a thread")?;
        Ok(QueryThread { end, thread })
    }

    fn ask(&self, is_ovs: bool, ends: &Receiver<()>) -> Answers {
        let mut answers = Answers::default();
        let begin = Moment::now(monotonic_nanos);
        answers.ports.extend(self.ports());
        let mut is_there = is_ovs;
        if is_ovs && self.control.is_none() {
            answers.notes.push(
                "no control socket (*.ctl) of the process is open or visible: its own figures are \
                 missing"
                    .to_owned(),
            );
            is_there = false;
        }
        is_there = is_there && self.figures(&mut answers);
        while ends.recv_timeout(HISTORY_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            is_there = is_there && answers.has_room() && self.show(Query::Perf, &mut answers);
        }
        if is_ovs && self.control.is_some() {
            // A daemon that did not answer before may do so now.
            if self.figures(&mut answers) {
                self.show(Query::Queues, &mut answers);
            }
            answers.settings = database::settings(self.pid);
        }
        answers.ports.extend(self.ports());
        let end = Moment::now(monotonic_nanos);
        answers.hertz = end.ticks.saturating_sub(begin.ticks) as f64
            / (end.nanos.saturating_sub(begin.nanos).max(1) as f64 / 1e9);
        answers.notes.dedup();
        answers
    }

    fn figures(&self, answers: &mut Answers) -> bool {
        self.show(Query::Stats, answers) && self.show(Query::Perf, answers)
    }

    /// Queries a text. Returns false if there is no answer: a retry soon is pointless.
    fn show(&self, question: Query, answers: &mut Answers) -> bool {
        let Some(path) = &self.control else {
            return false;
        };
        let asked = monotonic_nanos();
        let answer = ask(self.pid, path, SocketOwner::Process, question);
        let text = match answer.and_then(|bytes| answered_text(&bytes).map_err(refused)) {
            Ok(text) => parse(&text),
            Err(why) => {
                let path = printable::path(path);
                let note = format!(
                    "{path} does not answer ({why}): the daemon's own figures for that time are \
                     missing"
                );
                if !answers.notes.contains(&note) {
                    answers.notes.push(note);
                }
                return false;
            }
        };
        match question {
            Query::Perf => answers.perf.push(TimedAnswer { asked, text }),
            Query::Stats => answers.stats.push(TimedAnswer { asked, text }),
            Query::Queues => answers.queues = Some(text),
            Query::Settings => {}
        }
        true
    }

    fn ports(&self) -> Option<Ports> {
        Ports::read(self.pid, self.telemetry.as_deref()?)
    }
}

/// Queries in progress.
pub(crate) struct QueryThread {
    end: Sender<()>,
    thread: JoinHandle<Answers>,
}

impl QueryThread {
    /// Starts the queries for the end of the sample.
    pub(crate) fn end(&self) {
        // If nobody receives this, the thread has ended already.
        let _ = self.end.send(());
    }

    /// Returns true if all queries are done.
    pub(crate) fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    pub(crate) fn answers(self) -> Answers {
        self.thread.join().unwrap_or_default()
    }
}

/// Queries a daemon of Open vSwitch on a new connection; returns the bytes of its answer.
pub(crate) fn ask(
    pid: u32,
    path: &Path,
    whose: SocketOwner,
    question: Query,
) -> Result<Vec<u8>, String> {
    let asked = || {
        let connection =
            Connection::open(Pid(pid), path, SocketKind::Stream, whose, ANSWER_TIMEOUT)?;
        connection.send(question.request().as_bytes())?;
        let (mut answer, mut framer) = (Vec::new(), Framer::default());
        loop {
            if connection.receive(&mut answer)? == 0 {
                return Ok(answer);
            }
            if let Some(end) = framer.end(&answer) {
                answer.truncate(end);
                return Ok(answer);
            }
        }
    };
    asked().map_err(|error: std::io::Error| match error.kind() {
        std::io::ErrorKind::TimedOut => {
            format!("nothing came within {} s", ANSWER_TIMEOUT.as_secs())
        }
        _ => error.to_string(),
    })
}

fn refused(why: QueryError) -> String {
    match why {
        QueryError::Malformed => "its answer can't be read".to_owned(),
        QueryError::Refused(text) => printable::text(text.as_bytes()).into_owned(),
    }
}
