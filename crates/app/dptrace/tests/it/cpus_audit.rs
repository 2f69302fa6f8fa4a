//! `dptrace cpus` as a script uses it, on a CPU that threads of the test compete for.

use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::kernel::{PROGRAM, kernel};
use crate::common::pty;
use serde_json::Value;

/// Runs `dptrace cpus` with these arguments.
fn cpus(args: &[&str]) -> Output {
    let mut command = testkit::command(PROGRAM);
    command
        .arg("cpus")
        .args(args)
        .stdin(Stdio::null())
        .env("NO_COLOR", "1")
        .output()
        .expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

fn done(args: &[&str]) -> String {
    let output = cpus(args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Runs `task` while two threads of this name occupy the last CPU.
fn beside_spinners<T>(name: &str, task: impl FnOnce() -> T) -> T {
    let stop = Arc::new(AtomicBool::new(false));
    let spinners = [0, 1].map(|_| {
        let stop = Arc::clone(&stop);
        let spin = move || {
            testkit::stay_on_last_cpu();
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(spin)
            .expect("it starts")
    });
    let result = task();
    stop.store(true, Ordering::Relaxed);
    for spinner in spinners {
        spinner.join().expect("it ends");
    }
    result
}

/// Formats the number of the CPU that they occupy.
fn last_cpu() -> String {
    testkit::last_cpu().to_string()
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

#[test]
#[ignore = "deep truth: both spinners must get the CPU within half a second"]
fn the_budget_adds_up_and_both_threads_are_intruders_and_victims() {
    let Some(_turn) = kernel() else { return };
    let printed = beside_spinners("cpus-spin", || {
        done(&[&last_cpu(), "--for", "500ms", "--json"])
    });
    let cpu: Value = serde_json::from_str(printed.lines().next().expect("a line")).expect("JSON");
    let parts = cpu["budget"].as_array().expect("parts");
    let sum: u64 = parts.iter().map(|part| number(&part["ns"])).sum();
    assert_eq!(sum, number(&cpu["window_ns"]), "{cpu}");
    let named = |list: &str| {
        let all = cpu[list].as_array().expect("a list");
        let is_ours = |who: &&Value| {
            who["name"]
                .as_str()
                .is_some_and(|name| name.starts_with("cpus-spin ["))
        };
        let ours: Vec<&Value> = all.iter().filter(is_ours).collect();
        assert!(ours.iter().all(|who| number(&who["ns"]) > 0), "{ours:?}");
        ours.len()
    };
    // One of the two may have had half of the CPU, and is then the poller.
    let poller = cpu["poller"]["name"]
        .as_str()
        .is_some_and(|name| name.starts_with("cpus-spin ["));
    assert_eq!(named("intruders") + usize::from(poller), 2, "{cpu}");
    assert_eq!(named("victims"), 2, "{cpu}");
}

#[test]
#[ignore = "deep truth: a spinner must be among the intruders within 300 ms"]
fn text_summary_and_single_ones() {
    let Some(_turn) = kernel() else { return };
    let report = beside_spinners("cpus-text", || {
        done(&[&last_cpu(), "--for", "300ms", "--each", "1"])
    });
    let head = format!("CPU {}, ", last_cpu());
    for wanted in [
        &head,
        "  intruders  ",
        "thread cpus-text [",
        "time since the start",
        "timer interrupt",
    ] {
        assert!(report.contains(wanted), "{wanted}: {report}");
    }
    let summary = done(&["0", "--for", "100ms", "--summary"]);
    assert!(
        summary.starts_with("CPU 0: ") && summary.lines().count() == 1,
        "{summary}"
    );
}

/// A terminal breaks lines anywhere; a pipe gets each CPU's summary in one line.
#[test]
fn lines_fit_the_terminal() {
    let Some(_turn) = kernel() else { return };
    let audit = ["cpus", "0", "--for", "300ms"];
    for columns in [80, 120] {
        let (report, succeeded) = pty::on_terminal(columns, &[("NO_COLOR", "1")], &audit);
        assert!(
            succeeded && pty::widest(&report) <= usize::from(columns),
            "{columns}: {report}"
        );
        assert!(report.contains("\nCPU 0, "), "{report}");
    }
    let summary = done(&[&audit[1..], &["--summary"]].concat());
    assert_eq!(summary.lines().count(), 1, "{summary}");
}

#[test]
fn mistakes_are_explained() {
    let all: [(&[&str], &str); 4] = [
        (&["65000"], "CPU 65000 is not online"),
        (&["0", "--for", "0"], "--for"),
        (&["--check", "0", "--each", "1us"], "--each"),
        (&["0", "--summary", "--json"], "--summary"),
    ];
    for (args, wanted) in all {
        let output = cpus(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            text(&output.stderr).contains(wanted),
            "{args:?}: {}",
            text(&output.stderr)
        );
    }
}
