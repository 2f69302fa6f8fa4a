//! What goes on around dptrace while it is attached: targets that never rest, ends at every moment, outputs that take no
//! more, many threads, many dptraces. Nothing hangs, nothing is left, and the target goes on as if nothing had been.

mod outputs;
mod restless;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::common::code::assert_code_is_the_files;
use crate::common::kernel::{Demo, PROGRAM, Process, attached, kernel_alone, needs};
use restless::Restless;

/// Far longer than anything here takes.
const FAR_TOO_LONG: Duration = Duration::from_mins(2);

/// The end of a process, which must come.
#[track_caller]
fn end_of(child: &mut Child) -> ExitStatus {
    let since = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            return status;
        }
        if since.elapsed() > FAR_TOO_LONG {
            child.kill().expect("it is ours");
            panic!("it hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The programs and links that the kernel has: kind and number.
type InKernel = BTreeSet<(&'static str, u64)>;

/// Those that there are, but for what others hold: tests run beside this one, on this machine.
fn in_the_kernel() -> InKernel {
    let mut all = InKernel::new();
    for kind in ["prog", "link"] {
        let done = testkit::command("/usr/sbin/bpftool").args([kind, "show", "-j"]).output().expect("bpftool runs");
        let list: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
        let list = list.as_array().cloned().unwrap_or_default();
        all.extend(list.iter().filter_map(|it| Some((kind, it["id"].as_u64()?))));
    }
    all.difference(&others()).copied().collect()
}

/// What processes hold that are not of the dptrace that is tested. What no process holds may be ours.
fn others() -> InKernel {
    let processes = std::fs::read_dir("/proc").expect("it is there").flatten().map(|entry| entry.path());
    let others = processes.filter(|it| std::fs::read_link(it.join("exe")).is_ok_and(|exe| exe != Path::new(PROGRAM)));
    let files = others.filter_map(|it| std::fs::read_dir(it.join("fdinfo")).ok()).flatten().flatten();
    let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    let mut held = InKernel::new();
    for text in texts {
        for (kind, word) in [("prog", "prog_id:"), ("link", "link_id:")] {
            let number = text.lines().find_map(|line| line.strip_prefix(word)?.trim().parse().ok());
            held.extend(number.map(|number| (kind, number)));
        }
    }
    held
}

/// The kernel frees programs and links a moment after their last user. Of those that others made meanwhile, and let go of,
/// that is true as well.
#[track_caller]
fn assert_nothing_is_left(before: &InKernel) {
    let since = Instant::now();
    let mut left: InKernel = in_the_kernel().difference(before).copied().collect();
    while !left.is_empty() {
        assert!(since.elapsed() < FAR_TOO_LONG, "{left:?} are still there");
        std::thread::sleep(Duration::from_millis(50));
        let now = in_the_kernel();
        left.retain(|it| now.contains(it));
    }
}

/// Starts a command of dptrace; what it prints is not looked at.
#[track_caller]
fn start(args: &[&str]) -> Child {
    let mut command = testkit::command(PROGRAM);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

/// It must end, well or with an error that it tells.
#[track_caller]
fn ends_in_order(args: &[&str], mut tracer: Child) {
    let status = end_of(&mut tracer);
    let messages = std::io::read_to_string(tracer.stderr.take().expect("it is piped")).expect("text");
    let in_order = match status.code() {
        Some(0) => true,
        Some(1 | 2) => messages.contains("error: "),
        _ => false,
    };
    assert!(in_order, "{args:?}: {status}: {messages}");
}

/// Whether a test can run here, and what the kernel had before it.
#[track_caller]
fn ready() -> Option<(testkit::kernel::Turn, InKernel)> {
    let guard = kernel_alone()?;
    (needs("/usr/sbin/bpftool") && needs("gcc")).then(|| (guard, in_the_kernel()))
}

/// The commands that attach to a process, each for a fifth of a second.
fn commands<'a>(pid: &'a str, spec: &'a str) -> [Vec<&'a str>; 4] {
    [
        vec!["record", "-p", pid, "--objects", spec, "--for", "200ms"],
        vec!["run", "-p", pid, "--for", "200ms", "-e", "usdt:*:restless:tick { @[arg1] = count(); }"],
        vec!["run", "-p", pid, "--for", "200ms", "-e", "uprobe:*:tick { printf(\"%d %s\\n\", tid, ustack(3)); }"],
        vec!["kernel-delay", "-p", pid, "--sample-time", "0.2", "-s"],
    ]
}

/// The target forks, runs programs, opens and closes the library that has the probe, and is stopped and continued.
#[test]
#[ignore = "deep soak: twenty tracers come upon a target at random moments"]
fn a_target_that_never_rests() {
    let Some((_guard, before)) = ready() else { return };
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
            // The library is closed at times, so that there is nothing to attach to: then it says so.
            ends_in_order(&args, tracer);
        }
    }
    restless::ends_well(target);
    assert_nothing_is_left(&before);
}

/// One that is killed with all of them attached.
#[test]
#[ignore = "deep soak: sixteen tracers lose their target at random moments"]
fn a_target_that_is_killed() {
    let Some((_guard, before)) = ready() else { return };
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
    let Some((_guard, before)) = ready() else { return };
    // Not flat out: the truth names each connection, and is read at the end.
    let mut demo = Demo::start(&["--rate", "20000", "--for", "10m"]);
    demo.go();
    let pid = demo.process.pid().to_string();
    let commands = [
        vec!["record", "-p", &pid, "--objects", "all", "--for", "60ms"],
        vec!["run", "-p", &pid, "--for", "60ms", "-e", "usdt:*:spdk:* { @[probe] = count(); }"],
        // The probe with a semaphore, which the kernel must lower.
        vec!["run", "-p", &pid, "--for", "60ms", "-e", "usdt:*:demo:request_lazy { printf(\"%d\\n\", arg1); }"],
        vec!["kernel-delay", "-p", &pid, "--sample-time", "0.06", "--start-trigger", "up:demo_request_start"],
    ];
    for args in &commands {
        // 7 and 150 have no common factor with what the steps take, so that the moments differ from run to run.
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
    // Whoever is counted has been listening: a semaphore that had stayed up would let the probe be hit by every request.
    let lazy = truth.hits.get("demo:request_lazy").copied().unwrap_or(0);
    assert!(lazy < truth.requests_started, "{lazy} of {}", truth.requests_started);
}

/// More threads than most programs have, each asleep most of the time. Not thousands: these are more than a small machine bears.
#[test]
fn four_hundred_threads() {
    let Some((_guard, before)) = ready() else { return };
    let restless = Restless::build();
    let target = restless.start(400);
    let pid = target.pid().to_string();
    let mut delay = testkit::command(PROGRAM);
    delay.args(["kernel-delay", "-p", &pid, "--sample-time", "1", "--max-threads", "1024", "--json"]);
    let done = delay.output().expect("it runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let threads = report["threads"].as_array().expect("a list").len();
    assert!(threads >= 403, "{threads} threads");
    // With room for fewer it says how many it left out, and the report is there.
    let mut delay = testkit::command(PROGRAM);
    let done = delay.args(["kernel-delay", "-p", &pid, "--max-threads", "100"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("--max-threads"), "{said}");
    restless::ends_well(target);
    assert_nothing_is_left(&before);
}

/// A hundred dptraces on one process, each of which sees all.
#[test]
#[ignore = "deep soak: a hundred tracers are attached one after the other"]
fn a_hundred_at_once() {
    let Some((_guard, before)) = ready() else { return };
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
            assert!(count == hits || (!none_lost && count < hits), "{probe}: {count} of {hits}, {}", came.last);
        }
        assert!(!came.lines.is_empty(), "{}", came.last);
    }
    assert_nothing_is_left(&before);
}

/// The smallest ring, under more load than it can take: what is shown and what is messages to be lost is all that was.
#[test]
fn the_smallest_ring() {
    let Some((_guard, before)) = ready() else { return };
    let mut demo = Demo::start(&["--flat-out", "--requests", "100000", "--for", "10m"]);
    let pid = demo.process.pid().to_string();
    let script = "uprobe:__EXE__:demo_request_start { @all = count(); printf(\"%d %s\\n\", arg0, str(0, 1024)); }";
    let mut run = testkit::command(PROGRAM);
    run.args(["run", "-p", &pid, "-e", script]).env("BPFTRACE_PERF_RB_PAGES", "1").stdout(Stdio::piped());
    let mut tracer = Process::start(&mut run);
    tracer.wait_for("Attached 1 probe");
    demo.go();
    let truth = demo.truth();
    let (status, output, messages) = tracer.end();
    assert!(status.success(), "{messages:#?}");
    let lines = output.lines().filter(|line| line.ends_with(' ')).count() as u64;
    let all: u64 =
        output.lines().find_map(|line| line.strip_prefix("@all: ")?.parse().ok()).expect("the map is printed");
    let count = |line: &String| line.strip_prefix("note: ")?.split_once(" events lost:")?.0.parse::<u64>().ok();
    let lost: u64 = messages.iter().filter_map(count).sum();
    assert_eq!(all, truth.requests_started);
    assert_eq!(lines + lost, all, "{lines} lines; {messages:#?}");
    assert_nothing_is_left(&before);
}
