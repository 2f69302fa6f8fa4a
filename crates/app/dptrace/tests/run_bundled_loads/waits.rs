//! Threads that wait, are preempted or are blocked.

use super::{End, assert_parts, output_of, output_until};
use crate::kernel::kernel;

#[test]
fn stacks() {
    let Some(_alone) = kernel() else { return };
    assert_parts("memory", "page-faults", &[], &["@faults[program, \n"]);
    let growth = output_until(End::Interrupt, "memory", "memory-growth", &[]);
    let grown = growth
        .lines()
        .filter_map(|line| line.strip_prefix("]: ")?.parse::<u64>().ok());
    assert!(grown.max() >= Some(64 << 20), "{growth}");
    assert_parts("locks", "runqlat", &[], &["@us:"]);
    assert_parts(
        "locks",
        "futex-waits",
        &[],
        &["@us[program, \n", ".count = "],
    );
    for (load, script, function) in [
        ("spin", "cpu-folded", ";spin_here"),
        ("sleep", "offcpu-folded", "nanosleep"),
    ] {
        let output = output_until(End::Interrupt, load, script, &[]);
        let lines = output.lines().filter(|line| !line.is_empty());
        let is_folded = |line: &str| {
            let (stack, number) = line.rsplit_once(' ').unwrap_or_default();
            stack.contains(';')
                && !stack.contains(";;")
                && !stack.ends_with(';')
                && number.parse::<u64>().is_ok()
        };
        assert!(lines.clone().all(is_folded), "{script}:\n{output}");
        assert!(
            lines.clone().any(|line| line.contains(function)),
            "{script}: no {function}:\n{output}"
        );
        assert!(!output.contains("__traceiter_"), "{script}:\n{output}");
    }
}

/// Parses a time of the tables, a number and its unit, to nanoseconds.
fn nanos(number: &str, unit: &str) -> u64 {
    let units = [
        ("ns", 1),
        ("us", 1000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
    ];
    let (_, factor) = units
        .iter()
        .find(|(name, _)| *name == unit)
        .expect("a unit");
    number.parse::<u64>().expect("a number") * factor
}

/// One line per call, with known numbers, the greatest total first.
#[test]
fn a_table_of_calls() {
    let Some(_alone) = kernel() else { return };
    let table = output_of("calls", "syslat", &[]);
    assert!(table.lines().all(|line| line.len() <= 80), "{table}");
    let lines = table
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| line.split_whitespace().collect());
    let (head, rows): (Vec<Vec<&str>>, Vec<Vec<&str>>) =
        lines.partition(|line: &Vec<&str>| line[0] == "SYSTEM");
    assert_eq!(head.len(), 1, "{table}");
    let row = |name| {
        rows.iter()
            .find(|row| row[0] == name)
            .unwrap_or_else(|| panic!("no {name} in:\n{table}"))
    };
    assert_eq!(row("getppid")[1..3], ["500", "0"], "{table}");
    assert_eq!(row("unlinkat")[1..3], ["7", "7"], "{table}");
    let totals: Vec<u64> = rows.iter().map(|row| nanos(row[3], row[4])).collect();
    assert!(totals.is_sorted_by(|a, b| a >= b), "{table}");
    for row in &rows {
        let times: Vec<u64> = row[5..]
            .chunks(2)
            .map(|time| nanos(time[0], time[1]))
            .collect();
        let [mean, p50, p99, max] = times.try_into().expect("four times");
        // The mean is truncated to whole units.
        assert!(p50 <= p99 && p99 <= max && mean <= max, "{row:?}");
    }
}

/// Queries and calls that have not ended are printed: they matter for a server that hangs.
#[test]
fn running_calls_are_printed() {
    let Some(_alone) = kernel() else { return };
    let queries = output_until(End::Interrupt, "running", "pg-queries", &["100"]);
    assert!(
        queries.contains(" ms  still running: SELECT stuck FROM load\n"),
        "{queries}"
    );
    let waits = output_until(End::Interrupt, "running", "pg-waits", &["100"]);
    let row = " ms        -  advisory            78  Exclusive             still waiting: SELECT blocked FROM load\n";
    assert!(waits.contains(row), "{waits}");
    let table = output_until(End::Interrupt, "running", "syslat", &[]);
    let (_, stuck) = table
        .split_once("\n\nSTILL IN CALL      THREADS  LONGEST\n")
        .expect("a second table");
    assert!(
        stuck
            .lines()
            .any(|line| line.starts_with("clock_nanosleep ")),
        "{table}"
    );
}

#[test]
fn blocked_and_preempted_threads() {
    let Some(_alone) = kernel() else { return };
    let table = output_of("sleep", "offcpu", &[]);
    let (blocked, preempted) = table
        .split_once("PREEMPTED, BY THREAD")
        .expect("two tables");
    assert!(
        blocked.starts_with("   TOTAL    TIMES  LONGEST  BLOCKED, BY STACK\n"),
        "{table}"
    );
    assert!(
        blocked.contains("  program\n        ") && blocked.contains("nanosleep+"),
        "{table}"
    );
    assert!(
        !blocked.contains("__traceiter_") && !blocked.contains("schedule+"),
        "{table}"
    );
    assert!(
        !preempted.contains("nanosleep") && table.lines().all(|line| line.len() <= 80),
        "{table}"
    );
}
