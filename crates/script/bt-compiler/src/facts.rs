//! Facts that the compiler needs about the machine and the target. It queries a fact only when a
//! script needs it: reading the kernel's BTF takes longer than compiling.

use std::path::PathBuf;
use std::sync::Arc;

use elf::{CodePlace, PlaceFault, ProbePoint};
use kernel_text::tracefs::TracepointFormat;
use uapi::Arch;
use usdt::ProbeLocation;

/// Kernel features that programs can do without. A kernel that lacks any other feature refuses the
/// program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a thing of its own, which the kernel has or lacks"
)]
pub struct KernelFacts {
    /// Atomic exchange of a word of memory, since Linux 5.12. Earlier kernels don't preempt
    /// programs, so it isn't needed there.
    pub exchange: bool,
    /// Map keys of more than 512 bytes, since Linux 5.11. On earlier kernels, strings are shorter
    /// by default.
    pub large_keys: bool,
    /// Programs of uprobes that may wait for a page of memory, since Linux 6.0.
    pub sleepable: bool,
    /// Maps that allocate each entry when it is added, since Linux 6.1. Earlier ones allocate all
    /// memory with the map, so it can't run out later.
    pub allocation: bool,
}

impl KernelFacts {
    /// Kernel that has all features.
    pub const ALL: Self = Self {
        exchange: true,
        large_keys: true,
        sleepable: true,
        allocation: true,
    };
}

/// Process, or processes, to which tracing is limited.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TracedProcess {
    /// Process number in our PID namespace; for several processes, that of the first.
    pub pid: u32,
    /// Numbers of the other processes. Used only in the kernel's first PID namespace.
    pub others: Vec<u32>,
    /// Device and inode of the process's own PID namespace, and its number there. Set only if our
    /// namespace is not the kernel's first: the kernel gives a process's number only in its own
    /// namespace and the first.
    pub inside: Option<((u64, u64), u32)>,
    /// True if processes that it starts from now on are traced too, and those that they start.
    pub follows_forks: bool,
}

impl TracedProcess {
    /// Returns true if programs look up traced processes in a map
    /// ([`Script::followed`](bt_abi::Script::followed)), since there may be more than one.
    pub fn is_set(&self) -> bool {
        self.follows_forks || !self.others.is_empty()
    }
}

/// Function in a file that processes run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionPlace {
    /// Path of the file, which we can open.
    pub path: PathBuf,
    /// Name of the file in messages, mostly as in the script.
    pub shown: String,
    /// Name of the function as matched (demangled if `cpp:` asked for that).
    pub name: String,
    /// Offset of the first instruction in the file.
    pub offset: u64,
    /// Size in bytes, 0 if unknown.
    pub size: u64,
    /// Address in the file's own terms.
    pub vaddr: u64,
    /// Place to attach to, or the reason why there is none.
    pub at: Result<CodePlace, PlaceFault>,
}

/// USDT probe in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsdtPlaces {
    /// Path of the file, which we can open.
    pub path: PathBuf,
    /// Name of the file in messages.
    pub shown: String,
    /// Provider of the probe.
    pub provider: String,
    /// Name of the probe.
    pub name: String,
    /// Places of the probe in the file.
    pub places: Vec<ProbeLocation>,
}

/// Failed search, or one that was not possible.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotFound {
    /// Problem, in lowercase and without a full stop.
    pub message: String,
    /// True if the search succeeded and found nothing. The script's setting decides whether that is
    /// a mistake.
    pub absent: bool,
    /// Hints such as the nearest names, or the file where it would be.
    pub hints: Vec<String>,
}

/// Setting given outside the script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigFact {
    /// Name of the setting in lowercase, without `BPFTRACE_`.
    pub name: String,
    /// Text of the value.
    pub value: String,
}

