//! Rows of tables: their order, and the time of day in them.

use super::output_of;
use crate::kernel::kernel;

#[test]
fn slow_queries_have_a_time_and_a_rank() {
    let Some(_alone) = kernel() else { return };
    let queries = output_of("queries", "pg-queries", &["100"]);
    let (_, totals) = queries
        .split_once("\nSlow queries by their total time in milliseconds, the longest last:\n")
        .expect(&queries);
    assert!(
        totals.contains("@slow_queries[SELECT slow FROM load]: { .count = 1, "),
        "{queries}"
    );
    let clock = queries.lines().nth(1).and_then(|row| row.split_once(' '));
    assert!(
        clock.is_some_and(|(clock, _)| clock.len() == 8 && clock.matches(':').count() == 2),
        "{queries}"
    );
}

/// Returns the counts and the functions of a table.
fn rows(table: &str) -> Vec<(&str, &str)> {
    let rows = table.lines().map(str::trim_start);
    rows.map_while(|row| row.split_once("  ")).collect()
}

#[test]
fn equally_frequent_calls_keep_their_order() {
    let Some(_alone) = kernel() else { return };
    let calls = output_of("unwinds", "libcalls", &["libgcc_s"]);
    let (_, totals) = calls.rsplit_once("    CALLS  FUNCTION\n").expect(&calls);
    assert!(
        totals.contains("        3  _Unwind_RaiseException\n"),
        "{calls}"
    );
    let seconds = calls.split("  CALLS/S  FUNCTION\n").skip(1).map(rows);
    let seconds: Vec<_> = seconds.filter(|rows| !rows.is_empty()).collect();
    let totals = rows(totals);
    // If all calls were in one second, both tables have the same rows.
    if let [only] = seconds.as_slice() {
        assert!(totals.len() > only.len(), "{calls}");
        assert_eq!(only.as_slice(), &totals[..only.len()], "{calls}");
    }
}
