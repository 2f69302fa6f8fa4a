//! Reading of the maps at the end of a window.

use crate::error::DelayError;
use crate::layout::{INTERRUPTS, PREEMPTORS, THREADS, ThreadValue, UPCALLS};
use crate::live::Tracer;
use crate::live::collector::{Collector, Unwinder};
use crate::live::proc_thread::{self, ProcThread};
use crate::live::tracer::{MAX_READS, MAX_RETRIES, RETRY_STEP, SETTLE_TIME, fallback};
use crate::sample::{Sample, ThreadPair, Window, WindowSnapshot};
use crate::snapshot::Snapshot;
use crate::upcalls::Upcalls;
use std::collections::BTreeSet;

/// Returns whether nothing happened to a thread in the second half of the window.
fn is_silent(after: &Snapshot, window: &Window) -> bool {
    after.mark() <= window.start + window.length() / 2
}

impl Tracer {
    /// Returns the sample of a window that is over, and removes ended threads from the map.
    pub fn sample(&self, window: Window) -> Result<Sample, DelayError> {
        std::thread::sleep(SETTLE_TIME);
        let mut snapshot = self.snapshot(window)?;
        let mut sample = Sample::from_snapshot(&snapshot);
        for retry in 1..=MAX_RETRIES {
            if sample.adds_up() && !snapshot.is_changing() {
                break;
            }
            std::thread::sleep(RETRY_STEP * retry);
            snapshot = self.snapshot(window)?;
            sample = Sample::from_snapshot(&snapshot);
        }
        let map = self.map(THREADS)?;
        for gone in snapshot
            .threads
            .iter()
            .filter(|thread| thread.after.is_dead())
        {
            map.delete(&gone.tid)?;
        }
        Ok(sample)
    }

    fn snapshot(&self, window: Window) -> Result<WindowSnapshot, DelayError> {
        let mut threads = Vec::new();
        for (tid, after) in self.snapshots(window.stop)? {
            let (before, was) = self.before.get(&tid).cloned().unwrap_or_default();
            let pid = after.process();
            let mut now = self.read(pid, tid);
            let mut stuck_in = Vec::new();
            if is_silent(&after, &window) && now.waits_for_unnamed() {
                now.look_if_frozen(pid, tid);
                if !now.is_frozen {
                    stuck_in = proc_thread::kernel_stack(pid, tid);
                }
            }
            let fallback = fallback(was, now);
            let name = proc_thread::name(pid, tid);
            let title = (pid == tid).then(|| host::proc::title(pid)).flatten();
            let title = title.and_then(|title| match self.titles.get(&pid) {
                Some(before) => proc_thread::lasting_title(before, &title),
                None => Some(title),
            });
            // If the number was given to another thread meanwhile, that thread starts from nothing.
            let before = if after.start_time() == before.start_time() {
                before
            } else {
                Snapshot::default()
            };
            threads.push(ThreadPair {
                tid,
                before,
                after,
                fallback,
                name,
                title,
                stuck_in,
            });
        }
        let (preemptors, interrupts) = (
            self.map(PREEMPTORS)?.pairs()?,
            self.map(INTERRUPTS)?.pairs()?,
        );
        let upcalls = match self.upcalls {
            Some(with_errors) => Some(Upcalls::from_pairs(
                &self.map(UPCALLS)?.pairs()?,
                with_errors,
            )),
            None => None,
        };
        let hard_names = host::interrupt_names();
        let functions = self.functions.names(&preemptors);
        Ok(WindowSnapshot {
            window,
            threads,
            preemptors,
            interrupts,
            hard_names,
            functions,
            upcalls,
            dptrace: Some(std::process::id()),
        })
    }

    /// Starts a collector of the events of a window, with room for `stacks` different stacks.
    pub fn collector(
        &self,
        stacks: usize,
        unwinder: Option<Unwinder>,
    ) -> Result<Collector, DelayError> {
        Collector::start(&self.session, stacks, unwinder, self.observer.clone())
    }

    /// Reads a thread's data from `/proc`.
    pub(in crate::live) fn read(&self, pid: u32, tid: u32) -> ProcThread {
        self.observer.step();
        ProcThread::read(pid, tid, self.are_32_bit.contains(&pid))
    }

    /// Reads all threads' values, each at one moment: its sums and its mark belong together.
    pub(super) fn snapshots(&self, stop: u64) -> Result<Vec<(u32, Snapshot)>, DelayError> {
        let map = self.map(THREADS)?;
        let mut all = Vec::new();
        for tid in self.tids()? {
            let read = || {
                Ok::<_, DelayError>(
                    map.get::<ThreadValue>(&tid)?
                        .map(|value| Snapshot::from_value(&value)),
                )
            };
            let Some(mut last) = read()? else { continue };
            for _ in 0..MAX_READS {
                let Some(next) = read()? else { break };
                // The first of two with the same mark is consistent: while the second was read, the
                // mark may have moved.
                if last.mark() == next.mark() || (stop > 0 && last.mark() >= stop) {
                    break;
                }
                last = next;
            }
            all.push((tid, last));
        }
        Ok(all)
    }

    /// Returns the numbers of the threads in the map.
    pub(in crate::live) fn tids(&self) -> Result<BTreeSet<u32>, DelayError> {
        // A thread that starts during the walk may come twice.
        Ok(BTreeSet::from_iter(self.map(THREADS)?.keys()?))
    }
}
