//! [`LiveTrace`]: a ring on disk that grows while it is being read.
//!
//! SPDK maps the file and stores into it. Here the same bytes go through positioned writes in the
//! same order, so a reader (which copies the file or maps it) encounters the same half-written
//! states.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::builder::TraceBuilder;
use crate::era::SLOT_SIZE;
use crate::image::{Image, SlotRange};
use crate::record::Record;
use crate::trace_file::TraceFile;

/// A trace file that is being recorded into.
#[derive(Debug)]
pub struct LiveTrace {
    path: PathBuf,
    file: File,
    image: Image,
}

/// Creates a file. An existing one is truncated; it must be the user's own and have no other name.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    match options.clone().create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        done => return done,
    }
    let file = options.open(path)?;
    let known = file.metadata()?;
    if !known.is_file() || known.nlink() != 1 || known.uid() != rustix::process::geteuid().as_raw()
    {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "it already exists, and does not belong to this user alone",
        ));
    }
    file.set_len(0)?;
    Ok(file)
}

impl LiveTrace {
    /// Creates the file, or takes over one of the same user, with all that `trace` declares and has
    /// recorded. Only its lcores can record afterwards.
    ///
    /// Anyone can put links into a folder such as `/dev/shm`: none is followed, and only the user
    /// can read the file.
    pub fn create(path: impl AsRef<Path>, trace: &TraceBuilder) -> io::Result<Self> {
        let path = path.as_ref().to_owned();
        let mut image = trace.empty_image();
        trace.replay(&mut image, |_, _| ());
        let file = create(&path)?;
        if let Err(error) = file.write_all_at(&image.file.bytes, 0) {
            // SANITY: a partial file is useless; if it can't be removed, the error still reports
            // that it is incomplete.
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
        Ok(Self { path, file, image })
    }

    /// Returns the file, for a caller that maps it.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns another writer into the same file, for another thread. As in SPDK, each may record
    /// on lcores and register owners that no other writer does.
    pub fn another(&self) -> io::Result<Self> {
        Ok(Self {
            path: self.path.clone(),
            file: self.file.try_clone()?,
            image: self.image.clone(),
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the current contents of the file, with its layout.
    pub fn snapshot(&self) -> &TraceFile {
        &self.image.file
    }

    /// Records on this lcore: the count, the slots in order, and last `next_entry`.
    ///
    /// # Panics
    /// If the tracepoint was not declared, the arguments don't match its declaration, or the lcore
    /// has no history.
    pub fn record(&mut self, lcore: u32, record: &Record) -> io::Result<SlotRange> {
        let written = self.image.record(lcore, record);
        self.write_slots(lcore, record, written, usize::MAX)?;
        let at = self.image.file.layout.next_entry(lcore);
        self.write_back(at, 8)?;
        Ok(written)
    }

    /// Stops within a record: its first `slots` slots are written, `next_entry` is not.
    ///
    /// # Panics
    /// As [`LiveTrace::record`].
    pub fn torn(&mut self, lcore: u32, record: &Record, slots: usize) -> io::Result<SlotRange> {
        let written = self.image.record_part(lcore, record, slots);
        self.write_slots(lcore, record, written, slots)?;
        Ok(written)
    }

    /// Registers an owner, or reuses its id for another.
    ///
    /// # Panics
    /// If the file has no such owner.
    pub fn owner(
        &mut self,
        id: u16,
        owner_type: u8,
        tsc: u64,
        description: &str,
    ) -> io::Result<()> {
        self.image.owner(id, owner_type, tsc, description);
        let layout = &self.image.file.layout;
        let (at, size) = (layout.owner(id), layout.owner_size());
        self.write_back(at, size)
    }

    /// Clears the trace as `trace_clear` does (era F): older records stay, and must not be shown.
    ///
    /// # Panics
    /// If the era has no such field.
    pub fn clear(&mut self, tsc: u64) -> io::Result<()> {
        let at = self.image.file.layout.header.clear_tsc;
        assert!(
            at.is_some(),
            "era {:?} can't be cleared",
            self.image.file.layout.era
        );
        let at = at.unwrap_or_default();
        self.image.file.set_u64(at, tsc);
        self.write_back(at, 8)
    }

    fn write_slots(
        &self,
        lcore: u32,
        record: &Record,
        written: SlotRange,
        limit: usize,
    ) -> io::Result<()> {
        let layout = &self.image.file.layout;
        self.write_back(layout.tpoint_counter(lcore, record.tpoint), 8)?;
        for slot in 0..written.slots.min(limit) {
            self.write_back(layout.slot(lcore, written.first + slot as u64), SLOT_SIZE)?;
        }
        Ok(())
    }

    /// Writes a range of the image to the same offset of the file.
    fn write_back(&self, at: usize, size: usize) -> io::Result<()> {
        self.file
            .write_all_at(&self.image.file.bytes[at..at + size], at as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::{Era, Tpoint};

    #[test]
    fn the_file_is_the_image_after_every_step() {
        for era in Era::ALL {
            let path = std::env::temp_dir()
                .join(format!("spdk-trace-writer-{}-{era:?}", std::process::id()));
            let mut trace = TraceBuilder::new(era).slots(8);
            trace.tpoint(Tpoint::new(64, "A").int("n", 4).str("s", 20));
            trace.lcore(1);
            let mut live = LiveTrace::create(&path, &trace).unwrap();
            for tsc in 1..20 {
                live.record(1, &Record::new(64, tsc).int(tsc).str("text"))
                    .unwrap();
                trace.record(1, Record::new(64, tsc).int(tsc).str("text"));
                assert_eq!(
                    std::fs::read(&path).unwrap(),
                    live.snapshot().bytes,
                    "{era:?}"
                );
            }
            live.torn(1, &Record::new(64, 20).int(1).str(""), 1)
                .unwrap();
            trace.torn(1, Record::new(64, 20).int(1).str(""), 1);
            assert_eq!(std::fs::read(&path).unwrap(), trace.build(), "{era:?}");
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn two_writers_share_a_file() {
        let path =
            std::env::temp_dir().join(format!("spdk-trace-writer-{}-two", std::process::id()));
        let mut trace = TraceBuilder::new(Era::E).slots(8).owner_count(300);
        trace.tpoint(Tpoint::new(64, "A").int("n", 4));
        trace.lcore(0);
        trace.lcore(1);
        let mut first = LiveTrace::create(&path, &trace).unwrap();
        let mut second = first.another().unwrap();
        for tsc in 1..20 {
            let lcore = (tsc % 2) as u32;
            let writer = if lcore == 0 { &mut first } else { &mut second };
            writer.owner(256 + lcore as u16, 0x30, tsc, "text").unwrap();
            writer
                .record(lcore, &Record::new(64, tsc).int(tsc))
                .unwrap();
            trace
                .owner(256 + lcore as u16, 0x30, tsc, "text")
                .record(lcore, Record::new(64, tsc).int(tsc));
        }
        assert_eq!(std::fs::read(&path).unwrap(), trace.build());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn links_are_not_followed_and_files_of_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let [victim, link, hard] = ["victim", "link", "hard"].map(|name| dir.path().join(name));
        fs::write(&victim, "precious").unwrap();
        symlink(&victim, &link).unwrap();
        fs::hard_link(&victim, &hard).unwrap();
        for path in [&link, &hard, &dir.path().to_owned()] {
            assert!(create(path).is_err(), "{}", path.display());
        }
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        symlink(dir.path().join("new"), dir.path().join("dangling")).unwrap();
        assert!(create(&dir.path().join("dangling")).is_err() && !dir.path().join("new").exists());
        // A file of the same user is taken over, as in SPDK.
        fs::remove_file(&hard).unwrap();
        assert_eq!(create(&victim).unwrap().metadata().unwrap().len(), 0);
        let mode = create(&dir.path().join("fresh"))
            .unwrap()
            .metadata()
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
