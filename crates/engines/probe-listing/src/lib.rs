//! Lists places to attach to: functions and USDT probes of files, tracepoints of the kernel.
#![forbid(unsafe_code)]

mod functions;
mod probes;
mod tracepoints;

use anyhow::anyhow;
use host::{Depth, ElfFile, Files};
use observer::Observer;
use text::patterns;

/// A search for places, with what its messages and its output need.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    /// Process, file or kernel that is searched, for messages.
    pub place: &'a str,
    /// Pattern as typed; empty if there is none.
    pub typed: &'a str,
    /// Form of the output.
    pub form: Form,
    /// Receives notes about what is left out.
    pub observer: &'a Observer,
}

/// Form of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A line for each name.
    Text,
    /// A line for each place of a USDT probe, too.
    TextWithPlaces,
    /// A JSON object on each line, with all details.
    Json,
}

/// Limit on the number of near names in an error.
const MAX_NEAR_NAMES: usize = 4;

impl Search<'_> {
    /// Reads the files one after the other; libraries that can't be read are left out.
    fn each_file(
        &self,
        files: &Files,
        depth: Depth,
        look: impl FnMut(&ElfFile) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        files.for_each(depth, |error| self.observer.note_left_out(error), look)
    }

    /// Ends a listing in which nothing was shown: with an error if there is a pattern, or else with
    /// a note.
    fn nothing_shown(
        &self,
        files: &Files,
        has_pattern: bool,
        no_match: impl FnOnce() -> anyhow::Result<anyhow::Error>,
        note: &str,
    ) -> anyhow::Result<()> {
        if has_pattern {
            return Err(match self.library_meant(files) {
                Some(error) => error,
                None => no_match()?,
            });
        }
        self.observer.note(note);
        Ok(())
    }

    /// Returns the error that no name matches the pattern, with more about the place, and near names
    /// or the number of known ones.
    fn no_match(
        &self,
        what: &str,
        near: &[impl AsRef<str>],
        known: usize,
        more: &str,
    ) -> anyhow::Error {
        let hint = match (near, known) {
            ([], 0) => format!("; it has none{more}"),
            ([], 1) => format!("; it has one: list it without a pattern{more}"),
            ([], known) => format!("; it has {known}: list them without a pattern{more}"),
            (near, _) => format!("{more}{}", patterns::did_you_mean_at_end(near)),
        };
        anyhow!("no {what} of {} matches {:?}{hint}", self.place, self.typed)
    }

    /// Returns the same error for names in groups, `PROVIDER:NAME`.
    fn no_match_in_groups(
        &self,
        what: &str,
        known: &[(String, String)],
        more: &str,
    ) -> anyhow::Error {
        let (group, name) = match self.typed.split_once(':') {
            Some((group, name)) => (Some(group), name),
            None => (None, self.typed),
        };
        let names = known
            .iter()
            .map(|(group, name)| (group.as_str(), name.as_str()));
        let near = patterns::nearest_in_groups(group, name, names, MAX_NEAR_NAMES);
        self.no_match(what, &near, known.len(), more)
    }

    /// Returns the error for the name of a library in place of a pattern, if it is one of these
    /// files.
    fn library_meant(&self, files: &Files) -> Option<anyhow::Error> {
        files.has_library(self.typed).then(|| {
            let (library, place) = (text::shell::word(self.typed), self.place);
            anyhow!(
                "{library} is a library of {place}; to list its functions: dptrace list {library} \
                 --functions; to count its calls: dptrace run libcalls {library} -p PID"
            )
        })
    }
}
