//! Warnings about omissions.

use std::collections::HashSet;
use std::fmt::{self, Display, Formatter};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use text::printable;
use typeinfo::{FrameFault, TypeError};

/// Receiver of warnings.
pub type Warn = Arc<dyn Fn(&Warning) + Send + Sync>;

/// Returns a receiver that ignores warnings.
pub fn ignore() -> Warn {
    Arc::new(|_| {})
}

/// Returns a receiver that passes on each text once, for all its copies together.
pub fn once(warn: Warn) -> Warn {
    let given: Mutex<HashSet<String>> = Mutex::default();
    Arc::new(move |warning| {
        if given
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(warning.to_string())
        {
            warn(warning);
        }
    })
}

/// Something that is left out of names or of stacks. Its text is one line, in which names of files
/// are escaped.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Warning {
    /// A file's debug information is not searched, since that would cost too much.
    NoLines {
        /// The file, escaped.
        file: String,
        /// Reason.
        source: TypeError,
    },
    /// A process runs code that it made at run time, and the names of that can't be read.
    NoJitNames {
        /// The process.
        pid: u32,
        /// The file that would have the names, escaped.
        file: String,
        /// Reason why it can't be read; `None` if there is no such file.
        reason: Option<String>,
    },
    /// Stacks are not walked any more: walking them has taken this long in all.
    WalkedTooLong(Duration),
    /// A file's unwind table takes too long to follow.
    CostlyTable {
        /// The file, escaped.
        file: String,
    },
    /// An entry of a file's unwind table is not followed.
    Entry {
        /// The file, escaped.
        file: String,
        /// Reason.
        source: FrameFault,
    },
    /// A file's unwind table is not used.
    Table {
        /// The file, escaped.
        file: String,
        /// Reason.
        source: FrameFault,
    },
    /// A file's unwind table is not used: too many bytes are kept already.
    NoRoom {
        /// The file, escaped.
        file: String,
        /// Number of bytes that it would take.
        bytes: usize,
    },
    /// The process has more places of code than this limit.
    ManyPlaces(usize),
}

impl Display for Warning {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLines { file, source } => {
                write!(f, "{file}: functions are shown without lines: {source}")
            }
            Self::NoJitNames {
                pid,
                file,
                reason: None,
            } => write!(
                f,
                "process {pid} runs code that it generated at run time (JIT), and there is no \
                 {file} with its names: its functions are shown as addresses (node \
                 --perf-basic-prof and python -X perf write this file, for Java: jcmd {pid} \
                 Compiler.perfmap)"
            ),
            Self::NoJitNames {
                pid,
                file,
                reason: Some(reason),
            } => write!(
                f,
                "process {pid} runs code that it generated at run time (JIT), and {file} with its \
                 names is not read: {reason}: its functions are shown as addresses"
            ),
            Self::WalkedTooLong(time) => {
                write!(
                    f,
                    "walking stacks took {} s: the remaining frames are left out",
                    time.as_secs()
                )
            }
            Self::CostlyTable { file } => {
                write!(
                    f,
                    "{file}: its unwind table takes too long to follow: stacks end there"
                )
            }
            Self::Entry { file, source } => write!(f, "{file}: {source}: stacks end there"),
            Self::Table { file, source } => write!(
                f,
                "{file}: {source}: stacks are walked by frame pointers there"
            ),
            Self::NoRoom { file, bytes } => write!(
                f,
                "{file}: there is no room for its unwind table ({bytes} bytes): stacks are walked \
                 by frame pointers there"
            ),
            Self::ManyPlaces(most) => write!(
                f,
                "the process has more than {most} code mappings: in the others, stacks are walked \
                 by frame pointers"
            ),
        }
    }
}

/// Returns a file's name as it may be printed.
pub(crate) fn printable(path: &Path) -> String {
    printable::path(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_given_once_whoever_has_a_copy() {
        let given: Arc<Mutex<Vec<String>>> = Arc::default();
        let into = Arc::clone(&given);
        let warn: Warn = Arc::new(move |warning| into.lock().unwrap().push(warning.to_string()));
        let warn = once(warn);
        for (warn, places) in [(&warn, 1), (&Arc::clone(&warn), 1), (&warn, 2)] {
            warn(&Warning::ManyPlaces(places));
        }
        let texts = [1, 2].map(|places| Warning::ManyPlaces(places).to_string());
        assert_eq!(*given.lock().unwrap(), texts);
    }
}
