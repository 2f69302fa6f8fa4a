//! CPUs of a process's pollers: those on which a thread is nearly all the time, or to which one is
//! pinned.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use host::Pid;
use host::busy::{BusyThread, busy_threads};
use host::cpus::allowed;
use host::proc::{task, threads};

/// Shortest time for which threads are watched.
const MIN_SAMPLING_TIME: Duration = Duration::from_millis(100);

/// Snapshot of threads, to compare with the next one.
pub struct Pollers {
    at: Instant,
    busy: HashMap<u32, BusyThread>,
}

impl Pollers {
    /// Begins to watch the threads of these processes.
    pub fn watch(pids: &[u32]) -> Self {
        let at = Instant::now();
        Self {
            at,
            busy: busy_threads(Some(pids))
                .into_iter()
                .map(|thread| (thread.tid, thread))
                .collect(),
        }
    }

    /// Returns the time for which they must still be watched.
    pub fn wait(&self) -> Duration {
        MIN_SAMPLING_TIME.saturating_sub(self.at.elapsed())
    }

    /// Returns the CPUs of the pollers of these processes since the last snapshot, and of threads
    /// pinned to one CPU; then takes a new snapshot.
    pub fn cpus(&mut self, pids: &[u32]) -> BTreeSet<u32> {
        let nanos = u64::try_from(self.at.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let now = Self::watch(pids);
        let pollers = now
            .busy
            .values()
            .filter(|thread| is_poller(&self.busy, thread, nanos));
        let mut cpus: BTreeSet<u32> = pollers.map(|thread| thread.cpu).collect();
        cpus.extend(pids.iter().flat_map(|&pid| pinned(pid)));
        *self = now;
        cpus
    }
}

/// Returns the threads that are on one CPU nearly all the time: of these processes, or of all if
/// `pids` is empty.
pub(super) fn pollers(pids: &[u32]) -> Vec<BusyThread> {
    let pids = if pids.is_empty() { None } else { Some(pids) };
    let (from, first) = (Instant::now(), busy_threads(pids));
    std::thread::sleep(MIN_SAMPLING_TIME);
    let first: HashMap<u32, BusyThread> = first
        .into_iter()
        .map(|thread| (thread.tid, thread))
        .collect();
    let mut second = busy_threads(pids);
    let nanos = u64::try_from(from.elapsed().as_nanos()).unwrap_or(u64::MAX);
    second.retain(|thread| is_poller(&first, thread, nanos));
    second
}

/// Returns true if a thread was on its CPU for at least 80 % of these nanoseconds.
fn is_poller(before: &HashMap<u32, BusyThread>, thread: &BusyThread, nanos: u64) -> bool {
    let same = before
        .get(&thread.tid)
        .filter(|before| before.cpu == thread.cpu);
    // The kernel adds a thread's time at the tick, so up to a tick's length may be missing each
    // time.
    same.is_some_and(|before| thread.ran.saturating_sub(before.ran) >= nanos / 10 * 8)
}

/// Returns the CPUs that have a pinned thread of the process. On a machine with one CPU there are
/// none, since nobody chose that.
fn pinned(pid: u32) -> Vec<u32> {
    if host::cpus::online().len() < 2 {
        return Vec::new();
    }
    let only = |cpus: BTreeSet<usize>| cpus.first().copied().filter(|_| cpus.len() == 1);
    let tasks = threads(Pid(pid)).into_iter().map(|tid| task(Pid(pid), tid));
    tasks
        .filter_map(|task| u32::try_from(only(allowed(&task)?)?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_thread_that_sleeps_is_no_poller_unless_it_is_pinned() {
        let own = [std::process::id()];
        let stop = AtomicBool::new(false);
        let last = sys::sched::allowed_cpus()
            .unwrap_or_default()
            .last()
            .copied();
        let Some(last) = last.filter(|_| host::cpus::online().len() > 1) else {
            return;
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _ = sys::sched::run_on(&[last]);
                while !stop.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            let mut watched = Pollers::watch(&own);
            let began = Instant::now();
            let mut cpus = watched.cpus(&own);
            // Threads of other tests may be pollers as well, of other CPUs.
            let is_found = |cpus: &BTreeSet<u32>| cpus.iter().any(|cpu| *cpu as usize == last);
            while !is_found(&cpus) && began.elapsed() < Duration::from_mins(1) {
                std::thread::sleep(watched.wait());
                cpus = watched.cpus(&own);
            }
            stop.store(true, Ordering::Relaxed);
            assert!(is_found(&cpus), "{last} is not among {cpus:?}");
        });
    }
}
