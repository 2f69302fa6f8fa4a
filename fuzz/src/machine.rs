//! A made-up kernel and process: probes of every kind, with the types of `facts/facts.c`.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use bpf_codegen::script::interface::{ConfigFact, FunctionPlace, KernelFacts, NotFound, TargetFacts, UsdtPlaces};
use probes::args::parse_args;
use probes::registers::Arch;
use probes::tracefs::TracepointFormat;
use probes::usdt::{Place, Semaphore};
use probes::{ElfVaddr, FileOffset};

/// What the script's file is called.
const FILE: &str = "/bin/a";
const FUNCTIONS: [&str; 4] = ["main", "f", "vfs_read", "ns::name(int)"];
const KERNEL_FUNCTIONS: [&str; 4] = ["vfs_read", "vfs_open", "no_args", "f"];

/// The arguments of USDT probes, a place each.
const PROBES: [(&str, &[&str]); 4] = [
    ("probe", &["8@%rdi 4@-4(%rbp) -2@$-5", "8@%rsi 4@8(%rbp) -2@%ax"]),
    ("two", &["-4@%edi 8@-1200(%rsp)"]),
    ("none", &[""]),
    ("odd", &["1@%dil -1@global(%rip) 8@8(%rax,%rbx,4) 4f@%xmm0"]),
];

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
const FORMATS: [(&str, &str, &str); 3] = [
    (
        "raw_syscalls",
        "sys_enter",
        "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\
         \tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n",
    ),
    (
        "sched",
        "sched_switch",
        "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
         \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
         \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
         \tfield:struct task_struct * next;\toffset:40;\tsize:8;\tsigned:0;\n",
    ),
    (
        "net",
        "odd",
        "\tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;\n\
         \tfield:__rel_loc u8[] bytes;\toffset:12;\tsize:4;\tsigned:0;\n\
         \tfield:bool flag;\toffset:16;\tsize:1;\tsigned:0;\n\
         \tfield:enum state state;\toffset:20;\tsize:4;\tsigned:1;\n",
    ),
];

static TRACEPOINTS: LazyLock<Vec<(&str, Arc<TracepointFormat>)>> = LazyLock::new(|| {
    let read = |(category, name, fields): (&'static str, &str, &str)| {
        let text = format!("name: {name}\nID: 7\nformat:\n{COMMON}{fields}\nprint fmt: \"\"\n");
        (category, Arc::new(TracepointFormat::parse(&text).unwrap()))
    };
    FORMATS.map(read).into()
});

/// The machine. Scripts are compiled for one of a few.
pub struct Machine {
    arch: Arch,
    kernel: KernelFacts,
    btf: bool,
    pid: Option<u32>,
    params: Vec<String>,
}

impl Machine {
    /// One of them: what the bits say is there or not.
    pub fn new(bits: usize) -> Self {
        let has = |bit: u32| bits & (1 << bit) == 0;
        let kernel = if has(0) {
            KernelFacts::ALL
        } else {
            KernelFacts { exchange: false, large_keys: false, sleepable: false }
        };
        Self {
            arch: if has(1) { Arch::X86_64 } else { Arch::Aarch64 },
            kernel,
            btf: has(2),
            pid: (!has(3)).then_some(4711),
            params: ["12", "text", "main"].map(str::to_owned).into(),
        }
    }
}

/// Whether a name is wanted by another one, which may have stars.
fn wanted(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => name.strip_prefix(head).is_some_and(|rest| tail.contains('*') || rest.ends_with(tail)),
    }
}

/// Those of the names that are wanted.
fn fitting<T>(all: impl IntoIterator<Item = T>, what: &str, fits: impl Fn(&T) -> bool) -> Result<Vec<T>, NotFound> {
    let found: Vec<T> = all.into_iter().filter(fits).collect();
    let missing =
        || NotFound { message: format!("there is no {what}"), absent: true, hints: vec!["near: main".to_owned()] };
    if found.is_empty() { Err(missing()) } else { Ok(found) }
}

fn function(name: &str, vaddr: u64) -> FunctionPlace {
    let (path, shown) = (PathBuf::from(FILE), FILE.to_owned());
    FunctionPlace { path, shown, name: name.to_owned(), offset: vaddr & 0xffff, size: 64, vaddr }
}

fn in_file(target: Option<&str>) -> bool {
    target.is_none_or(|target| wanted(target, FILE) || target == "a")
}

impl TargetFacts for Machine {
    fn arch(&self) -> Arch {
        self.arch
    }

