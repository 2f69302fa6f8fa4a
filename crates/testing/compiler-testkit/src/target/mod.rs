//! A machine and a target made of data.

mod names;
mod setup;

use std::sync::Arc;

use bt_compiler::{
    ConfigFact, FunctionPlace, KernelFacts, NotFound, TargetFacts, TracedProcess, UsdtPlaces,
};
use elf::ProbePoint;
use kernel_text::tracefs::TracepointFormat;
use uapi::Arch;

pub use names::Names;
use names::{fitting, not_found, wanted};
use setup::instruction;

/// A machine and its probes. A new one has none; fields and builders add those that a test needs.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct FakeTarget {
    /// Architecture of the machine.
    pub arch: Arch,
    /// Features of its kernel.
    pub kernel: KernelFacts,
    /// Types of its kernel.
    pub btf: Option<&'static [u8]>,
    /// ELF files with DWARF, by the files that they describe.
    pub debug: Vec<(String, &'static [u8])>,
    /// Functions of files.
    pub functions: Vec<FunctionPlace>,
    /// USDT probes.
    pub usdt: Vec<UsdtPlaces>,
    /// Tracepoints by category.
    pub tracepoints: Vec<(String, Arc<TracepointFormat>)>,
    /// Raw tracepoints.
    pub raw_tracepoints: Names,
    /// Kernel functions; complete names are symbols, too.
    pub kernel_functions: Names,
    /// Cgroup of all absolute paths.
    pub cgroup: Option<u64>,
    /// Process of `-p`.
    pub pid: Option<u32>,
    /// Further processes, if several are traced.
    pub others: Vec<u32>,
    /// Kernel's limit on samples per second.
    pub most_samples: Option<u64>,
    /// Process of `-c`.
    pub child: Option<u32>,
    /// Arguments after the script's name.
    pub params: Vec<String>,
    /// True if the kernel has no kprobes.
    pub no_kprobes: bool,
    /// Settings of the environment.
    pub settings: Vec<ConfigFact>,
    /// Number of possible CPUs, and of online ones.
    pub cpus: (u32, u32),
    /// Start time of tracing.
    pub start_time: u64,
    /// Device and inode of the PID namespace.
    pub pid_namespace: Option<(u64, u64)>,
    /// `-k`
    pub reports_reads: bool,
    /// Marks of programs that were hit.
    pub marks_hits: bool,
    /// `--unsafe`
    pub allows_unsafe: bool,
}

impl FakeTarget {
    /// Returns whether the file `shown` matches the target; any does if that is `None`.
    fn in_file(target: Option<&str>, shown: &str) -> bool {
        let short = shown.rsplit('/').next().unwrap_or(shown);
        target.is_none_or(|target| wanted(target, shown) || target == short)
    }

    /// Returns the location in a file for an address.
    fn at(
        &self,
        target: Option<&str>,
        vaddr: u64,
        aim: ProbePoint,
        what: &str,
    ) -> Result<FunctionPlace, NotFound> {
        let place = self
            .functions
            .iter()
            .find(|place| Self::in_file(target, &place.shown));
        let at = instruction(vaddr, aim);
        let found = place.map(|place| FunctionPlace {
            offset: vaddr & 0xffff,
            vaddr,
            at,
            ..place.clone()
        });
        found.ok_or_else(|| not_found(what))
    }
}

impl TargetFacts for FakeTarget {
    fn arch(&self) -> Arch {
        self.arch
    }

    fn kernel(&self) -> KernelFacts {
        self.kernel
    }

    fn kernel_btf(&self) -> Option<&[u8]> {
        self.btf
    }

    fn debug_elf(&self, path: &str) -> Option<&[u8]> {
        self.debug
            .iter()
            .find(|(file, _)| file == path)
            .map(|(_, bytes)| *bytes)
    }

    fn functions(
        &self,
        target: Option<&str>,
        name: &str,
        _: bool,
        aim: ProbePoint,
    ) -> Result<Vec<FunctionPlace>, NotFound> {
        // A name without a path that matches no program.
        let is_name = target.is_some_and(|target| !target.contains(['/', '*']));
        if is_name
            && !self
                .functions
                .iter()
                .any(|it| Self::in_file(target, &it.shown))
        {
            return Err(NotFound {
                absent: false,
                ..not_found("such program")
            });
        }
        let all = self.functions.iter().map(|it| FunctionPlace {
            at: instruction(it.vaddr, aim),
            ..it.clone()
        });
        fitting(all, "function", |place| {
            Self::in_file(target, &place.shown) && wanted(name, &place.name)
        })
    }

