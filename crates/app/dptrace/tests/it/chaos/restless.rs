//! The target that never rests: `restless.c`.

use std::path::PathBuf;
use std::process::Stdio;

use crate::common::kernel::Process;
use crate::common::library;
use tempfile::TempDir;

const SPEC: &str = r#"
[[object]]
name = "tick"
provider = "restless"
key = "n"
[[object.probe]]
name = "tick"
role = "seen"
args = ["tsc", "n"]
"#;

/// The program, its library and the spec of its probe.
pub(crate) struct Restless {
    dir: TempDir,
}

impl Restless {
    pub(crate) fn build() -> Self {
        Self {
            dir: library::build("restless", "chaos/restless.c", &["-ldl", "-lpthread"], SPEC),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn spec(&self) -> String {
        self.path("spec.toml").display().to_string()
    }

    /// Starts it with `sleepers` threads that only sleep.
    pub(crate) fn start(&self, sleepers: u32) -> Process {
        let mut command = testkit::command(self.path("restless"));
        command
            .arg(self.path("librestless.so"))
            .arg(sleepers.to_string())
            .stdout(Stdio::piped());
        let mut process = Process::start(&mut command);
        process.wait_for("ready");
        process
    }
}

/// Ends the target, which checks itself, and reports any fault by its status.
#[track_caller]
pub(crate) fn ends_well(process: Process) {
    process.signal("TERM");
    let (status, counts, messages) = process.end();
    assert!(status.success(), "{status}: {messages:#?}");
    let counts: Vec<u64> = counts
        .split_whitespace()
        .map(|it| it.parse().expect("a number"))
        .collect();
    assert!(
        counts.len() == 4 && counts.iter().all(|it| *it > 0),
        "it did all of that: {counts:?}"
    );
}
