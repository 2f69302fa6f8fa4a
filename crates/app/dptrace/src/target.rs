//! A process or a file that is looked into, and a process that is watched for its end.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use elf::ElfError;
use host::proc::exe;
use host::{ElfFile, FilePlace, HostError, Pid, Process};
use sys::process::PidFd;

pub(crate) use text::printable::path as printable;

use crate::failure::note;

/// The files to look into.
pub(crate) struct Files {
    /// The one that must be readable.
    first: FilePlace,
    libraries: Vec<FilePlace>,
}

/// How much of each file is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Depth {
    /// Enough for USDT probes.
    Notes,
    /// Enough for functions.
    Symbols,
    /// All that a process has of it in its memory, too.
    Whole,
}

impl Files {
    /// A process's program and all files whose code it has mapped; and what to call them in messages.
    pub(crate) fn of_process(pid: u32) -> anyhow::Result<(Self, String)> {
        let process = Process::open(Pid(pid))?;
        let first = process.program();
        let place = format!("pid {pid} ({})", printable(first.path()));
        Ok((Self { first, libraries: process.libraries() }, place))
    }

    /// One file, by its path.
    pub(crate) fn of_path(path: &Path) -> Self {
        Self { first: FilePlace::at(path), libraries: Vec::new() }
    }

    /// A program that is going to be started, and the libraries that it will load.
    pub(crate) fn of_program(path: &Path) -> Self {
        let libraries = host::needed_by(path, std::env::var_os("LD_LIBRARY_PATH").as_deref());
        Self { first: FilePlace::at(path), libraries }
    }

    /// Reads the files one after the other, so that no two are in memory at once. What can't be read of the first is an
    /// error; a library that can't be read is reported.
    pub(crate) fn for_each(
        &self,
        depth: Depth,
        mut look: impl FnMut(&ElfFile) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let load = |place: &FilePlace| match depth {
            Depth::Notes => place.load_notes(),
            Depth::Symbols => place.load_symbols(),
            Depth::Whole => place.load(),
        };
        let first = load(&self.first)?;
        first.image()?;
        look(&first)?;
        drop(first);
        for place in &self.libraries {
            match load(place).and_then(|file| file.image().map(|_| ()).map(|()| file)) {
                Ok(file) => look(&file)?,
                // Programs may map anything as code, a just-in-time compiler's cache for instance.
                Err(HostError::Elf { source: ElfError::NotElf { .. }, .. } | HostError::NotAFile { .. }) => {}
                Err(error) => note(&format!("left out: {:#}", anyhow::Error::new(error))),
            }
        }
        Ok(())
    }
}

/// What to know of a file that has no names of its own functions, for those who look for one.
pub(crate) fn stripped(file: &str) -> String {
    format!("{file} is stripped, and no debug file of it is here: only the functions that it exports have names")
}

/// A process that is watched for the end of what we attached to.
pub(crate) struct Watch {
    pid: u32,
    /// Nothing where it had ended before it could be held.
    held: Option<PidFd>,
    /// The files that we are attached to, by device and inode.
    attached: Vec<Identity>,
    program: Option<Identity>,
}

type Identity = (u64, u64);

/// `ESRCH`, which has no kind of its own.
const NO_SUCH_PROCESS: i32 = 3;

impl Watch {
    /// Watches a process in which these files (by names that we can open) are attached to.
    pub(crate) fn new<'a>(pid: u32, files: impl Iterator<Item = &'a Path>) -> std::io::Result<Self> {
        let held = match PidFd::open(pid) {
            Ok(held) => Some(held),
            Err(error) if error.raw_os_error() == Some(NO_SUCH_PROCESS) => None,
            Err(error) => return Err(error),
        };
        let mut attached: Vec<Identity> = files.filter_map(identity).collect();
        attached.sort_unstable();
        attached.dedup();
        Ok(Self { pid, held, attached, program: identity(&exe(Pid(pid))) })
    }

    /// That the process has ended, if so.
    pub(crate) fn ended(&self) -> Option<String> {
        let ended = self.held.as_ref().is_none_or(|held| held.has_ended().unwrap_or(true));
        ended.then(|| format!("process {} has ended", self.pid))
    }

    /// Why there is nothing left to watch, if so.
    pub(crate) fn over(&self) -> Option<String> {
        let pid = self.pid;
        if let Some(ended) = self.ended() {
            return Some(ended);
        }
        if self.is_mapped(identity(&exe(Pid(pid)))?)? {
            return None;
        }
        // Read after the maps: whoever has the new program's maps, or in the middle of execve(2) none, has its name by then.
        let program = identity(&exe(Pid(pid)))?;
        if self.program.is_some_and(|before| before != program) {
            let path = host::proc::program(Pid(pid)).unwrap_or_default();
            return Some(format!("process {pid} runs another program now, {}", printable(&path)));
        }
        Some(format!("process {pid} has unmapped what was attached to"))
    }

    /// Whether the process still has one of the files; nothing where that can't be seen.
    fn is_mapped(&self, program: Identity) -> Option<bool> {
        if self.attached.contains(&program) {
            return Some(true);
        }
        let process = Process::open(Pid(self.pid)).ok()?;
        // What the maps say of devices differs from stat(2) on some file systems: the inode has to do.
        let inodes = process.maps().code_files();
        Some(inodes.iter().any(|mapping| self.attached.iter().any(|&(_, inode)| inode == mapping.inode)))
    }
}

fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).map(|file| (file.dev(), file.ino())).ok()
}