    fn kernel(&self) -> KernelFacts {
        self.kernel
    }

    fn kernel_btf(&self) -> Option<&[u8]> {
        self.btf.then_some(include_bytes!("../facts/facts.btf"))
    }

    fn debug_elf(&self, path: &str) -> Option<&[u8]> {
        (path == FILE).then_some(include_bytes!("../facts/facts.so"))
    }

    fn functions(&self, target: Option<&str>, name: &str, _: bool) -> Result<Vec<FunctionPlace>, NotFound> {
        let all = FUNCTIONS.iter().zip(1..).map(|(name, number)| function(name, number * 0x1000));
        fitting(all, "function", |place| in_file(target) && wanted(name, &place.name))
    }

    fn address(&self, target: Option<&str>, vaddr: u64) -> Result<FunctionPlace, NotFound> {
        fitting([function("main", vaddr)], "address", |_| in_file(target)).map(|mut found| found.remove(0))
    }

    fn source_line(&self, target: &str, _: &str, line: u32, _: Option<u32>) -> Result<FunctionPlace, NotFound> {
        self.address(Some(target), u64::from(line))
    }

    fn usdt(&self, target: Option<&str>, provider: Option<&str>, name: &str) -> Result<Vec<UsdtPlaces>, NotFound> {
        let place = |text: &&str| Place {
            vaddr: ElfVaddr(0x1234),
            offset: FileOffset(0x1234),
            semaphore: Some(Semaphore { vaddr: ElfVaddr(0x5000), offset: FileOffset(0x5000) }),
            args: parse_args(Arch::X86_64, text).unwrap_or_default(),
        };
        let all = PROBES.iter().map(|(name, places)| UsdtPlaces {
            path: PathBuf::from(FILE),
            shown: FILE.to_owned(),
            provider: "provider".to_owned(),
            name: (*name).to_owned(),
            places: places.iter().map(place).collect(),
        });
        fitting(all, "probe", |probe| {
            in_file(target) && wanted(name, &probe.name) && provider.is_none_or(|it| wanted(it, &probe.provider))
        })
    }

    fn tracepoints(&self, category: &str, name: &str) -> Result<Vec<(String, String)>, NotFound> {
        let all = TRACEPOINTS.iter().map(|(category, format)| ((*category).to_owned(), format.name.clone()));
        fitting(all, "tracepoint", |known| wanted(category, &known.0) && wanted(name, &known.1))
    }

    fn tracepoint(&self, category: &str, name: &str) -> Result<Arc<TracepointFormat>, NotFound> {
        let mut found = fitting(&*TRACEPOINTS, "tracepoint", |known| known.0 == category && known.1.name == name)?;
        Ok(Arc::clone(&found.remove(0).1))
    }

    fn raw_tracepoints(&self, _: Option<&str>, name: &str) -> Result<Vec<String>, NotFound> {
        fitting(["sched_switch", "sys_enter"].map(str::to_owned), "raw tracepoint", |known| wanted(name, known))
    }

    fn kernel_functions(&self, _: Option<&str>, name: &str) -> Result<Vec<String>, NotFound> {
        fitting(KERNEL_FUNCTIONS.map(str::to_owned), "function", |known| wanted(name, known))
    }

    fn kernel_symbol(&self, name: &str) -> Option<u64> {
        KERNEL_FUNCTIONS.contains(&name).then_some(0xffff_ffff_8100_0000)
    }

    fn user_symbol(&self, target: &str, name: &str) -> Option<(u64, u64)> {
        (in_file(Some(target)) && FUNCTIONS.contains(&name)).then_some((0x4000, 8))
    }

    fn cgroup_id(&self, path: &str) -> Option<u64> {
        path.starts_with('/').then_some(77)
    }

    fn pid(&self) -> Option<u32> {
        self.pid
    }

    fn params(&self) -> &[String] {
        &self.params
    }

    fn environment(&self) -> Vec<ConfigFact> {
        Vec::new()
    }

    fn possible_cpus(&self) -> u32 {
        8
    }

    fn online_cpus(&self) -> u32 {
        4
    }

    fn start_time(&self) -> u64 {
        1_000_000
    }

    fn child(&self) -> Option<u32> {
        self.pid
    }

    fn pid_namespace(&self) -> Option<(u64, u64)> {
        self.pid.map(|_| (4, 4_026_531_836))
    }

    fn tells_reads(&self) -> bool {
        self.pid.is_some()
    }

    fn allows_unsafe(&self) -> bool {
        self.pid.is_none()
    }
}
