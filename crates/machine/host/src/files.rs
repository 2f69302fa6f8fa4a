//! The files whose code a process runs, or that a program will load, read one after the other.

use std::path::Path;

use elf::ElfError;
use text::printable::path as printable;

use crate::{ElfFile, FilePlace, HostError, Pid, Process, needed_by};

/// Files to search.
pub struct Files {
    /// The file that must be readable.
    first: FilePlace,
    libraries: Vec<FilePlace>,
}

/// Depth to which each file is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// Enough for USDT probes.
    Notes,
    /// Enough for functions.
    Symbols,
    /// Everything that a process has of it in its memory, too.
    Whole,
}

impl Files {
    /// Returns a process's program and all files whose code it has mapped, with a name for
    /// messages.
    pub fn from_process(pid: u32) -> Result<(Self, String), HostError> {
        let process = Process::open(Pid(pid))?;
        let first = process.program();
        let place = format!("pid {pid} ({})", printable(first.path()));
        Ok((
            Self {
                first,
                libraries: process.libraries(),
            },
            place,
        ))
    }

    /// Returns one file, by its path.
    pub fn from_path(path: &Path) -> Self {
        Self {
            first: FilePlace::at(path),
            libraries: Vec::new(),
        }
    }

    /// Returns a program that is going to be started, and the libraries that it will load.
    pub fn from_program(path: &Path) -> Self {
        let libraries = needed_by(path, std::env::var_os("LD_LIBRARY_PATH").as_deref());
        Self {
            first: FilePlace::at(path),
            libraries,
        }
    }

    /// Returns true if one of the libraries has this name (`libz`, `libz.so.1`) or path.
    pub fn has_library(&self, name: &str) -> bool {
        let is_it = |path: &Path| {
            path == Path::new(name)
                || path.file_name().is_some_and(|file| {
                    crate::library_cache::is_called(&file.to_string_lossy(), name)
                })
        };
        self.libraries.iter().any(|place| {
            is_it(place.path()) || place.path_inside().is_some_and(|path| is_it(&path))
        })
    }

    /// Reads the files one after the other, so that no two are in memory at once. Returns an error
    /// if the first can't be read; a library that can't be read goes to `left_out`.
    pub fn for_each<E: From<HostError>>(
        &self,
        depth: Depth,
        mut left_out: impl FnMut(HostError),
        mut look: impl FnMut(&ElfFile) -> Result<(), E>,
    ) -> Result<(), E> {
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
                Err(
                    HostError::Elf {
                        source: ElfError::NotElf { .. },
                        ..
                    }
                    | HostError::NotAFile { .. },
                ) => {}
                Err(error) => left_out(error),
            }
        }
        Ok(())
    }
}

/// Returns a note for users who look for a function in a file without names of its own functions.
pub fn stripped(file: &str) -> String {
    format!("{file} is stripped, and has no debug file here: only exported functions have names")
}
