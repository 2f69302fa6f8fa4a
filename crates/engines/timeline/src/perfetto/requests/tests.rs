//! Tests of counters in longer steps.

use scene::BootNanos;

use super::*;

#[test]
fn changes_are_put_together_in_longer_steps() {
    let mut changes = Changes::default();
    for (begin, end) in [(10, 25), (12, 13), (25, 31)] {
        changes.add(1, BootNanos(begin), BootNanos(end));
    }
    let at = |changes: &Changes| {
        changes
            .0
            .iter()
            .map(|(at, change)| (at.0, *change))
            .collect::<Vec<_>>()
    };
    changes.merge(1);
    assert_eq!(at(&changes), [(10, 1), (12, 1), (13, -1), (31, -1)]);
    changes.merge(8);
    assert_eq!(at(&changes), [(8, 1), (24, -1)]);
    changes.add(8, BootNanos(9), BootNanos(9));
    changes.merge(8);
    assert_eq!(at(&changes), [(8, 1), (24, -1)]);
}
