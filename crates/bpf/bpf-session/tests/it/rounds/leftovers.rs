//! Leftovers of sessions, in this process and in the kernel.

use std::time::{Duration, Instant};

use super::TIMEOUT;

pub(super) fn own_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Returns the kernel's ids of our descriptors of this kind.
pub(super) fn own_ids(what: &str) -> Vec<u64> {
    let prefix = format!("{what}_id:");
    let infos = std::fs::read_dir("/proc/self/fdinfo").unwrap();
    let texts = infos.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
    texts
        .filter_map(|text| {
            text.lines()
                .find_map(|line| line.strip_prefix(&prefix)?.trim().parse().ok())
        })
        .collect()
}

/// Waits until bpftool lists none of these any more: the kernel frees them a moment after their
/// last user.
pub(super) fn assert_gone(kind: &str, ids: &[u64]) {
    let start = Instant::now();
    loop {
        let done = testkit::command("/usr/sbin/bpftool")
            .args([kind, "show", "-j"])
            .output()
            .expect("bpftool runs");
        let list: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        let alive = list
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|entry| entry["id"].as_u64());
        let left: Vec<u64> = alive.filter(|id| ids.contains(id)).collect();
        if left.is_empty() {
            return;
        }
        assert!(start.elapsed() < TIMEOUT, "{kind} {left:?} are still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the list of uprobes in tracefs, which is mounted for a moment in a namespace of its own.
pub(super) fn uprobe_events() -> String {
    let script = "mount -t tracefs none /mnt && cat /mnt/uprobe_events";
    let done = testkit::command("unshare")
        .args(["--mount", "sh", "-c", script])
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap()
}
