//! Errors name what can't be done, and what can.

use std::os::unix::fs::PermissionsExt;

use super::target::{Sampling, Target, adds_up, number};

/// Returns the status and the messages.
fn refused(arguments: &[&str]) -> (i32, String) {
    let output = testkit::command(env!("CARGO_BIN_EXE_dptrace"))
        .arg("kernel-delay")
        .args(arguments)
        .output()
        .unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

const NO_PROCESS: &str = "error: no process has the pid 4194304; dptrace kernel-delay without \
                          arguments lists the busiest\n";

#[test]
fn processes_that_are_not_there() {
    let (status, notes) = refused(&["-p", "4194304"]);
    assert_eq!((status, notes.as_str()), (1, NO_PROCESS));
    let (status, notes) = refused(&["--name", "no-such-program"]);
    assert_eq!(
        (
            status,
            notes.contains("no process is called no-such-program")
        ),
        (1, true),
        "{notes}"
    );
    let (_, notes) = refused(&["--", "/no/such/program"]);
    assert!(notes.contains("/no/such/program"), "{notes}");
}

#[test]
fn triggers_need_one_process() {
    let targets = [Target::start("idle"), Target::start("idle")];
    let pids = targets
        .each_ref()
        .map(|target| target.child.id().to_string())
        .join(",");
    let (status, notes) = refused(&["-p", &pids, "--start-trigger", "t:sched:sched_switch"]);
    assert_eq!(
        (status, notes.contains("triggers need one process")),
        (2, true),
        "{notes}"
    );
    let (status, notes) = refused(&["--cgroup", "/no/such/group"]);
    assert_eq!(
        (status, notes.contains("there is no cgroup /no/such/group")),
        (1, true),
        "{notes}"
    );
}

/// Without a process argument the busiest processes are listed, unless the process is there that
/// users mean by default.
#[test]
fn without_a_process_the_busiest_are_listed() {
    let mut target = Target::start("storm");
    target.go();
    let (status, notes) = refused(&[]);
    if status == 0 || notes.contains("ovs-vswitchd") {
        return testkit::kernel::skip_if_permitted("Open vSwitch runs", "ovs-vswitchd runs here");
    }
    let words = [
        "no process was named",
        "CPU %",
        "choose one: dptrace kernel-delay -p PID",
    ];
    assert_eq!(
        (status, words.iter().all(|words| notes.contains(words))),
        (2, true),
        "{notes}"
    );
}

#[test]
fn triggers_that_do_not_exist_have_near_names() {
    let target = Target::start("idle");
    let pid = target.child.id().to_string();
    for (trigger, words) in [
        ("x:y", "U:PROVIDER:PROBE"),
        ("t:sched:sched_swich", "did you mean sched_switch"),
        (
            "t:syscalls:sys_enter_getpidd",
            "no system call is called getpidd; did you mean getpid",
        ),
        ("u:a:b", "no USDT probe a:b"),
        (
            "up:no_such_function_here",
            "no function no_such_function_here",
        ),
        ("k:vfs_reed", "did you mean vfs_read"),
    ] {
        let (status, notes) = refused(&["-p", &pid, "--start-trigger", trigger]);
        assert_eq!(
            (status, notes.contains(words)),
            (2, true),
            "{trigger}: {notes}"
        );
    }
}

/// A kernel function with a symbol but no type, where only its type would do.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_function_without_a_type_is_not_said_to_be_missing() {
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap();
    let is_there = symbols
        .lines()
        .any(|line| line.ends_with(" T __x64_sys_geteuid"));
    let has_kprobes = std::path::Path::new("/sys/bus/event_source/devices/kprobe").exists();
    if !is_there || has_kprobes {
        return testkit::kernel::skip_if_permitted(
            "kernel without kprobes",
            "the kernel has kprobes, or no such function",
        );
    }
    let target = Target::start("idle");
    let pid = target.child.id().to_string();
    let (status, notes) = refused(&["-p", &pid, "--start-trigger", "k:__x64_sys_geteuid"]);
    let words = [
        "the function __x64_sys_geteuid is missing in the kernel's BTF",
        "no kprobes",
        "t:syscalls:sys_enter_geteuid",
    ];
    assert_eq!(
        (status, words.iter().all(|words| notes.contains(words))),
        (3, true),
        "{notes}"
    );
}

