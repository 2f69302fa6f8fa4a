//! Folder with the captures of a watch: the newest remain, up to the limits, and nothing else is
//! touched.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use ordering::Order as _;
use text::printable::path as printable;
use trace_source::captures::{KERNEL, META, OBJECTS, RINGS, is_slow_name};

/// Files of a capture, and the one that is renamed to `meta.json`.
const FILES: [&str; 5] = [RINGS, KERNEL, OBJECTS, "meta.json.new", META];
/// Suffix after the name while a capture is being written.
const PARTIAL: &str = ".partial";

/// Folder of the captures.
#[derive(Debug)]
pub(crate) struct CaptureStore {
    dir: PathBuf,
    keep: usize,
    max_bytes: u64,
}

/// Capture on the shelf.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StoredCapture {
    name: String,
    bytes: u64,
}

impl CaptureStore {
    /// Opens the folder; creates it if it is missing, and then returns it, too.
    pub(crate) fn open(
        dir: &Path,
        keep: usize,
        max_bytes: u64,
    ) -> anyhow::Result<(Self, Option<File>)> {
        let created = match DirBuilder::new().mode(0o700).create(dir) {
            Ok(()) => File::open(dir).ok(),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => None,
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("creating the folder {}", printable(dir)));
            }
        };
        if !dir.is_dir() {
            bail!("{} is no folder: give another one with -o", printable(dir));
        }
        let store = Self {
            dir: dir.to_owned(),
            keep: keep.max(1),
            max_bytes,
        };
        Ok((store, created))
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Removes unfinished captures of an earlier run of this watch that was killed.
    pub(crate) fn clear_unfinished(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else { continue };
            let is_ours = name
                .strip_prefix('.')
                .and_then(|name| name.strip_suffix(PARTIAL))
                .is_some_and(is_slow_name);
            if is_ours && self.is_old(name) {
                self.remove(name)?;
            }
        }
        Ok(())
    }

    /// Returns true if the folder is so old that nobody writes it any more.
    fn is_old(&self, name: &str) -> bool {
        const OLD_SECONDS: i64 = 600;
        let now = i64::try_from(sys::clock::real_nanos() / 1_000_000_000).unwrap_or(i64::MAX);
        fs::symlink_metadata(self.dir.join(name))
            .is_ok_and(|found| found.is_dir() && found.mtime() < now - OLD_SECONDS)
    }

    /// Returns the path where a capture is written, and its path when it is complete.
    pub(crate) fn places(&self, name: &str) -> (PathBuf, PathBuf) {
        (
            self.dir.join(format!(".{name}{PARTIAL}")),
            self.dir.join(name),
        )
    }

    /// Removes the oldest captures until there is room for one more of that number of bytes.
    /// Returns false if it is larger than the limit.
    pub(crate) fn make_room(&self, bytes: u64) -> io::Result<bool> {
        if bytes > self.max_bytes {
            return Ok(false);
        }
        let mut kept = self.kept()?;
        kept.order();
        let mut sum: u64 = kept.iter().map(|kept| kept.bytes).sum();
        let mut count = kept.len();
        for StoredCapture { name, bytes: its } in kept {
            if count < self.keep && sum.saturating_add(bytes) <= self.max_bytes {
                break;
            }
            self.remove(&name)?;
            (count, sum) = (count - 1, sum - its);
        }
        Ok(true)
    }

    /// Returns the captures: real folders of ours whose names are exactly as we make them.
    fn kept(&self) -> io::Result<Vec<StoredCapture>> {
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| is_slow_name(name)) else {
                continue;
            };
            // This follows no link.
            let Ok(found) = entry.metadata() else {
                continue;
            };
            if found.is_dir() && found.uid() == sys::process::effective_user() {
                let size = |file| {
                    fs::symlink_metadata(entry.path().join(file)).map_or(0, |found| found.len())
                };
                kept.push(StoredCapture {
                    name: name.to_owned(),
                    bytes: FILES.map(size).iter().sum(),
                });
            }
        }
        Ok(kept)
    }

    /// Removes a capture: its known files, then the folder. If there is anything else in it, that
    /// remains.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        let dir = self.dir.join(name);
        if !fs::symlink_metadata(&dir)?.is_dir() {
            return Ok(());
        }
        for file in FILES {
            match fs::remove_file(dir.join(file)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        match fs::remove_dir(&dir) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
            done => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace_source::captures::slow_name;

    /// Returns the name at 2026-11-23, 03:12:44 UTC, plus `ms` milliseconds.
    fn at(ms: u64) -> String {
        slow_name((1_795_403_564_000 + ms) * 1_000_000, 4711)
    }

    fn put(shelf: &CaptureStore, name: &str, bytes: usize) {
        fs::create_dir(shelf.dir.join(name)).unwrap();
        fs::write(shelf.dir.join(name).join(RINGS), vec![0; bytes]).unwrap();
        fs::write(shelf.dir.join(name).join(META), "{}").unwrap();
    }

    fn there(shelf: &CaptureStore) -> Vec<String> {
        let mut all: Vec<_> = fs::read_dir(&shelf.dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        all.order();
        all
    }

    #[test]
    fn the_newest_remain_and_nothing_else_is_touched() {
        let temp = tempfile::tempdir().unwrap();
        let (shelf, _) = CaptureStore::open(&temp.path().join("shelf"), 3, 1_000).unwrap();
        (0..5).for_each(|ms| put(&shelf, &at(ms), 100));
        // Foreign entries: a file and a link with such names, another folder, and a capture with
        // somebody's file in it.
        fs::write(shelf.dir.join(at(10)), "a file").unwrap();
        put(&shelf, "slow-mine.capture", 100);
        std::os::unix::fs::symlink(temp.path(), shelf.dir.join(at(11))).unwrap();
        fs::write(shelf.dir.join(at(0)).join("notes.txt"), "mine").unwrap();
        assert!(shelf.make_room(100).unwrap());
        assert!(
            shelf.dir.join(at(0)).join("notes.txt").exists()
                && !shelf.dir.join(at(0)).join(META).exists()
        );
        assert_eq!(
            there(&shelf),
            [
                at(0),
                at(3),
                at(4),
                at(10),
                at(11),
                "slow-mine.capture".to_owned()
            ]
        );
        assert!(temp.path().exists() && shelf.dir.join("slow-mine.capture").join(META).exists());
        // By bytes: beside 900 there is room for none.
        let (shelf, _) = CaptureStore::open(&shelf.dir, 100, 1_000).unwrap();
        assert!(shelf.make_room(900).unwrap() && !shelf.make_room(1_001).unwrap());
        assert!(!shelf.dir.join(at(3)).exists() && !shelf.dir.join(at(4)).exists());
    }

    #[test]
    fn old_unfinished_captures_are_removed() {
        let temp = tempfile::tempdir().unwrap();
        let (shelf, _) = CaptureStore::open(temp.path(), 3, 1_000).unwrap();
        let (old, new) = (
            format!(".{}{PARTIAL}", at(0)),
            format!(".{}{PARTIAL}", at(1)),
        );
        put(&shelf, &old, 10);
        put(&shelf, &new, 10);
        let long_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(1);
        fs::File::open(shelf.dir.join(&old))
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
        shelf.clear_unfinished().unwrap();
        assert_eq!(there(&shelf), [new]);
        assert!(CaptureStore::open(&temp.path().join("a/b"), 3, 1_000).is_err());
    }
}
