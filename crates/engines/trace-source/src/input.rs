//! The input of a command: a raw file, JSON, a capture, or a pipe with one of these.

use std::cell::{Cell, RefCell};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use capture::Meta;
use errors::usage;
use host::user_file;
use observer::{Observer, Progress, percent};
use spdk_trace::{Follower, JsonTrace, RawTrace, ReadAt, TickRate, Tpoint, Trace};
use text::printable::path as printable;
use whole_file::Access;

use crate::captures;
use crate::file::{FileSource, is_of_application};
use crate::measured_rate::{MeasuredRate, RateMeasurement};

/// Number of bytes that distinguish text from a raw trace file.
const FIRST_BYTES: u64 = 512;

/// Trace, and its origin.
pub struct LoadedTrace {
    /// Trace.
    pub trace: Trace,
    /// Name for messages: the file's path, "standard input" or "the requests".
    pub name: String,
    /// Measured rate of its ticks, if the trace is written on this machine while it is read.
    pub measured: Option<MeasuredRate>,
    /// Description of the capture, if it is one.
    pub capture: Option<Box<Meta>>,
}

impl LoadedTrace {
    /// Returns the rate of its ticks: the measured one if there is one. The rate in a file is
    /// rounded, to 10 MHz by DPDK before v24.11 and to 100 kHz since.
    pub fn rate(&self) -> TickRate {
        self.measured
            .map_or(self.trace.tick_rate(), |measured| measured.rate)
    }
}

/// Source of the bytes.
pub enum Place {
    /// File or folder.
    File(PathBuf),
    /// Standard input.
    Piped(PipedInput),
    /// Trace that this process wrote itself, in memory.
    Recorded(FileSource),
}

/// Stream that can be read only once, from its beginning to its end.
pub struct PipedInput {
    /// First bytes, read to detect the format.
    start: Vec<u8>,
    rest: Box<dyn Read>,
    read: u64,
}

/// Returns the path that a user means by the name of a trace: a file of a capture stands for the
/// capture, and a folder of captures, as `dptrace capture --slow` writes it, for the newest one.
pub fn named(path: &Path, observer: &Observer) -> PathBuf {
    let mut slow = captures::slow_in(path);
    let captures = screen::counted(slow.len() as u64, "capture");
    if let Some(newest) = slow.pop() {
        observer.note(&format!(
            "{} has {captures}: reading the newest one, {}",
            printable(path),
            printable(&newest)
        ));
        return newest;
    }
    let Some(folder) = captures::folder_of(path) else {
        return path.to_owned();
    };
    observer.note(&format!(
        "{} is part of a capture: reading all of {}",
        printable(path),
        printable(&folder)
    ));
    folder
}

impl Place {
    /// Returns the path, if it is a file.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Piped(_) | Self::Recorded(_) => None,
        }
    }

    /// Returns the name for messages.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => printable(path),
            Self::Piped(_) => "standard input".to_owned(),
            Self::Recorded(_) => "the requests".to_owned(),
        }
    }

    /// Returns the access mode of files derived from the input: the user alone for a capture, which
    /// only the user may read.
    pub fn access(&self) -> Access {
        match self {
            Self::File(path) if captures::is_capture(path) => Access::Owner,
            Self::File(_) | Self::Piped(_) | Self::Recorded(_) => Access::Umask,
        }
    }

    /// Reads the trace: a raw file whole, and only the tables of a JSON document. A document's
    /// records can be read once, or more often if `again`.
    pub fn load(self, again: bool, observer: &Observer) -> anyhow::Result<LoadedTrace> {
        let name = self.name();
        let trace = match self {
            Self::File(path) if path.is_dir() => return captures::load(&path, observer),
            Self::File(path) => load_file(&path, again, observer)
                .map_err(|error| part_of_capture(&path).unwrap_or(error)),
            Self::Piped(piped) => piped.load(again),
            Self::Recorded(source) => RawTrace::read(&source).map(Trace::Raw).map_err(Into::into),
        };
        let trace = trace.with_context(|| format!("reading {name}"))?;
        Ok(LoadedTrace {
            trace,
            name,
            measured: None,
            capture: None,
        })
    }

    /// Reads the trace, and meanwhile measures the rate of the ticks if a process of this machine
    /// writes them. That takes some milliseconds.
    pub fn load_measured(self, observer: &Observer) -> anyhow::Result<LoadedTrace> {
        let measuring = match &self {
            Self::File(path) if is_of_application(path) => RateMeasurement::begin(path),
            _ => None,
        };
        let loaded = self.load(false, observer)?;
        let Some(measuring) = measuring else {
            return Ok(loaded);
        };
        let measured = measuring.finish(loaded.trace.tick_rate());
        Ok(LoadedTrace { measured, ..loaded })
    }
}

