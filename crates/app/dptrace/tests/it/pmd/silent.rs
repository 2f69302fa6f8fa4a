//! Daemons without metrics, and one that does not answer.

use std::time::Instant;

use super::{CPU, OpenVSwitch, TIMEOUT, number, report};
use crate::common::kernel::{PROGRAM, kernel};
use rustix::process::Signal;

#[test]
#[ignore = "deep peers: it needs Open vSwitch with DPDK"]
fn without_metrics_it_says_what_to_switch_on() {
    let Some(_guard) = kernel() else { return };
    let Some(switch) = OpenVSwitch::start(false) else {
        return;
    };
    let pid = switch.pid().to_string();
    let output = testkit::command(PROGRAM)
        .args(["pmd", "-p", &pid, "--for", "1s", "--json"])
        .output()
        .expect("it starts");
    let report = report(&output);
    let thread = &report["threads"][0];
    assert!(
        thread["slow"].is_null() && number(&thread["budget_ns"]["own"]) > 0,
        "{report:#}"
    );
    assert!(number(&thread["figures"]["packets"]) > 0, "{report:#}");
    let advice = report["advice"].to_string();
    assert!(
        advice.contains("other_config:pmd-perf-metrics=true"),
        "{advice}"
    );
    assert_eq!(
        report["settings"]["pmd-cpu-mask"],
        format!("{:#x}", 1 << CPU)
    );
    // As text, and with the process found by the name that users know.
    let output = testkit::command(PROGRAM)
        .args(["pmd", "--for", "200ms", "--name", "ovs-vswitchd"])
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        text.starts_with("pmd-c01: its slow milliseconds are not known\n"),
        "{text}"
    );
    assert!(text.contains("true") && text.contains("null0:0"), "{text}");
}

#[test]
#[ignore = "deep peers: it needs Open vSwitch with DPDK, and judges a share of the window"]
fn a_daemon_that_does_not_answer_keeps_nobody_from_the_rest() {
    let Some(_guard) = kernel() else { return };
    let Some(switch) = OpenVSwitch::start(true) else {
        return;
    };
    switch.signal(Signal::STOP);
    let pid = switch.pid().to_string();
    let begun = Instant::now();
    let output = testkit::command(PROGRAM)
        .args(["pmd", "-p", &pid, "--for", "1s", "--json"])
        .output()
        .expect("it starts");
    assert!(begun.elapsed() < TIMEOUT);
    switch.signal(Signal::CONT);
    let report = report(&output);
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("does not answer (nothing came within 2 s)"),
        "{report:#}"
    );
    let budget = &report["threads"][0]["budget_ns"];
    assert!(
        number(&budget["stopped"]) * 10 >= number(&report["ns"]) * 9,
        "{report:#}"
    );
    assert!(
        report["threads"][0]["slow"].is_null() && report["threads"][0]["figures"].is_null(),
        "{report:#}"
    );
}
