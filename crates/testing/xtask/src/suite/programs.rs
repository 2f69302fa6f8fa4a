//! Programs that cargo makes of the workspace's tests, and the tests in them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// Program of tests.
#[derive(Debug, Clone)]
pub(crate) struct TestProgram {
    /// Name of the package's folder.
    pub(crate) package: String,
    /// Folder of the package, in which its tests run.
    pub(crate) folder: PathBuf,
    /// Path of the program.
    pub(crate) path: PathBuf,
}

/// Builds the tests of these packages, named by their folders, or of all if none is named, and returns their programs.
///
/// # Errors
/// If cargo cannot be run, or a test does not compile.
pub(crate) fn test_programs(packages: &[&str]) -> anyhow::Result<Vec<TestProgram>> {
    let mut cargo = crate::cargo();
    cargo.args(["test", "--no-run", "--quiet", "--message-format", "json"]);
    if packages.is_empty() {
        cargo.arg("--workspace");
    }
    for package in packages {
        cargo.args(["--package", &super::package_name(package)?]);
    }
    let done = cargo
        .current_dir(super::root())
        .stderr(Stdio::inherit())
        .output()
        .context("running cargo")?;
    ensure!(done.status.success(), "the tests could not be built");
    let text = String::from_utf8_lossy(&done.stdout);
    let messages = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    Ok(messages
        .filter_map(|message| TestProgram::from_message(&message))
        .collect())
}

impl TestProgram {
    /// Returns the program in a message of cargo (`compiler-artifact`, The Cargo Book, "External
    /// tools"); `None` if the message is about something else.
    fn from_message(message: &Value) -> Option<Self> {
        let path = message["executable"]
            .as_str()
            .filter(|_| message["profile"]["test"] == true)?;
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        let package = folder.file_name()?.to_str()?.to_owned();
        Some(Self {
            package,
            folder: folder.to_owned(),
            path: path.into(),
        })
    }

    /// Returns the full names of the program's tests: only the ignored ones if `ignored`, else all.
    ///
    /// # Errors
    /// If the program cannot be run.
    pub(crate) fn tests(&self, ignored: bool) -> anyhow::Result<Vec<String>> {
        let mut command = Command::new(&self.path);
        command
            .args(["--list", "--format", "terse"])
            .args(ignored.then_some("--ignored"))
            .current_dir(&self.folder);
        let listed = command
            .output()
            .with_context(|| format!("running {}", self.path.display()))?;
        ensure!(
            listed.status.success(),
            "{} does not list its tests",
            self.path.display()
        );
        let text = String::from_utf8_lossy(&listed.stdout);
        Ok(text
            .lines()
            .filter_map(|line| line.strip_suffix(": test"))
            .map(str::to_owned)
            .collect())
    }
}

/// Returns the name of a test's function, without its modules.
pub(crate) fn function_of(test: &str) -> &str {
    test.rsplit("::").next().unwrap_or(test)
}
