//! Files of this host, within the limit on their bytes.
//!
//! Only files with the names that this program gives are ever removed:
//! `TABLE/date=D/hour=H/host=HOST/serve-TIME-NUMBER.parquet`, in the folder that belongs to their
//! time. Other files in the folders are left alone.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use export::part::PartialFile;
use tables::{Table, escaped, hour_of, partition};
use text::printable::path as printable;
use text::utc;
use whole_file::{Access, UNFINISHED};

use super::{Place, WRITTEN};

/// Rows of a group: few, since memory is dear here.
const GROUP_ROWS: usize = 1 << 13;
/// Prefix of the names of our files.
const OURS: &str = "serve-";
/// Limit on the files of one table with the same time, which come from a clock that was set back,
/// or from a new start in the same minute.
const MAX_FILE_NUMBER: u16 = 9_999;

/// File: begin of its minute in nanoseconds since 1970, its number, and the place of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    minute: i64,
    number: u16,
    table: u8,
}

/// Folder with the files.
pub(crate) struct TableStore {
    dir: PathBuf,
    host: String,
    keep_bytes: u64,
    /// Bytes of each file, the oldest first.
    files: BTreeMap<Id, u64>,
    bytes: u64,
    /// Folder's descriptor, which holds its lock.
    lock: File,
}

impl Id {
    fn table(self) -> &'static Table {
        WRITTEN[usize::from(self.table) % WRITTEN.len()]
    }

    /// Returns its name without the extension.
    fn name(self) -> String {
        format!(
            "{OURS}{}-{:03}",
            utc::moment(self.minute.into()).strftime("%Y%m%dT%H%M%SZ"),
            self.number
        )
    }

    /// Parses a file's name; `None` if it is not one of ours.
    fn parse(name: &str, table: u8) -> Option<Self> {
        let (time, number) = name
            .strip_prefix(OURS)?
            .strip_suffix(".parquet")?
            .split_once('-')?;
        let minute = time_of(time)?;
        let id = Self {
            minute,
            number: number.parse().ok()?,
            table,
        };
        (format!("{}.parquet", id.name()) == name).then_some(id)
    }
}

/// Returns the nanoseconds since 1970 of a time such as `20261123T063200Z`.
fn time_of(text: &str) -> Option<i64> {
    let part = |range| text.get(range);
    let (date, time) = (
        [part(0..4)?, part(4..6)?, part(6..8)?],
        [part(9..11)?, part(11..13)?, part(13..text.len())?],
    );
    utc::read(&format!("{}T{}", date.join("-"), time.join(":"))).ok()
}

impl TableStore {
    /// Finds the files of earlier runs. Creates the folder if it is missing.
    pub(crate) fn open(place: &Place) -> anyhow::Result<Self> {
        let Place {
            dir,
            host,
            keep_bytes,
        } = place.clone();
        fs::create_dir_all(&dir)
            .with_context(|| format!("creating the folder {}", printable(&dir)))?;
        let lock =
            File::open(&dir).with_context(|| format!("opening the folder {}", printable(&dir)))?;
        // File systems without locks have no other holder of one.
        if matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) {
            anyhow::bail!(
                "another dptrace serve writes to {}: give each its own folder",
                printable(&dir)
            );
        }
        let mut shelf = Self {
            dir,
            host,
            keep_bytes,
            files: BTreeMap::new(),
            bytes: 0,
            lock,
        };
        shelf.find();
        shelf.tidy_up();
        Ok(shelf)
    }

    /// Finds our files, and removes unfinished ones.
    fn find(&mut self) {
        for (table, at) in WRITTEN.into_iter().zip(0..) {
            for hour in entries(&self.dir.join(table.name))
                .iter()
                .flat_map(|date| entries(date))
            {
                let host = hour.join(format!("host={}", escaped(&self.host)));
                for path in entries(&host) {
                    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                        continue;
                    };
                    if name
                        .strip_prefix('.')
                        .is_some_and(|name| name.starts_with(OURS) && name.ends_with(UNFINISHED))
                    {
                        let _ = fs::remove_file(&path);
                    }
                    let Some(id) = Id::parse(name, at).filter(|id| self.path(*id) == path) else {
                        continue;
                    };
                    let bytes = path.symlink_metadata().map_or(0, |about| about.len());
                    self.files.insert(id, bytes);
                    self.bytes += bytes;
                }
            }
        }
    }

    fn folder(&self, id: Id) -> PathBuf {
        self.dir
            .join(partition(id.table().name, hour_of(id.minute), &self.host))
    }

    fn path(&self, id: Id) -> PathBuf {
        self.folder(id).join(format!("{}.parquet", id.name()))
    }

    /// Writes a file of the table at that place.
    pub(crate) fn write(
        &mut self,
        table: usize,
        minute: i64,
        rows: impl FnOnce(&mut PartialFile) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let of = |number| Id {
            minute,
            number,
            table: table as u8,
        };
        let is_free = |id: &Id| !self.files.contains_key(id) && !self.path(*id).exists();
        let id = (1..=MAX_FILE_NUMBER)
            .map(of)
            .find(is_free)
            .context("the clock shows this minute again and again")?;
        let mut part =
            PartialFile::create(&self.folder(id), &id.name(), id.table(), Access::Umask)?
                .with_group_rows(GROUP_ROWS);
        rows(&mut part)?;
        let (file, bytes) = part.finish()?;
        file.commit()
            .map_err(|error| whole_file::failed(&self.path(id), &error))?;
        self.files.insert(id, bytes);
        self.bytes += bytes;
        Ok(())
    }

    /// Removes the oldest files until the rest is within the limit; returns the last problem with
    /// that, if any.
    pub(crate) fn tidy_up(&mut self) -> Option<String> {
        let mut problem = None;
        while self.bytes > self.keep_bytes {
            let Some((id, bytes)) = self.files.pop_first() else {
                break;
            };
            self.bytes -= bytes;
            let path = self.path(id);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    problem = Some(format!("removing {}: {error}", printable(&path)));
                }
                _ => self.remove_empty(&path),
            }
        }
        problem
    }

    /// Removes the folders of a file as far as they are empty.
    fn remove_empty(&self, path: &Path) {
        // The folders of the host, the hour and the date; the table's stays.
        for folder in path
            .ancestors()
            .skip(1)
            .take(3)
            .take_while(|folder| **folder != *self.dir)
        {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }
}

