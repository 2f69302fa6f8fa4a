//! The process that is meant by a name of several, for commands that take one.

use host::family::descendants;
use host::{Pid, proc};

use super::message::MAX_LISTED;
use super::{ProcessCount, Role};

/// Process that a command takes out of several, with the reason for the note: `which has a trace`.
pub(crate) struct Choice {
    pub(crate) pid: u32,
    pub(crate) reason: &'static str,
}

/// Returns the process that is meant by the name of several: the only one with a trace, or the one
/// that has started the others. `None` if neither is clear.
pub(crate) fn choose(pids: &[u32], role: Role) -> Option<Choice> {
    let mut candidates: Vec<u32> = pids.to_vec();
    let mut reason = "which started the others";
    keep_some(&mut candidates, |pid| !is_monitor(pid));
    if candidates.len() < pids.len() {
        reason = "which the others monitor";
    }
    if let ProcessCount::OneTraced(has_trace) = role.takes
        && keep_some(&mut candidates, has_trace)
    {
        reason = "the only one with a trace";
    }
    if let [pid] = candidates[..] {
        return Some(Choice { pid, reason });
    }
    let started_others = |pid: &u32| {
        let started = descendants(&[*pid]);
        candidates
            .iter()
            .all(|other| other == pid || started.contains(other))
    };
    let pid = candidates.iter().copied().find(started_others)?;
    let reason = "which started the others";
    Some(Choice { pid, reason })
}

/// Keeps the processes for which the question is answered with yes, if there are any; returns
/// whether others were dropped.
fn keep_some(pids: &mut Vec<u32>, is_kept: impl Fn(u32) -> bool) -> bool {
    let kept: Vec<u32> = pids.iter().copied().filter(|&pid| is_kept(pid)).collect();
    let drops = !kept.is_empty() && kept.len() < pids.len();
    if drops {
        *pids = kept;
    }
    drops
}

/// Returns whether a process only starts another one again if that ends. Open vSwitch's has this
/// title (`monitor_daemon`, lib/daemon-unix.c).
fn is_monitor(pid: u32) -> bool {
    proc::title(pid).is_some_and(|title| title.starts_with("monitoring pid "))
}

/// Formats what separates a process from others of its name: `(child of 12, has a trace) `; empty
/// if nothing does.
pub(crate) fn marks(pid: u32, pids: &[u32], role: Role) -> String {
    let mut marks = Vec::new();
    if let Some(parent) = host::family::parent(pid).filter(|parent| pids.contains(parent)) {
        marks.push(format!("child of {parent}"));
    }
    if let ProcessCount::OneTraced(has_trace) = role.takes
        && has_trace(pid)
    {
        marks.push("has a trace".to_owned());
    }
    let threads = |pid| proc::threads(Pid(pid)).len() as u64;
    let shown = proc::shown_command_line(pid);
    let is_alike =
        |other: &u32| proc::shown_command_line(*other) == shown && threads(*other) != threads(pid);
    if pids.iter().take(MAX_LISTED).any(is_alike) {
        marks.push(screen::counted(threads(pid), "thread"));
    }
    if marks.is_empty() {
        return String::new();
    }
    format!("({}) ", marks.join(", "))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    use super::*;

    #[test]
    fn some_are_kept_but_never_none() {
        let mut pids = vec![1, 2, 3];
        assert!(!keep_some(&mut pids, |_| false));
        assert!(!keep_some(&mut pids, |_| true));
        assert_eq!(pids, [1, 2, 3]);
        assert!(keep_some(&mut pids, |pid| pid > 1));
        assert_eq!(pids, [2, 3]);
    }

    #[test]
    fn the_only_one_with_a_trace_is_meant() {
        // No process has these numbers, and so none has started another.
        let pids = [4_000_001, 4_000_002, 4_000_003];
        let role = |takes| Role {
            command: "capture",
            takes,
            starts: false,
        };
        let chosen = |takes| choose(&pids, role(takes)).map(|choice| choice.pid);
        assert_eq!(chosen(ProcessCount::One), None);
        assert_eq!(
            chosen(ProcessCount::OneTraced(|pid| pid == 4_000_002)),
            Some(4_000_002)
        );
        assert_eq!(chosen(ProcessCount::OneTraced(|pid| pid > 4_000_001)), None);
        let marks = marks(
            pids[0],
            &pids,
            role(ProcessCount::OneTraced(|pid| pid == 4_000_001)),
        );
        assert!(marks.starts_with("(has a trace"), "{marks}");
    }

    #[test]
    fn the_one_that_started_the_others_is_meant() {
        // Both end when the pipe to them is closed.
        let mut parent = testkit::command("sh")
            .args(["-c", "exec 3<&0; cat <&3 & echo $!; wait"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(parent.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let child: u32 = line.trim().parse().unwrap();
        let role = Role {
            command: "record",
            takes: ProcessCount::One,
            starts: false,
        };
        let pids = [child, parent.id()];
        let chosen = choose(&pids, role).map(|choice| choice.pid);
        let marks = marks(child, &pids, role);
        drop(parent.stdin.take());
        parent.wait().unwrap();
        assert_eq!(chosen, Some(parent.id()));
        assert_eq!(marks, format!("(child of {}) ", parent.id()));
    }
}
