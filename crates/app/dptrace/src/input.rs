//! Where a trace comes from: a file, standard input, or the shared memory of an application.

use std::cell::{Cell, RefCell};
use std::fs;
use std::io::{self, IsTerminal as _, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use ::capture::Meta;
use anyhow::{Context as _, bail};
use clap::Args;
use errors::usage;
use host::user_file;
use observer::{Progress, percent};
use spdk_trace::{Follower, JsonTrace, RawTrace, ReadAt, TickRate, Tpoint, Trace};
use text::printable::path as printable;
use trace_source::{
    FileSource, Measured, Measuring, NAME_BASE, SHM, is_of_application, trace_of, traces, what_is_there,
};
use whole_file::Access;

use crate::messages::note;
use crate::process::{self, Role, Takes};
use crate::{capture, terminal};

/// What could not be done.
const READING_STDIN: &str = "reading standard input";
/// Bytes that distinguish text from a raw trace file.
const FIRST_BYTES: u64 = 512;

/// Where the trace is read from.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputArgs {
    /// A trace file, or the output of spdk_trace -j
    ///
    /// A raw trace file of any SPDK version, JSON, or the folder of a capture; "-" is standard input. Default without -i, -s and -p: standard input
    /// if it is a pipe or a file, else the newest *_trace.* in /dev/shm.
    #[arg(short, long, value_name = "FILE", short_alias = 'f')]
    pub(crate) input: Option<PathBuf>,

    /// The same as -i FILE; the number or name of a process, unless a file has that name, is the same as -p
    #[arg(value_name = "FILE", conflicts_with_all = ["input", "app"])]
    file: Option<PathBuf>,

    /// Read the trace of this application (nvmf, ...)
    ///
    /// The application runs, and has its trace in /dev/shm. -p or --shm-id says which one, if several have this name.
    #[arg(short = 's', long = "app", value_name = "APP", conflicts_with = "input")]
    app: Option<String>,

    /// The application's process, by its number or name
    ///
    /// Without -s, the trace is the file that the process has open; dptrace trace then follows it and records the
    /// application's objects.
    #[arg(short, long, conflicts_with_all = ["shm_id", "input", "file"], value_name = "PID|NAME")]
    pid: Vec<String>,

    /// The application's shared memory id, if it was started with --shm-id
    #[arg(long, requires = "app", value_name = "ID")]
    shm_id: Option<u32>,
}

/// What the options about the input come down to.
pub(crate) struct Input {
    pub(crate) place: Place,
    /// The process that was named in place of a trace.
    pub(crate) process: Option<u32>,
}

/// A trace and where it came from.
pub(crate) struct Loaded {
    pub(crate) trace: Trace,
    /// For messages: the file's path, or "standard input".
    pub(crate) name: String,
    /// The rate of its ticks, if it is written on this machine while it is read.
    pub(crate) measured: Option<Measured>,
    /// What it is of, if it is a capture's.
    pub(crate) capture: Option<Box<Meta>>,
}

impl Loaded {
    /// The rate of its ticks: the measured one if there is one. What a file states is rounded, to 10 MHz by DPDK before v24.11
    /// and to 100 kHz since.
    pub(crate) fn rate(&self) -> TickRate {
        self.measured.map_or(self.trace.tick_rate(), |measured| measured.rate)
    }
}

/// Where the bytes are.
pub(crate) enum Place {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Piped(Piped),
}

/// What can be read but once, from its beginning to its end.
pub(crate) struct Piped {
    /// What was read of it, to see what it is.
    start: Vec<u8>,
    rest: Box<dyn Read>,
    read: u64,
}

impl InputArgs {
    /// Finds out what is meant.
    pub(crate) fn resolve(&self, command: &'static str) -> anyhow::Result<Input> {
        let bare = self.bare_process().map(|word| vec![word.to_owned()]);
        let words = bare.as_ref().unwrap_or(&self.pid);
        let role = Role { command, takes: Takes::One, starts: false };
        let pid = if words.is_empty() { None } else { Some(process::one(words, role)?) };
        match (pid, &self.app) {
            (Some(pid), None) => Ok(Input { place: Place::File(trace_of(pid)?), process: Some(pid) }),
            _ => Ok(Input { place: self.place(pid)?, process: None }),
        }
    }

    /// The file that is meant, if it is one, for the completion of names in it: nothing is read and nothing reported.
    pub(crate) fn file_named(&self) -> Option<PathBuf> {
        if let Some(path) = self.input.as_ref().or(self.file.as_ref()) {
            return Some(path.clone());
        }
        let pid = process::meant(&self.pid);
        match (&self.app, pid) {
            (None, Some(pid)) => trace_of(pid).ok(),
            (app, _) => {
                let end = pid.map(|pid| format!("pid{pid}")).or(self.shm_id.map(|id| id.to_string()));
                let name = format!("{}{NAME_BASE}{}", app.as_deref().unwrap_or_default(), end.unwrap_or_default());
                let is_it =
                    |path: &PathBuf| app.is_none() || path.to_string_lossy().starts_with(&format!("{SHM}/{name}"));
                traces().ok()?.into_iter().rfind(is_it)
            }
        }
    }

