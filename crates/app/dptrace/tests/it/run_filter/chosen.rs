//! Scripts that say themselves whose events count.

use std::process::Child;

use super::{Family, Kinds, libc_getppid, printed, printed_beside, traced, waiting};
use crate::common::kernel::{PROGRAM, kernel};

/// A comparison with `__PID__` holds for every traced process.
#[test]
fn the_process_of_a_script_is_any_of_those_that_count() {
    let Some(_alone) = kernel() else { return };
    let Some(family) = Family::start() else {
        return;
    };
    let program = family.program() + " x";
    for config in ["", "config = { filter_pid = false } "] {
        let script = format!(
            "{config}tracepoint:syscalls:sys_enter_getppid /pid == __PID__/ {{ @calls = count(); }}
             tracepoint:syscalls:sys_exit_getppid {{ if (__PID__ != pid) {{ @others = count(); }} }}
             rawtracepoint:sys_enter /arg1 == {} && is_target(((struct task_struct *)curtask)->tgid)/ {{ @asked = count(); }}",
            libc_getppid()
        );
        for (options, calls) in [(&[][..], 11), (&["--follow-forks"], 1111)] {
            let mut command = testkit::command(PROGRAM);
            command
                .args(["run", "-e", &script, "-c", &program])
                .args(options);
            let out = printed_beside(&mut command, Vec::new(), || family.wait_for_noise());
            let counted = out.contains(&format!("@calls: {calls}\n"))
                && out.contains(&format!("@asked: {calls}\n"));
            assert!(
                counted && out.contains("@others: ") != config.is_empty(),
                "{config}{options:?}: {out}"
            );
        }
    }
    let processes: Vec<Child> = (0..2).map(|_| waiting(&family)).collect();
    let pids = format!("{},{}", processes[0].id(), processes[1].id());
    let out = traced(&["syslat", "-p", &pids], processes);
    assert!(
        out.lines()
            .any(|line| line.starts_with("getppid                 22 ")),
        "{out}"
    );
}

/// A process that never wakes up waits for no CPU, however busy the machine is; system-wide scripts
/// report that they are.
#[test]
fn a_bundled_script_is_about_the_process_or_says_that_it_is_not() {
    let Some(_alone) = kernel() else { return };
    let Some(_family) = Family::start() else {
        return;
    };
    // The child is killed when this test ends.
    let mut idle = testkit::command("sleep").arg("1000").spawn().unwrap();
    let pid = idle.id().to_string();
    for (script, is_limited) in [
        ("runqlat", true),
        ("offcpu", true),
        ("tcp-resets", false),
        ("syscalls", true),
    ] {
        let mut command = testkit::command(PROGRAM);
        let output = command
            .args(["run", script, "-p", &pid, "--for", "300ms"])
            .output()
            .unwrap();
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(output.status.success(), "{script}: {out}{err}");
        let note = format!("note: {script} covers the whole machine, even with -p");
        assert_eq!(err.contains(&note), !is_limited, "{script}: {err}");
        assert!(!out.contains("@us"), "{script}: {out}");
    }
    testkit::end(&mut idle);
}

/// In a PID namespace of its own a process has another number.
#[test]
fn a_process_is_found_by_the_number_that_its_namespace_has_for_it() {
    let Some(_alone) = kernel() else { return };
    let Some(family) = Family::start() else {
        return;
    };
    let mut command = testkit::command("unshare");
    command.args([
        "--pid",
        "--mount",
        "--fork",
        "--kill-child",
        "--mount-proc",
        PROGRAM,
        "run",
        "-q",
    ]);
    let out = printed(command.args(["-e", &family.script(Kinds::Exact), "-c", &family.program()]));
    family.check(&out, Kinds::Exact, (11, 11));
    let mut command = testkit::command("unshare");
    command.args([
        "--pid",
        "--mount",
        "--fork",
        "--kill-child",
        "--mount-proc",
        PROGRAM,
        "run",
        "--follow-forks",
    ]);
    let output = command
        .args(["-e", "begin { }", "-c", "true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

#[test]
fn a_script_can_ask_for_the_whole_machines_events() {
    let Some(_alone) = kernel() else { return };
    let Some(family) = Family::start() else {
        return;
    };
    let script = format!(
        "config = {{ filter_pid = false }} {}",
        family.script(Kinds::Sampled)
    );
    let program = family.program() + " x";
    let mut command = testkit::command(PROGRAM);
    command.args(["run", "-e", &script, "-c", &program]);
    let out = printed_beside(&mut command, Vec::new(), || family.wait_for_noise());
    assert!(
        out.contains("@who[tracepoint, noise]: ") && out.contains("@who[profile, noise]: "),
        "{out}"
    );
    assert!(
        out.contains("@hits: 11\n") && !out.contains("@who[uprobe, noise]"),
        "{out}"
    );
    // bpftrace's -c limits user probes only.
    let link = family.folder.path().join("bpftrace");
    std::os::unix::fs::symlink(PROGRAM, &link).unwrap();
    let mut command = testkit::command(link);
    command.args(["-e", &family.script(Kinds::Sampled), "-c", &program]);
    let out = printed_beside(&mut command, Vec::new(), || family.wait_for_noise());
    assert!(
        out.contains("@who[tracepoint, noise]: ") && out.contains("@hits: 11\n"),
        "{out}"
    );
}
