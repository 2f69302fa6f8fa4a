//! A machine and a target made of data.

use std::path::PathBuf;
use std::sync::Arc;

use bt_compiler::{
    ConfigFact, FunctionPlace, KernelFacts, NotFound, TargetFacts, TracedProcess, UsdtPlaces,
};
use elf::{CodePlace, ElfVaddr, FileOffset, PlaceFault, ProbePoint};
use kernel_text::tracefs::TracepointFormat;
use uapi::Arch;
use usdt::args::parse_args;
use usdt::{ProbeLocation, Semaphore};

/// Existing names.
#[derive(Clone, Debug)]
pub enum Names {
    /// Only these names.
    These(Vec<String>),
    /// Any name.
    Any,
}

impl Names {
    /// Creates a list of names.
    pub fn these(names: &[&str]) -> Self {
        Self::These(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn fitting(&self, pattern: &str, what: &str) -> Result<Vec<String>, NotFound> {
        match self {
            Self::These(names) => {
                fitting(names.iter().cloned(), what, |name| wanted(pattern, name))
            }
            Self::Any => Ok(vec![pattern.to_owned()]),
        }
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Self::These(names) => names.iter().any(|known| known == name),
            Self::Any => true,
        }
    }
}

/// A machine and its probes. A new one has none; fields and builders add those that a test needs.
#[derive(Clone, Debug)]
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
    /// `--unsafe`
    pub allows_unsafe: bool,
}

impl FakeTarget {
    /// Creates a machine without probes, whose kernel has all features.
    pub fn new(arch: Arch) -> Self {
        Self {
            arch,
            kernel: KernelFacts::ALL,
            btf: None,
            debug: Vec::new(),
            functions: Vec::new(),
            usdt: Vec::new(),
            tracepoints: Vec::new(),
            raw_tracepoints: Names::These(Vec::new()),
            kernel_functions: Names::These(Vec::new()),
            cgroup: None,
            pid: None,
            others: Vec::new(),
            most_samples: None,
            child: None,
            params: Vec::new(),
            no_kprobes: false,
            settings: Vec::new(),
            cpus: (2, 2),
            start_time: 0,
            pid_namespace: None,
            reports_reads: false,
            allows_unsafe: false,
        }
    }

    /// Adds a function of a file, at this address.
    #[must_use]
    pub fn with_function(mut self, file: &str, name: &str, vaddr: u64) -> Self {
        let offset = vaddr & 0xffff;
        let (path, shown, name) = (PathBuf::from(file), file.to_owned(), name.to_owned());
        let at = instruction(vaddr, ProbePoint::Within(0));
        self.functions.push(FunctionPlace {
            path,
            shown,
            name,
            offset,
            size: 64,
            vaddr,
            at,
        });
        self
    }

    /// Adds a USDT probe, with a location for each text of arguments, as in its note.
    #[must_use]
    pub fn with_usdt(mut self, file: &str, provider: &str, name: &str, places: &[&str]) -> Self {
        let place = |(args, number): (&&str, u64)| ProbeLocation {
            vaddr: ElfVaddr(0x1234 * number),
            at: CodePlace::unverified(FileOffset(0x1234 * number)),
            semaphore: Some(Semaphore {
                vaddr: ElfVaddr(0x5000),
                offset: FileOffset(0x5000),
            }),
            args: parse_args(self.arch, args).unwrap_or_default().into(),
        };
        let places = places.iter().zip(1..).map(place).collect();
        let (path, shown) = (PathBuf::from(file), file.to_owned());
        self.usdt.push(UsdtPlaces {
            path,
            shown,
            provider: provider.to_owned(),
            name: name.to_owned(),
            places,
        });
        self
    }

    /// Adds a tracepoint, with its fields in tracefs's format, after the common ones.
    #[must_use]
    pub fn with_tracepoint(mut self, category: &str, name: &str, fields: &str) -> Self {
        let common = [
            ("unsigned short", "type", 0, 2),
            ("unsigned char", "flags", 2, 1),
        ]
        .into_iter();
        let common = common.chain([
            ("unsigned char", "preempt_count", 3, 1),
            ("int", "pid", 4, 4),
        ]);
        let line = |(ty, name, offset, size): (&str, &str, u8, u8)| {
            format!(
                "\tfield:{ty} common_{name};\toffset:{offset};\tsize:{size};\tsigned:{};\n",
                u8::from(ty == "int")
            )
        };
        let common: String = common.map(line).collect();
        let text = format!("name: {name}\nID: 7\nformat:\n{common}\n{fields}\nprint fmt: \"\"\n");
        self.tracepoints.push((
            category.to_owned(),
            Arc::new(TracepointFormat::parse(&text).unwrap()),
        ));
        self
    }

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

/// Returns the attach location. Every instruction has four bytes, addresses from 2^32 on belong to
/// no function, and no function can be entered in the second half of 64 bytes.
fn instruction(vaddr: u64, aim: ProbePoint) -> Result<CodePlace, PlaceFault> {
    let begin = ElfVaddr(vaddr);
    let vaddr = ElfVaddr(if let ProbePoint::Within(within) = aim {
        vaddr.saturating_add(within)
    } else {
        vaddr
    });
    let before = ElfVaddr(vaddr.0 & !3);
    match before.checked_add(4) {
        _ if begin.0 >> 32 != 0 => Err(PlaceFault::NoFunction { vaddr }),
        after if before != vaddr => Err(PlaceFault::Inside {
            vaddr,
            before,
            after,
        }),
        _ if aim == ProbePoint::Return && vaddr.0 & 32 != 0 => Err(PlaceFault::NotEntry { vaddr }),
        _ => Ok(CodePlace::unverified(FileOffset(vaddr.0 & 0xffff))),
    }
}

/// Returns whether a name matches a pattern, which may have stars.
fn wanted(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => name
            .strip_prefix(head)
            .is_some_and(|rest| tail.contains('*') || rest.ends_with(tail)),
    }
}

fn not_found(what: &str) -> NotFound {
    NotFound {
        message: format!("there is no {what}"),
        absent: true,
        hints: vec!["near: main".to_owned()],
    }
}

/// Returns the items that fit; an error if none does.
fn fitting<T>(
    all: impl IntoIterator<Item = T>,
    what: &str,
    fits: impl Fn(&T) -> bool,
) -> Result<Vec<T>, NotFound> {
    let found: Vec<T> = all.into_iter().filter(fits).collect();
    if found.is_empty() {
        Err(not_found(what))
    } else {
        Ok(found)
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

    fn has_kprobes(&self) -> bool {
        !self.no_kprobes
    }

    fn allows_unsafe(&self) -> bool {
        self.allows_unsafe
    }
}
