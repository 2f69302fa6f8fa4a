//! The request: what to list, and where.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use console::terminal;
use errors::usage;
use host::Files;
use process_selector::{ProcessCount, ProcessSelector, Role};
use text::patterns::{NamePattern, PatternError, ProbePattern, did_you_mean};
use text::printable::path as printable;

use super::ListArgs;

/// The resolved request.
pub(super) struct Request {
    pub(super) what: ListedKind,
    /// Process, file or kernel, for messages.
    pub(super) place: String,
    /// Pattern as typed; empty if there is none.
    pub(super) typed: String,
    /// File that was named.
    pub(super) path: Option<OsString>,
}

const ROLE: Role = Role {
    command: "list",
    takes: ProcessCount::OneProgram,
    starts: false,
};

/// Things to list.
pub(super) enum ListedKind {
    Probes(Files, Option<ProbePattern>),
    Functions(Files, Option<NamePattern>),
    Tracepoints(Option<ProbePattern>),
}

impl Request {
    pub(super) fn from_args(args: &ListArgs) -> anyhow::Result<Self> {
        let mut words = args.words.iter().map(OsString::as_os_str);
        let mut selector = args.process.selector();
        let mut path = if selector.is_empty() && !args.tracepoints {
            words.next()
        } else {
            None
        };
        let library = path.and_then(process_for).and_then(library_for);
        if let Some(library) = &library {
            path = Some(library.as_os_str());
        } else if let Some(word) = path.and_then(process_for) {
            if word.contains(['*', '?', ':']) && !process_selector::is_there(word) {
                return Err(nowhere(word));
            }
            let pid = ProcessSelector::new([word])
                .one(ROLE, &terminal::observer())
                .with_context(|| no_file(word))?;
            (path, selector) = (None, ProcessSelector::new([pid.to_string()]));
        }
        let typed = words.next().map(pattern_text).transpose()?;
        if let Some(more) = words.next() {
            return Err(usage(format!(
                "unexpected word {}: only one pattern is allowed",
                printable(Path::new(more))
            )));
        }
        let usage_error = |error: PatternError| usage(error.to_string());
        let probe_pattern = || {
            typed
                .map(ProbePattern::parse)
                .transpose()
                .map_err(usage_error)
        };
        let (what, place) = if args.tracepoints {
            (
                ListedKind::Tracepoints(probe_pattern()?),
                "the kernel".to_owned(),
            )
        } else if args.functions {
            let pattern = typed
                .map(NamePattern::parse)
                .transpose()
                .map_err(usage_error)?;
            let (files, place) = files(&selector, path)?;
            (ListedKind::Functions(files, pattern), place)
        } else {
            let pattern = probe_pattern()?;
            let (files, place) = files(&selector, path)?;
            (ListedKind::Probes(files, pattern), place)
        };
        let typed = typed.unwrap_or_default().to_owned();
        Ok(Self {
            what,
            place,
            typed,
            path: path.map(OsStr::to_owned),
        })
    }
}

fn pattern_text(word: &OsStr) -> anyhow::Result<&str> {
    word.to_str().ok_or_else(|| {
        usage(format!(
            "the pattern {} is not UTF-8",
            printable(Path::new(word))
        ))
    })
}

/// Returns the word if it can only be a process: no file here has that name.
fn process_for(word: &OsStr) -> Option<&str> {
    let name = word.to_str().filter(|name| !name.contains('/'))?;
    (!Path::new(word).exists()).then_some(name)
}

/// Returns the file of a library's name (`libc`), which scripts know, too: `uprobe:libc:malloc`.
fn library_for(word: &str) -> Option<PathBuf> {
    let library = host::library_cache::installed(word)?;
    (!process_selector::is_there(word)).then_some(library)
}

/// Returns the message that there is no file of this name, with near names of libraries.
fn no_file(word: &str) -> String {
    let near = did_you_mean(&host::library_cache::nearest(word, &[]));
    let near = near.map(|near| format!(" ({near})")).unwrap_or_default();
    format!("there is no file {word}{near}")
}

/// Returns the error for a pattern in place of a file or process.
fn nowhere(pattern: &str) -> anyhow::Error {
    usage(format!(
        "{pattern:?} is a pattern, but there is nothing to search: give -p PID, -p NAME or a PATH \
         before it"
    ))
}

fn files(selector: &ProcessSelector, path: Option<&OsStr>) -> anyhow::Result<(Files, String)> {
    match path.map(Path::new) {
        _ if !selector.is_empty() => {
            let pid = selector.one(ROLE, &terminal::observer())?;
            Ok(Files::from_process(pid)?)
        }
        Some(path) => Ok((Files::from_path(path), printable(path))),
        None => Err(usage(
            "nothing to list: give -p PID, -p NAME, a PATH, or --tracepoints",
        )),
    }
}
