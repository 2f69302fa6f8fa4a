//! Page faults, frozen groups, and threads that are stuck in the kernel.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use super::target::{Sampling, Target, adds_up, budget, build, in_some_window, number};

/// Starts the program with a part and its arguments. `None` without a compiler, which is reported.
fn start(folder: &Path, part: &[&str]) -> Option<Target> {
    let program = build(folder, "memory")?;
    let mut target = Target::spawn(
        testkit::command(program)
            .args(part)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped()),
    );
    target.wait_for("ready");
    Some(target)
}

/// Returns the only thread of a sample.
fn only(sample: &Value) -> &Value {
    adds_up(sample);
    let threads = sample["threads"].as_array().unwrap();
    assert_eq!(threads.len(), 1, "{sample:#}");
    &threads[0]
}

#[test]
fn page_faults_have_a_time_and_are_as_many_as_the_kernel_counts() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut target) = start(folder.path(), &["touch"]) else {
        return;
    };
    let pid = target.child.id().to_string();
    let Some(sampling) = Sampling::start(&["-p", &pid, "--sample-time", "60"]) else {
        return;
    };
    target.go();
    let said = target.wait_for("faults");
    let (sample, _) = sampling.end();
    let numbers: Vec<u64> = said
        .split(' ')
        .skip(1)
        .map(|number| number.parse().unwrap())
        .collect();
    let thread = only(&sample);
    let count = number(&thread["page_faults"]["count"]);
    // The second number also counts faults before the window and in calls.
    assert!(
        (numbers[0]..=numbers[1]).contains(&count),
        "{count} of {said}"
    );
    let (total, on_cpu) = (
        number(&thread["page_faults"]["total_ns"]),
        budget(thread, "page_faults_ns"),
    );
    assert!(
        count <= total,
        "each takes more than a nanosecond: {thread:#}"
    );
    // The sum includes waits and interrupts in between; the budget's part includes faults that the
    // window cuts.
    assert!(
        on_cpu > 0 && on_cpu <= budget(thread, "window_ns"),
        "{thread:#}"
    );
    assert!(
        budget(thread, "syscalls_ns") < budget(thread, "window_ns"),
        "{thread:#}"
    );
}

#[test]
fn the_call_of_a_stuck_thread_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let Some(target) = start(folder.path(), &["vfork"]) else {
        return;
    };
    let pid = target.child.id().to_string();
    in_some_window(|| {
        let Some(sampling) = Sampling::start(&["-p", &pid, "--sample-time", "0.2"]) else {
            return Some(());
        };
        let sample = sampling.samples().0.remove(0);
        let stuck_in = only(&sample)["stuck_in"].as_array().unwrap();
        // The thread may have got there during this window.
        stuck_in
            .iter()
            .any(|function| function.as_str().unwrap().contains("vfork"))
            .then_some(())
    });
}

/// Control group with a switch: it can be frozen, or has a limit.
struct Group {
    folder: PathBuf,
    /// The switch's file, and the values that switch it on and off.
    switch: (&'static str, [&'static str; 2]),
}

impl Group {
    /// Makes one for a process. `None` if that is not permitted, which is reported.
    fn new(root: &Path, switch: (&'static str, [&'static str; 2]), pid: u32) -> Option<Self> {
        let folder = root.join(format!("dptrace-test-{pid}"));
        let group = Self { folder, switch };
        let made = std::fs::create_dir(&group.folder);
        match made.and_then(|()| std::fs::write(group.folder.join("cgroup.procs"), pid.to_string()))
        {
            Ok(()) => Some(group),
            Err(error) => {
                testkit::kernel::skip_if_permitted(
                    "cgroups",
                    &format!("no group can be made here: {error}"),
                );
                None
            }
        }
    }

    fn switch(&self, on: bool) {
        let (file, texts) = self.switch;
        std::fs::write(self.folder.join(file), texts[usize::from(!on)]).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let (file, [_, off]) = self.switch;
        let _ = std::fs::write(self.folder.join(file), off);
        let above = self.folder.parent().unwrap();
        // Its processes leave it, so that it can be removed.
        for pid in std::fs::read_to_string(self.folder.join("cgroup.procs"))
            .unwrap_or_default()
            .lines()
        {
            let _ = std::fs::write(above.join("cgroup.procs"), pid);
        }
        let _ = std::fs::remove_dir(&self.folder);
    }
}

