//! The folder of a capture, readable by the user alone, and its files.

use std::cell::RefCell;
use std::ffi::CStr;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread::{Builder, JoinHandle};

use anyhow::{Context as _, bail};
use capture::Meta;
use errors::usage;
use host::Pid;
use host::proc::{self, Stat};
use rustix::fs::{CWD, Dir, Gid, Mode, OFlags, Uid, fchown, fstat, openat};
use rustix::io::Errno;
use screen::size;
use text::printable::path as printable;
use trace_source::captures::{KERNEL, META, OBJECTS, RINGS};
use whole_file::{Access, WholeFile, folder_of, sync_folder};

/// Folder of a capture.
pub struct Folder {
    path: PathBuf,
    /// The folder itself: another one may get its name.
    descriptor: OwnedFd,
    /// Thread that writes `meta.json` during the capture.
    aside: RefCell<Option<JoinHandle<()>>>,
}

impl Folder {
    /// Returns an error if the folder exists already. To be called before anything is started.
    pub fn check(path: Option<&Path>) -> anyhow::Result<()> {
        match path {
            Some(path) if path.symlink_metadata().is_ok() => Err(exists(path)),
            _ => Ok(()),
        }
    }

    /// Creates the folder with this name, or a default one for the process, and has the disk store
    /// it.
    pub fn create(path: Option<&Path>, pid: u32) -> anyhow::Result<Self> {
        let path = path.map_or_else(|| default_name(pid), Path::to_owned);
        let created = DirBuilder::new().mode(0o700).create(&path);
        match created.and_then(|()| open_new(&path)) {
            Ok(descriptor) => {
                let _ = sync_folder(folder_of(&path));
                Ok(Self {
                    path,
                    descriptor,
                    aside: RefCell::default(),
                })
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(exists(&path)),
            Err(error) => {
                Err(error).with_context(|| format!("creating the folder {}", printable(&path)))
            }
        }
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the bytes free for us on its disk; `None` if the file system does not state them.
    pub fn free_bytes(&self) -> Option<u64> {
        free_bytes(&self.path)
    }

    /// Creates a file in the folder.
    pub fn file(&self, name: &str) -> anyhow::Result<File> {
        let path = self.path.join(name);
        new_file(&path).with_context(|| format!("creating {}", printable(&path)))
    }

    /// Reserves room on the disk until the value is dropped; `None` if the file system can't.
    pub fn reserve(&self, bytes: u64) -> Option<WholeFile> {
        let reserve = WholeFile::create(&self.path.join("reserve"), Access::Owner).ok()?;
        rustix::fs::fallocate(
            reserve.file(),
            rustix::fs::FallocateFlags::empty(),
            0,
            bytes,
        )
        .ok()?;
        Some(reserve)
    }

    /// Cuts a file in the folder to this length.
    pub fn shorten(&self, name: &str, bytes: u64) -> io::Result<()> {
        OpenOptions::new()
            .write(true)
            .open(self.path.join(name))?
            .set_len(bytes)
    }

    /// Has the disk store the folder's list of files.
    pub fn sync(&self) -> io::Result<()> {
        sync_folder(&self.path)
    }

    /// Writes `meta.json`, in place of an existing one. A reader sees one or the other, also after
    /// a power failure.
    pub fn write_meta(&self, meta: &Meta) -> io::Result<()> {
        self.await_aside();
        WholeFile::write_whole(
            &self.path.join(META),
            Access::Owner,
            meta.to_json()?.as_bytes(),
        )
    }

    /// Writes `meta.json` during the capture, on another thread, since a disk may need seconds for
    /// it. If it fails, the existing one remains.
    pub fn write_meta_aside(&self, meta: &Meta) {
        self.await_aside();
        let Ok(text) = meta.to_json() else { return };
        let path = self.path.join(META);
        let writing = Builder::new().name("meta".to_owned()).spawn(move || {
            let _ = WholeFile::write_whole(&path, Access::Owner, text.as_bytes());
        });
        *self.aside.borrow_mut() = writing.ok();
    }

    /// Gives the folder and its files to the user who became root with sudo(8), if one did: a
    /// capture is read without rights. To be called when all is written: until then nobody but root
    /// can replace a file here by another one.
    ///
    /// # Errors
    ///
    /// Fails if the owner can't be changed; what was changed until then stays so.
    pub fn hand_over(&self) -> io::Result<()> {
        self.await_aside();
        host::capabilities::sudo_user().map_or(Ok(()), |owner| self.give_to(owner))
    }

    /// Gives the folder to a user and a group. A link, and a file with further names, stay as they
    /// are.
    fn give_to(&self, (user, group): (u32, u32)) -> io::Result<()> {
        let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
        for name in [RINGS, KERNEL, OBJECTS, META] {
            match openat(&self.descriptor, name, FLAGS, Mode::empty()) {
                Ok(file) if fstat(&file)?.st_nlink == 1 => fchown(&file, user, group)?,
                Ok(_) | Err(Errno::NOENT | Errno::LOOP) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(fchown(&self.descriptor, user, group)?)
    }

    fn await_aside(&self) {
        if let Some(writing) = self.aside.take() {
            let _ = writing.join();
        }
    }
}

/// Gives a folder, without what is in it, to the user who became root with sudo(8), if one did.
///
/// # Errors
///
/// Fails if the owner can't be changed.
pub fn hand_over_folder(folder: &impl AsFd) -> io::Result<()> {
    let Some((user, group)) = host::capabilities::sudo_user() else {
        return Ok(());
    };
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    Ok(fchown(folder, Some(user), Some(group))?)
}

/// Returns an error with advice if there is less room than needed for a capture. A missing folder,
/// or a file system that states nothing, is no error.
pub fn check_room(path: Option<&Path>, needed: u64, why: &str) -> anyhow::Result<()> {
    let parent = path.map_or(Path::new("."), folder_of);
    match free_bytes(parent) {
        Some(free) if free < needed => bail!(
            "only {} are free on the disk of {}, but a capture needs at least {} ({why}): free \
             some space, or name a folder on another disk with -o",
            size(free),
            printable(parent),
            size(needed)
        ),
        _ => Ok(()),
    }
}

/// Returns the bytes free for us on a folder's disk (`f_bavail`, statvfs(3)); `None` if the file
/// system does not state them.
fn free_bytes(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder)
        .ok()
        .filter(|found| found.f_blocks > 0)?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Flags with which a file or folder is opened to be given away: nothing else is meant by its name.
const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Opens a folder that was just created. If it has files, another one took its name meanwhile.
fn open_new(path: &Path) -> io::Result<OwnedFd> {
    let folder = openat(CWD, path, FLAGS | OFlags::DIRECTORY, Mode::empty())?;
    let is_itself = |name: &CStr| matches!(name.to_bytes(), b"." | b"..");
    for entry in Dir::read_from(&folder)? {
        if !is_itself(entry?.file_name()) {
            return Err(ErrorKind::AlreadyExists.into());
        }
    }
    Ok(folder)
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

fn exists(path: &Path) -> anyhow::Error {
    usage(format!(
        "{} already exists, and a capture overwrites nothing: give another folder with -o",
        printable(path)
    ))
}

/// Returns `NAME-PID-DATE.capture`, with a name that is safe in a file name.
fn default_name(pid: u32) -> PathBuf {
    let now = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    PathBuf::from(format!("{}-{pid}-{now}.capture", process_name(pid)))
}

/// Returns the name of a process, made safe for a file name.
pub fn process_name(pid: u32) -> String {
    let name = Stat::read(&proc::folder(Pid(pid)))
        .map(|stat| stat.name)
        .unwrap_or_default();
    let plain = |byte: &u8| {
        if byte.is_ascii_alphanumeric() || b"_-.".contains(byte) {
            char::from(*byte)
        } else {
            '_'
        }
    };
    let name: String = name.iter().map(plain).collect();
    // A leading dash would be taken for an option.
    let name = name.trim_start_matches(['-', '.']);
    if name.is_empty() {
        "process".to_owned()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
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
        let meta = |dptrace: &str| Meta {
            dptrace: dptrace.to_owned(),
            ..Meta::default()
        };
        folder.write_meta(&meta("1")).unwrap();
        folder.write_meta_aside(&meta("aside"));
        folder.write_meta(&meta("2")).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode(&path), mode(&path.join("a")), mode(&path.join(META))),
            (0o700, 0o600, 0o600)
        );
        assert!(
            fs::read_to_string(path.join(META))
                .unwrap()
                .contains("\"dptrace\": \"2\"")
        );
        assert_eq!(fs::read_dir(&path).unwrap().count(), 2);
    }

    #[test]
    fn a_capture_is_given_to_a_user_without_its_links() {
        use std::os::unix::fs::{MetadataExt as _, symlink};
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::create(Some(&dir.path().join("x.capture")), 1).unwrap();
        folder.file(RINGS).unwrap();
        let other = dir.path().join("other");
        fs::write(&other, "").unwrap();
        symlink(&other, folder.path().join(KERNEL)).unwrap();
        fs::hard_link(&other, folder.path().join(OBJECTS)).unwrap();
        let given = folder.give_to((12_345, 12_346));
        if !host::capabilities::is_root() {
            assert_eq!(given.unwrap_err().kind(), ErrorKind::PermissionDenied);
            return;
        }
        given.unwrap();
        let owner = |path: &Path| {
            path.symlink_metadata()
                .map(|it| (it.uid(), it.gid()))
                .unwrap()
        };
        assert_eq!(owner(folder.path()), (12_345, 12_346));
        assert_eq!(owner(&folder.path().join(RINGS)), (12_345, 12_346));
        assert_eq!(owner(&folder.path().join(KERNEL)).0, 0);
        assert_eq!(owner(&other).0, 0);
        // Another folder of its name is none of ours.
        fs::rename(folder.path(), dir.path().join("moved")).unwrap();
        fs::create_dir(folder.path()).unwrap();
        folder.give_to((12_347, 12_348)).unwrap();
        assert_eq!(owner(folder.path()).0, 0);
    }

    #[test]
    fn a_default_name_has_the_process_and_the_time() {
        let name = default_name(std::process::id());
        let name = name.to_str().unwrap();
        assert!(
            name.contains(&format!("-{}-20", std::process::id())) && name.ends_with(".capture"),
            "{name}"
        );
    }
}
