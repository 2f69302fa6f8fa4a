//! `--stacks`: the stacks that a script prints, in a file of their own.

use std::cell::RefCell;

use bt_runtime::Table;
use console::stacks::StackFile;
use profiles::{Profile, ProfileFile, Unit};

/// Collector of the stacks in a script's output.
pub(super) struct StackCollector {
    file: StackFile,
    profile: RefCell<Profile>,
}

impl StackCollector {
    pub(super) fn create(file: &ProfileFile, script: &str) -> std::io::Result<Self> {
        Ok(Self {
            file: StackFile::create(file)?,
            profile: RefCell::new(Profile::new(script, Unit::Count)),
        })
    }

    /// Takes folded stacks out of a printed text, and returns the rest.
    pub(super) fn take_lines(&self, text: &str) -> String {
        let mut profile = self.profile.borrow_mut();
        let lines = text.split_inclusive('\n');
        lines
            .filter(|line| !profile.add_folded(line.trim_end_matches('\n')))
            .collect()
    }

    /// Takes the stacks of a printed map; returns false if it has none.
    pub(super) fn take_table(&self, table: &Table) -> bool {
        let stacks = table.stacks();
        for (frames, weight) in &stacks {
            let frames = frames.iter().map(String::as_str);
            self.profile.borrow_mut().add(frames, *weight);
        }
        !stacks.is_empty()
    }

    /// Writes the file.
    pub(super) fn finish(self) -> std::io::Result<()> {
        let profile = self.profile.into_inner();
        let what_to_do = "make ustack or kstack a part of a map's key";
        self.file.write(&profile, what_to_do)
    }
}