    /// The word in the place of a file, if there is none of that name, but a process.
    fn bare_process(&self) -> Option<&str> {
        let word = self.file.as_ref()?.to_str()?;
        (word != "-" && !word.contains('/') && !Path::new(word).exists() && process::is_there(word)).then_some(word)
    }

    /// Where the trace is, if no process was named in its place.
    fn place(&self, pid: Option<u32>) -> anyhow::Result<Place> {
        if let Some(path) = self.input.as_ref().or(self.file.as_ref()) {
            return if path.as_os_str() == "-" {
                Ok(Place::Piped(Piped::begin(io::stdin()).context(READING_STDIN)?))
            } else {
                Ok(Place::File(named(path)))
            };
        }
        if let Some(app) = &self.app {
            let path = match (pid, self.shm_id) {
                (Some(pid), _) => format!("{SHM}/{app}{NAME_BASE}pid{pid}"),
                (None, Some(id)) => format!("{SHM}/{app}{NAME_BASE}{id}"),
                (None, None) => {
                    let there = what_is_there()?;
                    return Err(usage(format!("-s needs the application's -p PID or --shm-id ID; {there}")));
                }
            };
            if !Path::new(&path).exists() {
                bail!("there is no {path}; {}", what_is_there()?);
            }
            return Ok(Place::File(path.into()));
        }
        if is_piped() {
            let piped = Piped::begin(io::stdin()).context(READING_STDIN)?;
            if !piped.start.is_empty() {
                return Ok(Place::Piped(piped));
            }
        }
        let Some(newest) = traces()?.into_iter().next_back() else {
            bail!("no trace file in {SHM}: give one with -i FILE, or pipe the output of spdk_trace -j into dptrace");
        };
        note(&format!("reading the newest trace file, {}", printable(&newest)));
        Ok(Place::File(newest))
    }
}

/// What a user named as a trace. A file of a capture stands for the capture.
pub(crate) fn named(path: &Path) -> PathBuf {
    let Some(folder) = capture::open::folder_of(path) else { return path.to_owned() };
    note(&format!("{} is a part of a capture: reading all of {}", printable(path), printable(&folder)));
    folder
}

impl Place {
    /// For messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::File(path) => printable(path),
            Self::Piped(_) => "standard input".to_owned(),
        }
    }

    /// Returns who may read what is made of it: of a capture, which the user alone may read, it is the user alone.
    pub(crate) fn access(&self) -> Access {
        match self {
            Self::File(path) if capture::open::is_capture(path) => Access::Owner,
            Self::File(_) | Self::Piped(_) => Access::Umask,
        }
    }

    /// Reads the trace: a raw file whole, and of a JSON document its tables. Its records can be asked for once; `again`,
    /// if more often.
    pub(crate) fn load(self, again: bool) -> anyhow::Result<Loaded> {
        let name = self.name();
        let trace = match self {
            Self::File(path) if path.is_dir() => return capture::open::load(&path),
            Self::File(path) => load_file(&path, again).map_err(|error| other_instead(&path).unwrap_or(error)),
            Self::Piped(piped) => piped.load(again),
        };
        let trace = trace.with_context(|| format!("reading {name}"))?;
        Ok(Loaded { trace, name, measured: None, capture: None })
    }

    /// The same, and meanwhile measures the rate of the ticks, if a process of this machine writes them: that takes some
    /// milliseconds.
    pub(crate) fn load_measured(self) -> anyhow::Result<Loaded> {
        let measuring = match &self {
            Self::File(path) if is_of_application(path) => Measuring::begin(path),
            _ => None,
        };
        let loaded = self.load(false)?;
        let Some(measuring) = measuring else { return Ok(loaded) };
        let measured = measuring.finish(loaded.trace.tick_rate());
        Ok(Loaded { measured, ..loaded })
    }
}

/// What is said if something else was given in place of a trace: a script, by its file or bundled name, or a part of a capture.
fn other_instead(path: &Path) -> Option<anyhow::Error> {
    let is_file = path.exists();
    let start = user_file::start(path).unwrap_or_default();
    if start.starts_with(b"dpRINGS") || start.starts_with(b"dpKEVTS") {
        let (path, meta) = (printable(path), capture::open::META);
        return Some(usage(format!(
            "{path} is a part of a capture: give the capture's folder, which has a {meta} as well"
        )));
    }
    let is_script = path.extension().is_some_and(|it| it == "bt") || start.starts_with(b"#!");
    let is_bundled = path.to_str().is_some_and(crate::run::is_bundled);
    let what = match () {
        () if is_file && is_script => "a script",
        () if !is_file && is_bundled => "a bundled script",
        () => return None,
    };
    Some(usage(format!("it is {what}, and no trace: dptrace run {}", text::shell::word(path))))
}

