//! A process that has used up its CPU limit waits for a CPU, and the reason is reported.

use std::path::PathBuf;

use serde_json::Value;

use super::target::{Sampling, Target, adds_up, budget, in_some_window, number, thread};

/// Control group with a limit of a tenth of a CPU, removed when the test ends.
pub(super) struct Group {
    pub(super) folder: PathBuf,
}

impl Group {
    /// Makes a group for a process. `None` if no controller is available to us, which is reported.
    pub(super) fn new(pid: u32) -> Option<Self> {
        let of_cpu = |name: &str| name.split(',').any(|name| name == "cpu");
        let hierarchies = host::cgroups::hierarchies();
        let Some((name, root)) = hierarchies
            .iter()
            .rev()
            .find(|(name, _)| of_cpu(name) || name == "unified")
        else {
            testkit::kernel::skip_if_permitted("cgroups", "no cgroups here");
            return None;
        };
        let folder = root.join(format!("dptrace-test-{pid}"));
        let files = if name == "unified" {
            vec![("cpu.max", "10000 100000".to_owned())]
        } else {
            vec![
                ("cpu.cfs_period_us", "100000".to_owned()),
                ("cpu.cfs_quota_us", "10000".to_owned()),
            ]
        };
        let made = std::fs::create_dir(&folder).map(|()| Self {
            folder: folder.clone(),
        });
        let put = |(file, text): (&str, String)| std::fs::write(folder.join(file), text);
        let all = files.into_iter().chain([("cgroup.procs", pid.to_string())]);
        match made.and_then(|group| {
            all.map(put)
                .collect::<std::io::Result<Vec<()>>>()
                .map(|_| group)
        }) {
            Ok(group) => Some(group),
            Err(error) => {
                testkit::kernel::skip_if_permitted(
                    "cgroups",
                    &format!("no CPU limit can be set here: {error}"),
                );
                None
            }
        }
    }
}

impl Group {
    /// Moves another process into the group.
    pub(super) fn add(&self, pid: u32) {
        std::fs::write(self.folder.join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It can be removed once its process is gone, which may take a moment.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// Returns a window in which the limit was used up. On a busy machine the group may get less than
/// its limit.
fn used_up() -> Option<Value> {
    let target = Target::start("spin");
    let pid = target.child.id();
    let group = Group::new(pid)?;
    let arguments = ["-p", &pid.to_string(), "--sample-time", "1"];
    let sample = in_some_window(|| {
        let Some(sampling) = Sampling::start(&arguments) else {
            return Some(None);
        };
        let sample = sampling.samples().0.remove(0);
        let limits = sample["cpu_limits"].as_array().unwrap();
        // The limit may be missing, or not yet be used up.
        let ours = limits
            .iter()
            .find(|limit| limit["cgroup"].as_str().unwrap().contains("dptrace-test"))?;
        assert!(
            number(&ours["used_up"]) <= number(&ours["periods"]),
            "{ours}"
        );
        (number(&ours["used_up"]) > 0).then_some(Some(sample))
    });
    // The group can be removed once its process is gone.
    drop(target);
    drop(group);
    sample
}

#[test]
fn a_limit_that_is_used_up_is_reported() {
    let Some(sample) = used_up() else { return };
    adds_up(&sample);
    let limits = sample["cpu_limits"].as_array().unwrap();
    let throttled: u64 = limits
        .iter()
        .map(|limit| number(&limit["throttled_ns"]))
        .sum();
    // A spinner waits for nothing but a CPU: the limit took at least the time that other threads
    // did not.
    let spinner = thread(&sample, "spinner");
    let most = number(&spinner["budget"]["throttled_at_most_ns"]);
    assert!(
        most > 0 && most <= throttled && most <= budget(spinner, "ready_ns"),
        "{throttled}: {spinner:#}"
    );
}

#[test]
#[ignore = "deep truth: the spinner must wait for more than half of the window of 1 s"]
fn a_throttled_thread_waits_for_a_cpu() {
    let Some(sample) = used_up() else { return };
    // Three busy threads share a tenth of a CPU, so they wait most of the time.
    let spinner = thread(&sample, "spinner");
    assert!(
        budget(spinner, "ready_ns") > budget(spinner, "window_ns") / 2,
        "{spinner:#}"
    );
}
