//! What the compiler needs to know of the machine and the target. It queries a fact only when a script needs it: reading the
//! kernel's BTF takes longer than compiling.

use std::path::PathBuf;
use std::sync::Arc;

use elf::{Aim, CodePlace, PlaceFault};
use kernel_text::tracefs::TracepointFormat;
use uapi::Arch;
use usdt::Place;

/// What the kernel can do, as far as programs can do without it. What they can't do without, a kernel that lacks it refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own, which the kernel has or lacks")]
pub struct KernelFacts {
    /// Exchanging a word of memory in one step. Since Linux 5.12; before, programs can't be preempted, and need none.
    pub exchange: bool,
    /// Map keys of more than 512 bytes. Since Linux 5.11; before, strings are shorter where nothing else is said.
    pub large_keys: bool,
    /// Uprobes' programs may wait for a page of memory. Since Linux 6.0.
    pub sleepable: bool,
    /// Maps whose entries' memory is taken when they come. Since Linux 6.1; before, it is taken with the map, and can't be
    /// lacking later.
    pub allocation: bool,
}

impl KernelFacts {
    /// All of it.
    pub const ALL: Self = Self { exchange: true, large_keys: true, sleepable: true, allocation: true };
}

/// The process whose events alone count, or several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TracedProcess {
    /// Its number as we see it; of several, the first one's.
    pub pid: u32,
    /// The numbers of the others. Only in the kernel's first PID namespace.
    pub others: Vec<u32>,
    /// Where ours is not the kernel's first PID namespace: device and inode of the process's own, and its number there. The
    /// kernel says a process's number in no namespace but its own and the first.
    pub inside: Option<((u64, u64), u32)>,
    /// Whether those count that it starts from now on, and those that they start.
    pub follows_forks: bool,
}

impl TracedProcess {
    /// Whether programs look into a map for those that count ([`Script::followed`](bt_abi::Script::followed)): there may be
    /// more than one.
    pub fn is_set(&self) -> bool {
        self.follows_forks || !self.others.is_empty()
    }
}

/// A function in a file that processes run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionPlace {
    /// The file, by a name that we can open.
    pub path: PathBuf,
    /// The file, as messages name it: mostly as in the script.
    pub shown: String,
    /// The function's name as matched (demangled where `cpp:` asked for that).
    pub name: String,
    /// Its first instruction, as an offset in the file.
    pub offset: u64,
    /// Its bytes, 0 if not known.
    pub size: u64,
    /// Its address in the file's own terms.
    pub vaddr: u64,
    /// Where to attach, or why that is impossible.
    pub at: Result<CodePlace, PlaceFault>,
}

/// A USDT probe in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsdtPlaces {
    /// The file, by a name that we can open.
    pub path: PathBuf,
    /// The file, as messages name it.
    pub shown: String,
    /// Who defines it.
    pub provider: String,
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub places: Vec<Place>,
}

/// What was looked for and not found, or could not be looked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotFound {
    /// What is wrong: lowercase, no full stop.
    pub message: String,
    /// Whether it was looked for, and is not there: the script's setting says whether that is a mistake.
    pub absent: bool,
    /// What would help (the nearest names, the file where it would be).
    pub hints: Vec<String>,
}

/// A setting that was given outside of the script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigFact {
    /// The setting's name, lower case, without `BPFTRACE_`.
    pub name: String,
    /// Its text.
    pub value: String,
}

