//! Threads without events: `/proc` shows what they did all the time, if they did one thing.
//!
//! A poller on a CPU of its own, without the timer's tick, may have no event for seconds, and a
//! sleeping thread may have none at all. Each thread is checked when the programs are attached,
//! then once a second, and at the end. If it neither came to a CPU nor left one in between, it is
//! still where it was.

use std::collections::{HashMap, HashSet};

use host::{Pid, proc};

use crate::layout::{Event, Head, RUNS, kind, leaves};

/// Limit on remembered threads.
const MAX_THREADS: usize = 16_384;

/// Known state of the threads of the processes.
#[derive(Debug, Default)]
pub(crate) struct ThreadStates(HashMap<Pid, KnownState>);

/// Known state of a thread.
#[derive(Debug)]
enum KnownState {
    /// First standing of the thread, and nothing else so far.
    First(proc::ThreadStatus),
    /// The thread moves, or its activity has been reported: events show the rest.
    Enough,
}

impl ThreadStates {
    /// Checks all threads of these processes, and returns the findings as events that have no time
    /// yet. Earlier events come before them.
    pub(crate) fn look(&mut self, pids: &[u32]) -> Vec<Event> {
        let (mut events, mut living) = (Vec::new(), HashSet::new());
        for &pid in pids {
            for tid in proc::threads(Pid(pid)) {
                living.insert(tid);
                events.extend(self.look_at(Pid(pid), tid));
            }
        }
        // Numbers are given again, and others need the room.
        self.0.retain(|tid, _| living.contains(tid));
        events
    }

    fn look_at(&mut self, pid: Pid, tid: Pid) -> Option<Event> {
        let known = self.0.get(&tid);
        if matches!(known, Some(KnownState::Enough))
            || (known.is_none() && self.0.len() >= MAX_THREADS)
        {
            return None;
        }
        let now = proc::standing(&proc::task(pid, tid))?;
        let Some(KnownState::First(first)) = known else {
            self.0.insert(tid, KnownState::First(now));
            return None;
        };
        let (stays, did) = (stays(first, &now), did(first, &now));
        if !stays || did.is_some() {
            self.0.insert(tid, KnownState::Enough);
        }
        did.map(|did| found(tid, did, now.cpu))
    }

    /// Forgets all threads after a loss of events: they may have moved.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }
}

/// Returns whether the thread neither came to a CPU nor left one.
fn stays(first: &proc::ThreadStatus, now: &proc::ThreadStatus) -> bool {
    (first.arrivals, first.switches) == (now.arrivals, now.switches)
}

/// Returns the thread's activity all the time, as an event holds it: [`RUNS`], or the reason that
/// it did not run. `None` if that is unclear.
fn did(first: &proc::ThreadStatus, now: &proc::ThreadStatus) -> Option<u32> {
    if !stays(first, now) {
        return None;
    }
    match (first.state, now.state) {
        // It may also have waited for a CPU all the time.
        ('R', 'R') => (now.ran > first.ran).then_some(RUNS),
        ('S' | 'D' | 'I', 'S' | 'D' | 'I') => Some(leaves::BLOCKED),
        ('T' | 't', 'T' | 't') => Some(leaves::STOPPED),
        _ => None,
    }
}

fn found(tid: Pid, did: u32, cpu: u32) -> Event {
    Event {
        head: Head {
            at: 0,
            cpu,
            kind: kind::FOUND,
        },
        detail: did.into(),
        tid: tid.0,
        other: 0,
        comm: [0; 16],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(state: char, arrivals: u64, ran: u64) -> proc::ThreadStatus {
        proc::ThreadStatus {
            state,
            arrivals,
            switches: 3,
            ran,
            cpu: 1,
        }
    }

    #[test]
    fn a_thread_that_neither_came_nor_left_is_where_it_was() {
        let before = standing('R', 4, 1_000);
        assert_eq!(did(&before, &standing('R', 4, 2_000)), Some(RUNS));
        // It may have waited.
        assert_eq!(did(&before, &standing('R', 4, 1_000)), None);
        assert_eq!(did(&before, &standing('R', 5, 2_000)), None);
        assert_eq!(
            did(&standing('S', 4, 0), &standing('D', 4, 0)),
            Some(leaves::BLOCKED)
        );
        assert_eq!(did(&standing('S', 4, 0), &standing('R', 4, 0)), None);
        assert_eq!(
            did(&standing('T', 4, 0), &standing('T', 4, 0)),
            Some(leaves::STOPPED)
        );
        assert_eq!(
            did(
                &before,
                &proc::ThreadStatus {
                    switches: 4,
                    ..standing('R', 4, 2_000)
                }
            ),
            None
        );
    }

    #[test]
    fn a_thread_that_sleeps_is_found_once() {
        let (end, wait) = std::sync::mpsc::channel::<()>();
        let sleeps = std::thread::spawn(move || {
            let tid = rustix::thread::gettid()
                .as_raw_nonzero()
                .get()
                .cast_unsigned();
            let _ = wait.recv();
            tid
        });
        let mut standings = ThreadStates::default();
        let mut found = Vec::new();
        // It may yet run when it is looked at first; then it is not one that did one thing.
        for _ in 0..3 {
            found.extend(standings.look(&[std::process::id()]));
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        drop(end);
        let tid = sleeps.join().unwrap();
        let of_it = found.iter().filter(|event| event.tid == tid).count();
        assert!(of_it <= 1, "{found:?}");
        assert!(found.iter().all(|event| event.head.kind == kind::FOUND));
    }
}
