//! `dptrace doctor`: its findings are true, for root and for an unprivileged user, and it leaves
//! nothing behind.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{dptrace, printed};
use serde_json::Value;

/// Path of bpftool on Debian, which is not in every user's PATH.
const BPFTOOL: &str = "/usr/sbin/bpftool";

fn skip(reason: &str) {
    testkit::kernel::skip("doctor", reason);
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

/// Runs doctor; returns the objects it prints, its exit status and its messages.
fn examined(command: &mut Command) -> (Vec<Value>, Option<i32>, String) {
    let done = command.output().expect("it runs");
    let text = String::from_utf8(done.stdout).expect("UTF-8");
    let lines = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object a line"))
        .collect();
    (
        lines,
        done.status.code(),
        String::from_utf8_lossy(&done.stderr).into_owned(),
    )
}

fn doctor() -> Command {
    let mut command = testkit::command(env!("CARGO_BIN_EXE_dptrace"));
    command.args(["doctor", "--json"]);
    command
}

fn answer<'a>(found: &'a [Value], name: &str) -> &'a str {
    let finding = found
        .iter()
        .find(|it| it["name"] == name)
        .unwrap_or_else(|| panic!("no line for {name}"));
    finding["answer"].as_str().expect("a word")
}

#[test]
fn the_exit_status_says_whether_what_is_required_is_there() {
    let _turn = testkit::kernel::alone();
    let (found, status, messages) = examined(&mut doctor());
    let required: Vec<_> = found.iter().filter(|it| it["required"] == true).collect();
    assert!(required.len() >= 3, "{required:?}");
    let works = required.iter().all(|it| it["answer"] == "yes");
    assert_eq!(status, Some(if works { 0 } else { 3 }), "{messages}");
    for finding in &found {
        let yes = finding["answer"] == "yes";
        assert!(
            yes || !finding["said"].as_str().expect("a text").is_empty(),
            "why not? {finding}"
        );
        assert!(
            yes || finding["get"].is_string(),
            "how to get it? {finding}"
        );
        assert!(
            !finding["needed_for"].as_str().expect("a text").is_empty(),
            "{finding}"
        );
    }
    if !works {
        skip("BPF is not for this user");
    }
}

/// Every finding has a line, and the descriptions of what needs it start in one column.
#[test]
fn the_text_is_aligned_and_complete() {
    let _turn = testkit::kernel::alone();
    let done = dptrace().args(["doctor", "-v"]).assert();
    let text = String::from_utf8(done.get_output().stdout.clone()).expect("UTF-8");
    let (found, ..) = examined(&mut doctor());
    let mut columns = Vec::new();
    for finding in &found {
        let (name, needed) = (
            finding["name"].as_str().expect("a name"),
            finding["needed_for"].as_str().expect("a text"),
        );
        let line = text
            .lines()
            .find(|line| line.get(11..).is_some_and(|rest| rest.starts_with(name)));
        let line = line.unwrap_or_else(|| panic!("no line for {name}: {text}"));
        columns.push(
            line.find(needed)
                .unwrap_or_else(|| panic!("{line} does not say {needed}")),
        );
    }
    assert!(columns.windows(2).all(|pair| pair[0] == pair[1]), "{text}");
    assert!(text.starts_with("dptrace record and run can"), "{text}");
}

/// The verdict, one line per command, and where to see more.
#[test]
fn a_line_says_what_each_command_can_do() {
    let _turn = testkit::kernel::alone();
    let done = dptrace().arg("doctor").assert();
    let text = String::from_utf8(done.get_output().stdout.clone()).expect("UTF-8");
    let lines: Vec<_> = text.lines().collect();
    assert!(
        lines[0].starts_with("dptrace record and run can") && lines[0].contains(": Linux "),
        "{text}"
    );
    let commands = [
        "trace, latency",
        "report",
        "capture [--slow]",
        "list",
        "record, trace -p",
        "run",
        "kernel-delay",
    ];
    let (found, ..) = examined(&mut doctor());
    for (line, command) in lines[1..].iter().zip(commands) {
        let answer = line
            .trim_start()
            .strip_prefix(command)
            .expect("in this order")
            .trim();
        let lacks = answer.split_once(": ").map_or("", |(_, lacks)| lacks);
        let lacks = lacks
            .trim_start_matches("without ")
            .trim_start_matches("needs ");
        for name in lacks.split(", ").filter(|name| !name.is_empty()) {
            assert_ne!(self::answer(&found, name), "yes", "{line}");
        }
    }
    assert_eq!(lines.len(), commands.len() + 2, "{text}");
    assert!(lines[8].ends_with("dptrace doctor -v"), "{text}");
}

