//! Files that are published together.

use crate::{Access, MAX_HELD, MAX_LISTED, Target, WholeFile, failed, folder_of, sync_folder};
use anyhow::{Context as _, anyhow};
use std::io::{self, Write};
use std::path::Path;
use text::printable::path as printable;

/// Files that appear together: all of them are on the disk before the first one is put in its
/// place.
#[derive(Debug, Default)]
pub struct Batch {
    held: Vec<WholeFile>,
    /// Files beyond [`MAX_HELD`], which are closed and have hidden names.
    staged: Vec<Target>,
}

impl Batch {
    /// Adds a file to which nothing more is written.
    pub fn add(&mut self, file: WholeFile) -> io::Result<()> {
        if self.held.len() < MAX_HELD {
            self.held.push(file);
        } else {
            self.staged.extend(file.stage()?);
        }
        Ok(())
    }

    /// Adds a file with these bytes.
    pub fn add_whole(&mut self, path: &Path, access: Access, bytes: &[u8]) -> io::Result<()> {
        let mut file = WholeFile::create(path, access)?;
        file.write_all(bytes)
            .and_then(|()| self.add(file))
            .map_err(|error| failed(path, &error))
    }

    /// Adds the files of another batch.
    pub fn append(&mut self, other: Self) -> io::Result<()> {
        self.staged.extend(other.staged);
        other.held.into_iter().try_for_each(|file| self.add(file))
    }

    /// Puts all files in their places. The error says which old files were replaced if one can't
    /// be.
    pub fn commit(self) -> anyhow::Result<()> {
        let Self { held, mut staged } = self;
        for file in held {
            let path = file
                .target
                .as_ref()
                .map(|target| printable(&target.path))
                .unwrap_or_default();
            staged.extend(file.stage().with_context(|| format!("storing {path}"))?);
        }
        for at in 0..staged.len() {
            if let Err(error) = staged[at].publish() {
                let (done, path) = (already_there(&staged[..at]), printable(&staged[at].path));
                return Err(anyhow!(error).context(format!("putting {path} in its place; {done}")));
            }
        }
        let mut folders: Vec<&Path> = staged
            .iter()
            .map(|target| folder_of(&target.path))
            .collect();
        folders.sort_unstable();
        folders.dedup();
        for folder in folders {
            sync_folder(folder)
                .with_context(|| format!("storing the folder {}", printable(folder)))?;
        }
        Ok(())
    }
}

/// Returns which files of a batch that failed are in their places.
fn already_there(done: &[Target]) -> String {
    let names: Vec<String> = done
        .iter()
        .take(MAX_LISTED)
        .map(|target| printable(&target.path))
        .collect();
    let more = done.len() - names.len();
    match (names.is_empty(), more) {
        (true, _) => "no other file was written".to_owned(),
        (false, 0) => format!("already written: {}", names.join(", ")),
        (false, _) => format!("already written: {}, and {more} more", names.join(", ")),
    }
}