/// Freezes a group in one window, and looks at the next, in which nothing happens.
fn frozen(root: &Path, switch: (&'static str, [&'static str; 2])) {
    let target = Target::start("storm_at_once");
    let pid = target.child.id();
    let Some(group) = Group::new(root, switch, pid) else {
        return;
    };
    let arguments = [
        "-p",
        &pid.to_string(),
        "--sample-time",
        "0.3",
        "--sample-count",
        "2",
    ];
    let Some(sampling) = Sampling::start(&arguments) else {
        return;
    };
    std::thread::sleep(Duration::from_millis(100));
    group.switch(true);
    let samples = sampling.samples().0;
    let frozen_in = |sample: &Value| {
        adds_up(sample);
        let threads = sample["threads"].as_array().unwrap();
        let storm = threads
            .iter()
            .find(|thread| thread["name"] == "storm")
            .unwrap();
        (budget(storm, "frozen_ns"), budget(storm, "window_ns"))
    };
    let (first, second) = (frozen_in(&samples[0]), frozen_in(&samples[1]));
    assert!(first.0 > 0 && first.0 < first.1, "{first:?}");
    assert_eq!(second.0, second.1);
    // A thread that was frozen before dptrace first saw it.
    let Some(sampling) = Sampling::start(&["-p", &pid.to_string(), "--sample-time", "0.1"]) else {
        return;
    };
    let whole = frozen_in(&sampling.samples().0[0]);
    assert_eq!(whole.0, whole.1);
}

#[test]
fn a_frozen_group_is_frozen_and_in_no_call() {
    let hierarchies = host::cgroups::hierarchies();
    let of = |wanted: &str| {
        hierarchies
            .iter()
            .find(|(name, _)| name == wanted)
            .map(|(_, root)| root.clone())
    };
    if let Some(root) = of("unified") {
        frozen(&root, ("cgroup.freeze", ["1", "0"]));
    }
    // In version 1, frozen is a state of its own since Linux 6.1.
    if let Some(root) = of("freezer").filter(|_| host::system::kernel_version() >= Some((6, 1))) {
        frozen(&root, ("freezer.state", ["FROZEN", "THAWED"]));
    }
}

/// A group limited to 16 MiB reads a file of 64 MiB over and over: it reclaims a page for each that
/// it reads.
#[test]
#[ignore = "deep truth: it reads a file for seconds, and needs a limit on memory"]
fn reclaim_at_a_limit_has_a_time_of_its_own() {
    let hierarchies = host::cgroups::hierarchies();
    let of = |wanted: &str| {
        hierarchies
            .iter()
            .find(|(name, _)| name == wanted)
            .map(|(_, root)| root.clone())
    };
    let (root, file, off) = match (of("memory"), of("unified")) {
        (Some(root), _) => (root, "memory.limit_in_bytes", "-1"),
        (None, Some(root)) => (root, "memory.max", "max"),
        (None, None) => panic!("no control groups here"),
    };
    // On a disk: pages of an in-memory file system can't be evicted.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let big = folder.path().join("big");
    std::fs::write(&big, vec![7; 64 << 20]).unwrap();
    let written = std::fs::File::open(&big).unwrap();
    written.sync_all().unwrap();
    // Cached pages are charged to the test.
    rustix::fs::fadvise(&written, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    let Some(mut target) = start(folder.path(), &["read", big.to_str().unwrap()]) else {
        return;
    };
    let pid = target.child.id();
    let Some(group) = Group::new(&root, (file, ["16M", off]), pid) else {
        return;
    };
    group.switch(true);
    target.go();
    in_some_window(|| {
        let Some(sampling) = Sampling::start(&["-p", &pid.to_string(), "--sample-time", "0.5"])
        else {
            return Some(());
        };
        let sample = sampling.samples().0.remove(0);
        let thread = only(&sample);
        let (reclaim, count) = (
            budget(thread, "reclaim_ns"),
            number(&thread["reclaims"]["count"]),
        );
        assert!(reclaim <= budget(thread, "window_ns"), "{thread:#}");
        (reclaim > budget(thread, "window_ns") / 100 && count > 10).then_some(())
    });
}
