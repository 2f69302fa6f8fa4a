//! Facts about files that processes run: their functions, USDT probes, symbols.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bt_compiler::{FunctionPlace, NotFound, UsdtPlaces};
use elf::symbols::Functions;
use elf::{Aim, Code, ElfVaddr};
use host::library_cache::is_called;
use host::{ElfFile, FilePlace};
use usdt::UsdtProbes;

use symbolize::DebugFolders;
use typeinfo::{Arch, Dwarf, DwarfSections, NameKind, SourceLine, TypeStore};

use super::subject::Subject;
use super::targets::{Found, Targets};
use super::{missing, missing_in_groups, pattern};
use crate::observe::{Notice, SharedObserver, printable};

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
    own: Vec<Vec<Found>>,
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

/// A file that has debug information.
struct DebugFile {
    file: ElfFile,
    /// Contents with the compressed sections inflated, if there are any.
    plain: Option<Vec<u8>>,
}

impl DebugFile {
    /// Inflates the sections. If one can't be inflated, that is reported, and the file has no
    /// usable debug information.
    fn new(file: ElfFile, observer: &SharedObserver) -> Option<Self> {
        let plain = match typeinfo::inflated(file.image().ok()?.data()) {
            Ok(Cow::Borrowed(_)) => None,
            Ok(Cow::Owned(plain)) => Some(plain),
            Err(source) => {
                observer.notice(&Notice::NoDebugInformation {
                    file: printable(file.path()),
                    source,
                });
                None
            }
        };
        Some(Self { file, plain })
    }

    fn bytes(&self) -> Option<&[u8]> {
        let own = || self.file.image().ok().map(|image| image.data());
        self.plain.as_deref().or_else(own)
    }
}

