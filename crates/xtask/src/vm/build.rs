//! The programs that go into the guest: statically linked, since there is no library.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// The only machine that the guests are.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The programs of kernel tests that run on each kernel: package, name, and what they are about.
const TESTS: [(&str, &str, &str); 3] = [
    ("bpf-session", "scripts", "The language of scripts"),
    ("dptrace", "run_bundled", "The bundled scripts, against the demo target's truth"),
    ("dptrace", "kernel_delay", "`kernel-delay`, against a program of known truth"),
];

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

/// A program of tests.
pub(super) struct TestProgram {
    /// The file's name in the guest.
    pub(super) name: String,
    /// What the tests are about, for people.
    pub(super) about: &'static str,
    /// Where it is.
    pub(super) path: PathBuf,
    /// The names of its tests.
    pub(super) cases: Vec<String>,
}

/// Builds all, as `cargo static` does but without its optimization, which takes minutes. Debug information is left out:
/// it would be most of the guest's memory. `dptrace` can be one that is there already.
pub(super) fn static_programs(dptrace: Option<&Path>, with_tests: bool) -> anyhow::Result<Built> {
    let target_dir = crate::target_dir()?;
    let built_in = target_dir.join("vm/build");
    let mut programs = vec!["build", "--quiet", "-p", "xtask", "--bin", "vm-init"];
    if dptrace.is_none() {
        programs.extend(["-p", "dptrace", "--bin", "dptrace"]);
    }
    cargo(&programs, &built_in)?;
    let folder = built_in.join(TARGET).join("debug");
    let known_as = folder.join("dptrace");
    let tests = if with_tests { test_programs(&built_in)? } else { Vec::new() };
    let dptrace = dptrace.map_or_else(|| known_as.clone(), Path::to_owned);
    Ok(Built { target_dir, init: folder.join("vm-init"), dptrace, known_as, tests })
}

fn test_programs(built_in: &Path) -> anyhow::Result<Vec<TestProgram>> {
    let mut arguments = vec!["test", "--quiet", "--no-run", "--message-format", "json"];
    for (package, name, _) in TESTS {
        arguments.extend(["-p", package, "--test", name]);
    }
    let told = cargo(&arguments, built_in)?;
    let messages: Vec<serde_json::Value> = told.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let program = |&(_, name, about): &(&str, &str, &'static str)| -> anyhow::Result<TestProgram> {
        let of_it =
            |message: &&serde_json::Value| message["target"]["name"] == name && message["executable"].is_string();
        let message = messages.iter().find(of_it).with_context(|| format!("cargo made no program for {name}"))?;
        let path = PathBuf::from(message["executable"].as_str().unwrap_or_default());
        // They are static: they run here as well.
        let listed = Command::new(&path).args(["--list", "--format", "terse"]).output();
        let listed = listed.with_context(|| format!("listing the tests of {}", path.display()))?.stdout;
        let ignored = Command::new(&path).args(["--list", "--format", "terse", "--ignored"]).output()?.stdout;
        let cases = |bytes: &[u8]| -> Vec<String> {
            let text = String::from_utf8_lossy(bytes);
            text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
        };
        let ignored = cases(&ignored);
        let cases = cases(&listed).into_iter().filter(|case| !ignored.contains(case)).collect();
        Ok(TestProgram { name: name.to_owned(), about, path, cases })
    };
    TESTS.iter().map(program).collect()
}

/// Runs cargo for static programs; gives its standard output.
fn cargo(arguments: &[&str], built_in: &Path) -> anyhow::Result<String> {
    let mut build = crate::cargo();
    build.args(arguments);
    build.args(["--target", TARGET, "--config", "profile.dev.debug=0", "--config", "profile.dev.strip='debuginfo'"]);
    build.arg("--config").arg(format!("target.{TARGET}.rustflags=['-C', 'target-feature=+crt-static']"));
    build.arg("--target-dir").arg(built_in).stderr(Stdio::inherit());
    let done = build.output().context("running cargo")?;
    ensure!(done.status.success(), "the static programs could not be built");
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}
