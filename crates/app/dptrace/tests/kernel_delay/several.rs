//! Several processes at once: by number, by name, with their children, by control group.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::limits::Group;
use super::target::{Sampling, Target, adds_up, budget, call, eventually, in_some_window, number};

/// Returns the sums of a sample by process; the sum of all processes has no pid.
fn sums(sample: &Value) -> Vec<(Option<u64>, u64)> {
    let sums = sample["processes"].as_array().unwrap().iter();
    sums.map(|sum| {
        (
            sum["pid"].as_u64(),
            number(&sum["user_ns"]) + number(&sum["ready_ns"]),
        )
    })
    .collect()
}

/// Returns the same sum over the threads of a process.
fn sum_of_threads(sample: &Value, pid: u64) -> u64 {
    let threads = sample["threads"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|thread| thread["pid"] == pid);
    threads
        .map(|thread| budget(thread, "user_ns") + budget(thread, "ready_ns"))
        .sum()
}

#[test]
fn each_process_has_a_sum_and_all_have_one() {
    let targets = [Target::start("spin"), Target::start("spin")];
    let pids = targets
        .each_ref()
        .map(|target| u64::from(target.child.id()));
    let both = format!("{},{}", pids[0], pids[1]);
    let name = std::env::current_exe().unwrap();
    let name = name.file_name().unwrap().to_str().unwrap();
    let [first, second] = pids.map(|pid| pid.to_string());
    for arguments in [
        &["-p", &both][..],
        &["--name", name],
        &["-p", name],
        &[&first, &second],
    ] {
        let Some(sampling) = Sampling::start(&[&["--for", "300ms"], arguments].concat()) else {
            return;
        };
        let (samples, _) = sampling.samples();
        adds_up(&samples[0]);
        let sums = sums(&samples[0]);
        for pid in pids {
            let (_, sum) = sums.iter().find(|(sum, _)| *sum == Some(pid)).unwrap();
            assert!(
                *sum > 0 && *sum == sum_of_threads(&samples[0], pid),
                "{sums:?}"
            );
        }
        let (last, others) = sums.split_last().unwrap();
        assert_eq!(
            *last,
            (None, others.iter().map(|(_, sum)| sum).sum()),
            "{sums:?}"
        );
    }
}

#[test]
fn a_command_is_measured_with_what_it_starts() {
    let script = "sleep 0.05; sleep 0.05; true";
    let output = testkit::command(env!("CARGO_BIN_EXE_dptrace"))
        .args([
            "kernel-delay",
            "--json",
            "--sample-time",
            "60",
            "--children",
            "--",
            "sh",
            "-c",
            script,
        ])
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    if messages.contains("not permitted") || messages.contains("this kernel ") {
        return println!("REFUSED: {messages}");
    }
    let sample: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{messages}"));
    adds_up(&sample);
    let threads = sample["threads"].as_array().unwrap();
    let sleeps: Vec<&Value> = threads
        .iter()
        .filter(|thread| thread["name"] == "sleep")
        .collect();
    assert_eq!(sleeps.len(), 2, "{sample:#}");
    for sleep in sleeps {
        assert_eq!(
            call(sleep, &sleep["syscalls"], "clock_nanosleep")["count"],
            1,
            "{sleep:#}"
        );
        assert!(
            sleep["pid"] == sleep["tid"] && sleep["pid"] != sample["pid"],
            "{sleep:#}"
        );
        assert_eq!(
            (&sleep["born"], &sleep["ended"]),
            (&true.into(), &true.into())
        );
    }
}

/// A parent that only waits is shown with its children, which do the work.
#[test]
fn a_parent_whose_child_works_is_not_just_idle() {
    let target = Target::start("parent");
    let pid = target.child.id().to_string();
    let run = |arguments: &[&str]| {
        let output = testkit::command(env!("CARGO_BIN_EXE_dptrace"))
            .arg("kernel-delay")
            .args(arguments)
            .output()
            .unwrap();
        (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let hint = format!(": dptrace kernel-delay -p {pid} --children");
    let seen = in_some_window(|| {
        let (text, messages) = run(&["-p", &pid, "--summary"]);
        if messages.contains("not permitted") || messages.contains("this kernel ") {
            println!("REFUSED: {messages}");
            return Some(None);
        }
        text.lines()
            .find(|line| line.ends_with(&hint))
            .map(|line| Some(line.to_owned()))
    });
    let Some(seen) = seen else { return };
    assert!(seen.starts_with("its child used "), "{seen}");
    let (json, _) = run(&["-p", &pid, "--json"]);
    assert_eq!(
        serde_json::from_str::<Value>(&json).unwrap()["children"]["count"],
        1,
        "{json}"
    );
    assert!(
        !run(&["-p", &pid, "--summary", "--children"])
            .0
            .contains("its child")
    );
}

#[test]
#[ignore = "deep truth: both processes must have threads in the window of 0.3 s"]
fn a_control_group_is_measured_as_a_whole() {
    let targets = [Target::start("spin"), Target::start("idle")];
    let Some(group) = Group::new(targets[0].child.id()) else {
        return;
    };
    group.add(targets[1].child.id());
    let path = group.folder.to_str().unwrap();
    let Some(sampling) = Sampling::start(&["--cgroup", path, "--sample-time", "0.3"]) else {
        return;
    };
    let (samples, _) = sampling.samples();
    adds_up(&samples[0]);
    for target in &targets {
        let pid = Some(u64::from(target.child.id()));
        assert!(
            sums(&samples[0]).iter().any(|(sum, _)| *sum == pid),
            "{:#}",
            samples[0]["processes"]
        );
    }
    // The group can be removed once its processes are gone.
    drop(targets);
}

/// Threads of the same process count as its own; strangers have a pid.
#[test]
fn preemptors_are_identified_by_process() {
    let targets = [Target::start("spin"), Target::start("spin")];
    let [own, other] = targets
        .each_ref()
        .map(|target| u64::from(target.child.id()));
    // `left` and `right` of both share a CPU.
    let is = |relation: &'static str, pid: u64| {
        move |task: &&Value| {
            task["relation"] == relation && task["pids"].as_array().unwrap().contains(&pid.into())
        }
    };
    eventually(&own.to_string(), |sample| {
        let threads = sample["threads"].as_array().unwrap().iter();
        let all: Vec<&Value> = threads
            .flat_map(|thread| thread["ran_instead"].as_array().unwrap())
            .collect();
        all.iter().copied().find(is("own", own)).is_some()
            && all.iter().copied().find(is("other", other)).is_some()
    });
}

/// A kernel worker is shown with the function of its work. Reading this file queues
/// `refresh_vm_stats` on each CPU (`vmstat_refresh` of mm/vmstat.c).
#[test]
fn a_worker_has_the_function_of_its_work() {
    let target = Target::start("spin");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                std::fs::read("/proc/sys/vm/stat_refresh").unwrap();
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        // The loop ends even if the test fails.
        let _over = Over(&over);
        eventually(&target.child.id().to_string(), |sample| {
            let threads = sample["threads"].as_array().unwrap().iter();
            let mut all = threads.flat_map(|thread| thread["ran_instead"].as_array().unwrap());
            all.any(|task| {
                task["work"]
                    .as_str()
                    .is_some_and(|work| work.starts_with("refresh_vm_stats"))
            })
        });
    });
}

/// Sets its flag when dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
