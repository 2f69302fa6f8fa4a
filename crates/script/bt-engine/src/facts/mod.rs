//! Facts about the machine and the target for the compiler, read on first use.

mod files;
mod kernel;
mod subject;
mod targets;

use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::Arc;

use bpf_session::Features;
use bt_compiler::{
    ConfigFact, FunctionPlace, KernelFacts, NotFound, TargetFacts, TracedProcess, UsdtPlaces,
};
use elf::ProbePoint;
use host::KernelSymbols;
use kernel_text::tracefs::TracepointFormat;
use text::patterns::{NamePattern, did_you_mean, nearest, nearest_in_groups};
use typeinfo::SourceLine;
use uapi::Arch;

use crate::builder::Options;
use crate::observe::SharedObserver;

pub(crate) use files::UserFiles;
pub(crate) use kernel::Kernel;
pub use subject::Target;
pub(crate) use subject::{Subject, all_ended};

/// Facts about the machine and the target: functions, probes, types. Each is read on first use, and
/// only once.
///
/// [`Builder`](crate::Builder) makes a script's own facts; tools that list possible probes make
/// some by [`Builder::facts`](crate::Builder::facts) and query them through [`TargetFacts`].
pub struct Facts {
    pub(crate) kernel: Kernel,
    pub(crate) files: UserFiles,
    features: OnceCell<Features>,
    options: Options,
    /// True if programs must not wait for pages of memory, even if the kernel supports it.
    sleepable_forbidden: Cell<bool>,
    start: u64,
}

impl Facts {
    pub(crate) fn new(subject: Subject, options: Options, observer: SharedObserver) -> Self {
        let start = sys::clock::boot_nanos();
        let kernel = Kernel::new(options.traceable_functions.clone());
        let files = UserFiles::new(subject, options.debug_folders.clone(), observer);
        let (features, sleepable_forbidden) = (OnceCell::new(), Cell::new(false));
        Self {
            kernel,
            files,
            features,
            options,
            sleepable_forbidden,
            start,
        }
    }

    /// Returns the reason why no tracepoint could be looked up, if some were asked for and tracefs
    /// could not be read.
    pub fn tracepoints_refused(&self) -> Option<String> {
        self.kernel.tracepoints_refused()
    }

    /// Returns the reason why a file could not be looked into, if this user may not read one.
    pub fn file_refused(&self) -> Option<String> {
        self.files.refused()
    }

    /// Returns the program and the libraries of the target's process, escaped; empty if the target
    /// is all processes.
    pub fn file_names(&self) -> Vec<String> {
        self.files.names()
    }

    /// Forbids programs to wait for pages of memory from now on: this kernel did not take such a
    /// program.
    pub(crate) fn forbid_sleepable(&self) {
        self.sleepable_forbidden.set(true);
    }

    /// Returns the target's processes; none for a command that waits.
    pub(crate) fn running(&self) -> Vec<u32> {
        let subject = self.files.subject();
        if subject.child().is_some() {
            Vec::new()
        } else {
            subject.pids()
        }
    }

    /// Returns the features that links may use.
    pub(crate) fn features(&self) -> Features {
        // If nothing can be tried, loading reports the reason.
        *self.features.get_or_init(|| {
            let all = kernel::known_features()
                .unwrap_or_else(|| Features::detect().unwrap_or(Features::none()));
            all.for_process(
                self.files
                    .subject()
                    .pid()
                    .filter(|_| self.traced().is_none_or(|it| !it.is_set())),
            )
        })
    }

    /// Returns the kernel's symbols, to share.
    pub(crate) fn kernel_symbols(&self) -> Rc<OnceCell<KernelSymbols>> {
        self.kernel.symbols()
    }
}

