//! What the engine reports while it works.

use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::sync::Arc;

use bpf_session::SessionError;
use symbolize::Warning;
use text::printable;
use typeinfo::TypeError;

/// Takes what the engine reports while it works. All methods do nothing unless they are written.
pub trait Observer: Send + Sync {
    /// Something that does not keep a script from running.
    fn notice(&self, notice: &Notice) {
        let _ = notice;
    }

    /// A step was made of work that may take long: symbols are looked up, a map is read. For watchdogs.
    fn step(&self) {}
}

/// An observer that several rooms use.
pub(crate) type SharedObserver = Arc<dyn Observer>;

/// An observer that does nothing.
pub(crate) struct Nobody;

impl Observer for Nobody {}

/// Something to know that does not keep a script from running. Its text is one line, in which foreign names are escaped.
#[derive(Debug)]
#[non_exhaustive]
pub enum Notice {
    /// A probe was attached.
    Attached {
        /// Its full name, `uprobe:/bin/bash:readline`.
        probe: String,
    },
    /// A probe was not attached, and the script's settings allow to go on without it.
    NotAttached {
        /// Its full name.
        probe: String,
        /// Why.
        source: SessionError,
    },
    /// Of several processes, some have ended before probes were attached, and are left out.
    Ended {
        /// How many.
        count: usize,
    },
    /// A file's debug information can't be used.
    NoDebugInformation {
        /// The file, escaped.
        file: String,
        /// Why.
        source: TypeError,
    },
    /// Something is left out of symbols or stacks.
    Symbols(Warning),
}

impl Display for Notice {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attached { probe } => write!(f, "attached {probe}"),
            Self::NotAttached { probe, source } => {
                write!(f, "{probe}: {source}")?;
                let causes = std::iter::successors(std::error::Error::source(source), |cause| cause.source());
                causes.into_iter().try_for_each(|cause| write!(f, ": {cause}"))
            }
            Self::Ended { count: 1 } => f.write_str("1 process has ended meanwhile, and is left out"),
            Self::Ended { count } => write!(f, "{count} processes have ended meanwhile, and are left out"),
            Self::NoDebugInformation { file, source } => {
                write!(f, "{file}: debug information is left out: {source}")
            }
            Self::Symbols(warning) => warning.fmt(f),
        }
    }
}

/// A path or a name as it may be printed.
pub(crate) fn printable(path: impl AsRef<Path>) -> String {
    printable::text(path.as_ref().as_os_str().as_encoded_bytes()).into_owned()
}