/// The missing right to use BPF is named, not a missing kernel feature, for any trigger.
#[test]
fn a_right_that_is_missing_is_named_with_a_trigger_too() {
    let folder = tempfile::Builder::new()
        .permissions(PermissionsExt::from_mode(0o755))
        .tempdir()
        .unwrap();
    let program = folder.path().join("dptrace");
    testkit::copy_program(env!("CARGO_BIN_EXE_dptrace"), &program);
    let pid = std::process::id().to_string();
    let mut command = testkit::command("setpriv");
    command
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(program);
    command.args(["kernel-delay", "-p", &pid, "--start-trigger", "k:vfs_read"]);
    let Ok(output) = command.output() else {
        return testkit::kernel::skip_if_permitted("setpriv", "no setpriv here");
    };
    let notes = String::from_utf8(output.stderr).unwrap();
    if notes.contains("setpriv:") {
        return testkit::kernel::skip_if_permitted("kernel", &notes);
    }
    assert_eq!(
        (
            output.status.code(),
            notes.contains("not permitted to use BPF")
        ),
        (Some(3), true),
        "{notes}"
    );
}

#[test]
fn times_that_make_no_sense() {
    for (option, time, why) in [
        ("--sample-time", "1e9", "expected a time as in 5 or 5s"),
        ("--for", "5x", "expected a time as in 5 or 5s"),
        ("--for", "0", "longer than 0"),
        ("--sample-time", "0ms", "longer than 0"),
        ("--for", "25h", "at most 24h"),
        ("--sample-interval", "nan", "expected a time"),
        ("--sample-interval", "2d", "at most 24h"),
        (
            "-s",
            "nginx",
            "expected a time as in 20us, 1ms or 20000 (nanoseconds); name a process before -s",
        ),
    ] {
        let (status, notes) = refused(&["-p", "1", option, time]);
        assert_eq!(
            (status, notes.contains(why)),
            (2, true),
            "{option} {time}: {notes}"
        );
    }
}

#[test]
fn a_name_that_no_thread_has_is_reported_with_those_that_there_are() {
    let target = Target::start("spin");
    let pid = target.child.id().to_string();
    let arguments = ["-p", &pid, "--sample-time", "60", "--thread", "spinnner"];
    let Some(sampling) = Sampling::start(&arguments) else {
        return;
    };
    let (sample, notes) = sampling.end();
    assert_eq!(sample["threads"], serde_json::json!([]));
    let names = notes
        .lines()
        .find(|line| line.contains("no thread is called spinnner; there are: "));
    assert!(
        names.is_some_and(|line| ["left", "right", "spinner"]
            .iter()
            .all(|name| line.contains(name))),
        "{notes}"
    );
}

#[test]
fn threads_without_room_are_reported() {
    let mut target = Target::start("calls");
    let pid = target.child.id().to_string();
    let arguments = ["-p", &pid, "--sample-time", "60", "--max-threads", "2"];
    let Some(sampling) = Sampling::start(&arguments) else {
        return;
    };
    target.go();
    target.wait_for("done");
    let (sample, notes) = sampling.end();
    adds_up(&sample);
    assert!(
        sample["threads"].as_array().unwrap().len() <= 2,
        "{sample:#}"
    );
    // The threads besides the main thread and the harness's: `old` and `blocked`; `born` and
    // `sleeper` come later.
    assert!(number(&sample["lost"]["threads"]) >= 4, "{sample:#}");
    assert!(
        notes.contains("threads did not fit (--max-threads"),
        "{notes}"
    );
}

/// The optional values of Open vSwitch's `kernel_delay.py`.
#[test]
fn a_mask_and_a_missing_delta_are_understood() {
    for mask in [
        &["-D", "0x3f"][..],
        &["-D", "63"],
        &["-D", "0"],
        &["-D"],
        &["--debug=0"],
    ] {
        let (status, notes) = refused(&[mask, &["-p", "4194304"]].concat());
        let expected = (1, NO_PROCESS);
        assert_eq!((status, notes.as_str()), expected, "{mask:?}");
    }
    let (status, notes) = refused(&["-D", "4711"]);
    assert_eq!(
        (status, notes.contains("name a process before -D")),
        (2, true),
        "{notes}"
    );
    let delta = [
        "--stop-trigger",
        "t:syscalls:sys_exit_read",
        "--trigger-delta",
        "-p",
        "4194304",
    ];
    assert_eq!(refused(&delta).0, 1);
}
