//! Several processes at once, and their children.

use std::process::{Child, Stdio};

use super::{Family, Kinds, check_command, check_process, traced, waiting};
use crate::common::kernel::kernel;

/// Traces two of three processes, or all by their name; the tracer ends when all have ended.
#[test]
fn several_processes_are_traced() {
    check_several(Kinds::Exact);
}

fn check_several(kinds: Kinds) {
    let Some(_turn) = kernel() else { return };
    let Some(family) = Family::start() else {
        return;
    };
    let script = family.script(kinds);
    for (options, each) in [(&[][..], 11), (&["--follow-forks"], 1111)] {
        let processes: Vec<Child> = (0..3).map(|_| waiting(&family)).collect();
        let two = format!("{},{}", processes[0].id(), processes[2].id());
        let out = traced(&[&["-e", &script, "-p", &two], options].concat(), processes);
        family.check(&out, kinds, (2 * each, 2 * each));
    }
    let out = traced(
        &["-e", &script, "-p", &family.name],
        (0..3).map(|_| waiting(&family)).collect(),
    );
    family.check(&out, kinds, (33, 33));
}

#[test]
#[ignore = "deep truth: the profile's timer must hit the processes, and only them"]
fn samples_are_of_the_processes_that_count() {
    check_command(Kinds::Sampled);
    check_process(Kinds::Sampled);
    check_several(Kinds::Sampled);
}

/// `--children` includes the earlier children of a process. The shell itself makes no call and no
/// hit.
#[test]
fn the_children_of_a_process_are_traced() {
    let Some(_alone) = kernel() else { return };
    let Some(family) = Family::start() else {
        return;
    };
    // Background jobs of a shell have no standard input.
    let program = family.program();
    let jobs = format!("exec 3<&0; {program} x <&3 & {program} x <&3 & exec 3<&-; wait");
    let process = testkit::command("sh")
        .args(["-c", &jobs])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = process.id();
    // Both jobs run once it has two children with the program's name.
    let is_job = |child: &u32| {
        let folder = host::proc::folder(host::Pid(*child));
        let parent = host::proc::Stat::read(&folder)
            .ok()
            .and_then(|stat| stat.number(4));
        parent == Some(pid.into())
            && host::proc::name(&folder).as_deref() == Some(family.name.as_bytes())
    };
    let children = || {
        host::proc::processes()
            .iter()
            .filter(|child| is_job(child))
            .count()
    };
    let until = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while children() < 2 {
        assert!(
            std::time::Instant::now() < until,
            "the shell starts nothing"
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let script = format!(
        "tracepoint:syscalls:sys_enter_getppid /comm == \"{}\"/ {{ @calls = count(); }}",
        family.name
    );
    let out = traced(
        &["-e", &script, "--children", "-p", &pid.to_string()],
        vec![process],
    );
    assert!(out.contains("@calls: 2222\n"), "{out}");
}
