//! Facts about files that processes run: their functions, USDT probes, symbols.

mod debug;
mod functions;
mod paths;
mod usdt;

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ::usdt::UsdtProbes;
use bt_compiler::NotFound;
use host::{ElfFile, FilePlace};
use symbolize::DebugFolders;

use super::subject::Subject;
use super::targets::{TargetFile, Targets};
use crate::observe::{SharedObserver, printable};
use debug::DebugFile;
use paths::{by_name, by_pattern};

/// Name of the process's own program in scripts.
const OWN: &str = "__EXE__";
/// Limit on files whose debug information is kept.
const MAX_DEBUG: usize = 32;
/// Limit on files that a pattern may mean.
const MAX_FILES: usize = 4096;

/// Files of the target and of probes.
pub(crate) struct UserFiles {
    subject: Subject,
    /// Program and libraries of each of the target's processes.
    own: Vec<Vec<TargetFile>>,
    whole: RefCell<HashMap<PathBuf, Rc<ElfFile>>>,
    /// Further directories of debug files.
    debug_folders: DebugFolders,
    observer: SharedObserver,
    debug: [OnceCell<(String, Option<DebugFile>)>; MAX_DEBUG],
    /// Reason why a file could not be read, if this user may not.
    refused: RefCell<Option<String>>,
    /// USDT probes of files, and the path under which each was opened.
    usdt: RefCell<HashMap<PathBuf, Rc<(UsdtProbes, PathBuf)>>>,
}

impl UserFiles {
    pub(super) fn new(
        subject: Subject,
        debug_folders: Vec<PathBuf>,
        observer: SharedObserver,
    ) -> Self {
        let found = |place: FilePlace| TargetFile {
            shown: printable(place.path()),
            place,
        };
        let own = subject
            .files()
            .into_iter()
            .map(|files| files.into_iter().map(found).collect())
            .collect();
        Self {
            subject,
            own,
            whole: RefCell::default(),
            debug_folders: DebugFolders(debug_folders),
            observer,
            debug: [const { OnceCell::new() }; MAX_DEBUG],
            refused: RefCell::default(),
            usdt: RefCell::default(),
        }
    }

    pub(crate) fn debug_folders(&self) -> &DebugFolders {
        &self.debug_folders
    }

    /// Returns the files of the process, as they are shown.
    pub(crate) fn names(&self) -> Vec<String> {
        self.subject_files()
            .into_iter()
            .map(|found| found.shown)
            .collect()
    }

    /// Returns the files of several processes, to be held as long as their names are used.
    pub(crate) fn held(&self) -> Vec<FilePlace> {
        if self.own.len() < 2 {
            Vec::new()
        } else {
            self.subject_files()
                .into_iter()
                .map(|found| found.place)
                .collect()
        }
    }

    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Returns the programs and the libraries of the processes, each once.
    fn subject_files(&self) -> Vec<TargetFile> {
        if let [only] = self.own.as_slice() {
            return only.clone();
        }
        let mut seen = HashSet::new();
        self.own
            .iter()
            .flatten()
            .filter(|found| seen.insert(found.place.path()))
            .cloned()
            .collect()
    }

    fn targets(&self, target: Option<&str>) -> Result<Targets, NotFound> {
        let own = self.subject_files();
        let all_own = |first_only| {
            let message = "there is no process to search: give -p PID or -c COMMAND".to_owned();
            if own.is_empty() {
                Err(NotFound {
                    message,
                    absent: false,
                    hints: Vec::new(),
                })
            } else {
                let first_of = if first_only {
                    self.own.clone()
                } else {
                    Vec::new()
                };
                Ok(Targets {
                    files: own.clone(),
                    first_of,
                })
            }
        };
        match target {
            None | Some("" | "*") if !own.is_empty() => all_own(false),
            None | Some("" | OWN) => all_own(target == Some(OWN)),
            Some(text) if text.contains(['*', '?']) => {
                // The libraries of a command are not known before it runs.
                let maps_more = matches!(self.subject, Subject::All | Subject::Command { .. });
                by_pattern(text, &own, maps_more)
            }
            Some(text) => {
                let path = Path::new(text);
                if text.contains('/')
                    && let Err(source) = path.try_exists()
                {
                    return Err(self.not_loaded(&host::HostError::Read {
                        path: path.to_owned(),
                        source,
                    }));
                }
                Ok(by_name(text, &own)?.into())
            }
        }
    }

    /// Returns the reason why a file could not be read, if this user may not: that is no mistake of
    /// the script.
    pub(crate) fn refused(&self) -> Option<String> {
        self.refused.borrow().clone()
    }

    fn not_loaded(&self, error: &host::HostError) -> NotFound {
        let missing = not_read(error);
        let is_refused = match error {
            host::HostError::Read { source, .. } => source.kind() == ErrorKind::PermissionDenied,
            error => matches!(error, host::HostError::ProcessForbidden { .. }),
        };
        if is_refused {
            self.refused
                .borrow_mut()
                .get_or_insert_with(|| missing.message.clone());
        }
        missing
    }

    fn load(&self, found: &TargetFile) -> Result<Rc<ElfFile>, NotFound> {
        let key = found.place.path().to_owned();
        if let Some(known) = self.whole.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        let file = found.place.load();
        let file = file.map_err(|error| self.not_loaded(&error))?;
        let file = Rc::new(file);
        self.whole.borrow_mut().insert(key, Rc::clone(&file));
        Ok(file)
    }

    pub(super) fn symbol(&self, target: &str, name: &str) -> Option<(u64, u64)> {
        let targets = self.targets(Some(target)).ok()?;
        let found = targets.each(|found| {
            let file = self.load(found)?;
            let image = file.image().map_err(|error| not_read(&error))?;
            Ok(elf::symbols::find(&image, name)
                .into_iter()
                .map(|(vaddr, size)| (vaddr.0, size))
                .collect())
        });
        found.ok()?.into_iter().next()
    }
}

fn place_text(target: Option<&str>, targets: &Targets) -> String {
    match (target, targets.files.as_slice()) {
        (_, [only]) => only.shown.clone(),
        (Some(target), _) if target != OWN => target.to_owned(),
        (_, files) => files.first().map_or_else(String::new, |file| {
            format!("{} with its libraries", file.shown)
        }),
    }
}

fn not_read(error: &host::HostError) -> NotFound {
    let source =
        std::error::Error::source(error).map_or_else(String::new, |source| format!(": {source}"));
    NotFound {
        message: format!("{error}{source}"),
        absent: false,
        hints: Vec::new(),
    }
}
