//! Tracepoints of the kernel, and what is said where tracefs is not mounted.

use super::{OWN, is_root, json_lines, messages};
use std::path::Path;

/// Runs `list` with a tracefs in a mount namespace of its own, so that the machine's mounts do not
/// change. `None` if nothing can be mounted.
fn with_tracefs(args: &str) -> Option<std::process::Output> {
    let script =
        format!("mount -t tracefs tracefs /sys/kernel/tracing || exit 77; exec {OWN} list {args}");
    match testkit::command("unshare")
        .args(["--mount", "sh", "-c", &script])
        .output()
    {
        Ok(done) if is_root() && done.status.code() != Some(77) => Some(done),
        _ => {
            testkit::kernel::skip_if_permitted("tracefs", "tracefs can't be mounted here");
            None
        }
    }
}

#[test]
fn tracepoints_with_their_fields() {
    let Some(done) = with_tracefs("--tracepoints sched:sched_switch --json") else {
        return;
    };
    let lines = json_lines(&String::from_utf8_lossy(&done.stdout));
    assert_eq!(lines.len(), 1, "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(
        (&lines[0]["category"], &lines[0]["name"]),
        (&"sched".into(), &"sched_switch".into())
    );
    let fields = lines[0]["fields"].as_array().expect("fields");
    let pid = fields
        .iter()
        .find(|field| field["name"] == "prev_pid")
        .expect("prev_pid");
    assert_eq!((&pid["type"], &pid["size"]), (&"pid_t".into(), &4.into()));

    let names = with_tracefs("--tracepoints 'sched:*'").expect("it could be mounted");
    let names = String::from_utf8_lossy(&names.stdout).into_owned();
    assert!(
        names.lines().any(|line| line == "sched:sched_switch") && names.lines().is_sorted(),
        "{names}"
    );

    let slip = with_tracefs("--tracepoints sched_swich").expect("it could be mounted");
    assert_eq!(slip.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&slip.stderr).contains("did you mean sched:sched_switch"));
}

#[test]
fn tracefs_that_is_not_mounted() {
    if [
        "/sys/kernel/tracing/events",
        "/sys/kernel/debug/tracing/events",
    ]
    .iter()
    .any(|path| Path::new(path).exists())
    {
        return testkit::kernel::skip_if_permitted(
            "machine without tracefs",
            "tracefs is mounted here",
        );
    }
    if !is_root() {
        return testkit::kernel::skip_if_permitted(
            "root",
            "not root, so that debugfs may be closed to us",
        );
    }
    assert!(
        messages(&["--tracepoints"], 3).contains("mount -t tracefs tracefs /sys/kernel/tracing")
    );
}
