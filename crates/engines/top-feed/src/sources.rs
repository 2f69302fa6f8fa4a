//! Sources of a process's seconds: what can be had of it, and the reasons for what can't.

use std::path::PathBuf;

use anyhow::Context as _;
use capture_recorder::{ProcessSet, RequestSource};
use host::Pid;
use objects::ObjectSpec;
use observer::Observer;
use sys::process::PidFd;
use text::printable;
use trace_source::cpus::{self, Placement};

use crate::{Feeds, Kernel, Trace};

/// Limit on the files of one second.
const MAX_FILES: usize = 1000;

/// Process that is shown.
pub struct Subject {
    /// Number of the process.
    pub pid: u32,
    /// Name of the process.
    name: String,
    process: PidFd,
}

impl Subject {
    /// Opens the process.
    pub fn open(pid: u32) -> anyhow::Result<Self> {
        let name = host::proc::program_name(Pid(pid)).unwrap_or_default();
        Ok(Self {
            pid,
            name: printable::text(&name).into_owned(),
            process: PidFd::open(pid)?,
        })
    }

    /// Returns its title: `nvmf_tgt [1234]`.
    pub fn title(&self) -> String {
        format!("{} [{}]", self.name, self.pid)
    }

    /// Returns the name of a file for a second, which does not exist in the current folder.
    ///
    /// # Errors
    ///
    /// Fails if all names exist.
    pub fn free_file(&self, second: u64) -> anyhow::Result<PathBuf> {
        let names = (0..MAX_FILES).map(|n| {
            let more = if n == 0 {
                String::new()
            } else {
                format!("-{n}")
            };
            PathBuf::from(format!("dptrace-top-{}-{second}{more}.json", self.pid))
        });
        let mut free = names.filter(|path| !path.exists());
        free.next()
            .with_context(|| format!("there are {MAX_FILES} files of that name"))
    }

    /// Returns true if the process has ended.
    pub fn has_ended(&self) -> bool {
        self.process.has_ended().unwrap_or(false)
    }
}

/// Options of the feeds.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub struct FeedOptions {
    /// Source of the requests.
    pub requests: RequestSource,
    /// Kinds of the objects to find.
    pub specs: Vec<ObjectSpec>,
    /// True if probes of the process report its objects.
    pub probes: bool,
    /// True if all records are read, at any cost.
    pub all_records: bool,
    /// True if programs may be loaded into the kernel.
    pub kernel: bool,
    /// True if the CPUs are audited from the start.
    pub cpus: bool,
}

impl FeedOptions {
    /// Returns the processes to show for one that was chosen: those that a server starts belong to
    /// it.
    pub fn chosen(&self, pid: u32) -> ProcessSet {
        ProcessSet {
            children: self.requests == RequestSource::Sockets,
            ..ProcessSet::one(pid)
        }
    }
}

/// Sources of a process, ready to start.
pub struct Sources {
    pid: u32,
    trace: Option<Trace>,
    kernel: Option<Kernel>,
    /// Reasons why there are no connections, and no threads.
    pub missing: [Option<String>; 2],
    place: Placement,
}

impl Sources {
    /// Finds the requests of the processes, and attaches to their threads. Call this before any thread
    /// that reads is started: they inherit the CPUs of the calling one.
    ///
    /// # Errors
    ///
    /// Fails if neither is possible.
    pub fn open(
        processes: &ProcessSet,
        options: &FeedOptions,
        observer: &Observer,
    ) -> anyhow::Result<Self> {
        let place = cpus::keep_off(processes.pids.iter().copied(), observer);
        let trace = Trace::find(options.requests, processes);
        let kernel = if options.kernel {
            Kernel::attach(processes, observer)
        } else {
            Err(anyhow::anyhow!("--no-kernel was given"))
        };
        let (trace, kernel) = match (trace, kernel) {
            (Err(trace), Err(kernel)) => {
                place.finish();
                if !options.kernel {
                    return Err(trace.context("there is nothing to show"));
                }
                // Rights are what a user can do something about: the error says how to get them,
                // and the note does not say that again.
                observer.note(&format!("no connections: {trace:#}"));
                return Err(kernel.context("there is nothing to show"));
            }
            both => both,
        };
        let missing = [trace.as_ref().err(), kernel.as_ref().err()]
            .map(|error| error.map(|error| observer.explain(error)));
        Ok(Self {
            pid: processes.first(),
            trace: trace.ok(),
            kernel: kernel.ok(),
            missing,
            place,
        })
    }

    /// Starts the feeds. With `gives_way`, they have the lowest priority if there are no CPUs but
    /// those of the process.
    ///
    /// # Errors
    ///
    /// Fails if the trace can't be read, or no thread can be started.
    pub fn start(
        self,
        options: &FeedOptions,
        gives_way: bool,
        observer: &Observer,
    ) -> anyhow::Result<Feeds> {
        // Finding objects takes its time: the first second begins after it. Behind pollers, with
        // the lowest priority, it would take half a minute.
        let trace = self
            .trace
            .map(|trace| trace.open(options, observer))
            .transpose()?;
        if gives_way {
            self.place.give_way_for(None);
        }
        let mut feeds = Feeds::start(self.pid, (trace, self.kernel), self.place, observer)?;
        feeds.may_load = options.kernel;
        if options.cpus {
            feeds.audit()?;
        }
        Ok(feeds)
    }
}
