//! Errors of the engine.

use std::fmt::{self, Display, Formatter};
use std::io;
use std::sync::Arc;

use bpf_session::SessionError;
use bt_abi::wire::WrongSize;
use bt_lang::Diagnostic;
use bt_lang::render::{Source, render};
use host::HostError;
use thiserror::Error;

/// Reason why a script can't be compiled or run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The script has mistakes.
    #[error("{0}")]
    Script(Diagnostics),
    /// The script was not compiled, and no diagnostic has the reason: an internal error, to be
    /// reported.
    #[error(
        "the script was not compiled, and no diagnostic says why (internal error, please report it)"
    )]
    NotCompiled,
    /// The script is about one process (`__PID__`), but the target is none.
    #[error("the script needs a process (__PID__), but there is none")]
    NeedsProcess,
    /// The script is about one process (`__PID__`, except in a comparison such as `pid ==
    /// __PID__`), but the target is several.
    #[error("the script needs a single process (__PID__), but there are {count}")]
    NeedsOneProcess {
        /// Number of processes.
        count: usize,
    },
    /// The target is several processes, or the script asks whether another thread is the target's
    /// (`is_target`). Only in the kernel's first PID namespace do processes have the kernel's
    /// numbers.
    #[error("{what} needs the kernel's first PID namespace")]
    InnerNamespace {
        /// Use that needs it.
        what: &'static str,
    },
    /// The target is a command that is not in `PATH`.
    #[error("no program {name} in PATH")]
    NoProgram {
        /// Name of the program, escaped.
        name: String,
    },
    /// The target's command could not be started.
    #[error("starting {name}")]
    Start {
        /// Name of the command, escaped.
        name: String,
        /// Cause.
        source: io::Error,
    },
    /// The target's command was started, but could not be let go.
    #[error("running the command")]
    Run {
        /// Cause.
        source: io::Error,
    },
    /// The target's process can't be watched for its end.
    #[error("process {pid}")]
    Process {
        /// Process id.
        pid: u32,
        /// Cause.
        source: io::Error,
    },
    /// The target's processes have ended before their probes were attached.
    #[error("{}", ended(pids))]
    Ended {
        /// Process ids; at least one.
        pids: Vec<u32>,
    },
    /// The target's process can't be added to the traced ones.
    #[error("following forks")]
    Follow {
        /// Cause.
        source: io::Error,
    },
    /// The target or its files can't be read.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The kernel refused the script's programs or maps, or this user may not load them.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Data in a map or in the ring has a wrong form: our mistake.
    #[error(transparent)]
    WrongSize(#[from] WrongSize),
    /// A probe could not be attached or run.
    #[error("{probe}")]
    Probe {
        /// Full name of the probe, `uprobe:/bin/bash:readline`.
        probe: String,
        /// Cause.
        source: SessionError,
    },
    /// The script has no probe that can be attached, nor one that runs by itself.
    #[error("there is nothing to attach")]
    NothingToAttach,
}

fn ended(pids: &[u32]) -> String {
    match pids {
        [pid] => format!("process {pid} has ended"),
        _ => format!("all {} processes have ended", pids.len()),
    }
}

/// Diagnostics of the compiler for a script: at least one error, and warnings.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<str>,
    pub(crate) list: Vec<Diagnostic>,
    pub(crate) tracepoints_refused: Option<String>,
    pub(crate) file_refused: Option<String>,
}

impl Diagnostics {
    /// Returns all of them, in the order in which they were found. Their places are bytes of the
    /// script's text.
    pub fn as_slice(&self) -> &[Diagnostic] {
        &self.list
    }

    /// Returns the reason why no tracepoint could be looked up, if some were asked for and tracefs
    /// could not be read. The script's tracepoints may exist, but this user may not see them.
    pub fn tracepoints_refused(&self) -> Option<&str> {
        self.tracepoints_refused.as_deref()
    }

    /// Returns the reason why a file in the script could not be looked into, if this user may not
    /// read one.
    pub fn file_refused(&self) -> Option<&str> {
        // One unreadable file of several is no reason for an error: an error has the reason in it.
        let is_why = |why: &&str| {
            self.list
                .iter()
                .any(|it| it.is_error() && it.message.contains(why))
        };
        self.file_refused.as_deref().filter(is_why)
    }

    /// Formats one of them with its lines of the script; with colours of terminals if `coloured`.
    pub fn render(&self, diagnostic: &Diagnostic, coloured: bool) -> String {
        render(diagnostic, &Source::new(&self.name, &self.text), coloured)
    }
}

impl Display for Diagnostics {
    /// Formats all of them, each with its lines of the script. Foreign text in them is escaped.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.list
            .iter()
            .try_for_each(|diagnostic| f.write_str(&self.render(diagnostic, false)))
    }
}