fn load_file(path: &Path, again: bool, observer: &Observer) -> anyhow::Result<Trace> {
    let source = FileSource::open(path)?;
    // A pipe, such as a shell's <(...), can't be read at a position.
    if !source.is_regular() {
        return PipedInput::begin(source.into_file())?.load(again);
    }
    if !source.is_text()? {
        return Ok(Trace::Raw(RawTrace::read(&ProgressSource::new(
            &source, observer,
        ))?));
    }
    document(JsonTrace::open(Box::new(source))?)
}

impl PipedInput {
    /// Returns true if it had no bytes.
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// Reads the first bytes of a stream.
    pub fn begin(mut rest: impl Read + 'static) -> io::Result<Self> {
        let mut start = Vec::new();
        (&mut rest).take(FIRST_BYTES).read_to_end(&mut start)?;
        Ok(Self {
            start,
            rest: Box::new(rest),
            read: 0,
        })
    }

    fn load(mut self, again: bool) -> anyhow::Result<Trace> {
        let is_text = JsonTrace::is_text(&self.start);
        if is_text && !again {
            return document(JsonTrace::open(Box::new(PipedSource(RefCell::new(self))))?);
        }
        user_file::read_to(&mut self.start, self.rest, user_file::PIPED_TRACE)?;
        if is_text {
            document(JsonTrace::parse(self.start)?)
        } else {
            Ok(Trace::Raw(RawTrace::read(&self.start)?))
        }
    }

    /// Reads the next bytes, up to the size of the buffer.
    fn next(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let first = self
            .start
            .get(self.read as usize..)
            .filter(|first| !first.is_empty());
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

/// Source for a reader that requests consecutive ranges.
struct PipedSource(RefCell<PipedInput>);

impl ReadAt for PipedSource {
    /// Returns the maximum: the length is unknown.
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
    // spdk_trace -j always writes them, and without them no entry means anything.
    if json.tpoints().all().is_empty() {
        bail!("a JSON document without tracepoints: this is not the output of spdk_trace -j");
    }
    Ok(Trace::Json(json))
}

/// Returns the tracepoints of a trace file from its header, without reading a record. `None` if the
/// file is no trace, or not a regular file, whose opening could block.
pub fn tpoints_of(path: &Path) -> Option<Vec<Tpoint>> {
    let metadata = path.metadata().ok()?;
    if metadata.is_dir() {
        let reader = captures::reader_quietly(path).ok()?;
        return Some(reader.trace().ok()?.tpoints().all().to_vec());
    }
    if !metadata.is_file() {
        return None;
    }
    let source = FileSource::open(path).ok()?;
    if source.is_text().ok()? {
        return Some(
            JsonTrace::open(Box::new(source))
                .ok()?
                .tpoints()
                .all()
                .to_vec(),
        );
    }
    Some(Follower::new(&source).ok()?.tpoints().all().to_vec())
}

/// Source of bytes that shows the progress of reading.
struct ProgressSource<'a, S> {
    source: &'a S,
    progress: RefCell<Progress>,
    read: Cell<u64>,
}

impl<'a, S: ReadAt> ProgressSource<'a, S> {
    fn new(source: &'a S, observer: &Observer) -> Self {
        Self {
            source,
            progress: RefCell::new(Progress::new(observer)),
            read: Cell::new(0),
        }
    }
}

impl<S: ReadAt> ReadAt for ProgressSource<'_, S> {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        /// Limit on one read, in bytes, so that a slow disk is seen to make progress.
        const READ_BYTES: usize = 8 << 20;
        let piece = buf.len().min(READ_BYTES);
        let n = self.source.read_at(&mut buf[..piece], offset)?;
        self.read.set(self.read.get() + n as u64);
        let mut progress = self.progress.borrow_mut();
        progress.show(|_| format!("reading the file: {}", percent(self.read.get(), self.len())));
        Ok(n)
    }
}

/// Returns the error for a part of a capture that was given in place of a trace, if it is one.
fn part_of_capture(path: &Path) -> Option<anyhow::Error> {
    let start = user_file::start(path).unwrap_or_default();
    let is_part = start.starts_with(b"dpRINGS") || start.starts_with(b"dpKEVTS");
    is_part.then(|| {
        let (path, meta) = (printable(path), captures::META);
        usage(format!(
            "{path} is part of a capture: give the capture's folder, which also has a {meta}"
        ))
    })
}
