//! Record of each run of a part: one line of JSON in `target/deep.jsonl`.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;

use super::Outcome;
use crate::suite::{self, Load};

/// File below the target directory to which lines are appended.
const FILE: &str = "deep.jsonl";

/// One run of one part.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    commit: String,
    part: &'static str,
    seconds: u64,
    load: f64,
    stolen_percent: f64,
    passed: usize,
    failed: usize,
    /// Names of the failed tests.
    names: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
}

impl Line {
    /// Describes a run at the present commit.
    ///
    /// # Errors
    /// If git cannot be run.
    pub(super) fn new(
        part: &'static str,
        outcome: &Outcome,
        time: Duration,
        load: Load,
    ) -> anyhow::Result<Self> {
        let git = Command::new("git")
            .args(["rev-parse", "HEAD"])
            .current_dir(suite::root())
            .output();
        let commit = String::from_utf8_lossy(&git.context("running git")?.stdout)
            .trim()
            .to_owned();
        let hundredths = |number: f64| (number * 100.0).round() / 100.0;
        Ok(Self {
            commit,
            part,
            seconds: time.as_secs(),
            load: hundredths(load.average),
            stolen_percent: hundredths(load.stolen),
            passed: outcome.passed,
            failed: outcome.failed.len(),
            names: outcome.failed.clone(),
            seed: outcome.seed,
        })
    }

    /// Appends the line to the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn append(&self) -> anyhow::Result<()> {
        let path = crate::target_dir()?.join(FILE);
        let text = serde_json::to_string(self).context("writing JSON")? + "\n";
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("opening {}", path.display()))?;
        file.write_all(text.as_bytes())
            .with_context(|| format!("writing {}", path.display()))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            part,
            seconds,
            load,
            passed,
            failed,
            names,
            ..
        } = self;
        write!(
            f,
            "deep {part}: {passed} passed, {failed} failed in {seconds} s (load {load})"
        )?;
        names
            .iter()
            .try_for_each(|name| write!(f, "\n  FAILED {name}"))
    }
}
