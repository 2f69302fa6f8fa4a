//! `dptrace record` when the recorded process ends or execs another program, and when dptrace
//! itself is killed.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::code::assert_code_is_the_files;
use crate::common::kernel::{Demo, Process, attached, kernel, kernel_alone, needs, recorded};
use tempfile::TempDir;

const SPEC: &str = r#"
[[object]]
name = "tick"
provider = "victim"
key = "n"
[[object.probe]]
name = "tick"
role = "seen"
args = ["tsc", "n"]
"#;

/// C program that takes commands, with a library that has a probe.
struct Victim {
    dir: TempDir,
}

impl Victim {
    fn build() -> Self {
        Self {
            dir: crate::common::library::build("victim", "common/victim.c", &["-ldl"], SPEC),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn spec(&self) -> [String; 2] {
        [
            "--objects".into(),
            self.path("spec.toml").display().to_string(),
        ]
    }

    /// Runs it until it has opened its library.
    fn start(&self) -> Process {
        let mut process = Process::start(
            testkit::command(self.path("victim"))
                .arg(self.path("libvictim.so"))
                .stdout(Stdio::null()),
        );
        process.wait_for("ready");
        tell(&mut process, "open");
        process
    }
}

/// Makes the victim carry out a command.
#[track_caller]
fn tell(process: &mut Process, command: &str) {
    process.say(&format!("{command}\n"));
    process.wait_for(&format!("done {command}"));
}

#[test]
fn the_process_ends() {
    let Some(_guard) = kernel() else { return };
    if !needs("gcc") {
        return;
    }
    let victim = Victim::build();
    for how in ["KILL", "TERM", "0"] {
        let mut process = victim.start();
        let pid = process.pid();
        let tracer = attached(pid, victim.spec());
        tell(&mut process, "hit 3");
        if how != "0" {
            process.signal(how);
        }
        process.end();
        let came = recorded(tracer);
        let numbers: Vec<_> = came
            .lines
            .iter()
            .filter_map(|line| line.rsplit_once(", "))
            .map(|(_, n)| n)
            .collect();
        assert_eq!(numbers, ["n=0x0", "n=0x1", "n=0x2"]);
        assert_eq!(
            came.last,
            format!("note: process {pid} has ended: 3 events, none lost")
        );
    }
}

/// A time limit beyond the clock's range means no limit.
#[test]
fn a_time_beyond_all_clocks() {
    let Some(_guard) = kernel() else { return };
    if !needs("gcc") {
        return;
    }
    let victim = Victim::build();
    let process = victim.start();
    let pid = process.pid();
    let tracer = attached(
        pid,
        [
            &victim.spec()[..],
            &["--for".to_owned(), "500000000000y".to_owned()],
        ]
        .concat(),
    );
    process.signal("KILL");
    process.end();
    assert_eq!(
        recorded(tracer).last,
        format!("note: process {pid} has ended: 0 events, none lost")
    );
}

#[test]
fn the_process_runs_another_program() {
    let Some(_guard) = kernel() else { return };
    if !needs("gcc") {
        return;
    }
    let victim = Victim::build();
    let mut process = victim.start();
    let pid = process.pid();
    let tracer = attached(pid, victim.spec());
    tell(&mut process, "hit 2");
    process.say("exec\n");
    let came = recorded(tracer);
    assert_eq!(came.lines.len(), 2);
    let cat = std::fs::canonicalize("/bin/cat").expect("it is there");
    let expected = format!(
        "note: process {pid} now runs another program, {}: 2 events, none lost",
        cat.display()
    );
    assert_eq!(came.last, expected);
    assert!(process.end().0.success(), "cat is well");
}

/// The child has the same code with the same breakpoints, but it is another process.
#[test]
fn hits_of_a_forked_child_are_not_the_process_s() {
    let Some(_guard) = kernel() else { return };
    if !needs("gcc") {
        return;
    }
    let victim = Victim::build();
    let mut process = victim.start();
    let tracer = attached(process.pid(), victim.spec());
    for command in ["hit 5", "fork 7", "hit 2"] {
        tell(&mut process, command);
    }
    assert!(process.end().0.success(), "the child was well");
    let came = recorded(tracer);
    assert_eq!(came.lines.len(), 7, "{:?}", came.lines);
    assert!(came.last.ends_with("7 events, none lost"), "{}", came.last);
}

#[test]
fn the_library_is_unmapped() {
    let Some(_guard) = kernel() else { return };
    if !needs("gcc") {
        return;
    }
    let victim = Victim::build();
    let mut process = victim.start();
    let pid = process.pid();
    let tracer = attached(pid, victim.spec());
    tell(&mut process, "hit 4");
    tell(&mut process, "close");
    let came = recorded(tracer);
    assert_eq!(came.lines.len(), 4);
    assert_eq!(
        came.last,
        format!("note: process {pid} has unmapped the probed code: 4 events, none lost")
    );
    tell(&mut process, "open");
    tell(&mut process, "hit 4");
    assert!(process.end().0.success());
}

/// Returns the kernel's ids of a process's programs or links.
fn ids(pid: u32, what: &str) -> BTreeSet<u64> {
    let folder = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).expect("it lives");
    let texts = folder.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
    let prefix = format!("{what}_id:");
    texts
        .filter_map(|text| {
            text.lines()
                .find_map(|line| line.strip_prefix(&prefix)?.trim().parse().ok())
        })
        .collect()
}

/// Returns those of the ids that still exist, as bpftool lists them.
fn alive(kind: &str, ids: &BTreeSet<u64>) -> Vec<u64> {
    let done = testkit::command("/usr/sbin/bpftool")
        .args([kind, "show", "-j"])
        .output()
        .expect("bpftool runs");
    let list: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let list = list.as_array().cloned().unwrap_or_default();
    list.iter()
        .filter_map(|entry| entry["id"].as_u64())
        .filter(|id| ids.contains(id))
        .collect()
}

/// Waits until none of the ids exists: the kernel frees programs a moment after their last user.
#[track_caller]
fn assert_gone(kind: &str, ids: &BTreeSet<u64>) {
    let start = Instant::now();
    loop {
        let left = alive(kind, ids);
        if left.is_empty() {
            return;
        }
        assert!(
            start.elapsed() < Duration::from_mins(1),
            "{kind} {left:?} are still there"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the uprobes in tracefs, which is mounted for a moment in a namespace of its own.
fn uprobe_events() -> String {
    let script = "mount -t tracefs none /mnt && cat /mnt/uprobe_events";
    let done = testkit::command("unshare")
        .args(["--mount", "sh", "-c", script])
        .output()
        .expect("unshare runs");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).expect("text")
}

#[test]
fn a_killed_dptrace_leaves_nothing() {
    let Some(_guard) = kernel_alone() else { return };
    if !needs("/usr/sbin/bpftool") {
        return;
    }
    let mut demo = Demo::start(&["--flat-out", "--life", "2", "--for", "10m"]);
    demo.go();
    let pid = demo.process.pid();
    for round in 0..5 {
        let mut tracer = attached(pid, ["--objects", "all", "-o", "/dev/null"]);
        let (programs, links) = (ids(tracer.pid(), "prog"), ids(tracer.pid(), "link"));
        assert!(
            !programs.is_empty() && !links.is_empty(),
            "{programs:?} {links:?}"
        );
        assert_eq!(
            alive("link", &links).len(),
            links.len(),
            "bpftool sees them"
        );
        tracer.child.kill().expect("it is ours");
        tracer.child.wait().expect("it is ours");
        assert_gone("link", &links);
        assert_gone("prog", &programs);
        assert_eq!(uprobe_events(), "", "{round}");
        assert_code_is_the_files(pid);
    }
    demo.process.signal("TERM");
    assert!(
        demo.truth().requests_completed > 0,
        "it went on all the time"
    );
}