#[test]
fn the_user_nobody_learns_of_missing_features() {
    let _turn = testkit::kernel::alone();
    if !is_root() {
        return skip("only root can become nobody");
    }
    let dir = tempfile::tempdir().expect("a directory");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("ours");
    let program = dir.path().join("dptrace");
    testkit::copy_program(env!("CARGO_BIN_EXE_dptrace"), &program);
    let mut command = testkit::command("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args(["doctor", "--json"]);
    let (found, status, messages) = examined(&mut command);
    assert_eq!(status, Some(3), "{messages}");
    assert!(
        messages.contains("record and run lack bpf() programs, ") && messages.contains("uprobes"),
        "{messages}"
    );
    for name in [
        "bpf() programs",
        "uprobes",
        "CAP_BPF",
        "CAP_PERFMON",
        "CAP_SYS_PTRACE",
        "CAP_SYS_ADMIN",
    ] {
        assert_eq!(answer(&found, name), "no", "{name}");
    }
    let programs = found
        .iter()
        .find(|it| it["name"] == "bpf() programs")
        .expect("found above");
    assert!(
        programs["get"]
            .as_str()
            .expect("a hint")
            .contains("setcap cap_bpf,cap_perfmon,"),
        "{programs}"
    );
}

/// bpftool makes its own probes.
#[test]
fn bpftool_says_the_same() {
    let _turn = testkit::kernel::alone();
    if !is_root() {
        return skip("bpftool needs root");
    }
    let Ok(done) = testkit::command(BPFTOOL)
        .args(["-j", "feature", "probe", "kernel"])
        .output()
    else {
        return skip("bpftool is not installed");
    };
    let probed: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let helper = |name: &str| {
        let helpers = probed["helpers"]["kprobe_available_helpers"]
            .as_array()
            .expect("a list");
        helpers.iter().any(|helper| helper == name)
    };
    let kind = |name: &str| probed["program_types"][format!("have_{name}_prog_type")] == true;
    let (found, ..) = examined(&mut doctor());
    for (name, theirs) in [
        ("bpf() programs", kind("kprobe")),
        // dptrace's answer comes from attaching to the entry of a kernel function.
        ("fentry", kind("tracing")),
        (
            "ring buffer",
            probed["map_types"]["have_ringbuf_map_type"] == true,
        ),
        ("attach cookies", helper("bpf_get_attach_cookie")),
        ("bpf_loop", helper("bpf_loop")),
        ("reading kernel memory", helper("bpf_probe_read_kernel")),
    ] {
        assert_eq!(answer(&found, name) == "yes", theirs, "{name}");
    }
    // bpftool only loads these programs; if that fails, nothing can be attached.
    for (name, theirs) in [
        ("tracepoints", "tracepoint"),
        ("raw tracepoints", "raw_tracepoint"),
        ("perf links", "perf_event"),
    ] {
        assert!(kind(theirs) || answer(&found, name) != "yes", "{name}");
    }
}

#[test]
fn nothing_is_left_behind() {
    let _turn = testkit::kernel::alone();
    let mounts = || fs::read_to_string("/proc/self/mountinfo").expect("readable");
    let before = mounts();
    printed_or_refused();
    assert_eq!(mounts(), before);
    if !is_root() || !std::path::Path::new(BPFTOOL).exists() {
        return skip("which programs are loaded only bpftool reports, to root");
    }
    // The kernel frees a program once nothing can run it, and other tests load trial programs at
    // the same time.
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        let listed = testkit::command(BPFTOOL)
            .args(["-j", "prog", "show"])
            .output()
            .expect("it runs");
        let programs: Vec<Value> = serde_json::from_slice(&listed.stdout).expect("JSON");
        let left: Vec<_> = programs.iter().filter(|it| it["name"] == "try").collect();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "still there: {left:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn printed_or_refused() {
    if is_root() {
        drop(printed(["doctor"]));
    } else {
        drop(dptrace().arg("doctor").assert());
    }
}
