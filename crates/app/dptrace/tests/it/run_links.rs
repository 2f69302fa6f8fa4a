//! After `dptrace run`: it ends at once, and a moment later nothing is attached any more.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use testkit::kernel::may_run;

/// Number of attached probes, each with a program and a link of its own.
const PROBES: usize = 50;
const TIMEOUT: Duration = Duration::from_mins(1);

/// Returns the kernel's ids of a process's links.
fn links(pid: u32) -> Vec<u64> {
    let infos = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap();
    let texts = infos.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
    texts
        .filter_map(|text| {
            text.lines()
                .find_map(|line| line.strip_prefix("link_id:")?.trim().parse().ok())
        })
        .collect()
}

/// Returns those of the ids that the kernel still has.
fn alive(ids: &[u64]) -> Vec<u64> {
    let done = testkit::command("/usr/sbin/bpftool")
        .args(["link", "show", "-j"])
        .output()
        .expect("bpftool runs");
    let list: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    list.as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["id"].as_u64())
        .filter(|id| ids.contains(id))
        .collect()
}

#[test]
fn nothing_stays_attached_behind_the_end() {
    let Some(_alone) = may_run("links") else {
        return;
    };
    let program = env!("CARGO_BIN_EXE_dptrace");
    let script = (0..PROBES).fold(String::new(), |mut script, number| {
        writeln!(
            script,
            "usdt:{program}:demo100:probe_{number:03} {{ @[{number}] = count(); }}"
        )
        .unwrap();
        script
    });
    let mut child = testkit::command(program)
        .args(["run", "-e", &script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut messages = String::new();
    BufReader::new(child.stderr.take().unwrap())
        .read_line(&mut messages)
        .unwrap();
    assert_eq!(messages, format!("Attached {PROBES} probes\n"));
    let attached = links(child.id());
    assert!(attached.len() >= PROBES, "{attached:?}");
    assert_eq!(alive(&attached).len(), attached.len());
    assert!(
        testkit::command("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    // A reader of its output sees the end at once, however long the rest takes.
    child
        .stdout
        .take()
        .unwrap()
        .read_to_end(&mut Vec::new())
        .unwrap();
    assert!(child.wait().unwrap().success());
    let start = Instant::now();
    while let left @ [_, ..] = alive(&attached).as_slice() {
        assert!(start.elapsed() < TIMEOUT, "{left:?} are still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}
