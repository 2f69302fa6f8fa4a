//! The objects of a capture: a recording as `dptrace record -p` makes one.

use std::fs::File;
use std::io::{self, Write as _};
use std::time::Duration;

use anyhow::bail;
use live_objects::{PendingFinder, Pointers, STARTUP_TIMEOUT, Session, attach, find};
use objects::ObjectSpec;
use observer::Observer;

/// Size of a small ring buffer for objects that come and go, some hundred at once, in bytes. It is
/// for use where memory is scarce: a process maps a ring buffer's pages twice.
pub const SMALL_RING: u32 = 1 << 20;

/// Objects of a process, which are recorded already.
pub struct Objects {
    /// Session that finds them.
    pub session: Session,
    observer: Observer,
}

impl Objects {
    /// Finds the existing objects, and attaches to the probes that report beginnings and ends.
    ///
    /// `ring_bytes` is the size of their ring buffer.
    pub fn start(
        pid: u32,
        specs: &[ObjectSpec],
        probes: bool,
        ring_bytes: u32,
        observer: &Observer,
    ) -> anyhow::Result<Self> {
        let to_find = specs.to_vec();
        let opening = PendingFinder::start(move || {
            find(pid, &to_find, |specs| Pointers::from_process(specs, pid))
        });
        let recorder = if probes {
            attach(pid, specs, ring_bytes, bpf_session::POLL_INTERVAL, observer)
        } else {
            Err(anyhow::anyhow!("--no-probes was given"))
        };
        let mut session = match recorder {
            Ok(recorder) => Session::start(opening, Some(recorder), STARTUP_TIMEOUT),
            Err(error) => {
                let Some(finder) = opening.finish() else {
                    return Err(error);
                };
                if probes {
                    observer.note(&format!(
                        "objects are found only in the process's memory: {error:#}"
                    ));
                }
                Session::start(PendingFinder::ready(Some(finder)), None, Duration::ZERO)
            }
        };
        if !probes && session.first_found().is_none() {
            bail!("no objects were found in the process's memory");
        }
        Ok(Self {
            session,
            observer: observer.clone(),
        })
    }

    /// Starts the file.
    pub(crate) fn follow(self, file: File) -> ObjectRecorder {
        ObjectRecorder {
            session: self.session,
            observer: self.observer,
            written: ObjectFile {
                file,
                lines: 0,
                bytes: 0,
            },
        }
    }
}

/// Objects that are being recorded.
pub(crate) struct ObjectRecorder {
    session: Session,
    observer: Observer,
    pub(crate) written: ObjectFile,
}

/// Output file with its counts.
pub(crate) struct ObjectFile {
    file: File,
    pub(crate) lines: u64,
    /// Size of these lines in bytes.
    pub(crate) bytes: u64,
}

impl ObjectRecorder {
    /// Writes the lines that have arrived.
    pub(crate) fn next(&mut self) -> io::Result<()> {
        let lines = self.session.next(Duration::ZERO);
        self.written.write(&lines)
    }

    /// Takes the ticks that probes passed, with the kernel's time (`CLOCK_MONOTONIC`) of the same
    /// hits, since the last call.
    pub(crate) fn take_hits(&mut self) -> Vec<(u64, u64)> {
        self.session.take_pairs()
    }

    /// Detaches the probes, and writes the remaining lines.
    pub(crate) fn finish(mut self, writes: bool) -> (ObjectFile, io::Result<()>) {
        let (rest, totals) = self.session.finish();
        if let Some(Err(error)) = totals {
            self.observer.note(&format!("objects: {error}"));
        }
        let result = if writes {
            self.written.write(&rest)
        } else {
            Ok(())
        };
        (self.written, result)
    }
}

impl ObjectFile {
    fn write(&mut self, lines: &[String]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let text: String = lines
            .iter()
            .flat_map(|line| [line.as_str(), "\n"])
            .collect();
        self.file.write_all(text.as_bytes())?;
        self.lines += lines.len() as u64;
        self.bytes += text.len() as u64;
        Ok(())
    }

    /// Cuts off an incomplete line, after a failure.
    pub(crate) fn cut(&self) -> io::Result<()> {
        self.file.set_len(self.bytes)
    }
}
