//! `cargo xtask check`, for contributors without root: rustfmt, lints, and the tests that need no kernel. `.ci/run` runs the
//! same and all other tests.

use std::process::Command;
use std::time::Instant;

use anyhow::ensure;

/// The crates whose tests need neither root nor a kernel nor another program. What few of their tests do is skipped.
const CRATES: &[&str] = &[
    "bpf-program",
    "bt-abi",
    "bt-compiler",
    "bpf-insn",
    "bpf-interp",
    "bt-lang",
    "bt-runtime",
    "compiler-testkit",
    "elf",
    "host",
    "kernel-delay",
    "kernel-text",
    "objects",
    "parquet-writer",
    "patterns",
    "printable",
    "probe-recorder",
    "screen",
    "spdk-trace",
    "spdk-trace-writer",
    "symbolize",
    "tables",
    "testkit",
    "typeinfo",
    "usdt",
    "xtask",
];

/// Runs every step, also after one has failed, so that one run says everything.
pub(crate) fn run() -> anyhow::Result<()> {
    let tests: Vec<&str> = ["test", "--quiet", "--no-fail-fast"]
        .into_iter()
        .chain(CRATES.iter().flat_map(|name| ["--package", *name]))
        .chain(["--lib", "--tests"])
        .collect();
    let steps: [(&str, Vec<&str>); 4] = [
        ("form", vec!["fmt", "--all", "--check"]),
        ("lints", vec!["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]),
        ("tests", tests),
        ("the program's own tests", vec!["test", "--quiet", "--package", "dptrace", "--bin", "dptrace"]),
    ];
    let mut failed = Vec::new();
    for (name, args) in &steps {
        let since = Instant::now();
        let is_fine = step(args)?;
        let seconds = since.elapsed().as_secs_f64();
        println!("== {name}: {} ({seconds:.1} s)", if is_fine { "fine" } else { "FAILED" });
        if !is_fine {
            failed.push(*name);
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Runs cargo; says whether it succeeded.
fn step(args: &[&str]) -> anyhow::Result<bool> {
    let mut cargo: Command = super::cargo();
    cargo.args(args).env("DPTRACE_NO_KERNEL_TESTS", "1").env_remove("DPTRACE_REQUIRE_KERNEL_TESTS");
    Ok(cargo.status()?.success())
}
