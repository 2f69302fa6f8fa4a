//! This machine, for tests.

use std::sync::{Arc, OnceLock};

use bpf_codegen::script::interface::{ConfigFact, FunctionPlace, KernelFacts, NotFound, TargetFacts, UsdtPlaces};
use probes::registers::Arch;
use probes::tracefs::TracepointFormat;

#[derive(Default)]
pub(crate) struct Facts {
    pub params: Vec<String>,
    pub functions: Vec<FunctionPlace>,
    pub usdt: Vec<UsdtPlaces>,
    pub formats: Vec<(String, TracepointFormat)>,
    pub settings: Vec<ConfigFact>,
    pub tells_reads: bool,
    /// Whether user probes' programs may wait for memory; as the kernel has it, if not said.
    pub sleepable: Option<bool>,
}

/// Whether this kernel lets user probes' programs wait for memory.
pub(crate) fn can_wait() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| bpf_session::Features::detect().is_ok_and(bpf_session::Features::sleepable_uprobes))
}

fn none<T>(what: &str) -> Result<T, NotFound> {
    Err(NotFound { message: format!("no {what}"), absent: true, hints: Vec::new() })
}

impl TargetFacts for Facts {
    fn arch(&self) -> Arch {
        if cfg!(target_arch = "x86_64") { Arch::X86_64 } else { Arch::Aarch64 }
    }

    fn kernel(&self) -> KernelFacts {
        static FEATURES: OnceLock<bpf_session::Features> = OnceLock::new();
        let features =
            FEATURES.get_or_init(|| bpf_session::Features::detect().unwrap_or(bpf_session::Features::none()));
        KernelFacts {
            exchange: features.exchange,
            large_keys: features.large_keys,
            sleepable: self.sleepable.unwrap_or_else(can_wait),
        }
    }

    fn kernel_btf(&self) -> Option<&[u8]> {
        static BTF: OnceLock<Option<Vec<u8>>> = OnceLock::new();
        BTF.get_or_init(|| std::fs::read("/sys/kernel/btf/vmlinux").ok()).as_deref()
    }

    fn debug_elf(&self, _: &str) -> Option<&[u8]> {
        None
    }

    fn functions(&self, _: Option<&str>, function: &str, _: bool) -> Result<Vec<FunctionPlace>, NotFound> {
        let found: Vec<_> = self.functions.iter().filter(|place| place.name == function).cloned().collect();
        if found.is_empty() { none("such function") } else { Ok(found) }
    }

    fn address(&self, _: Option<&str>, _: u64) -> Result<FunctionPlace, NotFound> {
        none("addresses")
    }

    fn source_line(&self, _: &str, _: &str, _: u32, _: Option<u32>) -> Result<FunctionPlace, NotFound> {
        none("line")
    }

    fn usdt(&self, _: Option<&str>, _: Option<&str>, name: &str) -> Result<Vec<UsdtPlaces>, NotFound> {
        let found: Vec<_> = self.usdt.iter().filter(|probe| probe.name == name).cloned().collect();
        if found.is_empty() { none("such probe") } else { Ok(found) }
    }

    fn tracepoints(&self, category: &str, name: &str) -> Result<Vec<(String, String)>, NotFound> {
        let known = self.formats.iter().any(|(known, format)| known == category && format.name == name);
        if known { Ok(vec![(category.to_owned(), name.to_owned())]) } else { none("such tracepoint") }
    }

    fn tracepoint(&self, category: &str, name: &str) -> Result<Arc<TracepointFormat>, NotFound> {
        let found = self.formats.iter().find(|(known, format)| known == category && format.name == name);
        found.map_or_else(|| none("such tracepoint"), |(_, format)| Ok(Arc::new(format.clone())))
    }

    fn raw_tracepoints(&self, _: Option<&str>, name: &str) -> Result<Vec<String>, NotFound> {
        Ok(vec![name.to_owned()])
    }

    fn kernel_functions(&self, _: Option<&str>, name: &str) -> Result<Vec<String>, NotFound> {
        Ok(vec![name.to_owned()])
    }

    fn kernel_symbol(&self, _: &str) -> Option<u64> {
        Some(0xffff_ffff_8100_0000)
    }

    fn user_symbol(&self, _: &str, _: &str) -> Option<(u64, u64)> {
        None
    }

    fn cgroup_id(&self, _: &str) -> Option<u64> {
        Some(1)
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    fn params(&self) -> &[String] {
        &self.params
    }

    fn environment(&self) -> Vec<ConfigFact> {
        self.settings.clone()
    }

    fn possible_cpus(&self) -> u32 {
        sys::bpf::possible_cpus().unwrap() as u32
    }

    fn online_cpus(&self) -> u32 {
        self.possible_cpus()
    }

    fn start_time(&self) -> u64 {
        0
    }

    fn child(&self) -> Option<u32> {
        None
    }

    fn pid_namespace(&self) -> Option<(u64, u64)> {
        None
    }

    fn tells_reads(&self) -> bool {
        self.tells_reads
    }

    fn allows_unsafe(&self) -> bool {
        false
    }
}
