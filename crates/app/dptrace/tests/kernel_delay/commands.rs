//! Commands that `kernel-delay` starts.

use crate::target::{adds_up, call, number, thread};

/// Measures a command; returns the sample and the messages. `None` if that is not possible here.
fn measure(arguments: &[&str]) -> Option<(serde_json::Value, String)> {
    if !testkit::kernel::is_permitted("kernel-delay") {
        return None;
    }
    let output = testkit::command(env!("CARGO_BIN_EXE_dptrace"))
        .args(["kernel-delay", "--json"])
        .args(arguments)
        .output()
        .unwrap();
    let notes = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{notes}");
    let sample = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{notes}"));
    Some((sample, notes))
}

/// The command sleeps for longer than a sample has by default.
#[test]
fn a_command_is_measured_until_it_ends() {
    let Some((sample, notes)) = measure(&["--", "sleep", "0.7"]) else {
        return;
    };
    adds_up(&sample);
    let sleep = thread(&sample, "sleep");
    let calls = &sleep["syscalls"];
    assert_eq!(
        call(sleep, calls, "clock_nanosleep")["count"],
        1,
        "{sleep:#}"
    );
    let length = number(&sample["stop_ns"]) - number(&sample["start_ns"]);
    assert!(length >= 700_000_000, "{length}");
    assert!(!notes.contains("process "), "{notes}");
}

#[test]
fn a_sample_of_a_command_can_have_a_length() {
    // A reader of our output would wait for the command, too, if that had it.
    let script = "exec sleep 60 >/dev/null 2>&1";
    let Some((sample, notes)) = measure(&["--for", "0.1", "--", "sh", "-c", script]) else {
        return;
    };
    let length = number(&sample["stop_ns"]) - number(&sample["start_ns"]);
    assert_eq!(length, 100_000_000);
    let left = notes.lines().find_map(|line| {
        let pid = line.strip_prefix("note: process ")?;
        pid.strip_suffix(" continues to run")
    });
    let pid = left.unwrap_or_else(|| panic!("{notes}")).parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
}

#[test]
fn the_end_of_a_command_that_fails_is_reported() {
    for (script, end) in [
        ("exit 3", " failed: exit status: 3\n"),
        ("kill -TERM $$", " failed: signal: 15 (SIGTERM)\n"),
    ] {
        let Some((_, notes)) = measure(&["--", "sh", "-c", script]) else {
            return;
        };
        assert!(notes.ends_with(end), "{notes}");
    }
}
