//! Repeated readings of one window without end, for [`ThreadAccounts`].

use std::time::Duration;

use sys::clock::monotonic_nanos;

use super::proc_thread;
use super::tracer::{Tracer, fallback};
use crate::error::DelayError;
use crate::layout::{INTERRUPTS, PREEMPTORS, THREADS, ThreadValue, armed, first};
use crate::running::{Advance, Causes, ThreadAccounts, ThreadReading};
use crate::snapshot::Snapshot;

/// Maximum number of readings of a thread whose time does not add up because a program is changing
/// its value.
const MAX_READINGS: usize = 4;
/// Pause between these readings.
const RETRY_INTERVAL: Duration = Duration::from_micros(300);

impl Tracer {
    /// Opens the window.
    pub fn begin(&mut self) -> Result<ThreadAccounts, DelayError> {
        self.prepare()?;
        let window = self.open(None, armed::NO)?;
        Ok(ThreadAccounts::new(window.start))
    }

    /// Returns the parts of all threads' time since the last call, and forgets threads that have
    /// ended.
    pub fn advance(&mut self, running: &mut ThreadAccounts) -> Result<Vec<Advance>, DelayError> {
        let mut readings = Vec::new();
        for tid in self.tids()? {
            let mut reading = self.thread(tid)?;
            for _ in 1..MAX_READINGS {
                if reading
                    .as_ref()
                    .is_none_or(|reading| running.adds_up(reading))
                {
                    break;
                }
                std::thread::sleep(RETRY_INTERVAL);
                reading = self.thread(tid)?;
            }
            readings.extend(reading);
        }
        let causes = self.causes()?;
        let advances = running.advance(readings, causes);
        for gone in advances.iter().filter(|thread| thread.has_ended) {
            self.map(THREADS)?.delete(&gone.tid)?;
            self.before.remove(&gone.tid);
        }
        self.forget_gone()?;
        Ok(advances)
    }

    /// Reads a thread's value at one moment, and `/proc` if no event has shown its state; `None` if
    /// the thread is not in the map.
    fn thread(&mut self, tid: u32) -> Result<Option<ThreadReading>, DelayError> {
        let at = monotonic_nanos();
        let map = self.map(THREADS)?;
        let read = || {
            Ok::<_, DelayError>(
                map.get::<ThreadValue>(&tid)?
                    .map(|value| Snapshot::from_value(&value)),
            )
        };
        let Some(mut after) = read()? else {
            return Ok(None);
        };
        for _ in 0..MAX_READINGS {
            let Some(next) = read()? else { break };
            if after.mark() == next.mark() && !after.is_changing() {
                break;
            }
            after = next;
        }
        let pid = after.process();
        let is_known = after.thread.first != first::NONE && after.thread.resolved != 0;
        let was = self
            .before
            .get(&tid)
            .map(|(_, thread)| *thread)
            .unwrap_or_default();
        let mut is = if is_known { was } else { self.read(pid, tid) };
        if !is_known {
            is.look_if_frozen(pid, tid);
            self.before.insert(tid, (Snapshot::default(), is));
        }
        Ok(Some(ThreadReading {
            tid,
            after,
            at,
            fallback: fallback(was, is),
            name: proc_thread::name(pid, tid),
        }))
    }

    /// Takes the preemptors and interrupts since the last call out of the maps, which would fill
    /// up. Additions by a program between the reading and the removal are missing among the causes,
    /// but no time of a thread is.
    fn causes(&self) -> Result<Causes, DelayError> {
        let (preemptors, interrupts) = (
            self.map(PREEMPTORS)?.drain()?,
            self.map(INTERRUPTS)?.drain()?,
        );
        Ok(Causes {
            preemptors,
            interrupts,
            hard_names: host::interrupt_names(),
            dptrace: Some(std::process::id()),
        })
    }
}