impl std::fmt::Debug for Facts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Facts")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl TargetFacts for Facts {
    fn arch(&self) -> Arch {
        Arch::HOST
    }

    fn kernel(&self) -> KernelFacts {
        KernelFacts {
            exchange: self.features().exchange,
            large_keys: self.features().large_keys,
            allocation: self.features().allocation,
            sleepable: self.features().sleepable_uprobes() && !self.sleepable_forbidden.get(),
        }
    }

    fn kernel_btf(&self) -> Option<&[u8]> {
        self.kernel.btf()
    }

    fn debug_elf(&self, path: &str) -> Option<&[u8]> {
        self.files.debug(path)
    }

    fn functions(
        &self,
        target: Option<&str>,
        function: &str,
        cpp: bool,
        aim: ProbePoint,
    ) -> Result<Vec<FunctionPlace>, NotFound> {
        self.files.functions(target, function, cpp, aim)
    }

    fn address(
        &self,
        target: Option<&str>,
        vaddr: u64,
        aim: ProbePoint,
    ) -> Result<FunctionPlace, NotFound> {
        self.files.address(target, vaddr, aim)
    }

    fn source_line(
        &self,
        target: &str,
        file: &str,
        line: u32,
        column: Option<u32>,
    ) -> Result<FunctionPlace, NotFound> {
        self.files
            .source_line(target, &SourceLine { file, line, column })
    }

    fn usdt(
        &self,
        target: Option<&str>,
        provider: Option<&str>,
        name: &str,
    ) -> Result<Vec<UsdtPlaces>, NotFound> {
        self.files.usdt(target, provider, name)
    }

    fn tracepoints(&self, category: &str, name: &str) -> Result<Vec<(String, String)>, NotFound> {
        self.kernel.tracepoints(category, name)
    }

    fn tracepoint(&self, category: &str, name: &str) -> Result<Arc<TracepointFormat>, NotFound> {
        self.kernel.tracepoint(category, name)
    }

    fn raw_tracepoints(&self, module: Option<&str>, name: &str) -> Result<Vec<String>, NotFound> {
        self.kernel.raw_tracepoints(module, name)
    }

    fn kernel_functions(&self, module: Option<&str>, name: &str) -> Result<Vec<String>, NotFound> {
        self.kernel.functions(module, name)
    }

    fn has_kprobes(&self) -> bool {
        host::PerfSource::find("kprobe").is_some()
    }

    fn kernel_symbol(&self, name: &str) -> Option<u64> {
        self.kernel
            .symbols()
            .get_or_init(|| KernelSymbols::read().unwrap_or_default())
            .address(name)
    }

    fn user_symbol(&self, target: &str, name: &str) -> Option<(u64, u64)> {
        self.files.symbol(target, name)
    }

    fn cgroup_id(&self, path: &str) -> Option<u64> {
        host::cgroups::id(std::path::Path::new(path))
    }

    fn pid(&self) -> Option<u32> {
        self.files.subject().pid()
    }

    fn traced(&self) -> Option<TracedProcess> {
        // bpftrace's -c limits user probes only.
        let is_limited =
            self.files.subject().child().is_none() || !self.options.command_limits_user_probes;
        let pid = self.pid().filter(|_| is_limited)?;
        let inside = self
            .pid_namespace()
            .and_then(|_| host::proc::inside(host::Pid(pid)));
        let others = self.files.subject().pids().split_off(1);
        Some(TracedProcess {
            pid,
            others,
            inside,
            follows_forks: self.options.follow_forks,
        })
    }

    fn params(&self) -> &[String] {
        &self.options.params
    }

    fn environment(&self) -> Vec<ConfigFact> {
        let settings = self.options.settings.iter();
        settings
            .map(|(name, value)| ConfigFact {
                name: name.clone(),
                value: value.clone(),
            })
            .collect()
    }

    fn possible_cpus(&self) -> u32 {
        host::cpus::possible().map_or(1, |cpus| cpus as u32)
    }

    fn online_cpus(&self) -> u32 {
        host::cpus::online().len() as u32
    }

    fn most_samples(&self) -> Option<u64> {
        host::system::setting("perf_event_max_sample_rate")?
            .try_into()
            .ok()
    }

    fn start_time(&self) -> u64 {
        self.start
    }

    fn child(&self) -> Option<u32> {
        self.files.subject().child()
    }

    fn pid_namespace(&self) -> Option<(u64, u64)> {
        host::system::inner_pid_namespace()
    }

    fn reports_reads(&self) -> bool {
        self.options.report_reads
    }

    fn marks_hits(&self) -> bool {
        self.options.mark_hits
    }

    fn allows_unsafe(&self) -> bool {
        self.options.allow_unsafe
    }
}

/// Parses a pattern.
fn pattern(text: &str) -> Result<NamePattern, NotFound> {
    NamePattern::parse(text).map_err(|error| NotFound {
        message: error.to_string(),
        absent: false,
        hints: Vec::new(),
    })
}

/// Returns the error for a missing name of a group, with the nearest ones that exist.
fn missing_in_groups<'a>(
    message: String,
    group: Option<&str>,
    name: &str,
    known: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> NotFound {
    let near = nearest_in_groups(group, name, known, 3);
    NotFound {
        message,
        absent: true,
        hints: did_you_mean(&near).into_iter().collect(),
    }
}

/// Returns the error for a missing name, with the nearest ones that exist.
fn missing<'a>(
    message: String,
    wanted: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> NotFound {
    let plain = wanted.replace(['*', '?'], "");
    let near = nearest(&plain, known, 3);
    NotFound {
        message,
        absent: true,
        hints: did_you_mean(&near).into_iter().collect(),
    }
}