/// Machine and target, as data. Implementations do the reading. Any method may be called many times
/// with the same question.
pub trait TargetFacts {
    /// Returns the machine's architecture.
    fn arch(&self) -> Arch;
    /// Returns the kernel's optional features.
    fn kernel(&self) -> KernelFacts;
    /// Returns the kernel's BTF (`/sys/kernel/btf/vmlinux`), if there is any.
    fn kernel_btf(&self) -> Option<&[u8]>;
    /// Returns the bytes of an ELF file whose DWARF has the target's types, for types that are not
    /// the kernel's. `path` is the file of a uprobe or a USDT probe.
    fn debug_elf(&self, path: &str) -> Option<&[u8]>;
    /// Finds functions in user files. `target` is as in the script: a path, a pattern of paths, a
    /// library's name, `*`, or nothing for the process of `-p`. `function` may be a pattern; with
    /// `cpp` it is matched against demangled names. `aim` selects what is probed in each function.
    fn functions(
        &self,
        target: Option<&str>,
        function: &str,
        cpp: bool,
        aim: ProbePoint,
    ) -> Result<Vec<FunctionPlace>, NotFound>;
    /// Finds the place of an address in a user file, as an offset in it. `aim` may ask for the
    /// return of a function that begins there.
    fn address(
        &self,
        target: Option<&str>,
        vaddr: u64,
        aim: ProbePoint,
    ) -> Result<FunctionPlace, NotFound>;
    /// Finds the place of a source line in the file's debug information. `file` is the source
    /// file's name or the end of its path.
    fn source_line(
        &self,
        target: &str,
        file: &str,
        line: u32,
        column: Option<u32>,
    ) -> Result<FunctionPlace, NotFound>;
    /// Finds USDT probes. Each of the three may be a pattern; no provider means any.
    fn usdt(
        &self,
        target: Option<&str>,
        provider: Option<&str>,
        name: &str,
    ) -> Result<Vec<UsdtPlaces>, NotFound>;
    /// Finds tracepoints, as category and name; both may be patterns.
    fn tracepoints(&self, category: &str, name: &str) -> Result<Vec<(String, String)>, NotFound>;
    /// Returns the record's format of a tracepoint.
    fn tracepoint(&self, category: &str, name: &str) -> Result<Arc<TracepointFormat>, NotFound>;
    /// Finds raw tracepoints by module (`vmlinux`: the kernel itself) and name; both may be
    /// patterns.
    fn raw_tracepoints(&self, module: Option<&str>, name: &str) -> Result<Vec<String>, NotFound>;
    /// Finds kernel functions that can be probed. The name may be a pattern.
    fn kernel_functions(&self, module: Option<&str>, name: &str) -> Result<Vec<String>, NotFound>;
    /// Returns true if the kernel has kprobes (`CONFIG_KPROBES`), which hints suggest where
    /// something else fails.
    fn has_kprobes(&self) -> bool {
        true
    }
    /// Returns the address of a kernel symbol, for `kaddr`.
    fn kernel_symbol(&self, name: &str) -> Option<u64>;
    /// Returns the address in the file and the size in bytes of a symbol in a user file, for
    /// `uaddr`.
    fn user_symbol(&self, target: &str, name: &str) -> Option<(u64, u64)>;
    /// Returns the id of a cgroup (its inode) by its path.
    fn cgroup_id(&self, path: &str) -> Option<u64>;
    /// Returns the process of `-p` or `-c`; the first, if there are several.
    fn pid(&self) -> Option<u32>;
    /// Returns the process to which tracing is limited; `None` if all are traced.
    fn traced(&self) -> Option<TracedProcess> {
        None
    }
    /// Returns the arguments behind the script's name on the command line.
    fn params(&self) -> &[String];
    /// Returns settings from the environment (`BPFTRACE_*`), which override the script's own
    /// `config`.
    fn environment(&self) -> Vec<ConfigFact>;
    /// Returns the number of CPUs that the machine can have.
    fn possible_cpus(&self) -> u32;
    /// Returns the number of CPUs online.
    fn online_cpus(&self) -> u32;
    /// Returns the kernel's limit on samples per second and CPU, if it is known.
    fn most_samples(&self) -> Option<u64> {
        None
    }
    /// Returns the start of tracing in nanoseconds of `CLOCK_BOOTTIME`, from which `elapsed`
    /// counts.
    fn start_time(&self) -> u64;
    /// Returns the process of `-c`, for `cpid`.
    fn child(&self) -> Option<u32>;
    /// Returns device and inode of our own PID namespace, if it is not the kernel's first. `pid`
    /// and `tid` are numbers of this namespace.
    fn pid_namespace(&self) -> Option<(u64, u64)>;
    /// Returns true if failed reads and look-ups are reported (`-k`); other failures always are.
    fn reports_reads(&self) -> bool {
        false
    }
    /// Returns true if programs mark that they were hit.
    fn marks_hits(&self) -> bool {
        false
    }
    /// Returns true if `--unsafe` was given.
    fn allows_unsafe(&self) -> bool;
}
