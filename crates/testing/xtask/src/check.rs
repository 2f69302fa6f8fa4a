//! `cargo xtask check`, for contributors without root: rustfmt, lints, and the tests that need no
//! kernel. `.ci/run` runs these and all other tests.

use std::process::Command;
use std::time::Instant;

use anyhow::ensure;

/// Cargo's arguments for the tests of all crates of the workspace. The program's own tests trace
/// processes, except for its unit tests. A test of another crate that needs root or the kernel is
/// skipped.
const TESTS: [&str; 8] = [
    "test",
    "--quiet",
    "--no-fail-fast",
    "--workspace",
    "--exclude",
    "dptrace",
    "--lib",
    "--tests",
];

/// Runs every step, even after one has failed, so that one run reports everything.
pub(crate) fn run() -> anyhow::Result<()> {
    let steps: [(&str, &[&str]); 4] = [
        ("form", &["fmt", "--all", "--check"]),
        (
            "lints",
            &[
                "clippy",
                "--workspace",
                "--all-targets",
                "--quiet",
                "--",
                "-D",
                "warnings",
            ],
        ),
        ("tests", &TESTS),
        (
            "the program's own tests",
            &[
                "test",
                "--quiet",
                "--package",
                "dptrace",
                "--bin",
                "dptrace",
            ],
        ),
    ];
    let mut failed = Vec::new();
    for (name, args) in steps {
        let since = Instant::now();
        let is_fine = step(args)?;
        let seconds = since.elapsed().as_secs_f64();
        println!(
            "== {name}: {} ({seconds:.1} s)",
            if is_fine { "fine" } else { "FAILED" }
        );
        if !is_fine {
            failed.push(name);
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Runs cargo; returns whether it succeeded.
fn step(args: &[&str]) -> anyhow::Result<bool> {
    let mut cargo: Command = super::cargo();
    cargo
        .args(args)
        .env("DPTRACE_NO_KERNEL_TESTS", "1")
        .env_remove("DPTRACE_REQUIRE_KERNEL_TESTS");
    Ok(cargo.status()?.success())
}
