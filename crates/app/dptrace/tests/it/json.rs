//! The JSON of all commands against the schema, `docs/json-schema.json`: their lines have the envelope, the members and the
//! units that `docs/json.md` describes. Lines of `pmd`, `serve` and DPDK's traces are checked where these run.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;
use testkit::{Era, Workload};

use crate::common::kernel::{PROGRAM, Process, kernel};
use crate::common::printed;
use crate::common::schema::{types, validated};

/// Prints with these arguments, and returns the valid lines of the types that are expected.
#[track_caller]
fn lines(args: &[&str], expected: &[&str]) -> Vec<Value> {
    let lines = validated(&printed(args));
    assert_eq!(types(&lines), expected, "{args:?}");
    lines
}

fn trace(dir: &TempDir, era: Era) -> String {
    let load = Workload {
        requests: 30,
        connections: 3,
        ..Workload::new(era)
    };
    let path = dir.path().join(format!("{era:?}.trace"));
    std::fs::write(&path, load.generate().file.bytes).expect("written");
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn traces_of_all_eras_are_as_the_schema_has_them() {
    let dir = tempfile::tempdir().expect("a folder");
    for era in Era::ALL {
        let file = &trace(&dir, era)[..];
        lines(&["trace", file, "--format", "ndjson"], &["trace.record"]);
        let filtered = lines(
            &["trace", file, "--json", "--delta", "--head", "20"],
            &["trace.record"],
        );
        assert!(
            filtered.iter().all(|line| line["delta_ns"].is_u64()),
            "{filtered:?}"
        );
        lines(&["trace", file, "--info", "--json"], &["trace.info"]);
        lines(
            &["trace", file, "--list-tpoints", "--json"],
            &["trace.tracepoint"],
        );
        lines(&["latency", file, "--json"], &["latency.stage"]);
        lines(
            &["latency", file, "--json", "--slowest", "3", "--by", "lcore"],
            &["latency.slowest", "latency.stage"],
        );
        lines(
            &["latency", file, "--summary", "--json"],
            &["latency.summary"],
        );
        lines(
            &["timeline", file, "--json"],
            &["timeline.request", "timeline.summary"],
        );
    }
}

#[test]
fn listings_match_the_schema() {
    lines(&["scripts", "--json"], &["scripts.script"]);
    lines(&["objects", "--json"], &["objects.spec"]);
    lines(&["list", PROGRAM, "--json"], &["list.usdt"]);
    let function = lines(
        &["list", PROGRAM, "--functions", "main", "--json"],
        &["list.function"],
    );
    assert_eq!(function[0]["name"], "main");
}

/// Checks the output of commands that look at a running process and at a CPU.
fn check_live(pid: &str, folder: &str) {
    validated(&printed([
        "watch", "-p", pid, "--slow", "1ms", "--for", "1s", "--json", "-o", folder,
    ]));
    lines(&["top", "-p", pid, "--once", "--json"], &["top.second"]);
    let window = [
        "--sample-count",
        "1",
        "--sample-interval",
        "200ms",
        "--json",
    ];
    lines(
        &[&["kernel-delay", "-p", pid][..], &window[..]].concat(),
        &["kernel-delay.sample"],
    );
    lines(
        &[&["kernel-delay", "-p", pid, "-s"][..], &window[..]].concat(),
        &["kernel-delay.sample"],
    );
    let audit = validated(&printed([
        "cpus", "0", "--for", "200ms", "--each", "20us", "--json",
    ]));
    assert!(types(&audit).contains(&"cpus.cpu"), "{audit:?}");
    lines(
        &["cpus", "0", "--check", "--json"],
        &["cpus.checked", "cpus.finding"],
    );
    validated(&printed(["objects", "-p", pid, "--json"]));
    lines(
        &[
            "inspect",
            "-p",
            pid,
            "--json",
            "1 + 1",
            "printf(\"text\\n\")",
        ],
        &["inspect.text", "inspect.value"],
    );
}

#[test]
fn a_target_and_its_capture_are_as_the_schema_has_them() {
    let Some(_guard) = kernel() else { return };
    let dir = tempfile::tempdir().expect("a folder");
    let mut command = testkit::command(PROGRAM);
    command.args([
        "demo-target",
        "--for",
        "2m",
        "--rate",
        "3000",
        "--inject",
        "preempt",
        "--inject-every",
        "50ms",
    ]);
    command
        .args(["--inject-for", "3ms"])
        .current_dir(dir.path());
    let mut target = testkit::on_last_cpu(|| Process::start(command.stdout(Stdio::null())));
    target.wait_for("demo-target: pid");
    let pid = &target.pid().to_string()[..];
    let path = |name: &str| dir.path().join(name).to_str().expect("UTF-8").to_owned();
    let (capture, folder) = (&path("capture")[..], &path("box")[..]);
    printed(["capture", "-p", pid, "--for", "1s", "-o", capture]);
    let requests = validated(&printed(["timeline", capture, "--json"]));
    assert!(
        ["timeline.request", "timeline.summary"]
            .iter()
            .all(|ty| types(&requests).contains(ty)),
        "{requests:?}"
    );
    lines(&["timeline", capture, "--ndjson"], &["timeline.interval"]);
    lines(
        &["trace", "-i", capture, "--info", "--json"],
        &["trace.info"],
    );
    check_live(pid, folder);
    target.signal("TERM");
}

/// The page that describes the types has all of them.
#[test]
fn the_page_names_all_types() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let read = |name: &str| std::fs::read_to_string(root.join("docs").join(name)).expect("a page");
    let schema: Value = serde_json::from_str(&read("json-schema.json")).expect("JSON");
    let page = read("json.md");
    let types = schema["properties"]["type"]["enum"]
        .as_array()
        .expect("a list");
    let missing: Vec<&str> = types
        .iter()
        .filter_map(Value::as_str)
        .filter(|ty| !page.contains(&format!("`{ty}`")))
        .collect();
    assert!(missing.is_empty(), "json.md does not have {missing:?}");
}
