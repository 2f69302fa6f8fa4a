//! Programs for the guest, which are statically linked because the guest has no libraries.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use super::hardware::Hardware;
use crate::suite::{self, DeepTest, deep_tests};

/// Kernel tests that run in guests.
struct KernelTests {
    /// Name of the file in the guest.
    name: &'static str,
    /// Name of the package's folder.
    package: &'static str,
    /// Test target of the package.
    target: &'static str,
    /// Prefix of the names of the chosen tests.
    prefix: &'static str,
    /// Subject of the tests, for people.
    about: &'static str,
    /// Parts of the deep check whose tests are chosen, beside those that the gate runs.
    parts: &'static [&'static str],
}

/// Parts whose tests any kernel can run.
const ANY_KERNEL: &[&str] = &["random", "truth"];

/// Tests that run on each kernel.
const TESTS: [KernelTests; 3] = [
    KernelTests {
        name: "scripts",
        package: "bpf-session",
        target: "it",
        prefix: "scripts::",
        about: "The language of scripts",
        parts: ANY_KERNEL,
    },
    KernelTests {
        name: "run_bundled",
        package: "dptrace",
        target: "run_bundled",
        prefix: "",
        about: "The bundled scripts, against the demo target's truth",
        parts: ANY_KERNEL,
    },
    KernelTests {
        name: "kernel_delay",
        package: "dptrace",
        target: "kernel_delay",
        prefix: "",
        about: "`kernel-delay`, against a program of known truth",
        parts: ANY_KERNEL,
    },
];
/// Tests that starve a CPU. The gate runs none of this module's tests that guests can run.
const STARVING: KernelTests = KernelTests {
    name: "injected",
    package: "cpus",
    target: "it",
    prefix: "injected::",
    about: "`cpus`, beside a thread with `SCHED_FIFO`",
    parts: &["starve"],
};

/// Built programs.
pub(super) struct Built {
    /// Target directory of cargo.
    pub(super) target_dir: PathBuf,
    /// First process of the guest.
    pub(super) init: PathBuf,
    /// Path of dptrace.
    pub(super) dptrace: PathBuf,
    /// Path by which tests know dptrace.
    pub(super) known_as: PathBuf,
    /// Tests, if requested.
    pub(super) tests: Vec<TestProgram>,
}

/// Program of tests.
pub(super) struct TestProgram {
    /// Name of the file in the guest.
    pub(super) name: &'static str,
    /// Subject of the tests, for people.
    pub(super) about: &'static str,
    /// Path of the program.
    pub(super) path: PathBuf,
    /// Prefix of the names of its tests.
    pub(super) prefix: &'static str,
    /// Names of its tests, without the prefix.
    pub(super) cases: Vec<String>,
}

/// Builds all programs, as `cargo static` does but without its optimization, which takes minutes.
/// Debug information is left out: it would be most of the guest's memory. `dptrace` can be an
/// existing program.
///
/// `starve` adds the tests that starve a CPU.
pub(super) fn static_programs(
    hardware: &Hardware,
    dptrace: Option<&Path>,
    with_tests: bool,
    starve: bool,
) -> anyhow::Result<Built> {
    let target_dir = crate::target_dir()?;
    let built_in = target_dir.join("vm/build");
    let mut programs = vec!["build", "--quiet", "-p", "xtask", "--bin", "vm-init"];
    if dptrace.is_none() {
        programs.extend(["-p", "dptrace", "--bin", "dptrace"]);
    }
    cargo(hardware, &programs, &built_in)?;
    let folder = built_in.join(hardware.target).join("debug");
    let known_as = folder.join("dptrace");
    let tests = if with_tests {
        test_programs(hardware, &built_in, starve)?
    } else {
        Vec::new()
    };
    let dptrace = dptrace.map_or_else(|| known_as.clone(), Path::to_owned);
    Ok(Built {
        target_dir,
        init: folder.join("vm-init"),
        dptrace,
        known_as,
        tests,
    })
}

