//! What was asked to be listed.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use patterns::PatternError;
use patterns::{NamePattern, ProbePattern};

use super::ListArgs;
use crate::failure::usage;
use crate::target::{Files, printable};

/// The resolved request.
pub(super) struct Request {
    pub(super) what: What,
    /// The process, file or kernel, for messages.
    pub(super) place: String,
    /// The pattern as it was typed, or nothing.
    pub(super) typed: String,
    pub(super) json: bool,
    pub(super) places: bool,
}

/// What to list.
pub(super) enum What {
    Probes(Files, Option<ProbePattern>),
    Functions(Files, Option<NamePattern>),
    Tracepoints(Option<ProbePattern>),
}

impl Request {
    pub(super) fn of(args: &ListArgs) -> anyhow::Result<Self> {
        let mut words = args.words.iter().map(OsString::as_os_str);
        let path = if args.pid.is_some() || args.tracepoints { None } else { words.next() };
        let typed = words.next().map(pattern_text).transpose()?;
        if let Some(more) = words.next() {
            return Err(usage(format!("unexpected word {}: only one pattern is allowed", printable(Path::new(more)))));
        }
        let usage_error = |error: PatternError| usage(error.to_string());
        let probe_pattern = || typed.map(ProbePattern::parse).transpose().map_err(usage_error);
        let (what, place) = if args.tracepoints {
            (What::Tracepoints(probe_pattern()?), "the kernel".to_owned())
        } else if args.functions {
            let pattern = typed.map(NamePattern::parse).transpose().map_err(usage_error)?;
            let (files, place) = files(args.pid, path)?;
            (What::Functions(files, pattern), place)
        } else {
            let pattern = probe_pattern()?;
            let (files, place) = files(args.pid, path)?;
            (What::Probes(files, pattern), place)
        };
        let typed = typed.unwrap_or_default().to_owned();
        Ok(Self { what, place, typed, json: args.json, places: args.places })
    }
}

fn pattern_text(word: &OsStr) -> anyhow::Result<&str> {
    word.to_str().ok_or_else(|| usage(format!("the pattern {} is not UTF-8", printable(Path::new(word)))))
}

fn files(pid: Option<u32>, path: Option<&OsStr>) -> anyhow::Result<(Files, String)> {
    match (pid, path.map(Path::new)) {
        (Some(pid), _) => Files::of_process(pid),
        (None, Some(path)) => Ok((Files::of_path(path), printable(path))),
        (None, None) => Err(usage("nothing to list: give -p PID, a PATH, or --tracepoints")),
    }
}
