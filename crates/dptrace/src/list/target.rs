//! What was asked to be listed.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use host::{ElfFile, FilePlace, HostError, Pid, Process};
use probes::ProbesError;
use probes::pattern::{NamePattern, ProbePattern};

use super::ListArgs;
use crate::failure::{note, usage};

/// What was asked, understood.
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

/// The files to look into.
pub(super) struct Files {
    /// The one that must be readable.
    first: FilePlace,
    libraries: Vec<FilePlace>,
}

impl Request {
    pub(super) fn of(args: &ListArgs) -> anyhow::Result<Self> {
        let mut words = args.words.iter().map(OsString::as_os_str);
        let path = if args.pid.is_some() || args.tracepoints { None } else { words.next() };
        let typed = words.next().map(pattern_text).transpose()?;
        if let Some(more) = words.next() {
            return Err(usage(format!("one word too many, {}: there is one pattern", printable(Path::new(more)))));
        }
        let understood = |error: ProbesError| usage(error.to_string());
        let probe_pattern = || typed.map(ProbePattern::parse).transpose().map_err(understood);
        let (what, place) = if args.tracepoints {
            (What::Tracepoints(probe_pattern()?), "the kernel".to_owned())
        } else if args.functions {
            let pattern = typed.map(NamePattern::parse).transpose().map_err(understood)?;
            let (files, place) = Files::of(args.pid, path)?;
            (What::Functions(files, pattern), place)
        } else {
            let pattern = probe_pattern()?;
            let (files, place) = Files::of(args.pid, path)?;
            (What::Probes(files, pattern), place)
        };
        let typed = typed.unwrap_or_default().to_owned();
        Ok(Self { what, place, typed, json: args.json, places: args.places })
    }
}

fn pattern_text(word: &OsStr) -> anyhow::Result<&str> {
    word.to_str().ok_or_else(|| usage(format!("the pattern {} is not UTF-8, as names are", printable(Path::new(word)))))
}

impl Files {
    fn of(pid: Option<u32>, path: Option<&OsStr>) -> anyhow::Result<(Self, String)> {
        if let Some(pid) = pid {
            let process = Process::open(Pid(pid))?;
            let first = process.program();
            let place = format!("pid {pid} ({})", printable(first.path()));
            return Ok((Self { first, libraries: process.libraries() }, place));
        }
        let Some(path) = path.map(Path::new) else {
            return Err(usage("what to look into is missing: -p PID, a PATH, or --tracepoints"));
        };
        Ok((Self { first: FilePlace::at(path), libraries: Vec::new() }, printable(path)))
    }

    /// Reads the files one after the other, so that no two are in memory at once. What can't be read of the first is an
    /// error; a library that can't be read is told.
    pub(super) fn for_each(&self, mut look: impl FnMut(&ElfFile) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let first = self.first.load()?;
        first.image()?;
        look(&first)?;
        drop(first);
        for place in &self.libraries {
            match place.load().and_then(|file| file.image().map(|_| ()).map(|()| file)) {
                Ok(file) => look(&file)?,
                // Programs may map anything as code, a just-in-time compiler's cache for instance.
                Err(HostError::Elf { source: ProbesError::NotElf { .. }, .. } | HostError::NotAFile { .. }) => {}
                Err(error) => note(&format!("left out: {:#}", anyhow::Error::new(error))),
            }
        }
        Ok(())
    }
}

/// A path as it may be printed.
pub(super) fn printable(path: &Path) -> String {
    spdk_trace::printable(path.as_os_str().as_encoded_bytes()).into_owned()
}