fn test_programs(
    hardware: &Hardware,
    built_in: &Path,
    starve: bool,
) -> anyhow::Result<Vec<TestProgram>> {
    let marked = deep_tests(suite::root())?;
    let wanted = TESTS.iter().chain(starve.then_some(&STARVING));
    wanted
        .map(|tests| test_program(tests, &marked, hardware, built_in))
        .collect()
}

fn test_program(
    tests: &KernelTests,
    marked: &[DeepTest],
    hardware: &Hardware,
    built_in: &Path,
) -> anyhow::Result<TestProgram> {
    let KernelTests {
        name,
        package,
        target,
        prefix,
        about,
        parts,
    } = *tests;
    let arguments = [
        "test",
        "--quiet",
        "--no-run",
        "--message-format",
        "json",
        "--package",
        &suite::package_name(package)?,
        "--test",
        target,
    ];
    let output = cargo(hardware, &arguments, built_in)?;
    let messages = output
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let path = messages
        .filter(|it| it["target"]["name"] == target)
        .find_map(|it| Some(it["executable"].as_str()?.into()));
    let path: PathBuf = path.with_context(|| format!("cargo made no program for {name}"))?;
    let ignored = listed(hardware, &path, &["--ignored"])?;
    // Other ignored tests are programs that tests start.
    let is_marked = |case: &str| {
        let its =
            |test: &&DeepTest| test.package == package && test.function == suite::function_of(case);
        marked
            .iter()
            .find(its)
            .is_some_and(|test| parts.contains(&test.part.as_str()))
    };
    let all = listed(hardware, &path, &[])?.into_iter();
    let meant = all.filter(|case| !ignored.contains(case) || is_marked(case));
    let cases: Vec<String> = meant
        .filter_map(|case| Some(case.strip_prefix(prefix)?.to_owned()))
        .collect();
    ensure!(
        !cases.is_empty(),
        "no test of {package} has a name that begins with {prefix:?}"
    );
    Ok(TestProgram {
        name,
        about,
        path,
        prefix,
        cases,
    })
}

/// Returns the names of a program's tests. The static program runs here, too: by an emulator if it
/// is for another machine.
fn listed(hardware: &Hardware, program: &Path, which: &[&str]) -> anyhow::Result<Vec<String>> {
    let mut command = Command::new(hardware.runner.map_or(program.as_os_str(), OsStr::new));
    if hardware.runner.is_some() {
        command.arg(program);
    }
    let listed = command
        .args(["--list", "--format", "terse"])
        .args(which)
        .output();
    let listed = listed
        .with_context(|| format!("listing the tests of {}: {command:?}", program.display()))?;
    let errors = String::from_utf8_lossy(&listed.stderr);
    ensure!(
        listed.status.success(),
        "the tests of {} could not be listed: {errors}",
        program.display()
    );
    let text = String::from_utf8_lossy(&listed.stdout);
    Ok(text
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
        .collect())
}

/// Runs cargo for static programs; returns its standard output.
fn cargo(hardware: &Hardware, arguments: &[&str], built_in: &Path) -> anyhow::Result<String> {
    let mut build = crate::cargo();
    build.args(arguments);
    let target = hardware.target;
    build.args([
        "--target",
        target,
        "--config",
        "profile.dev.debug=0",
        "--config",
        "profile.dev.strip='debuginfo'",
    ]);
    build.arg("--config").arg(format!(
        "target.{target}.rustflags=['-C', 'target-feature=+crt-static']"
    ));
    if let Some(linker) = hardware.linker {
        build
            .arg("--config")
            .arg(format!("target.{target}.linker='{linker}'"));
    }
    build
        .arg("--target-dir")
        .arg(built_in)
        .stderr(Stdio::inherit());
    let done = build.output().context("running cargo")?;
    ensure!(
        done.status.success(),
        "the static programs could not be built"
    );
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}