impl Drop for TableStore {
    /// Unlocks the folder. Closing it would not do: a child that was forked and has not yet called
    /// `exec` has a copy of the descriptor, and the lock with it (flock(2)).
    fn drop(&mut self) {
        // SANITY: an error means that it was not locked, on a file system without locks.
        let _ = self.lock.unlock();
    }
}

/// Returns the entries of a folder; empty if it can't be read.
fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tables::rows::ThreadBudget;

    use super::*;

    const MINUTE: i64 = 60_000_000_000;

    fn write(shelf: &mut TableStore, minute: i64) {
        let row = ThreadBudget {
            hostname: "h",
            ..ThreadBudget::default()
        };
        shelf
            .write(1, minute * MINUTE, |part| part.row(&row))
            .unwrap();
    }

    fn count(dir: &Path) -> usize {
        let of = |path: &PathBuf| if path.is_dir() { count(path) } else { 1 };
        entries(dir).iter().map(of).sum()
    }

    /// Files of others, and one of ours in a wrong place.
    const OTHERS: [&str; 4] = [
        "serve-19700101T001000Z-1.parquet",
        "serve-19700101T091000Z-001.parquet",
        "x.parquet",
        ".x.unfinished",
    ];

    /// Writes [`OTHERS`], and an unfinished file of ours.
    fn write_others(folder: &Path) {
        for name in OTHERS {
            fs::write(folder.join(name), "theirs").unwrap();
        }
        fs::write(
            folder.join(".serve-19700101T001000Z-004.unfinished"),
            "ours",
        )
        .unwrap();
    }

    #[test]
    fn the_oldest_files_go_and_only_our_own() {
        let temp = tempfile::tempdir().unwrap();
        let place = Place {
            dir: temp.path().to_owned(),
            host: "a/b".into(),
            keep_bytes: u64::MAX,
        };
        let mut shelf = TableStore::open(&place).unwrap();
        assert!(
            TableStore::open(&place)
                .is_err_and(|error| error.to_string().contains("another dptrace serve"))
        );
        // Minute 10 twice, as after a clock that was set back.
        for minute in [10, 11, 10, 70, 71, 72] {
            write(&mut shelf, minute);
        }
        let (all, each) = (shelf.bytes, shelf.bytes / 6);
        let folder = temp
            .path()
            .join("thread_budgets/date=1970-01-01/hour=00/host=a%2Fb");
        assert_eq!(count(&folder), 3);
        assert!(folder.join("serve-19700101T001000Z-002.parquet").exists());
        write_others(&folder);
        drop(shelf);
        let mut shelf = TableStore::open(&Place {
            keep_bytes: 4 * each + 3,
            ..place.clone()
        })
        .unwrap();
        assert_eq!((shelf.files.len(), shelf.bytes), (4, all - 2 * each));
        assert_eq!(count(&folder), 1 + OTHERS.len());
        write(&mut shelf, 73);
        assert_eq!(shelf.tidy_up(), None);
        assert_eq!(count(&folder), OTHERS.len());
        drop(shelf);
        // All files are removed, and so are the folders that are empty then.
        assert_eq!(
            TableStore::open(&Place {
                keep_bytes: 0,
                ..place
            })
            .unwrap()
            .files
            .len(),
            0
        );
        assert!(
            folder.exists()
                && !temp
                    .path()
                    .join("thread_budgets/date=1970-01-01/hour=01")
                    .exists()
        );
    }
}
