//! Output to standard output or a file, through one large buffer.
//!
//! A file is complete or absent: [`Output::finish`] puts it in place, and if a command fails before
//! that, an old file stays as it was. A file that can be read while it grows ([`Output::open`]) is
//! put in place with its first bytes.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use errors::usage;
use rustix::fs::FileType;
use screen::Screen;
use text::printable::path as printable;
use whole_file::{Access, WholeFile};

use crate::{interrupt, status_line};

/// Size of the buffer, in bytes, at which it is written.
const BUFFER: usize = 256 * 1024;
/// Number of full buffers that may wait for the writing thread, besides the one that it writes.
const MAX_QUEUED_BUFFERS: usize = 2;

/// Buffer that formats append to, and its destination.
pub struct Output {
    /// Bytes to be written.
    pub buffer: Vec<u8>,
    sink: Sink,
    /// Name of the destination, for messages.
    name: String,
    /// Set if the output goes to a regular file, and so to nobody who looks at this terminal.
    is_file: bool,
}

/// Destination of the bytes.
enum Writer {
    Stream(Box<dyn Write + Send>),
    /// File that is put in place when it is complete.
    Whole(WholeFile),
    /// File that is put in place with its first bytes.
    Growing(WholeFile),
}

/// Writer of full buffers.
enum Sink {
    Here(Writer),
    /// A thread: full buffers go there, and come back empty.
    Thread {
        full: SyncSender<Vec<u8>>,
        empty: Receiver<Vec<u8>>,
    },
}

impl Output {
    /// Opens an output that can be read while it grows: standard output (also by the name `-`, as
    /// for the input), or the file of that name. An old file is replaced with the first bytes, so a
    /// command that fails before that leaves it alone. After that, the written part stays, however
    /// the command ends.
    pub fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        Self::to(path, Access::Umask, Writer::Growing)
    }

    /// Opens standard output, or a file that is complete or absent: [`Self::finish`] puts it in
    /// place.
    pub fn whole(path: Option<&Path>, access: Access) -> anyhow::Result<Self> {
        Self::to(path, access, Writer::Whole)
    }

    fn to(
        path: Option<&Path>,
        access: Access,
        writer: fn(WholeFile) -> Writer,
    ) -> anyhow::Result<Self> {
        let (writer, name, is_file) = match file(path) {
            None => (
                Writer::Stream(Box::new(io::stdout())),
                "standard output".to_owned(),
                is_regular(&io::stdout()),
            ),
            Some(path) => {
                let created = WholeFile::create(path, access)?;
                let is_file = is_regular(created.file());
                (writer(created), printable(path), is_file)
            }
        };
        Ok(Self {
            buffer: empty_buffer(),
            sink: Sink::Here(writer),
            name,
            is_file,
        })
    }

    /// Opens an output that is discarded: only the unflushed buffer is of interest.
    pub fn discarded() -> Self {
        let (sink, name) = (
            Sink::Here(Writer::Stream(Box::new(io::sink()))),
            String::new(),
        );
        Self {
            buffer: Vec::new(),
            sink,
            name,
            is_file: true,
        }
    }

    /// Returns whether the output is known to go to a regular file.
    pub fn is_file(&self) -> bool {
        self.is_file
    }

    /// Empties the buffer if it is full.
    #[inline]
    pub fn drain(&mut self) -> io::Result<()> {
        if self.buffer.len() < BUFFER {
            return Ok(());
        }
        self.flush()
    }

    /// Empties the buffer.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Here(writer) => {
                if !self.is_file {
                    // Without its lock, which a message of another thread would wait for.
                    status_line::without(|| ());
                }
                let written = write(writer, &self.buffer);
                self.buffer.clear();
                written.map_err(|error| failed(&self.name, &error))
            }
            Sink::Thread { full, empty } => {
                let next = empty.try_recv().unwrap_or_else(|_| empty_buffer());
                // If the thread has ended, its own error is the one that is reported.
                full.send(std::mem::replace(&mut self.buffer, next))
                    .map_err(|_| io::ErrorKind::BrokenPipe.into())
            }
        }
    }

    /// Empties the buffer, and puts a file in place once the disk has all of it.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        match self.sink {
            Sink::Here(Writer::Whole(file) | Writer::Growing(file)) => {
                file.commit().map_err(|error| failed(&self.name, &error))
            }
            Sink::Here(Writer::Stream(_)) | Sink::Thread { .. } => Ok(()),
        }
    }

    /// Runs `gather` with a thread that writes its output, so that it need not wait for the kernel.
    /// Everything is written when this returns.
    pub fn in_background<T>(
        &mut self,
        gather: impl FnOnce(&mut Self) -> io::Result<T>,
    ) -> io::Result<T> {
        let (full, to_write) = sync_channel(MAX_QUEUED_BUFFERS);
        let (written, empty) = channel();
        let Sink::Here(writer) = std::mem::replace(&mut self.sink, Sink::Thread { full, empty })
        else {
            return gather(self);
        };
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || write_all(writer, &to_write, &written));
            let gathered = gather(self);
            // This closes the channel, and so ends the thread.
            self.sink = Sink::Here(Writer::Stream(Box::new(io::sink())));
            let (writer, result) = thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            self.sink = Sink::Here(writer);
            result
                .map_err(|error| failed(&self.name, &error))
                .and(gathered)
        })
    }
}

