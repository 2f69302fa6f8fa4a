//! The folder of a capture: made for it, readable by the user alone, and its files.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use ::capture::Meta;
use anyhow::Context as _;
use host::Pid;
use host::proc::{self, Stat};

use super::open::META;
use crate::failure::usage;
use crate::target::printable;

/// The folder.
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Refuses a folder that exists already, before anything is begun.
    pub(super) fn check(path: Option<&Path>) -> anyhow::Result<()> {
        match path {
            Some(path) if path.symlink_metadata().is_ok() => Err(exists(path)),
            _ => Ok(()),
        }
    }

    /// Makes the folder: that of this name, or one for the process.
    pub(super) fn create(path: Option<&Path>, pid: u32) -> anyhow::Result<Self> {
        let path = path.map_or_else(|| default_name(pid), Path::to_owned);
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => Ok(Self { path }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(exists(&path)),
            Err(error) => Err(error).with_context(|| format!("creating the folder {}", printable(&path))),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a file in it.
    pub(super) fn file(&self, name: &str) -> anyhow::Result<File> {
        let path = self.path.join(name);
        new_file(&path).with_context(|| format!("creating {}", printable(&path)))
    }

    /// Cuts that many bytes off the end of a file in it.
    pub(super) fn shorten(&self, name: &str, bytes: u64) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(self.path.join(name))?;
        file.set_len(file.metadata()?.len().saturating_sub(bytes))
    }

    /// Writes `meta.json`, in place of one that is there: a reader sees the one or the other.
    pub(super) fn write_meta(&self, meta: &Meta) -> io::Result<()> {
        let (path, new) = (self.path.join(META), self.path.join("meta.json.new"));
        // One of an earlier try.
        let _ = fs::remove_file(&new);
        let written = new_file(&new).and_then(|mut file| file.write_all(meta.to_json()?.as_bytes()));
        written.and_then(|()| fs::rename(&new, &path)).inspect_err(|_| {
            let _ = fs::remove_file(&new);
        })
    }
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn exists(path: &Path) -> anyhow::Error {
    usage(format!("{} exists already, and a capture overwrites nothing: give another folder with -o", printable(path)))
}

/// `NAME-PID-DATE.capture`, of a name that is good for a file.
fn default_name(pid: u32) -> PathBuf {
    let name = Stat::read(&proc::folder(Pid(pid))).map(|stat| stat.name).unwrap_or_default();
    let plain = |byte: &u8| if byte.is_ascii_alphanumeric() || b"_-.".contains(byte) { char::from(*byte) } else { '_' };
    let name: String = name.iter().map(plain).collect();
    // A name that begins with a dash would be taken for an option.
    let name = name.trim_start_matches(['-', '.']);
    let now = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    PathBuf::from(format!("{}-{pid}-{now}.capture", if name.is_empty() { "process" } else { name }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn nothing_is_overwritten_and_nobody_else_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.capture");
        assert!(Folder::check(Some(&path)).is_ok());
        let folder = Folder::create(Some(&path), 1).unwrap();
        assert!(Folder::check(Some(&path)).is_err() && Folder::create(Some(&path), 1).is_err());
        folder.file("a").unwrap();
        assert!(folder.file("a").is_err());
        for dptrace in ["1", "2"] {
            folder.write_meta(&Meta { dptrace: dptrace.to_owned(), ..Meta::default() }).unwrap();
        }
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&path.join("a")), mode(&path.join(META))), (0o700, 0o600, 0o600));
        assert!(fs::read_to_string(path.join(META)).unwrap().contains("\"dptrace\": \"2\""));
        assert_eq!(fs::read_dir(&path).unwrap().count(), 2);
    }

    #[test]
    fn a_default_name_has_the_process_and_the_time() {
        let name = default_name(std::process::id());
        let name = name.to_str().unwrap();
        assert!(name.contains(&format!("-{}-20", std::process::id())) && name.ends_with(".capture"), "{name}");
    }
}
