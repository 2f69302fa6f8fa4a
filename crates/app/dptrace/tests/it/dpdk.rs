//! Traces of DPDK's own test program, compared with babeltrace2's output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::Value;

fn dptrace(args: &[&str], dir: &Path) -> Output {
    let mut command = testkit::command(env!("CARGO_BIN_EXE_dptrace"));
    command
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .env("NO_COLOR", "1");
    command.output().unwrap()
}

#[track_caller]
fn printed(args: &[&str], dir: &Path) -> String {
    let done = dptrace(args, dir);
    assert!(
        done.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap()
}

#[track_caller]
fn refused(args: &[&str], dir: &Path, message: &str) {
    let done = dptrace(args, dir);
    let messages = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(
        !done.status.success() && messages.contains(message),
        "{args:?}: {messages}"
    );
}

/// Traces testpmd from its start to its end: thousands of events of its threads. `None` if it or
/// babeltrace2 is missing.
fn traced(dir: &Path) -> Option<PathBuf> {
    let have = |program: &str| testkit::command(program).arg("--version").output().is_ok();
    if !have("dpdk-testpmd") || !have("babeltrace2") {
        testkit::kernel::skip("DPDK", "dpdk-testpmd and babeltrace2 are not here");
        return None;
    }
    let prefix = format!("dptrace{}", std::process::id());
    let mut testpmd = testkit::command("timeout");
    testpmd.args([
        "100",
        "dpdk-testpmd",
        "--no-huge",
        "--no-pci",
        "--legacy-mem",
        "-m",
        "64",
        "--vdev=net_null0",
        "-l",
        "0,1",
    ]);
    testpmd.args([
        "--trace=.*",
        "--trace-dir",
        dir.to_str()?,
        "--file-prefix",
        &prefix,
        "--no-telemetry",
        "--",
    ]);
    testpmd
        .args(["--total-num-mbufs=2048", "--nb-cores=1"])
        .stdin(Stdio::null());
    let done = testpmd.output().unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let mut folders = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    folders.find(|path| path.is_dir())
}

#[test]
#[ignore = "deep peers: it needs dpdk-testpmd and babeltrace2"]
fn a_trace_of_testpmd_reads_as_with_babeltrace2() {
    let dir = tempfile::tempdir().unwrap();
    let Some(folder) = traced(dir.path()) else {
        return;
    };
    let path = folder.to_str().unwrap();
    let expected = testkit::command("babeltrace2")
        .arg(path)
        .env("TZ", "UTC")
        .output()
        .unwrap();
    let expected = String::from_utf8(expected.stdout).unwrap();
    let text = printed(&["trace", "-i", path], dir.path());
    assert_eq!(text.lines().count(), expected.lines().count());
    for (line, expected) in text.lines().zip(expected.lines()) {
        // For an empty text, babeltrace2 2.0 prints the text of an earlier event.
        assert!(
            line == expected || line.contains("= \"\""),
            "{line}\n{expected}"
        );
    }
    // Each line of JSON is an event with the same name and time.
    let json = printed(&["trace", "-i", path, "--json"], dir.path());
    let events: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events.len(), text.lines().count());
    for (event, line) in events.iter().zip(text.lines()) {
        let nanos = event["time_ns"].as_u64().unwrap() % 1_000_000_000;
        assert!(line.contains(&format!(".{nanos:09}]")), "{line}: {event}");
        assert!(
            line.contains(&format!(") {}: {{", event["event"].as_str().unwrap())),
            "{line}: {event}"
        );
    }
    options(&events, path, dir.path());
}

/// Checks filters, and the other output forms.
fn options(events: &[Value], path: &str, dir: &Path) {
    let count = |args: &[&str]| {
        printed(&[&["trace", "-i", path], args].concat(), dir)
            .lines()
            .count()
    };
    let of = |is: &dyn Fn(&Value) -> bool| events.iter().filter(|event| is(event)).count();
    let is_large = |event: &Value| {
        event["fields"]["size"]
            .as_u64()
            .is_some_and(|size| size >= 4096)
    };
    assert!(of(&is_large) > 0);
    assert_eq!(count(&["--where", "size>=0x1000"]), of(&is_large));
    let starts = |event: &Value| event["event"].as_str().unwrap().starts_with("lib.ethdev.");
    assert!(of(&starts) > 0);
    assert_eq!(count(&["--tpoint", "lib.ethdev.*"]), of(&starts));
    let on = |event: &Value| event["cpu"] == 1;
    assert_eq!(count(&["--lcore", "1"]), of(&on));
    assert_eq!(count(&["--where", "thread=dpdk-testpmd", "--head", "3"]), 3);
    assert_eq!(count(&["--tail", "2"]), 2);
    assert_eq!(
        count(&["--until", "0"]),
        of(&|event| event["time_ns"] == events[0]["time_ns"])
    );
    let info = printed(&["trace", "-i", path, "--info"], dir);
    assert!(
        info.contains("dpdk_version: DPDK ") && info.contains("dpdk-testpmd"),
        "{info}"
    );
    let kinds = printed(&["trace", "-i", path, "--list-tpoints"], dir);
    assert!(kinds.contains("lib.ethdev.start port_id\n"), "{kinds}");
    refused(
        &["trace", "-i", path, "--tpoint", "lib.ethdv.*"],
        dir,
        "did you mean lib.ethdev.",
    );
    refused(
        &["trace", "-i", path, "--where", "siz=1"],
        dir,
        "did you mean size",
    );
    refused(
        &["trace", "-i", path, "--owner", "x"],
        dir,
        "--owner works only for SPDK traces",
    );
    refused(
        &["trace", "-i", path, "--format", "csv"],
        dir,
        "does not work for DPDK traces",
    );
}

#[test]
fn a_folder_that_is_damaged_is_refused_with_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    fs::write(
        dir.path().join("metadata"),
        "/* CTF 1.8 */\ntypealias integer {size = 12;} := odd;\n",
    )
    .unwrap();
    refused(
        &["trace", "-i", path],
        dir.path(),
        "metadata: line 2: an integer of 12 bits",
    );
    refused(&["latency", "-i", path], dir.path(), "DPDK");
}
