//! Plots and histograms of latencies.

use super::{latency, requests, ten};
use crate::common::dptrace;
use crate::common::small::Small;

/// Returns the lines of a stage's histogram: rows, axis, labels.
fn histogram<'a>(plot: &'a str, stage: &str) -> Vec<&'a str> {
    let lines = plot
        .lines()
        .skip_while(|line| !line.starts_with(stage))
        .skip(1);
    lines.take_while(|line| line.starts_with(' ')).collect()
}

/// 999 requests whose work takes 10 to 11 us, and one of 3 ms, beyond p99.9.
#[test]
fn a_plot_shows_one_slow_request_of_a_thousand() {
    let work = |n: u64| {
        if n == 500 {
            3_000_000
        } else {
            10_000 + n % 10 * 100
        }
    };
    let plot = latency(
        &requests(&(0..1_000).map(|n| (1_000, work(n))).collect::<Vec<_>>()).slots(4096),
        &["--plot"],
    );
    assert!(
        plot.is_ascii() && plot.lines().all(|line| line.len() <= 80),
        "{plot}"
    );
    let slow = histogram(&plot, "TCP_REQ_EXECUTING -> TCP_REQ_COMPLETED  1000, 9");
    let [rows @ .., axis, labels] = &slow[..] else {
        panic!("{plot}")
    };
    let max = axis.rfind('^').expect("a mark of the maximum");
    let usual = axis.find('^').expect("a mark of p50");
    assert!(
        labels.ends_with("max 3.00 ms") && labels.contains("p50 10.5 us"),
        "{plot}"
    );
    let sign = |row: &str, at: usize| row.as_bytes().get(at).copied().unwrap_or(b' ') as char;
    assert_eq!(
        rows.iter().map(|row| sign(row, usual)).collect::<String>(),
        "###",
        "{plot}"
    );
    assert_eq!(
        rows.iter().map(|row| sign(row, max)).collect::<String>(),
        "  .",
        "{plot}"
    );
    assert!(
        rows.iter().all(|row| row
            .get(usual + 4..max)
            .is_none_or(|gap| gap.trim().is_empty())),
        "{plot}"
    );
    // All stages have one axis, and the slow request is in the whole too.
    let whole = histogram(&plot, "whole  1000");
    assert_eq!(whole[whole.len() - 2].rfind('^'), Some(max), "{plot}");
    let waits = histogram(&plot, "TCP_REQ_NEW -> TCP_REQ_EXECUTING");
    assert!(
        waits[waits.len() - 1].ends_with(" p50,p99,p99.9,max 1.00 us"),
        "{plot}"
    );
}

#[test]
fn groups_are_plotted_on_one_axis() {
    let plot = latency(
        &crate::common::small::builder(),
        &["--plot", "--by", "owner.qid", "--tpoint", "TCP_*"],
    );
    let rulers: Vec<_> = plot
        .lines()
        .filter(|line| line.trim_start().starts_with("1 us "))
        .collect();
    assert!(
        rulers.len() == 2 && rulers[0] == rulers[1] && plot.contains(", owner.qid=2\n"),
        "{plot}"
    );
}

/// Below each row of a summary are its times, all on one axis: a time of 3 ms is at its end, and
/// marked.
#[test]
fn rows_of_a_summary_have_their_histograms() {
    let work = |n: u64| {
        if n == 500 {
            3_000_000
        } else {
            10_000 + n % 10 * 100
        }
    };
    let trace = requests(&(0..1_000).map(|n| (1_000, work(n))).collect::<Vec<_>>()).slots(4096);
    let plot = latency(&trace, &["--summary", "--plot", "--by", "lcore"]);
    let lines: Vec<_> = plot.lines().collect();
    let axis = lines
        .iter()
        .position(|line| line.contains("---"))
        .unwrap_or_else(|| panic!("{plot}"));
    let [row, bars, axis] = &lines[axis - 2..=axis] else {
        panic!("{plot}")
    };
    assert!(row.contains("1000") && row.contains("3001"), "{plot}");
    let (usual, max) = (axis.find('^').unwrap(), axis.rfind('^').unwrap());
    assert_eq!(
        (bars.as_bytes()[usual], bars.rfind('.')),
        (b'#', Some(max)),
        "{plot}"
    );
    let both = latency(
        &crate::common::small::builder(),
        &["--summary", "--plot", "--by", "owner.qid"],
    );
    let is_axis =
        |line: &&str| line.contains('^') && line.trim().chars().all(|sign| "-+^".contains(sign));
    let drawn = both.lines().filter(is_axis).count();
    let rulers = both
        .lines()
        .filter(|line| line.starts_with(' ') && line.contains(" us "))
        .count();
    assert!(
        drawn >= 2 && rulers >= 1 && both.starts_with("A column is a range of times"),
        "{both}"
    );
}

#[test]
fn a_plot_is_of_stages_and_for_people() {
    let refused = dptrace()
        .args(Small::from_trace(&ten()).args("latency", &["--plot", "--json"]))
        .assert()
        .code(2);
    let message = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(
        message.contains("--plot") && message.contains("--json"),
        "{message}"
    );
}
