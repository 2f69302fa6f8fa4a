//! The text output: which threads it shows, with which sections, in which order.

use super::target::{Target, in_some_window};

/// Returns the text of a run that ends by itself. `None` if the kernel is too old or not permitted.
fn text(arguments: &[&str]) -> Option<String> {
    let output = testkit::command(env!("CARGO_BIN_EXE_dptrace"))
        .arg("kernel-delay")
        .args(arguments)
        .output()
        .unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    if let Some(line) = messages
        .lines()
        .find(|line| line.contains("this kernel ") || line.contains("not permitted"))
    {
        assert_eq!(output.status.code(), Some(3), "{messages}");
        println!("REFUSED: {line}");
        return None;
    }
    assert!(output.status.success(), "{messages}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Returns the names of the threads that have a budget, in order.
fn sections(text: &str) -> Vec<&str> {
    let heads = text.lines().filter(|line| line.contains("[TIME BUDGET]"));
    heads
        .map(|line| line.split_whitespace().nth(1).unwrap())
        .collect()
}

/// Takes windows until the text of one satisfies the predicate.
#[track_caller]
pub(super) fn text_until(arguments: &[&str], is_so: impl Fn(&str) -> bool) -> Option<String> {
    in_some_window(|| match text(arguments) {
        Some(text) => is_so(&text).then_some(Some(text)),
        None => Some(None),
    })
}

#[test]
fn idle_threads_are_one_line_and_the_worst_is_first() {
    let target = Target::start("spin");
    let pid = target.child.id().to_string();
    let has_all = |text: &str| {
        ["spinner", "left", "right"]
            .iter()
            .all(|name| sections(text).contains(name))
    };
    let Some(folded) = text_until(&["-p", &pid, "--sample-time", "0.3"], has_all) else {
        return;
    };
    let shown = sections(&folded);
    assert!(["left", "right", "spinner"].contains(&shown[0]), "{folded}");
    // The first thread and the harness's only wait for the end.
    assert!(
        folded.contains(" idle: ") && folded.contains("(--all shows each)"),
        "{folded}"
    );
    let all = text(&["-p", &pid, "--sample-time", "0.3", "--all"]).unwrap();
    assert!(
        sections(&all).len() > shown.len() && !all.contains("--all shows"),
        "{all}"
    );
    let waited = |text: &str| text.lines().any(|line| line.contains("waited for a CPU "));
    let summary = text_until(&["-p", &pid, "--sample-time", "0.3", "--summary"], waited).unwrap();
    assert!(summary.contains("--all shows each"), "{summary}");
}

#[test]
fn calls_with_equal_stacks_are_one_and_what_they_cost_is_reported() {
    let mut target = Target::start("rounds");
    let pid = target.child.id().to_string();
    target.go();
    let has_calls = |text: &str| text.contains("  getppid\n");
    let Some(folded) = text_until(&["-p", &pid, "--sample-time", "0.2", "-s"], has_calls) else {
        return;
    };
    assert!(folded.contains("equal stacks together"), "{folded}");
    let events = folded.split("# SYSCALL EVENTS").nth(1).unwrap();
    assert!(
        events.contains("  getppid\n") && events.contains("::rounds+"),
        "{events}"
    );
    assert!(
        !events.contains("do_syscall_64+") && !events.contains(" el0_svc"),
        "{events}"
    );
    let cost = folded
        .lines()
        .find(|line| line.starts_with("# tracing "))
        .unwrap();
    assert!(cost.contains("% of their time on a CPU"), "{cost}");
    assert!(folded.contains("dptrace, stacks and events"), "{folded}");
    let has_events = |text: &str| text.contains("ENTRY (ns)");
    text_until(
        &["-p", &pid, "--sample-time", "0.1", "-s", "--each-event"],
        has_events,
    )
    .unwrap();
}