impl UserFiles {
    pub(super) fn new(
        subject: Subject,
        debug_folders: Vec<PathBuf>,
        observer: SharedObserver,
    ) -> Self {
        let found = |place: FilePlace| Found {
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
        self.of_subject()
            .into_iter()
            .map(|found| found.shown)
            .collect()
    }

    /// Returns the files of several processes, to be held as long as their names are used.
    pub(crate) fn held(&self) -> Vec<FilePlace> {
        if self.own.len() < 2 {
            Vec::new()
        } else {
            self.of_subject()
                .into_iter()
                .map(|found| found.place)
                .collect()
        }
    }

    pub(crate) fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Returns the programs and the libraries of the processes, each once.
    fn of_subject(&self) -> Vec<Found> {
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
        let own = self.of_subject();
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

    fn load(&self, found: &Found) -> Result<Rc<ElfFile>, NotFound> {
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

    pub(super) fn functions(
        &self,
        target: Option<&str>,
        function: &str,
        cpp: bool,
        aim: Aim,
    ) -> Result<Vec<FunctionPlace>, NotFound> {
        let names = pattern(function)?;
        let targets = self.targets(target)?;
        let mut known: Vec<String> = Vec::new();
        let mut stripped = None;
        let mut chosen = None;
        let all = targets.each(|found| {
            let file = self.load(found)?;
            let of_file = self.with_functions(&file, |functions, code| {
                if functions.is_stripped() {
                    stripped.get_or_insert_with(|| stripped_hint(&found.shown));
                }
                let place = |name: &str, function: &elf::symbols::Function<'_>| FunctionPlace {
                    path: file.opened().to_owned(),
                    shown: found.shown.clone(),
                    name: name.to_owned(),
                    offset: function.offset.0,
                    size: function.size,
                    vaddr: function.vaddr.0,
                    at: code.function(function, aim),
                };
                let mut fitting: Vec<FunctionPlace> = Vec::new();
                for function in functions.all() {
                    let shown = if cpp {
                        function.display_name()
                    } else {
                        (&*function.name).into()
                    };
                    let without = if cpp {
                        shown.split('(').next().unwrap_or_default()
                    } else {
                        &shown
                    };
                    if !(names.matches(&shown) || cpp && names.matches(without)) {
                        continue;
                    }
                    if !function.indirect {
                        fitting.push(place(&shown, function));
                    } else if names.is_plain() {
                        chosen = chosen.take().or_else(|| functions.choice(&function.name));
                    }
                }
                if fitting.is_empty() && known.len() < 200_000 {
                    known.extend(
                        functions
                            .all()
                            .iter()
                            .map(|function| function.name.clone().into_owned()),
                    );
                }
                fitting
            })?;
            Ok(of_file)
        })?;
        if all.is_empty() {
            if let Some(chosen) = chosen {
                return Err(NotFound {
                    message: chosen.to_string(),
                    absent: false,
                    hints: vec![chosen.hint()],
                });
            }
            let place = place_text(target, &targets);
            let message = format!("{place} has no function {function}");
            let mut missing = missing(message, function, known.iter().map(String::as_str));
            missing.hints.extend(stripped);
            return Err(missing);
        }
        Ok(all)
    }

    pub(super) fn address(
        &self,
        target: Option<&str>,
        vaddr: u64,
        aim: Aim,
    ) -> Result<FunctionPlace, NotFound> {
        let targets = self.targets(target)?;
        let found = targets.each(|found| {
            let file = self.load(found)?;
            let image = file.image().map_err(|error| not_read(&error))?;
            let offset = image.address_map().to_offset(ElfVaddr(vaddr));
            let message = || format!("{} has nothing at {vaddr:#x}", found.shown);
            let offset = offset
                .map_err(|_| NotFound {
                    message: message(),
                    absent: false,
                    hints: Vec::new(),
                })?
                .0;
            let (path, shown) = (file.opened().to_owned(), found.shown.clone());
            let (named, at) = self.with_functions(&file, |functions, code| {
                let holds = |it: &&elf::symbols::Function<'_>| {
                    vaddr
                        .checked_sub(it.vaddr.0)
                        .is_some_and(|behind| behind < it.size.max(1))
                };
                let named = functions
                    .all()
                    .iter()
                    .find(holds)
                    .map(|it| (it.name.clone().into_owned(), it.size));
                (named, code.address(ElfVaddr(vaddr), aim))
            })?;
            let (name, size) = named.unwrap_or_default();
            Ok(vec![FunctionPlace {
                path,
                shown,
                name,
                offset,
                size,
                vaddr,
                at,
            }])
        })?;
        let message = || format!("no file has anything at {vaddr:#x}");
        found.into_iter().next().ok_or_else(|| NotFound {
            message: message(),
            absent: false,
            hints: Vec::new(),
        })
    }

    /// Returns the place of a line of the source.
    pub(super) fn source_line(
        &self,
        target: &str,
        wanted: &SourceLine<'_>,
    ) -> Result<FunctionPlace, NotFound> {
        let targets = self.targets(Some(target))?;
        for found in &targets.files {
            let sections = self
                .debug(&found.shown)
                .and_then(|elf| DwarfSections::from_elf(elf).ok());
            if let Some(vaddr) = sections.and_then(|sections| sections.line_address(wanted)) {
                return self.address(Some(target), vaddr, Aim::Within(0));
            }
        }
        let message = format!("{target} has no code of {}:{}", wanted.file, wanted.line);
        let hint = "lines are known only for programs built with -g, and not every line has code"
            .to_owned();
        Err(NotFound {
            message,
            absent: true,
            hints: vec![hint],
        })
    }

    pub(super) fn usdt(
        &self,
        target: Option<&str>,
        provider: Option<&str>,
        name: &str,
    ) -> Result<Vec<UsdtPlaces>, NotFound> {
        let names = pattern(name)?;
        let providers = provider
            .filter(|text| !text.is_empty())
            .map(pattern)
            .transpose()?;
        let targets = self.targets(target)?;
        let (mut known, mut broken) = (Vec::new(), None);
        let all = targets.each(|found| {
            let file = self.usdt_of(found)?;
            let (probes, opened) = &*file;
            if let Some(first) = probes.faults.first() {
                let left_out = || {
                    format!(
                        "{}: left out {} invalid USDT notes; the first: {first}",
                        found.shown, probes.broken
                    )
                };
                broken.get_or_insert_with(left_out);
            }
            known.extend(
                probes
                    .probes
                    .iter()
                    .map(|probe| (probe.provider.to_string(), probe.name.to_string())),
            );
            let fits = |probe: &usdt::Probe| {
                names.matches(&probe.name)
                    && providers
                        .as_ref()
                        .is_none_or(|pattern| pattern.matches(&probe.provider))
            };
            let fitting = probes
                .probes
                .iter()
                .filter(|probe| fits(probe))
                .map(|probe| UsdtPlaces {
                    path: opened.clone(),
                    shown: found.shown.clone(),
                    provider: probe.provider.to_string(),
                    name: probe.name.to_string(),
                    places: probe.places.clone(),
                });
            Ok(fitting.collect())
        })?;
        if all.is_empty() {
            let place = place_text(target, &targets);
            let wanted = format!("{}:{name}", provider.unwrap_or("*"));
            let near = known
                .iter()
                .map(|(provider, name)| (provider.as_str(), name.as_str()));
            let message = format!("{place} has no USDT probe {wanted}");
            let mut missing = missing_in_groups(message, provider, name, near);
            missing.hints.extend(broken);
            return Err(missing);
        }
        Ok(all)
    }

    /// Returns a file's probes. Only the notes are read: scripts name many probes of one large
    /// file.
    fn usdt_of(&self, found: &Found) -> Result<Rc<(UsdtProbes, PathBuf)>, NotFound> {
        let key = found.place.path();
        if let Some(known) = self.usdt.borrow().get(key) {
            return Ok(Rc::clone(known));
        }
        let file = found
            .place
            .load_notes()
            .map_err(|error| self.not_loaded(&error))?;
        let code = file.code().map_err(|error| not_read(&error))?;
        let mut probes =
            UsdtProbes::read_with(&file.image().map_err(|error| not_read(&error))?, &code);
        if !probes.wanted_symbols().is_empty() {
            let whole = self.load(found)?;
            let debug = self.debug_folders.debug_file(&whole);
            let image = whole.image().map_err(|error| not_read(&error))?;
            probes.resolve(
                &image,
                debug.as_ref().and_then(|debug| debug.image().ok()).as_ref(),
            );
        }
        let known = Rc::new((probes, file.opened().to_owned()));
        self.usdt
            .borrow_mut()
            .insert(key.to_owned(), Rc::clone(&known));
        Ok(known)
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

    /// Returns the file that has a file's debug information: itself, or the one that it was moved
    /// to.
    pub(super) fn debug(&self, path: &str) -> Option<&[u8]> {
        let open = |path: &str| {
            self.debug_file(path)
                .and_then(|file| DebugFile::new(file, &self.observer))
        };
        for slot in &self.debug {
            let (known, file) = slot.get_or_init(|| (path.to_owned(), open(path)));
            if known == path {
                return file.as_ref().and_then(DebugFile::bytes);
            }
        }
        None
    }

    /// Returns the names and values of an enumeration, if the program's debug information has it.
    pub(crate) fn enumeration(&self, name: &str) -> Option<Vec<(String, i64)>> {
        let program = self.of_subject().into_iter().next()?;
        let bytes = self.debug(program.place.path().to_str()?)?;
        let mut types = TypeStore::new(Arch::HOST);
        types
            .add_dwarf(Dwarf::new(DwarfSections::from_elf(bytes).ok()?).ok()?)
            .ok()?;
        let found = types.find(NameKind::Enum, name).ok()??;
        let names = types.enumerators(found).ok()?;
        Some(
            names
                .into_iter()
                .map(|it| (it.name.to_owned(), it.value))
                .collect(),
        )
    }

    fn with_functions<T>(
        &self,
        file: &ElfFile,
        look: impl FnOnce(&Functions<'_>, &Code<'_>) -> T,
    ) -> Result<T, NotFound> {
        let debug = self.debug_folders.debug_file(file);
        let debug = debug.as_ref().and_then(|debug| debug.image().ok());
        let image = file.image().map_err(|error| not_read(&error))?;
        let functions = Functions::read(&image, debug.as_ref());
        let code = Code::with_functions(&image, &image, &functions);
        Ok(look(&functions, &code))
    }

    fn debug_file(&self, path: &str) -> Option<ElfFile> {
        let own = self
            .of_subject()
            .into_iter()
            .find(|own| own.place.path() == Path::new(path));
        let file = own
            .map_or_else(|| FilePlace::at(Path::new(path)), |own| own.place)
            .load_debug()
            .ok()?;
        Some(self.debug_folders.debug_information(&file).unwrap_or(file))
    }
}

/// Returns the files of a process that fit; with `maps_more`, all files that fit, since it may come
/// to map them.
fn by_pattern(text: &str, own: &[Found], maps_more: bool) -> Result<Targets, NotFound> {
    let fits = pattern(text)?;
    // If /lib is a link to /usr/lib, a process has the latter mapped.
    let is_merged = Path::new("/lib").is_symlink();
    let without_usr = |found: &&Found| {
        found
            .shown
            .strip_prefix("/usr")
            .is_some_and(|rest| fits.matches(rest))
    };
    let inside = |found: &&Found| {
        found
            .place
            .path_inside()
            .is_some_and(|path| fits.matches(&path.to_string_lossy()))
    };
    let fits_one = |found: &&Found| {
        fits.matches(&found.shown) || is_merged && without_usr(found) || inside(found)
    };
    let fitting = own.iter().filter(fits_one);
    let mut files: Vec<Found> = fitting.cloned().collect();
    if maps_more {
        let paths = glob::glob(text).into_iter().flatten().flatten();
        // The crate `glob` leaves it out.
        let prefix = if text.starts_with("./") { "./" } else { "" };
        // One file may have several names: links to a library, and the program as in its command. A
        // probe in each would count a hit several times.
        let identity = |path: &Path| {
            path.metadata()
                .ok()
                .filter(Metadata::is_file)
                .map(|file| (file.dev(), file.ino()))
        };
        let own = own
            .iter()
            .filter_map(|found| Some((identity(found.place.path())?, found)));
        let own: HashMap<_, &Found> = own.collect();
        let mut seen: HashSet<_> = files
            .iter()
            .filter_map(|found| identity(found.place.path()))
            .collect();
        let new = paths
            .filter_map(|path| Some((identity(&path)?, path)))
            .filter(|(file, _)| seen.insert(*file));
        files.extend(new.take(MAX_FILES).map(|(file, path)| {
            let found = || Found {
                shown: format!("{prefix}{}", printable(&path)),
                place: FilePlace::at(&path),
            };
            own.get(&file).copied().cloned().unwrap_or_else(found)
        }));
    }
    let message = || format!("no file fits {text}");
    if files.is_empty() {
        Err(NotFound {
            message: message(),
            absent: false,
            hints: Vec::new(),
        })
    } else {
        Ok(files.into())
    }
}

/// Finds a path, a library of the process or of the machine, or a program of PATH.
fn by_name(text: &str, own: &[Found]) -> Result<Vec<Found>, NotFound> {
    let found = |path: &Path| Found {
        shown: printable(path),
        place: FilePlace::at(path),
    };
    if text.contains('/') {
        let path = Path::new(text);
        let same = |own: &&Found| {
            own.place.path() == path || own.place.path_inside().is_some_and(|inside| inside == path)
        };
        return match own.iter().find(same) {
            Some(own) => Ok(vec![own.clone()]),
            None if path.exists() => Ok(vec![Found {
                shown: text.to_owned(),
                ..found(path)
            }]),
            None => Err(NotFound {
                message: format!("there is no file {text}"),
                absent: false,
                hints: Vec::new(),
            }),
        };
    }
    let name = |found: &Found| {
        found
            .place
            .path()
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let of_process: Vec<Found> = own
        .iter()
        .filter(|own| name(own).is_some_and(|name| is_called(&name, text)))
        .cloned()
        .collect();
    if !of_process.is_empty() {
        return Ok(of_process);
    }
    if let Some(program) = host::find_program(text.as_ref()) {
        return Ok(vec![found(&program)]);
    }
    // The linker's cache has one for each machine that it knows: the first is this one's.
    let library = host::library_cache::library(text)
        .into_iter()
        .find(|path| path.exists());
    let local = || Path::new(text).exists().then(|| PathBuf::from(text));
    library
        .or_else(local)
        .map(|path| vec![found(&path)])
        .ok_or_else(|| NotFound {
            message: format!("there is no program in PATH and no library called {text}"),
            absent: false,
            hints: vec!["a path has a / in it: ./NAME".into()],
        })
}

/// Returns a hint for users who look for a function in a file without names of its own functions.
fn stripped_hint(file: &str) -> String {
    format!("{file} is stripped, and has no debug file here: only exported functions have names")
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
