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
        totals.contains(", SELECT slow FROM load]: { .count = 1, "),
        "{queries}"
    );
    let clock = queries.lines().nth(1).and_then(|row| row.split_once(' '));
    assert!(
        clock.is_some_and(|(clock, _)| clock.len() == 8 && clock.matches(':').count() == 2),
        "{queries}"
    );
}

/// Returns the time of a query of `pg-queries` that was in locks, in milliseconds.
fn in_locks(queries: &str, query: &str) -> u64 {
    let row = queries.lines().find(|row| row.ends_with(query));
    let columns = row.map(|row| row.split_whitespace().collect::<Vec<_>>());
    let columns = columns.expect(queries);
    let (milliseconds, _) = columns[5].split_once('.').expect(queries);
    milliseconds.parse().expect(queries)
}

/// A query that waited for another session differs from one that is slow by itself, and the last
/// line leads on.
#[test]
fn slow_queries_have_their_time_in_locks() {
    let Some(_alone) = kernel() else { return };
    let queries = output_of("waits", "pg-queries", &["100ms"]);
    for query in ["SELECT granted", "SELECT cancelled", "SELECT last"] {
        assert!(
            in_locks(&queries, &format!("{query} FROM load")) >= 200 - 1,
            "{queries}"
        );
    }
    let own = std::process::id();
    for part in [
        format!("\n@waits_for_locks[{own}, SELECT granted FROM load]: {{ .count = 1, "),
        format!("\nnext: dptrace run pg-waits 100 -p {own} --children shows which locks, "),
    ] {
        assert!(queries.contains(&part), "no {part:?} in:\n{queries}");
    }
    let queries = output_of("queries", "pg-queries", &["100"]);
    assert_eq!(in_locks(&queries, "SELECT slow FROM load"), 0);
    assert!(
        queries.contains("\nnext: no slow query waited for a lock; dptrace kernel-delay -p PID ")
            && !queries.contains("waits_for_locks"),
        "{queries}"
    );
}

/// The process that started the backend separates the rows of several servers.
#[test]
fn waits_have_their_server() {
    let Some(_alone) = kernel() else { return };
    let waits = output_of("waits", "pg-waits", &["100"]);
    let rows = waits.lines().filter(|row| row.contains(" ms "));
    let servers: Vec<_> = rows.map(|row| row.split_whitespace().nth(1)).collect();
    let own = std::process::id().to_string();
    assert!(
        servers.len() >= 6 && servers.iter().all(|server| *server == Some(&own)),
        "{waits}"
    );
}

/// A line without its time can't be joined with what another tool saw.
#[test]
fn events_have_their_time() {
    let Some(_alone) = kernel() else { return };
    for (load, script, args) in [
        ("files", "fsync-files", &["0ms"][..]),
        ("files", "failed-opens", &[]),
        ("files", "opensnoop", &[]),
        ("names", "dns", &[]),
        ("connections", "tcp-resets", &[]),
    ] {
        let events = output_of(load, script, args);
        let is_event = |line: &&str| !line.is_empty() && !line.starts_with(['@', '[']);
        let events: Vec<&str> = events.lines().filter(is_event).collect();
        assert!(
            !events.is_empty() && events.iter().all(|event| has_time(event)),
            "{script}: {events:#?}"
        );
    }
}

/// Returns whether a line begins with a time of day to the millisecond.
pub(super) fn has_time(line: &str) -> bool {
    let (clock, milliseconds) = line
        .split(' ')
        .next()
        .and_then(|word| word.split_once('.'))
        .unwrap_or_default();
    clock.len() == 8 && clock.matches(':').count() == 2 && milliseconds.len() == 3
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
