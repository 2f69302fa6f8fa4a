//! Lines on the connections of slow requests: whom they hit, beside what delayed them.

use screen::{NAME, counted, squeezed, time};

use super::Page;
use crate::verdict::Verdict;

/// Limit on the connections with a line of their own.
const MAX_OWNERS: usize = 4;

impl Page<'_> {
    /// Adds the number of slow requests of this verdict, and of each connection.
    pub(super) fn whose(&mut self, verdict: &Verdict<'_>) {
        let slow = &verdict.loss.slow;
        let Some((from, count)) = slow.found() else {
            return;
        };
        let all = counted(verdict.times.whole.count(), "request");
        let owners = slow.owners();
        let colon = if owners.is_empty() {
            ""
        } else {
            ", by connection:"
        };
        let head = format!(
            "{count} of {all} took {} or longer (half of the slowest){colon}",
            time(from)
        );
        self.wrapped(&head, "");
        let width = count.to_string().len();
        let shown = if owners.len() == MAX_OWNERS + 1 {
            owners.len()
        } else {
            MAX_OWNERS
        };
        // A file or a pipe gets whole names.
        let width_of_screen = self.screen.width().unwrap_or(usize::MAX);
        let room = width_of_screen.saturating_sub(width + 4);
        for (owner, count) in owners.iter().take(shown) {
            let owner = squeezed(owner, room);
            let line = format!("  {count:>width$}  {}", self.screen.paint(NAME, owner));
            self.line(&line);
        }
        let rest = owners.get(shown..).unwrap_or_default();
        if !rest.is_empty() {
            let count: u64 = rest.iter().map(|(_, count)| count).sum();
            let others = counted(rest.len() as u64, "other");
            self.line(&format!("  {count:>width$}  of {others}"));
        }
        let known: u64 = owners.iter().map(|(_, count)| count).sum();
        let unknown = count - known;
        if unknown > 0 && known > 0 {
            self.line(&format!("  {unknown:>width$}  unknown"));
        }
    }
}