/// Appends to the buffer, which is written when it is full.
impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        self.drain()?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Self::flush(self)
    }
}

fn is_regular(fd: &impl AsFd) -> bool {
    rustix::fs::fstat(fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file())
}

fn file(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| path.as_os_str() != "-")
}

/// Returns an error if `-o` names one of the inputs, which it would destroy. Each input comes with
/// its description.
pub fn refuse_inputs<'a>(
    output: Option<&Path>,
    inputs: impl IntoIterator<Item = (&'static str, &'a Path)>,
) -> anyhow::Result<()> {
    let Some(output) = file(output) else {
        return Ok(());
    };
    let identity = |path: &Path| path.metadata().map(|file| (file.dev(), file.ino())).ok();
    let Some(written) = identity(output) else {
        return Ok(());
    };
    match inputs
        .into_iter()
        .find(|(_, input)| identity(input) == Some(written))
    {
        Some((what, _)) => Err(usage(format!("-o {} is {what}", printable(output)))),
        None => Ok(()),
    }
}

/// Returns the screen that output to that path will have, before the file is created.
pub fn screen(path: Option<&Path>) -> Screen {
    if file(path).is_none() {
        Screen::stdout()
    } else {
        Screen::default()
    }
}

fn empty_buffer() -> Vec<u8> {
    Vec::with_capacity(BUFFER + BUFFER / 4)
}

/// Writes buffers until there are no more, or one can't be written.
fn write_all(
    mut writer: Writer,
    full: &Receiver<Vec<u8>>,
    written: &Sender<Vec<u8>>,
) -> (Writer, io::Result<()>) {
    let mut result = Ok(());
    while let (Ok(()), Ok(mut buffer)) = (&result, full.recv()) {
        result = write(&mut writer, &buffer);
        buffer.clear();
        // The gathering thread may have ended already.
        let _ = written.send(buffer);
    }
    (writer, result)
}

fn write(writer: &mut Writer, buffer: &[u8]) -> io::Result<()> {
    let out: &mut dyn Write = match writer {
        Writer::Stream(stream) => stream,
        Writer::Whole(file) | Writer::Growing(file) => file,
    };
    let mut pieces = buffer.chunks(interrupt::piece());
    pieces.try_for_each(|piece| interrupt::writing(|| out.write_all(piece)))?;
    interrupt::writing(|| out.flush())?;
    match writer {
        Writer::Growing(file) if !buffer.is_empty() => file.publish(),
        _ => Ok(()),
    }
}

/// Adds the destination to an error. The kind is kept: a reader that went away is no failure.
fn failed(name: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("writing to {name}: {error}"))
}
