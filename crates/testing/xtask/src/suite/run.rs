//! One run of one command, with a time limit and its output.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process_group};

use super::programs::TestProgram;

/// Additional time after which the kernel ends a command that we did not.
const KILL_DELAY: Duration = Duration::from_mins(1);
/// Interval between two checks of a running command.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Result of a command that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit status; `None` if the time limit ended the command.
    pub(crate) status: Option<ExitStatus>,
    /// Run time.
    pub(crate) time: Duration,
    /// Standard output and standard error, in the order of writing.
    pub(crate) output: String,
}

impl Ended {
    /// Returns whether the command ended by itself, and successfully.
    pub(crate) fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// Describes the end of the command.
    pub(crate) fn verdict(&self) -> String {
        let seconds = self.time.as_secs_f64();
        match self.status {
            Some(status) if status.success() => format!("passed in {seconds:.1} s"),
            Some(status) => format!("failed in {seconds:.1} s ({status})"),
            None => format!("was ended by its limit, after {seconds:.1} s"),
        }
    }
}

/// Runs a command in a separate process group, and kills the group if it takes longer than `limit`.
///
/// # Errors
/// If the command cannot be started, or its output cannot be read.
pub(crate) fn run_limited(command: &mut Command, limit: Duration) -> anyhow::Result<Ended> {
    let name = command.get_program().to_string_lossy().into_owned();
    // A file, not a pipe: processes that the command leaves behind cannot keep this waiting.
    let mut output = tempfile::tempfile().context("making a file for the output")?;
    let copy = |file: &File| {
        file.try_clone()
            .context("opening the file of the output again")
    };
    command
        .stdin(Stdio::null())
        .stdout(copy(&output)?)
        .stderr(copy(&output)?)
        .process_group(0);
    // If this task is killed, the command dies with it.
    sys::process::bind_to_starter(command, limit + KILL_DELAY);
    let since = Instant::now();
    let mut child = command.spawn().with_context(|| format!("running {name}"))?;
    let mut status = None;
    while status.is_none() && since.elapsed() < limit {
        status = child
            .try_wait()
            .with_context(|| format!("waiting for {name}"))?;
        if status.is_none() {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
    // Processes that outlive a command that has ended are left alone: a copy of dptrace that is
    // killed while it removes its uprobes leaves them in the kernel.
    if status.is_none() {
        if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        child
            .wait()
            .with_context(|| format!("waiting for {name}"))?;
    }
    let (time, mut bytes) = (since.elapsed(), Vec::new());
    output.rewind().context("reading the output")?;
    output
        .read_to_end(&mut bytes)
        .context("reading the output")?;
    Ok(Ended {
        status,
        time,
        output: String::from_utf8_lossy(&bytes).into_owned(),
    })
}

/// Variable from which proptest takes its seed; `.cargo/config.toml` sets it for the gate.
pub(crate) const SEED_VARIABLE: &str = "PROPTEST_RNG_SEED";
/// Variables that are set for each test that runs alone: a missing feature is a failure, as in
/// `.ci/run`.
const REQUIRED: [&str; 3] = [
    "DPTRACE_REQUIRE_KERNEL_TESTS",
    "DPTRACE_REQUIRE_ENGINES",
    "DPTRACE_REQUIRE_BROWSER",
];

/// Runs one test alone, in a separate process, even if it is ignored. A property test draws its
/// cases by `seed` if given, else as in the gate.
///
/// # Errors
/// If the program cannot be started.
/// If its program cannot be started.
pub(crate) fn run_test(
    program: &TestProgram,
    test: &str,
    limit: Duration,
    seed: Option<u64>,
) -> anyhow::Result<Ended> {
    let mut command = Command::new(&program.path);
    command.args([
        "--exact",
        test,
        "--include-ignored",
        "--nocapture",
        "--test-threads=1",
    ]);
    command
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder);
    command
        .envs(REQUIRED.map(|name| (name, "1")))
        .envs(seed.map(|seed| (SEED_VARIABLE, seed.to_string())));
    run_limited(&mut command, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_ends_by_itself_or_by_its_limit() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let done =
            run_limited(&mut shell("echo out; echo err >&2"), Duration::from_mins(1)).unwrap();
        assert!(done.succeeded() && done.output == "out\nerr\n", "{done:?}");
        let failed = run_limited(&mut shell("exit 3"), Duration::from_mins(1)).unwrap();
        assert_eq!(failed.status.unwrap().code(), Some(3));
        // The limit also ends processes that the command has started: nothing else would end this
        // one.
        let ended = run_limited(
            &mut shell("sleep 1000 & echo $!; wait"),
            Duration::from_millis(300),
        )
        .unwrap();
        assert!(ended.status.is_none() && !ended.succeeded(), "{ended:?}");
        let sleeper = format!("/proc/{}/comm", ended.output.trim());
        let since = Instant::now();
        while std::fs::read_to_string(&sleeper).is_ok_and(|name| name == "sleep\n") {
            assert!(
                since.elapsed() < Duration::from_mins(1),
                "the group was not ended"
            );
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}
