//! How the engine fails.

use std::fmt::{self, Display, Formatter};
use std::io;
use std::sync::Arc;

use bpf_session::SessionError;
use bt_abi::wire::WrongSize;
use bt_lang::Diagnostic;
use bt_lang::render::{Source, render};
use host::HostError;
use thiserror::Error;

/// Why a script can't be compiled or run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The script has mistakes.
    #[error("{0}")]
    Script(Diagnostics),
    /// The script was not compiled, and no diagnostic says why: an internal error, to be reported.
    #[error("the script was not compiled, and no diagnostic says why (internal error, please report it)")]
    NotCompiled,
    /// The script is about one process (`__PID__`), and the target is none.
    #[error("the script is about a process (__PID__), and there is none")]
    NeedsProcess,
    /// The script is about one process (`__PID__`, but in a comparison such as `pid == __PID__`), and the target is several.
    #[error("the script is about one process (__PID__), and there are {count}")]
    NeedsOneProcess {
        /// How many there are.
        count: usize,
    },
    /// The target is several processes, or the script asks of another thread whether it is the target's (`is_target`): only in
    /// the kernel's first PID namespace do processes have the numbers that the kernel has for them.
    #[error("{what} needs the kernel's first PID namespace")]
    InnerNamespace {
        /// What needs it.
        what: &'static str,
    },
    /// The target is a command that is not in `PATH`.
    #[error("no program {name} in PATH")]
    NoProgram {
        /// Its name, escaped.
        name: String,
    },
    /// The target's command could not be started.
    #[error("starting {name}")]
    Start {
        /// Its name, escaped.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The target's command, which had been started, could not be let go.
    #[error("running the command")]
    Run {
        /// Why.
        source: io::Error,
    },
    /// The target's process can't be watched for its end.
    #[error("process {pid}")]
    Process {
        /// Its number.
        pid: u32,
        /// Why.
        source: io::Error,
    },
    /// The target's processes have ended before their probes were attached.
    #[error("{}", ended(pids))]
    Ended {
        /// Their numbers; at least one.
        pids: Vec<u32>,
    },
    /// The target's process can't be put among those that count.
    #[error("following forks")]
    Follow {
        /// Why.
        source: io::Error,
    },
    /// The target or its files can't be read.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The kernel took the script's programs or maps not, or this user may not load them.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Something in a map or in the ring has not the form that it should have: our mistake.
    #[error(transparent)]
    WrongSize(#[from] WrongSize),
    /// A probe could not be attached or run.
    #[error("{probe}")]
    Probe {
        /// Its full name, `uprobe:/bin/bash:readline`.
        probe: String,
        /// Why.
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

/// What the compiler has to say of a script: at least one error, and warnings.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<str>,
    pub(crate) list: Vec<Diagnostic>,
    pub(crate) tracepoints_refused: Option<String>,
    pub(crate) file_refused: Option<String>,
}

impl Diagnostics {
    /// All of them, in the order in which they were found. Their places are bytes of the script's text.
    pub fn as_slice(&self) -> &[Diagnostic] {
        &self.list
    }

    /// Why no tracepoint could be looked for, if some were asked for and tracefs could not be read: what the script names
    /// may be there, and this user may not see it.
    pub fn tracepoints_refused(&self) -> Option<&str> {
        self.tracepoints_refused.as_deref()
    }

    /// Why a file that the script names could not be looked into, if this user may not read one.
    pub fn file_refused(&self) -> Option<&str> {
        // Of several files, one that can't be read is no reason for an error: it has the reason in it then.
        let is_why = |why: &&str| self.list.iter().any(|it| it.is_error() && it.message.contains(why));
        self.file_refused.as_deref().filter(is_why)
    }

    /// One of them with the lines of the script that it is about; with colours of terminals if `coloured`.
    pub fn render(&self, diagnostic: &Diagnostic, coloured: bool) -> String {
        render(diagnostic, &Source::new(&self.name, &self.text), coloured)
    }
}

impl Display for Diagnostics {
    /// All of them, each with its lines of the script. Foreign text in them is escaped.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.list.iter().try_for_each(|diagnostic| f.write_str(&self.render(diagnostic, false)))
    }
}
