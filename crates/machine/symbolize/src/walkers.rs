//! Walks the stacks of any number of processes, within one budget of time and memory.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use host::Process;

use crate::unwind::{StackEnd, StackWalker, WalkedStack};
use crate::unwind_tables::UnwindTables;
use crate::{Warn, Warning};

/// Limit on walkers, each for one process; the least recently used one makes room for another.
const MAX_WALKERS: usize = 256;
/// Limit on the time to walk the stacks of a window, with the reads for that. The 65,536 stacks
/// that are kept take two seconds.
const WALKING: Duration = Duration::from_secs(10);
/// Limit on the time to read processes before a window; the others are read at their first stack.
const READING: Duration = Duration::from_secs(1);

/// A walker, and its last use.
struct CachedWalker {
    walker: StackWalker,
    used: u64,
}

/// Stack walkers of any number of processes.
pub struct StackWalkers {
    /// Limit on the bytes copied of a stack.
    copied: u32,
    most: usize,
    kept: HashMap<u32, CachedWalker>,
    /// Counter of the uses of walkers.
    used: u64,
    tables: UnwindTables,
    /// Time that walking has taken in this window.
    spent: Duration,
    /// Processes for names: see [`Self::take_seen`].
    seen: Vec<(u32, Process)>,
}

/// Limit on processes that are kept for names.
const MAX_SEEN: usize = 256;

impl StackWalkers {
    /// Creates walkers without a process. `copied` is the limit on the bytes copied of a stack.
    pub fn new(copied: u32, warn: Warn) -> Self {
        let tables = UnwindTables::new(warn);
        Self {
            copied,
            most: MAX_WALKERS,
            kept: HashMap::new(),
            used: 0,
            tables,
            spent: Duration::ZERO,
            seen: Vec::new(),
        }
    }

    /// Begins a window, and with it the time for walking. Reads the present mappings of these
    /// processes, and forgets those that have ended or run another program. Processes that come
    /// later are read at their first stack.
    pub fn begin(&mut self, pids: &[u32]) {
        self.spent = Duration::ZERO;
        self.seen.clear();
        self.kept.retain(|_, kept| kept.walker.is_current());
        self.tables.drop_unused();
        let start = Instant::now();
        for &pid in pids.iter().take(self.most) {
            if start.elapsed() > READING || self.tables.are_many() {
                return;
            }
            if !self.kept.contains_key(&pid) {
                self.make_room();
                let walker = StackWalker::new(pid, self.copied, &mut self.tables);
                self.kept.insert(
                    pid,
                    CachedWalker {
                        walker,
                        used: self.used,
                    },
                );
            }
        }
    }

    /// Walks a stack: its registers (instruction pointer, stack pointer, frame pointer, link
    /// register where there is one) and its bytes from the stack pointer on.
    pub fn walk(&mut self, pid: u32, registers: [u64; 4], bytes: &[u8]) -> WalkedStack {
        if self.spent >= WALKING {
            self.tables.report(Warning::WalkedTooLong(WALKING));
            return WalkedStack {
                addresses: vec![registers[0]],
                end: StackEnd::Refused,
            };
        }
        let start = Instant::now();
        self.used += 1;
        let known = self.kept.remove(&pid).map(|kept| kept.walker);
        let mut walker = known.unwrap_or_else(|| {
            self.make_room();
            StackWalker::new(pid, self.copied, &mut self.tables)
        });
        let stack = walker.walk(registers, bytes, &mut self.tables);
        let room = MAX_SEEN.saturating_sub(self.seen.len());
        self.seen.extend(
            walker
                .take_seen()
                .into_iter()
                .take(room)
                .map(|process| (pid, process)),
        );
        self.kept.insert(
            pid,
            CachedWalker {
                walker,
                used: self.used,
            },
        );
        self.spent += start.elapsed();
        stack
    }

    /// Returns the mappings of processes that opened libraries in this window, for
    /// [`UserSymbols::adopt`]: they may have ended.
    ///
    /// [`UserSymbols::adopt`]: crate::UserSymbols::adopt
    pub fn take_seen(&mut self) -> Vec<(u32, Process)> {
        std::mem::take(&mut self.seen)
    }

    /// Drops the least recently used walkers, until there is room for one more and for its tables.
    fn make_room(&mut self) {
        while self.kept.len() >= self.most || self.tables.are_many() {
            let oldest = self
                .kept
                .iter()
                .min_by_key(|(_, kept)| kept.used)
                .map(|(&pid, _)| pid);
            let Some(oldest) = oldest else { return };
            self.kept.remove(&oldest);
            self.tables.drop_unused();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks the same stack for a process of any number.
    fn walk(walkers: &mut StackWalkers, pid: u32) {
        let stack = walkers.walk(pid, [0x10, 0x7fff_f000, 0, 0], &[0; 64]);
        assert_eq!(stack.addresses[0], 0x10);
    }

    #[test]
    fn the_one_that_was_not_needed_for_longest_makes_room() {
        let mut walkers = StackWalkers {
            most: 3,
            ..StackWalkers::new(0x1000, crate::ignore())
        };
        // Numbers that no process has.
        for pid in [u32::MAX, u32::MAX - 1, u32::MAX - 2, u32::MAX, u32::MAX - 3] {
            walk(&mut walkers, pid);
        }
        let mut kept: Vec<u32> = walkers.kept.keys().copied().collect();
        kept.sort_unstable();
        assert_eq!(kept, [u32::MAX - 3, u32::MAX - 2, u32::MAX]);
        walkers.begin(&[]);
        assert!(walkers.kept.is_empty(), "what has ended is forgotten");
    }

    #[test]
    fn processes_of_one_program_share_its_tables() {
        let own = std::process::id();
        let mut walkers = StackWalkers::new(0x1000, crate::ignore());
        walk(&mut walkers, own);
        let tables = walkers.tables.len();
        assert!(tables > 0);
        let second = StackWalker::new(own, 0x1000, &mut walkers.tables);
        assert_eq!(walkers.tables.len(), tables);
        walkers.begin(&[own]);
        assert!(walkers.kept.contains_key(&own), "it has not changed");
        walkers.kept.clear();
        walkers.tables.drop_unused();
        assert_eq!(walkers.tables.len(), tables, "the second one has them");
        drop(second);
        walkers.tables.drop_unused();
        assert_eq!(walkers.tables.len(), 0);
    }

    #[test]
    fn the_time_is_for_all_processes_of_a_window() {
        let mut walkers = StackWalkers {
            spent: WALKING,
            ..StackWalkers::new(0x1000, crate::ignore())
        };
        for pid in [1, 2] {
            assert_eq!(walkers.walk(pid, [7, 8, 9, 0], &[]).end, StackEnd::Refused);
        }
        walkers.begin(&[]);
        assert_ne!(
            walkers.walk(u32::MAX, [7, 8, 9, 0], &[]).end,
            StackEnd::Refused
        );
    }
}