    fn address(
        &self,
        target: Option<&str>,
        vaddr: u64,
        aim: ProbePoint,
    ) -> Result<FunctionPlace, NotFound> {
        self.at(target, vaddr, aim, "address")
    }

    fn source_line(
        &self,
        target: &str,
        _: &str,
        line: u32,
        _: Option<u32>,
    ) -> Result<FunctionPlace, NotFound> {
        self.at(Some(target), u64::from(line), ProbePoint::Within(0), "line")
    }

    fn usdt(
        &self,
        target: Option<&str>,
        provider: Option<&str>,
        name: &str,
    ) -> Result<Vec<UsdtPlaces>, NotFound> {
        fitting(self.usdt.iter().cloned(), "probe", |probe| {
            Self::in_file(target, &probe.shown)
                && wanted(name, &probe.name)
                && provider.is_none_or(|it| wanted(it, &probe.provider))
        })
    }

    fn tracepoints(&self, category: &str, name: &str) -> Result<Vec<(String, String)>, NotFound> {
        let all = self
            .tracepoints
            .iter()
            .map(|(category, format)| (category.clone(), format.name.clone()));
        fitting(all, "tracepoint", |known| {
            wanted(category, &known.0) && wanted(name, &known.1)
        })
    }

    fn tracepoint(&self, category: &str, name: &str) -> Result<Arc<TracepointFormat>, NotFound> {
        let found = self
            .tracepoints
            .iter()
            .find(|known| known.0 == category && known.1.name == name);
        found
            .map(|known| Arc::clone(&known.1))
            .ok_or_else(|| not_found("tracepoint"))
    }

    fn raw_tracepoints(&self, _: Option<&str>, name: &str) -> Result<Vec<String>, NotFound> {
        self.raw_tracepoints.fitting(name, "raw tracepoint")
    }

    fn kernel_functions(&self, module: Option<&str>, name: &str) -> Result<Vec<String>, NotFound> {
        // With listed names, there are no modules.
        if matches!(self.kernel_functions, Names::These(_))
            && module.is_some_and(|module| module != "vmlinux")
        {
            return Err(NotFound {
                absent: false,
                ..not_found("such module")
            });
        }
        self.kernel_functions.fitting(name, "function")
    }

    fn kernel_symbol(&self, name: &str) -> Option<u64> {
        self.kernel_functions
            .has(name)
            .then_some(0xffff_ffff_8100_0000)
    }

    fn user_symbol(&self, target: &str, name: &str) -> Option<(u64, u64)> {
        let is_it = |place: &&FunctionPlace| {
            Self::in_file(Some(target), &place.shown) && place.name == name
        };
        self.functions.iter().find(is_it).map(|_| (0x4000, 8))
    }

    fn cgroup_id(&self, path: &str) -> Option<u64> {
        self.cgroup.filter(|_| path.starts_with('/'))
    }

    fn pid(&self) -> Option<u32> {
        self.pid
    }

    fn traced(&self) -> Option<TracedProcess> {
        let others = Some(&self.others)
            .filter(|others| !others.is_empty())?
            .clone();
        Some(TracedProcess {
            pid: self.pid?,
            others,
            inside: None,
            follows_forks: false,
        })
    }

    fn most_samples(&self) -> Option<u64> {
        self.most_samples
    }

    fn params(&self) -> &[String] {
        &self.params
    }

    fn environment(&self) -> Vec<ConfigFact> {
        self.settings.clone()
    }

    fn possible_cpus(&self) -> u32 {
        self.cpus.0
    }

    fn online_cpus(&self) -> u32 {
        self.cpus.1
    }

    fn start_time(&self) -> u64 {
        self.start_time
    }

    fn child(&self) -> Option<u32> {
        self.child
    }

    fn pid_namespace(&self) -> Option<(u64, u64)> {
        self.pid_namespace
    }

    fn reports_reads(&self) -> bool {
        self.reports_reads
    }

    fn marks_hits(&self) -> bool {
        self.marks_hits
    }

    fn has_kprobes(&self) -> bool {
        !self.no_kprobes
    }

    fn allows_unsafe(&self) -> bool {
        self.allows_unsafe
    }
}