/// The machine and the target, as data. Implementations do the reading; all methods may be called many times with the same
/// question.
pub trait TargetFacts {
    /// The machine.
    fn arch(&self) -> Arch;
    /// What the kernel can do.
    fn kernel(&self) -> KernelFacts;
    /// The kernel's BTF (`/sys/kernel/btf/vmlinux`).
    fn kernel_btf(&self) -> Option<&[u8]>;
    /// A file with DWARF that has the target's types (an ELF file's bytes), for types that are not the kernel's: asked for
    /// the files of uprobes and USDT probes.
    fn debug_elf(&self, path: &str) -> Option<&[u8]>;
    /// Functions in user files. `target` is as the script has it: a path, a pattern of paths, a library's name, `*`, or
    /// nothing for the process of `-p`. `function` may be a pattern; with `cpp` it is matched against demangled names.
    /// `aim` is what is to be probed of each.
    fn functions(
        &self,
        target: Option<&str>,
        function: &str,
        cpp: bool,
        aim: Aim,
    ) -> Result<Vec<FunctionPlace>, NotFound>;
    /// The place of an address in a user file, as an offset in it, or its return if a function begins there.
    fn address(&self, target: Option<&str>, vaddr: u64, aim: Aim) -> Result<FunctionPlace, NotFound>;
    /// The place of a line of the source, by the file's debug information: the file's name or the end of its path, the
    /// line, and the column.
    fn source_line(&self, target: &str, file: &str, line: u32, column: Option<u32>) -> Result<FunctionPlace, NotFound>;
    /// USDT probes. Any of the three may be a pattern; no provider means any.
    fn usdt(&self, target: Option<&str>, provider: Option<&str>, name: &str) -> Result<Vec<UsdtPlaces>, NotFound>;
    /// Tracepoints as category and name; both may be patterns.
    fn tracepoints(&self, category: &str, name: &str) -> Result<Vec<(String, String)>, NotFound>;
    /// A tracepoint's record.
    fn tracepoint(&self, category: &str, name: &str) -> Result<Arc<TracepointFormat>, NotFound>;
    /// Raw tracepoints by module (`vmlinux`: the kernel itself) and name; both may be patterns.
    fn raw_tracepoints(&self, module: Option<&str>, name: &str) -> Result<Vec<String>, NotFound>;
    /// Kernel functions that can be probed, by name, which may be a pattern.
    fn kernel_functions(&self, module: Option<&str>, name: &str) -> Result<Vec<String>, NotFound>;
    /// Whether the kernel has kprobes (`CONFIG_KPROBES`): what is advised where something else does not work.
    fn has_kprobes(&self) -> bool {
        true
    }
    /// The address of a kernel symbol, for `kaddr`.
    fn kernel_symbol(&self, name: &str) -> Option<u64>;
    /// The address of a symbol in a user file, as the file has it, and its size, for `uaddr`.
    fn user_symbol(&self, target: &str, name: &str) -> Option<(u64, u64)>;
    /// The id of a cgroup by its path (its inode).
    fn cgroup_id(&self, path: &str) -> Option<u64>;
    /// The process of `-p` or `-c`; of several, the first.
    fn pid(&self) -> Option<u32>;
    /// The process whose events alone count, where it is not everybody's.
    fn traced(&self) -> Option<TracedProcess> {
        None
    }
    /// What stands behind the script's name on the command line.
    fn params(&self) -> &[String];
    /// Settings from the environment (`BPFTRACE_*`), which come before a script's own `config`.
    fn environment(&self) -> Vec<ConfigFact>;
    /// How many CPUs the machine can have.
    fn possible_cpus(&self) -> u32;
    /// How many are online.
    fn online_cpus(&self) -> u32;
    /// How many samples per second the kernel takes at most on each CPU, if that is known.
    fn most_samples(&self) -> Option<u64> {
        None
    }
    /// When tracing began, in nanoseconds of `CLOCK_BOOTTIME`: what `elapsed` counts from.
    fn start_time(&self) -> u64;
    /// The process of `-c`, for `cpid`.
    fn child(&self) -> Option<u32>;
    /// The device and inode of our own PID namespace, where it isn't the kernel's first: `pid` and `tid` are as we see them.
    fn pid_namespace(&self) -> Option<(u64, u64)>;
    /// Whether failed reads and look-ups are reported (`-k`); other failures always are.
    fn reports_reads(&self) -> bool {
        false
    }
    /// Whether `--unsafe` was given.
    fn allows_unsafe(&self) -> bool;
}
