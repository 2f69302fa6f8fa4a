//! What scripts become on aarch64, whichever machine compiles them: where the registers are in `struct user_pt_regs`
//! (`arch/arm64/include/uapi/asm/ptrace.h`: `regs[31]`, `sp`, `pc`, `pstate`), and the calling convention (AAPCS64, 6.4).
#![expect(clippy::unwrap_used, reason = "a test says what it saw by panicking")]

use std::path::PathBuf;
use std::sync::Arc;

use bpf_codegen::script::interface::{ConfigFact, FunctionPlace, KernelFacts, NotFound, TargetFacts, UsdtPlaces};
use bpf_insn::Listing;
use probes::args::parse_args;
use probes::registers::Arch;
use probes::tracefs::TracepointFormat;
use probes::usdt::Place;
use probes::{ElfVaddr, FileOffset};

/// A process of aarch64 with one function and one USDT probe.
struct Arm {
    /// The probe's arguments, as its note has them.
    args: &'static str,
}

fn none<T>() -> Result<T, NotFound> {
    Err(NotFound { message: "not there".into(), hints: Vec::new(), absent: false })
}

impl TargetFacts for Arm {
    fn arch(&self) -> Arch {
        Arch::Aarch64
    }
    fn kernel(&self) -> KernelFacts {
        KernelFacts::ALL
    }
    fn kernel_btf(&self) -> Option<&[u8]> {
        None
    }
    fn debug_elf(&self, _: &str) -> Option<&[u8]> {
        None
    }
    fn functions(&self, _: Option<&str>, function: &str, _: bool) -> Result<Vec<FunctionPlace>, NotFound> {
        let path = PathBuf::from("/bin/it");
        let (shown, name) = ("/bin/it".into(), function.to_owned());
        Ok(vec![FunctionPlace { path, shown, name, offset: 64, size: 16, vaddr: 64 }])
    }
    fn address(&self, _: Option<&str>, _: u64) -> Result<FunctionPlace, NotFound> {
        none()
    }
    fn source_line(&self, _: &str, _: &str, _: u32, _: Option<u32>) -> Result<FunctionPlace, NotFound> {
        none()
    }
    fn usdt(&self, _: Option<&str>, _: Option<&str>, name: &str) -> Result<Vec<UsdtPlaces>, NotFound> {
        let args = parse_args(Arch::Aarch64, self.args).unwrap();
        let place = Place { vaddr: ElfVaddr(64), offset: FileOffset(64), semaphore: None, args };
        let (path, shown) = (PathBuf::from("/bin/it"), "/bin/it".into());
        Ok(vec![UsdtPlaces { path, shown, provider: "it".into(), name: name.to_owned(), places: vec![place] }])
    }
    fn tracepoints(&self, _: &str, _: &str) -> Result<Vec<(String, String)>, NotFound> {
        none()
    }
    fn tracepoint(&self, _: &str, _: &str) -> Result<Arc<TracepointFormat>, NotFound> {
        none()
    }
    fn raw_tracepoints(&self, _: Option<&str>, _: &str) -> Result<Vec<String>, NotFound> {
        none()
    }
    fn kernel_functions(&self, _: Option<&str>, _: &str) -> Result<Vec<String>, NotFound> {
        none()
    }
    fn kernel_symbol(&self, _: &str) -> Option<u64> {
        None
    }
    fn user_symbol(&self, _: &str, _: &str) -> Option<(u64, u64)> {
        None
    }
    fn cgroup_id(&self, _: &str) -> Option<u64> {
        None
    }
    fn pid(&self) -> Option<u32> {
        None
    }
    fn params(&self) -> &[String] {
        &[]
    }
    fn environment(&self) -> Vec<ConfigFact> {
        Vec::new()
    }
    fn possible_cpus(&self) -> u32 {
        2
    }
    fn online_cpus(&self) -> u32 {
        2
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
    fn allows_unsafe(&self) -> bool {
        false
    }
}

/// The instructions of a script's first program, as `llvm-objdump -d` would show them.
#[track_caller]
fn compiled(script: &str, args: &'static str) -> String {
    let parsed = bt_lang::parser::parse_with(script, bt_lang::parser::Options { params: None });
    let compiled = bpf_codegen::script::compile(&parsed.program, &Arm { args });
    let script = compiled.script.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    let text = Listing::new(&script.module.programs[0].code).to_string();
    // Without the notes behind them.
    text.lines().map(|line| line.split(';').next().unwrap_or(line).trim_end().to_owned() + "\n").collect()
}

/// Whether the script's program loads so many bytes from this place of its context.
#[track_caller]
fn assert_looks_at(script: &str, args: &'static str, width: u8, offset: u16) {
    let text = compiled(script, args);
    let load = format!("= *(u{} *)(r", width * 8);
    let place = format!(" + {offset:#x})");
    let found = text.lines().any(|line| line.contains(&load) && line.ends_with(&place));
    assert!(found, "{script}: no look at {offset}:\n{text}");
}

#[test]
fn arguments_and_results_of_functions() {
    for n in 0..8 {
        assert_looks_at(&format!("uprobe:/bin/it:f {{ @ = arg{n}; }}"), "", 8, n * 8);
    }
    assert_looks_at("uretprobe:/bin/it:f { @ = retval; }", "", 8, 0);
}

#[test]
fn registers_by_name() {
    for (name, offset) in [("x0", 0), ("r7", 56), ("x30", 240), ("sp", 248), ("pc", 256)] {
        assert_looks_at(&format!("uprobe:/bin/it:f {{ @ = reg(\"{name}\"); }}"), "", 8, offset);
    }
}

#[test]
fn arguments_of_probes() {
    let probe = "usdt:/bin/it:it:p { @ = arg1; }";
    // As gcc and clang write them for aarch64: a register, a value on the stack, and one behind a pointer.
    assert_looks_at(probe, "8@x0 -4@w21", 8, 21 * 8);
    for (args, base) in [("8@x0 8@[sp, 24]", 248), ("8@x0 4@[x19, -8]", 19 * 8)] {
        assert_looks_at(probe, args, 8, base);
        assert!(compiled(probe, args).contains("call 0x70"), "bpf_probe_read_user");
    }
    let constant = compiled(probe, "8@x0 4@77");
    assert!(constant.contains("= 0x4d"), "{constant}");
}

/// `pstate`, whose lowest four bits are 0 for user code (`PSR_MODE_EL0t`).
#[test]
fn the_mode_of_a_sample() {
    assert_looks_at("profile:hz:99 { @ = usermode; }", "", 8, 264);
}
