//! Disturbances while dptrace is attached: restless targets, ends at every moment, outputs that
//! accept no more, many threads, many tracers. Nothing hangs, nothing is left behind, and the
//! target runs on undisturbed.

mod outputs;
mod restless;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::common::code::assert_code_is_the_files;
use crate::common::kernel::{Demo, PROGRAM, Process, attached, kernel_alone, needs};
use restless::Restless;

/// Timeout, far longer than anything here takes.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Waits for the end of a process, which must come.
#[track_caller]
fn end_of(child: &mut Child) -> ExitStatus {
    let since = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return status;
        }
        if since.elapsed() > TIMEOUT {
            child.kill().expect("it is ours");
            panic!("it hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Kind and id of each program and link in the kernel.
type InKernel = BTreeSet<(&'static str, u64)>;

/// Returns those in the kernel, except those that other processes hold: tests run at the same time
/// on this machine.
fn in_the_kernel() -> InKernel {
    let mut all = InKernel::new();
    for kind in ["prog", "link"] {
        let done = testkit::command("/usr/sbin/bpftool")
            .args([kind, "show", "-j"])
            .output()
            .expect("bpftool runs");
        let list: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
        let list = list.as_array().cloned().unwrap_or_default();
        all.extend(
            list.iter()
                .filter_map(|it| Some((kind, it["id"].as_u64()?))),
        );
    }
    all.difference(&others()).copied().collect()
}

/// Returns those held by processes other than the tested dptrace. Those that no process holds may
/// be ours.
fn others() -> InKernel {
    let processes = std::fs::read_dir("/proc")
        .expect("it is there")
        .flatten()
        .map(|entry| entry.path());
    let others = processes
        .filter(|it| std::fs::read_link(it.join("exe")).is_ok_and(|exe| exe != Path::new(PROGRAM)));
    let files = others
        .filter_map(|it| std::fs::read_dir(it.join("fdinfo")).ok())
        .flatten()
        .flatten();
    let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    let mut held = InKernel::new();
    for text in texts {
        for (kind, word) in [("prog", "prog_id:"), ("link", "link_id:")] {
            let number = text
                .lines()
                .find_map(|line| line.strip_prefix(word)?.trim().parse().ok());
            held.extend(number.map(|number| (kind, number)));
        }
    }
    held
}

/// Waits until no programs or links are left beyond `before`. The kernel frees them a moment after
/// their last user, including those that others made and released meanwhile.
#[track_caller]
fn assert_nothing_is_left(before: &InKernel) {
    let since = Instant::now();
    let mut left: InKernel = in_the_kernel().difference(before).copied().collect();
    while !left.is_empty() {
        assert!(since.elapsed() < TIMEOUT, "{left:?} are still there");
        std::thread::sleep(Duration::from_millis(50));
        let now = in_the_kernel();
        left.retain(|it| now.contains(it));
    }
}

/// Starts a dptrace command; its output is ignored.
#[track_caller]
fn start(args: &[&str]) -> Child {
    let mut command = testkit::command(PROGRAM);
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

/// Asserts that it ends, successfully or with an error message.
#[track_caller]
fn ends_in_order(args: &[&str], mut tracer: Child) {
    let status = end_of(&mut tracer);
    let messages =
        std::io::read_to_string(tracer.stderr.take().expect("it is piped")).expect("text");
    let in_order = match status.code() {
        Some(0) => true,
        Some(1 | 2) => messages.contains("error: "),
        _ => false,
    };
    assert!(in_order, "{args:?}: {status}: {messages}");
}

/// Returns the kernel's programs and links before a test, if the test can run here.
#[track_caller]
fn ready() -> Option<(testkit::kernel::Turn, InKernel)> {
    let guard = kernel_alone()?;
    (needs("/usr/sbin/bpftool") && needs("gcc")).then(|| (guard, in_the_kernel()))
}

/// Returns the commands that attach to a process, each for a fifth of a second.
fn commands<'a>(pid: &'a str, spec: &'a str) -> [Vec<&'a str>; 4] {
    [
        vec!["record", "-p", pid, "--objects", spec, "--for", "200ms"],
        vec![
            "run",
            "-p",
            pid,
            "--for",
            "200ms",
            "-e",
            "usdt:*:restless:tick { @[arg1] = count(); }",
        ],
        vec![
            "run",
            "-p",
            pid,
            "--for",
            "200ms",
            "-e",
            "uprobe:*:tick { printf(\"%d %s\\n\", tid, ustack(3)); }",
        ],
        vec!["kernel-delay", "-p", pid, "--sample-time", "0.2", "-s"],
    ]
}

/// The target forks, execs programs, opens and closes the library with the probe, and is stopped
/// and continued.
#[test]
#[ignore = "deep soak: twenty tracers come upon a target at random moments"]
fn a_target_that_never_rests() {
    let Some((_guard, before)) = ready() else {
        return;
    };
    let restless = Restless::build();
    let target = restless.start(2);
    let (pid, spec) = (target.pid().to_string(), restless.spec());
    for round in 0..5 {
        for args in commands(&pid, &spec) {
            let tracer = start(&args);
            if round % 2 == 1 {
                target.signal("STOP");
                std::thread::sleep(Duration::from_millis(20 * round));
                target.signal("CONT");
            }
            // The library is closed at times, so that there is nothing to attach to, which is
            // reported.
            ends_in_order(&args, tracer);
        }
    }
    restless::ends_well(target);
    assert_nothing_is_left(&before);
}

/// A target that is killed with all commands attached.
#[test]
#[ignore = "deep soak: sixteen tracers lose their target at random moments"]
fn a_target_that_is_killed() {
    let Some((_guard, before)) = ready() else {
        return;
    };
    let restless = Restless::build();
    for delay in [0, 30, 100, 180] {
        let mut target = restless.start(2);
        let (pid, spec) = (target.pid().to_string(), restless.spec());
        let tracers = commands(&pid, &spec).map(|args| (start(&args), args));
        std::thread::sleep(Duration::from_millis(delay));
        target.child.kill().expect("it is ours");
        target.child.wait().expect("it is ours");
        for (tracer, args) in tracers {
            ends_in_order(&args, tracer);
        }
    }
    assert_nothing_is_left(&before);
}

/// `kill -9` of dptrace at every moment of its start, its work and its end.
#[test]
#[ignore = "deep soak: 88 tracers are killed, each at another moment"]
fn a_dptrace_that_is_killed() {
    let Some((_guard, before)) = ready() else {
        return;
    };
    // Not flat out: the truth lists each connection, and is read at the end.
    let mut demo = Demo::start(&["--rate", "20000", "--for", "10m"]);
    demo.go();
    let pid = demo.process.pid().to_string();
    let commands = [
        vec!["record", "-p", &pid, "--objects", "all", "--for", "60ms"],
        vec![
            "run",
            "-p",
            &pid,
            "--for",
            "60ms",
            "-e",
            "usdt:*:spdk:* { @[probe] = count(); }",
        ],
        // The probe with a semaphore, which the kernel must lower.
        vec![
            "run",
            "-p",
            &pid,
            "--for",
            "60ms",
            "-e",
            "usdt:*:demo:request_lazy { printf(\"%d\\n\", arg1); }",
        ],
        vec![
            "kernel-delay",
            "-p",
            &pid,
            "--sample-time",
            "0.06",
            "--start-trigger",
            "up:demo_request_start",
        ],
    ];
    for args in &commands {
        // 7 and 150 have no common factor with the duration of the steps, so that the moments
        // differ from run to run.
        for delay in (0..150).step_by(7) {
            let mut tracer = start(args);
            std::thread::sleep(Duration::from_millis(delay));
            // It may have ended.
            let _ = tracer.kill();
            end_of(&mut tracer);
        }
    }
    assert_nothing_is_left(&before);
    assert_code_is_the_files(demo.process.pid());
    demo.process.signal("TERM");
    let truth = demo.truth();
    assert!(truth.requests_completed > 0, "it went on all the time");
    // Counted hits had a listener: if a semaphore had stayed raised, every request would hit the
    // probe.
    let lazy = truth.hits.get("demo:request_lazy").copied().unwrap_or(0);
    assert!(
        lazy < truth.requests_started,
        "{lazy} of {}",
        truth.requests_started
    );
}

/// More threads than most programs have, each asleep most of the time. Thousands would be too many
/// for a small machine.
#[test]
fn four_hundred_threads() {
    let Some((_guard, before)) = ready() else {
        return;
    };
    let restless = Restless::build();
    let target = restless.start(400);
    let pid = target.pid().to_string();
    let mut delay = testkit::command(PROGRAM);
    delay.args([
        "kernel-delay",
        "-p",
        &pid,
        "--sample-time",
        "1",
        "--max-threads",
        "1024",
        "--json",
    ]);
    let done = delay.output().expect("it runs");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let threads = report["threads"].as_array().expect("a list").len();
    assert!(threads >= 403, "{threads} threads");
    // With a lower limit it reports the number of omitted threads, and still prints the report.
    let mut delay = testkit::command(PROGRAM);
    let done = delay
        .args(["kernel-delay", "-p", &pid, "--max-threads", "100"])
        .output()
        .expect("it runs");
    let said =
        String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success() && said.contains("--max-threads"),
        "{said}"
    );
    restless::ends_well(target);
    assert_nothing_is_left(&before);
}

/// A hundred tracers on one process, each of which sees all events.
#[test]
#[ignore = "deep soak: a hundred tracers are attached one after the other"]
fn a_hundred_at_once() {
    let Some((_guard, before)) = ready() else {
        return;
    };
    let mut demo = Demo::start(&["--requests", "500", "--for", "10m"]);
    let pid = demo.process.pid();
    let tracers: Vec<Process> = (0..100).map(|_| attached(pid, ["--buffer", "1"])).collect();
    demo.go();
    let truth = demo.truth();
    for tracer in tracers {
        let came = crate::common::kernel::recorded(tracer);
        let none_lost = came.last.ends_with("none lost");
        for (probe, count) in came.counts() {
            let hits = truth.hits[&format!("spdk:{probe}")];
            assert!(
                count == hits || (!none_lost && count < hits),
                "{probe}: {count} of {hits}, {}",
                came.last
            );
        }
        assert!(!came.lines.is_empty(), "{}", came.last);
    }
    assert_nothing_is_left(&before);
}

/// The smallest ring, under more load than it can take: printed and lost events add up to all hits.
#[test]
fn the_smallest_ring() {
    let Some((_guard, before)) = ready() else {
        return;
    };
    let mut demo = Demo::start(&["--flat-out", "--requests", "100000", "--for", "10m"]);
    let pid = demo.process.pid().to_string();
    let script = "uprobe:__EXE__:demo_request_start { @all = count(); printf(\"%d %s\\n\", arg0, str(0, 1024)); }";
    let mut run = testkit::command(PROGRAM);
    run.args(["run", "-p", &pid, "-e", script])
        .env("BPFTRACE_PERF_RB_PAGES", "1")
        .stdout(Stdio::piped());
    let mut tracer = Process::start(&mut run);
    tracer.wait_for("Attached 1 probe");
    demo.go();
    let truth = demo.truth();
    let (status, output, messages) = tracer.end();
    assert!(status.success(), "{messages:#?}");
    let lines = output.lines().filter(|line| line.ends_with(' ')).count() as u64;
    let all: u64 = output
        .lines()
        .find_map(|line| line.strip_prefix("@all: ")?.parse().ok())
        .expect("the map is printed");
    let count = |line: &String| {
        line.strip_prefix("note: ")?
            .split_once(" events lost:")?
            .0
            .parse::<u64>()
            .ok()
    };
    let lost: u64 = messages.iter().filter_map(count).sum();
    assert_eq!(all, truth.requests_started);
    assert_eq!(lines + lost, all, "{lines} lines; {messages:#?}");
    assert_nothing_is_left(&before);
}
