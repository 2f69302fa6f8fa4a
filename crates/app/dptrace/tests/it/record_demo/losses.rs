//! Losses, and the events of two threads at full speed.

use std::io::{BufRead as _, BufReader};
use std::time::Duration;

use super::{assert_in_order, lost};
use crate::common::kernel::{Demo, Recorded, attached, kernel, probe_lines, recorded};

/// Time that a slow reader takes for a line; the target hits probes faster.
const READ_INTERVAL: Duration = Duration::from_micros(200);

/// A reader that does not read makes the ring overflow. The lost events are counted exactly.
#[test]
fn nothing_is_lost_in_silence() {
    let Some(_guard) = kernel() else { return };
    let wanted = 60_000;
    let mut demo = Demo::start(&["--hits", &wanted.to_string(), "--for", "5m"]);
    let tracer = attached(demo.process.pid(), ["--buffer", "1"]);
    demo.go();
    // Its output is a pipe that nobody reads until the target has ended.
    let truth = demo.truth();
    let recorded = recorded(tracer);
    let hits = truth.hits["spdk:nvmf_ctrlr_add_qpair"];
    let events = recorded.total(" events");
    assert_eq!(hits, wanted);
    assert_eq!(events, recorded.lines.len() as u64);
    assert!(recorded.total(" lost because") > 0, "{}", recorded.last);
    assert_eq!(events + lost(&recorded), hits, "{}", recorded.last);
    assert_in_order(&recorded);
}

/// A killed recording has no end, but it has recorded by then that it is incomplete.
#[test]
fn a_loss_is_recorded_when_it_happens() {
    let Some(_guard) = kernel() else { return };
    let mut demo = Demo::start(&[
        "--flat-out",
        "--life",
        "2",
        "--connections",
        "64",
        "--for",
        "1m",
    ]);
    let mut tracer = attached(demo.process.pid(), ["--buffer", "1", "--objects", "all"]);
    let output = BufReader::new(tracer.child.stdout.take().expect("it is piped"));
    demo.go();
    // A slow reader makes the ring overflow.
    let mut lines = output
        .lines()
        .map(|line| line.expect("UTF-8"))
        .inspect(|_| std::thread::sleep(READ_INTERVAL));
    let lost = lines
        .find(|line| line.starts_with("recording_end: "))
        .expect("losses are recorded");
    assert!(
        !lost.ends_with("lost=0x0") && demo.process.child.try_wait().expect("its state").is_none(),
        "{lost}"
    );
}

/// Records two threads that hit probes as fast as they can, with a reader that reads, and checks
/// that each hit is a line or lost.
fn two_threads_flat_out() -> Recorded {
    let mut demo = Demo::start(&[
        "--flat-out",
        "--requests",
        "20000",
        "--life",
        "2",
        "--connections",
        "64",
        "--for",
        "5m",
    ]);
    let mut tracer = attached(demo.process.pid(), ["--buffer", "1", "--objects", "all"]);
    let output = tracer.child.stdout.take().expect("it is piped");
    let reading = std::thread::spawn(move || std::io::read_to_string(output).expect("UTF-8"));
    demo.go();
    let truth = demo.truth();
    let text = reading.join().expect("it reads");
    let mut recorded = recorded(tracer);
    recorded.lines = probe_lines(&text);
    let probes = objects::built_in()
        .expect("they are ours")
        .into_iter()
        .flat_map(|spec| spec.probes);
    let names: std::collections::BTreeSet<String> =
        probes.map(|probe| format!("spdk:{}", probe.name)).collect();
    let hits: u64 = names.iter().map(|name| truth.hits[name]).sum();
    assert!(hits > 10_000, "{hits}");
    assert_eq!(
        recorded.lines.len() as u64 + lost(&recorded),
        hits,
        "{}",
        recorded.last
    );
    recorded
}

#[test]
fn two_threads_flat_out_are_accounted_for() {
    let Some(_guard) = kernel() else { return };
    two_threads_flat_out();
}

#[test]
#[ignore = "deep truth: no thread may stand still for 50 ms between its clock and its probe"]
fn two_threads_flat_out_are_in_order() {
    let Some(_guard) = kernel() else { return };
    assert_in_order(&two_threads_flat_out());
}
