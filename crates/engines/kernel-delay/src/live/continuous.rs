//! One window without end, read again and again: what [`Running`] goes on with.

use std::time::Duration;

use sys::clock::monotonic_nanos;

use super::proc_thread;
use super::tracer::{Tracer, fallback};
use crate::error::DelayError;
use crate::layout::{INTERRUPTS, PREEMPTORS, THREADS, ThreadValue, armed, first};
use crate::running::{Advance, Causes, Running, ThreadReading};
use crate::snapshot::Snapshot;

/// How often a thread is read again whose time does not add up: a program is at work on it.
const TRIES: usize = 4;
/// The time between.
const PAUSE: Duration = Duration::from_micros(300);

impl Tracer {
    /// Opens the window.
    pub fn begin(&mut self) -> Result<Running, DelayError> {
        self.prepare()?;
        let window = self.open(None, armed::NO)?;
        Ok(Running::new(window.start))
    }

    /// What all threads' time went to since the last call. Threads that are gone are forgotten.
    pub fn advance(&mut self, running: &mut Running) -> Result<Vec<Advance>, DelayError> {
        let mut readings = Vec::new();
        for tid in self.tids()? {
            let mut reading = self.thread(tid)?;
            for _ in 1..TRIES {
                if reading.as_ref().is_none_or(|reading| running.adds_up(reading)) {
                    break;
                }
                std::thread::sleep(PAUSE);
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

    /// A thread's value of one moment, and what `/proc` says where no event has shown what it is doing.
    fn thread(&mut self, tid: u32) -> Result<Option<ThreadReading>, DelayError> {
        let at = monotonic_nanos();
        let map = self.map(THREADS)?;
        let read = || Ok::<_, DelayError>(map.get::<ThreadValue>(&tid)?.map(|value| Snapshot::of(&value)));
        let Some(mut after) = read()? else { return Ok(None) };
        for _ in 0..TRIES {
            let Some(next) = read()? else { break };
            if after.mark() == next.mark() && !after.is_changing() {
                break;
            }
            after = next;
        }
        let pid = after.process();
        let is_known = after.thread.first != first::NONE && after.thread.resolved != 0;
        let was = self.before.get(&tid).map(|(_, thread)| *thread).unwrap_or_default();
        let mut is = if is_known { was } else { self.read(pid, tid) };
        if !is_known {
            is.look_if_frozen(pid, tid);
            self.before.insert(tid, (Snapshot::default(), is));
        }
        Ok(Some(ThreadReading { tid, after, at, fallback: fallback(was, is), name: proc_thread::name(pid, tid) }))
    }

    /// Who ran and which interrupts came since the last call: they are taken out of the maps, which would fill up. What a program
    /// adds between the reading and the taking is missing among the causes, and no time of a thread is.
    fn causes(&self) -> Result<Causes, DelayError> {
        let (preemptors, interrupts) = (self.map(PREEMPTORS)?.drain()?, self.map(INTERRUPTS)?.drain()?);
        Ok(Causes { preemptors, interrupts, hard_names: host::interrupt_names() })
    }
}
