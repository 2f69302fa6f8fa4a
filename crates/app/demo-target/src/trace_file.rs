//! The trace file: created at the start, written live by both reactors, removed at the end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use spdk_trace_writer::nvmf::{BDEVS, FIRST_OWNER, OWNER_BDEV, Stages};
use spdk_trace_writer::{Image, LiveTrace, Record, TraceBuilder};

use crate::clock;
use crate::error::DemoError;
use crate::mapped::Mapped;
use crate::options::Options;

/// Folder of SPDK's shared memory files.
const SHM: &str = "/dev/shm";

/// Trace file, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct TraceFile {
    live: LiveTrace,
    /// Content for reactors that map the file, so that they make no system call to record.
    image: Option<Image>,
    keep: bool,
}

impl TraceFile {
    /// Creates the file, named as SPDK names it (`SPDK_TRACE_SHM_NAME_BASE` and the process id,
    /// `lib/event/app.c`).
    pub(crate) fn create(
        options: &Options,
        tick_rate: u64,
        reactors: u32,
    ) -> Result<Self, DemoError> {
        let era = options.trace_era();
        let path = Path::new(SHM).join(format!("{}_trace.pid{}", options.app, std::process::id()));
        let mut trace = TraceBuilder::new(era)
            .tsc_rate(tick_rate)
            .slots(options.slots);
        let stages = Stages::new(era);
        stages.declare(&mut trace);
        for (number, bdev) in BDEVS.iter().enumerate().filter(|_| stages.has_owners()) {
            trace.owner(
                (FIRST_OWNER + number) as u16,
                OWNER_BDEV,
                clock::ticks(),
                &format!("bdev_{bdev}"),
            );
        }
        for lcore in 0..reactors {
            let lcore_builder = trace.lcore(lcore);
            if era.spec().has_thread_names() {
                lcore_builder.thread_name(&format!("reactor_{lcore}"));
            }
        }
        match LiveTrace::create(&path, &trace) {
            Ok(live) => {
                let image = options.is_real_time().then(|| {
                    let mut image = trace.empty_image();
                    trace.replay(&mut image, |_, _| ());
                    image
                });
                Ok(Self {
                    live,
                    image,
                    keep: options.keep,
                })
            }
            Err(source) => Err(DemoError::TraceFile { path, source }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.live.path()
    }

    /// Returns a writer for one reactor.
    pub(crate) fn ring(&self, lcore: u32) -> Result<Ring, DemoError> {
        let failed = |source| DemoError::TraceFile {
            path: self.path().to_owned(),
            source,
        };
        let writer = match &self.image {
            Some(image) => Mapped::new(self.live.file(), image.clone(), lcore).map(Writer::Mapped),
            None => self.live.another().map(Writer::Live),
        };
        Ok(Ring {
            writer: Some(writer.map_err(failed)?),
            lcore,
            error: None,
        })
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        if !self.keep {
            // If somebody else has removed it, it is gone as it should be.
            let _ = fs::remove_file(self.path());
        }
    }
}

/// Method of writing a ring.
#[derive(Debug)]
enum Writer {
    Live(LiveTrace),
    Mapped(Mapped),
}

/// Ring of one reactor, or nothing if no trace is wanted.
#[derive(Debug)]
pub(crate) struct Ring {
    writer: Option<Writer>,
    lcore: u32,
    error: Option<io::Error>,
}

impl Ring {
    /// Creates a ring for a target without a trace file.
    pub(crate) fn none(lcore: u32) -> Self {
        Self {
            writer: None,
            lcore,
            error: None,
        }
    }

    pub(crate) fn record(&mut self, record: &Record) {
        let written = match &mut self.writer {
            Some(Writer::Live(live)) => live.record(self.lcore, record).map(drop),
            Some(Writer::Mapped(mapped)) => {
                mapped.record(record);
                Ok(())
            }
            None => Ok(()),
        };
        self.note(written);
    }

    pub(crate) fn owner(&mut self, id: u16, owner_type: u8, tsc: u64, description: &str) {
        let written = match &mut self.writer {
            Some(Writer::Live(live)) => live.owner(id, owner_type, tsc, description),
            Some(Writer::Mapped(mapped)) => {
                mapped.owner(id, owner_type, tsc, description);
                Ok(())
            }
            None => Ok(()),
        };
        self.note(written);
    }

    fn note(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.writer = None;
            self.error = Some(error);
        }
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.error.is_some()
    }

    /// Returns the error that ended the writing, if any.
    pub(crate) fn into_error(self, path: Option<PathBuf>) -> Option<DemoError> {
        self.error.map(|source| DemoError::TraceFile {
            path: path.unwrap_or_default(),
            source,
        })
    }
}
