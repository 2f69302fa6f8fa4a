//! Shared code of the tests: the target as a process of its own, and its truth.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};

use demo_target::Truth;
use tempfile::TempDir;

/// Path of the program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_demo-target");

/// Running target, which is killed if the test fails.
pub(crate) struct Demo {
    child: Child,
    pub(crate) input: Option<ChildStdin>,
    /// Line printed at the start.
    pub(crate) line: String,
    dir: TempDir,
}

/// Output of a target.
pub(crate) struct Left {
    pub(crate) truth: Truth,
    pub(crate) stdout: String,
    /// Folder, removed when this is dropped.
    _dir: TempDir,
}

impl Demo {
    /// Starts it, and waits for its first line.
    pub(crate) fn start(args: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut command = testkit::command(PROGRAM);
        command
            .args(args)
            .arg("--truth")
            .arg(dir.path().join("truth.json"));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        stderr.read_line(&mut line).unwrap();
        child.stderr = Some(stderr.into_inner());
        let input = child.stdin.take();
        Self {
            child,
            input,
            line,
            dir,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Reads the truth as far as it is written already.
    pub(crate) fn truth(&self) -> Truth {
        serde_json::from_slice(&std::fs::read(self.dir.path().join("truth.json")).unwrap()).unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        let done = testkit::command("kill")
            .args(["-s", name, &self.pid().to_string()])
            .status()
            .unwrap();
        assert!(done.success());
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until it ends, which it must do well and quietly, and reads the truth.
    pub(crate) fn end(mut self) -> Left {
        let mut stdout = String::new();
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut stdout)
            .unwrap();
        let mut stderr = String::new();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut stderr)
            .unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {stderr}");
        assert_eq!(stderr, "", "it is quiet after its first line");
        let text = std::fs::read(self.dir.path().join("truth.json")).unwrap();
        let truth = serde_json::from_slice(&text).unwrap();
        let dir = std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap());
        Left {
            truth,
            stdout,
            _dir: dir,
        }
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // It has ended already unless the test failed.
        testkit::end(&mut self.child);
    }
}

impl Left {
    /// Returns the bytes of the trace file that was kept, and removes it.
    pub(crate) fn take_trace(&self) -> Vec<u8> {
        let path = self.trace_path();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        bytes
    }

    pub(crate) fn trace_path(&self) -> PathBuf {
        Path::new(self.truth.trace_file.as_ref().unwrap()).to_owned()
    }
}

/// Runs the target from beginning to end.
pub(crate) fn run(args: &[&str]) -> Left {
    Demo::start(args).end()
}
