//! Reports of the engine while it works.

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::sync::Arc;

use bpf_session::SessionError;
use symbolize::Warning;
use text::printable;
use typeinfo::TypeError;

/// Receiver of reports while the engine works. All methods do nothing by default.
pub trait Observer: Send + Sync {
    /// Takes a notice, which does not keep a script from running.
    fn notice(&self, notice: &Notice) {
        let _ = notice;
    }

    /// Takes note of a step in work that may take long: a look-up of symbols, the read of a map.
    /// For watchdogs.
    fn step(&self) {}
}

/// An observer that several modules use.
pub(crate) type SharedObserver = Arc<dyn Observer>;

/// An observer that does nothing.
pub(crate) struct NullObserver;

impl Observer for NullObserver {}

/// A notice that does not keep a script from running. Its text is one line, in which foreign names
/// are escaped.
#[derive(Debug)]
#[non_exhaustive]
pub enum Notice {
    /// A probe was attached.
    Attached {
        /// Full name of the probe, `uprobe:/bin/bash:readline`.
        probe: String,
    },
    /// A probe was not attached, and the script's settings allow to go on without it.
    NotAttached {
        /// Full name of the probe.
        probe: String,
        /// Cause.
        source: SessionError,
    },
    /// Some of several processes have ended before probes were attached, and are left out.
    Ended {
        /// Number of these processes.
        count: usize,
    },
    /// None of the processes has mapped a file that the script has user probes in. It may do so
    /// later.
    NotLoaded {
        /// The processes as the subject of a sentence, `process 7 (cat) has not`, escaped.
        processes: String,
        /// Names of the files, escaped.
        files: String,
        /// Number of processes that they have started, which are not traced, that have mapped one.
        children: usize,
    },
    /// A file's debug information can't be used.
    NoDebugInformation {
        /// The file, escaped.
        file: String,
        /// Reason.
        source: TypeError,
    },
    /// An omission from symbols or stacks.
    Symbols(Warning),
}

impl Display for Notice {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attached { probe } => write!(f, "attached {probe}"),
            Self::NotAttached { probe, source } => {
                write!(f, "{probe}: {source}")?;
                let causes = std::iter::successors(std::error::Error::source(source), |cause| {
                    cause.source()
                });
                causes
                    .into_iter()
                    .try_for_each(|cause| write!(f, ": {cause}"))
            }
            Self::Ended { count: 1 } => {
                f.write_str("1 process has ended meanwhile, and is left out")
            }
            Self::Ended { count } => write!(
                f,
                "{count} processes have ended meanwhile, and are left out"
            ),
            Self::NotLoaded {
                processes,
                files,
                children,
            } => {
                write!(f, "{processes} loaded {files} (yet)")?;
                match children {
                    0 => Ok(()),
                    1 => f.write_str(", but 1 child has: --children includes it"),
                    more => write!(f, ", but {more} children have: --children includes them"),
                }
            }
            Self::NoDebugInformation { file, source } => {
                write!(f, "{file}: debug information is left out: {source}")
            }
            Self::Symbols(warning) => warning.fmt(f),
        }
    }
}

/// Returns a path or a name as it may be printed.
pub(crate) fn printable(path: impl AsRef<Path>) -> String {
    printable::text(path.as_ref().as_os_str().as_encoded_bytes()).into_owned()
}