fn load_file(path: &Path, again: bool) -> anyhow::Result<Trace> {
    let source = FileSource::open(path)?;
    // A pipe, as of a shell's <(...), can't be read at a position.
    if !source.is_regular() {
        return Piped::begin(source.into_file())?.load(again);
    }
    if !source.is_text()? {
        return Ok(Trace::Raw(RawTrace::read(&Watched::new(&source))?));
    }
    document(JsonTrace::open(Box::new(source))?)
}

impl Piped {
    /// Reads its first bytes.
    fn begin(mut rest: impl Read + 'static) -> io::Result<Self> {
        let mut start = Vec::new();
        (&mut rest).take(FIRST_BYTES).read_to_end(&mut start)?;
        Ok(Self { start, rest: Box::new(rest), read: 0 })
    }

    fn load(mut self, again: bool) -> anyhow::Result<Trace> {
        let is_text = JsonTrace::is_text(&self.start);
        if is_text && !again {
            return document(JsonTrace::open(Box::new(PipedSource(RefCell::new(self))))?);
        }
        user_file::read_to(&mut self.start, self.rest, user_file::PIPED_TRACE)?;
        if is_text { document(JsonTrace::parse(self.start)?) } else { Ok(Trace::Raw(RawTrace::read(&self.start)?)) }
    }

    /// The next bytes, up to what fits.
    fn next(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let first = self.start.get(self.read as usize..).filter(|first| !first.is_empty());
        let n = match first {
            Some(mut first) => first.read(buf)?,
            None => loop {
                match self.rest.read(buf) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    done => break done?,
                }
            },
        };
        self.read += n as u64;
        Ok(n)
    }
}

/// For a reader that asks for each range behind the last one.
struct PipedSource(RefCell<Piped>);

impl ReadAt for PipedSource {
    /// Not known.
    fn len(&self) -> u64 {
        u64::MAX
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut piped = self.0.borrow_mut();
        if offset != piped.read {
            return Err(io::Error::other("a pipe can be read only once"));
        }
        piped.next(buf)
    }
}

fn document(json: JsonTrace) -> anyhow::Result<Trace> {
    // spdk_trace -j always writes them, and without them no entry says anything.
    if json.tpoints().all().is_empty() {
        bail!("a JSON document without tracepoints: this is not the output of spdk_trace -j");
    }
    Ok(Trace::Json(json))
}

/// The tracepoints of a trace file, from its header: no record is read. None if the file is no trace, or no regular file, on
/// which opening could wait.
pub(crate) fn tpoints_of(path: &Path) -> Option<Vec<Tpoint>> {
    let metadata = path.metadata().ok()?;
    if metadata.is_dir() {
        let reader = capture::open::reader_quietly(path).ok()?;
        return Some(reader.trace().ok()?.tpoints().all().to_vec());
    }
    if !metadata.is_file() {
        return None;
    }
    let source = FileSource::open(path).ok()?;
    if source.is_text().ok()? {
        return Some(JsonTrace::open(Box::new(source)).ok()?.tpoints().all().to_vec());
    }
    Some(Follower::new(&source).ok()?.tpoints().all().to_vec())
}

/// A source of bytes that shows how far it is read.
struct Watched<'a, S> {
    source: &'a S,
    progress: RefCell<Progress>,
    read: Cell<u64>,
}

impl<'a, S: ReadAt> Watched<'a, S> {
    fn new(source: &'a S) -> Self {
        Self { source, progress: RefCell::new(Progress::new(&terminal::observer())), read: Cell::new(0) }
    }
}

impl<S: ReadAt> ReadAt for Watched<'_, S> {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        /// Bytes at a time, so that a slow disk is seen to make progress.
        const PIECE: usize = 8 << 20;
        let piece = buf.len().min(PIECE);
        let n = self.source.read_at(&mut buf[..piece], offset)?;
        self.read.set(self.read.get() + n as u64);
        let mut progress = self.progress.borrow_mut();
        progress.show(|_| format!("reading the file: {}", percent(self.read.get(), self.len())));
        Ok(n)
    }
}

/// Whether standard input is a pipe, a socket or a file, rather than a terminal or /dev/null.
fn is_piped() -> bool {
    if io::stdin().is_terminal() {
        return false;
    }
    let kind = match fs::metadata("/dev/stdin") {
        Ok(metadata) => metadata.file_type(),
        // Closed, as by `<&-`.
        Err(_) => return false,
    };
    kind.is_fifo() || kind.is_file() || kind.is_socket()
}
