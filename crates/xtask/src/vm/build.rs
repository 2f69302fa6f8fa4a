//! The programs for the guest, which are statically linked because the guest has no libraries.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use super::hardware::Hardware;

/// Modules of kernel tests that run on each kernel: package, module of its tests, and what they are about.
const TESTS: [(&str, &str, &str); 3] = [
    ("bpf-session", "scripts", "The language of scripts"),
    ("dptrace", "run_bundled", "The bundled scripts, against the demo target's truth"),
    ("dptrace", "kernel_delay", "`kernel-delay`, against a program of known truth"),
];
/// The module whose ignored tests starve a CPU, in the same form.
const STARVING: (&str, &str, &str) = ("cpu-audit", "injected", "`cpus`, beside a thread with `SCHED_FIFO`");

/// What was built.
pub(super) struct Built {
    /// Where cargo puts things.
    pub(super) target_dir: PathBuf,
    /// The guest's first process.
    pub(super) init: PathBuf,
    /// The program.
    pub(super) dptrace: PathBuf,
    /// The name by which tests know it.
    pub(super) known_as: PathBuf,
    /// The tests, if they were asked for.
    pub(super) tests: Vec<TestProgram>,
}

/// The program with the tests of a package.
pub(super) struct TestProgram {
    /// The file's name in the guest.
    pub(super) name: String,
    /// Where it is.
    pub(super) path: PathBuf,
    /// The tests that guests run.
    pub(super) groups: Vec<TestGroup>,
}

/// The tests of a module.
pub(super) struct TestGroup {
    /// The module.
    pub(super) module: &'static str,
    /// Subject of the tests, for people.
    pub(super) about: &'static str,
    /// The names of its tests, without the module's.
    pub(super) cases: Vec<String>,
}

/// Builds all, as `cargo static` does but without its optimization, which takes minutes. Debug information is left out:
/// it would be most of the guest's memory. `dptrace` can be one that is there already.
///
/// `starve`: also the tests that starve a CPU.
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
    let tests = if with_tests { test_programs(hardware, &built_in, starve)? } else { Vec::new() };
    let dptrace = dptrace.map_or_else(|| known_as.clone(), Path::to_owned);
    Ok(Built { target_dir, init: folder.join("vm-init"), dptrace, known_as, tests })
}

fn test_programs(hardware: &Hardware, built_in: &Path, starve: bool) -> anyhow::Result<Vec<TestProgram>> {
    let mut packages: Vec<&str> =
        TESTS.iter().map(|(package, ..)| *package).chain(starve.then_some(STARVING.0)).collect();
    packages.dedup();
    let mut arguments = vec!["test", "--quiet", "--no-run", "--message-format", "json", "--test", "it"];
    arguments.extend(packages.iter().flat_map(|package| ["-p", *package]));
    let output = cargo(hardware, &arguments, built_in)?;
    let messages: Vec<serde_json::Value> = output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let program = |package: &&str| -> anyhow::Result<TestProgram> {
        let manifest = format!("/crates/{package}/Cargo.toml");
        let is_its = |message: &&serde_json::Value| {
            let path = message["manifest_path"].as_str().unwrap_or_default();
            message["target"]["name"] == "it" && path.ends_with(&manifest) && message["executable"].is_string()
        };
        let message = messages.iter().find(is_its).with_context(|| format!("cargo made no tests of {package}"))?;
        let path = PathBuf::from(message["executable"].as_str().unwrap_or_default());
        let ignored = listed(hardware, &path, &["--ignored"])?;
        let usual: Vec<String> =
            listed(hardware, &path, &[])?.into_iter().filter(|case| !ignored.contains(case)).collect();
        let of = |from: &[String], module: &'static str, about| TestGroup {
            module,
            about,
            cases: from
                .iter()
                .filter_map(|case| Some(case.strip_prefix(module)?.strip_prefix("::")?.to_owned()))
                .collect(),
        };
        let mut groups: Vec<TestGroup> =
            TESTS.iter().filter(|(of, ..)| of == package).map(|(_, module, about)| of(&usual, module, about)).collect();
        if *package == STARVING.0 {
            groups.push(of(&ignored, STARVING.1, STARVING.2));
        }
        Ok(TestProgram { name: format!("{package}-tests"), path, groups })
    };
    packages.iter().map(program).collect()
}

/// The names of a program's tests. It is static: it runs here as well, by an emulator where it is another machine's.
fn listed(hardware: &Hardware, program: &Path, which: &[&str]) -> anyhow::Result<Vec<String>> {
    let mut command = Command::new(hardware.runner.map_or(program.as_os_str(), OsStr::new));
    if hardware.runner.is_some() {
        command.arg(program);
    }
    let listed = command.args(["--list", "--format", "terse"]).args(which).output();
    let listed = listed.with_context(|| format!("listing the tests of {}: {command:?}", program.display()))?;
    let errors = String::from_utf8_lossy(&listed.stderr);
    ensure!(listed.status.success(), "the tests of {} could not be listed: {errors}", program.display());
    let text = String::from_utf8_lossy(&listed.stdout);
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// Runs cargo for static programs; gives its standard output.
fn cargo(hardware: &Hardware, arguments: &[&str], built_in: &Path) -> anyhow::Result<String> {
    let mut build = crate::cargo();
    build.args(arguments);
    let target = hardware.target;
    build.args(["--target", target, "--config", "profile.dev.debug=0", "--config", "profile.dev.strip='debuginfo'"]);
    build.arg("--config").arg(format!("target.{target}.rustflags=['-C', 'target-feature=+crt-static']"));
    if let Some(linker) = hardware.linker {
        build.arg("--config").arg(format!("target.{target}.linker='{linker}'"));
    }
    build.arg("--target-dir").arg(built_in).stderr(Stdio::inherit());
    let done = build.output().context("running cargo")?;
    ensure!(done.status.success(), "the static programs could not be built");
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}
