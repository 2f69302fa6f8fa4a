//! A running audit: attaches programs, begins and ends windows.

use std::collections::HashMap;
use std::sync::mpsc::channel;
use std::time::Duration;

use bpf_program::wire::{WrongSize, read_event};
use bpf_session::{Features, RingReader, Session};
use sched_programs::{NamedMap, SchedError, hooks};
use sys::clock::monotonic_nanos;

use crate::audit::facts::Facts;
use crate::audit::layout::{
    self, Episode, QueuedWork, RING, STACKS, STATES, State, TALLIES, WaitingThread, kind,
};
use crate::audit::programs;
use crate::audit::sums::{CpuSums, Sums, since};

/// Size of the ring for individual intrusions.
const RING_BYTES: u32 = 1 << 20;
/// Limit on further batches that one call takes from the ring.
const BATCHES: usize = 64;

/// Settings of an audit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// CPUs to audit.
    pub cpus: Vec<u32>,
    /// Shortest length of the intrusions to report individually, in nanoseconds; `None` to report
    /// none.
    pub each: Option<u64>,
}

/// Thread that was runnable but not running when the audit began, according to `/proc`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StuckThread {
    /// Thread id.
    pub tid: u32,
    /// Process id.
    pub pid: u32,
    /// CPU that it waits for.
    pub cpu: u32,
    /// Name of the thread.
    pub name: Vec<u8>,
}

/// The attached programs.
pub struct Audit {
    session: Session,
    reader: Option<RingReader<Result<Episode, WrongSize>>>,
    cpus: Vec<u32>,
    /// Index of the program that begins an audit; those that end it and turn a window are the next
    /// two.
    start: usize,
    /// Start of the audit, in nanoseconds of the monotonic clock; nothing before it is known.
    began: u64,
    /// States at the last turn, and stacks already read.
    turns: TurnState,
}

/// State that is kept from one turn to the next.
#[derive(Default)]
struct TurnState {
    states: HashMap<u32, State>,
    stacks: HashMap<u64, Vec<u64>>,
    skipped: u64,
}

impl Audit {
    /// Attaches the programs, and begins the windows of the CPUs. The calling thread, and those
    /// that it starts, should not run on any of these.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel rejects the programs, because it is too old or privileges are
    /// missing; or if a CPU does not exist.
    pub fn start(facts: &Facts, options: &Options) -> Result<Self, SchedError> {
        let possible = host::cpus::possible().map_err(SchedError::map(STATES))?;
        let features = Features::detect()?;
        let ring_bytes = if options.each.is_some() {
            RING_BYTES
        } else {
            0
        };
        let sizes = (u32::try_from(possible).unwrap_or(u32::MAX), ring_bytes);
        let module = programs::module(facts, features.exchange, options.each, sizes)?;
        let mut session = Session::load(&module, features)?;
        let reader = match options.each {
            Some(_) => Some(RingReader::start(&session, RING, |bytes| {
                Some(read_event(bytes))
            })?),
            None => None,
        };
        let start = module.programs.len().saturating_sub(3);
        hooks::attach(&mut session, &module, start)?;
        let audit = Self {
            session,
            reader,
            cpus: options.cpus.clone(),
            start,
            began: monotonic_nanos(),
            turns: TurnState::default(),
        };
        audit.run_on_all(audit.start)?;
        Ok(audit)
    }

    /// Enters threads that were runnable but not running when the audit began. An entry that the
    /// programs have made since then is kept.
    ///
    /// # Errors
    ///
    /// Returns an error if the map can't be changed.
    pub fn add_stuck(&self, threads: &[StuckThread]) -> Result<(), SchedError> {
        let map = self.map(layout::WAITING)?;
        for StuckThread {
            tid,
            pid,
            cpu,
            name,
        } in threads
        {
            let mut waiting = WaitingThread {
                cpu: *cpu,
                tgid: *pid,
                since: self.began,
                ..WaitingThread::default()
            };
            waiting
                .name
                .iter_mut()
                .take(15)
                .zip(name)
                .for_each(|(to, from)| *to = *from);
            map.insert(*tid, &waiting)?;
        }
        Ok(())
    }

    /// Returns the threads that wait for one of the CPUs at present.
    ///
    /// # Errors
    ///
    /// Returns an error if the map can't be read.
    pub fn waiting(&self) -> Result<Vec<(u32, WaitingThread)>, SchedError> {
        self.map(layout::WAITING)?.pairs()
    }

    /// Forgets that a thread waits, if `/proc` shows that it does not.
    ///
    /// # Errors
    ///
    /// Returns an error if the map can't be changed.
    pub fn forget(&self, tid: u32) -> Result<(), SchedError> {
        self.map(layout::WAITING)?.delete(&tid)
    }

    /// Returns the work items that are queued for the CPUs and not begun, by their address.
    ///
    /// # Errors
    ///
    /// Returns an error if the map can't be read.
    pub fn queued(&self) -> Result<Vec<(u64, QueuedWork)>, SchedError> {
        let mut queued: Vec<(u64, QueuedWork)> = self.map(layout::QUEUED)?.pairs()?;
        queued
            .retain(|(_, item)| u32::try_from(item.cpu).is_ok_and(|cpu| self.cpus.contains(&cpu)));
        Ok(queued)
    }

    /// Returns the individual intrusions of at least the requested length, waiting up to `at_most`
    /// for the first.
    ///
    /// # Errors
    ///
    /// Returns an error if an event has the wrong size, which is a bug of ours.
    pub fn each(&self, at_most: Duration) -> Result<Vec<Episode>, SchedError> {
        let Some(reader) = &self.reader else {
            std::thread::sleep(at_most);
            return Ok(Vec::new());
        };
        let mut all = reader.next(at_most);
        for _ in 0..BATCHES {
            let more = reader.next(Duration::ZERO);
            if more.is_empty() {
                break;
            }
            all.extend(more);
        }
        Ok(all.into_iter().collect::<Result<Vec<_>, _>>()?)
    }

    /// Returns the remaining individual intrusions, after [`Audit::stop`].
    ///
    /// # Errors
    ///
    /// Returns an error if an event has the wrong size, which is a bug of ours.
    pub fn rest_of_each(&mut self) -> Result<Vec<Episode>, SchedError> {
        let mut all = Vec::new();
        if let Some(reader) = self.reader.take() {
            reader.finish(|batch| all.extend(batch));
        }
        Ok(all.into_iter().collect::<Result<Vec<_>, _>>()?)
    }

    /// Returns the states of the CPUs at present; they change while they are read.
    ///
    /// # Errors
    ///
    /// Returns an error if the map can't be read.
    pub fn states(&self) -> Result<Vec<(u32, State)>, SchedError> {
        self.cpus
            .iter()
            .map(|&cpu| Ok((cpu, self.state(cpu)?)))
            .collect()
    }

    /// Ends the windows, and reads their sums. Until [`Audit::close`], nothing of ours then runs on
    /// the CPUs but a comparison at each event.
    ///
    /// # Errors
    ///
    /// Returns an error if a map can't be read.
    pub fn stop(&self) -> Result<Sums, SchedError> {
        self.run_on_all(self.start + 1)?;
        let mut sums = Sums {
            tallies: self.map(TALLIES)?.pairs()?.into_iter().collect(),
            waiting: self.waiting()?,
            queued: self.queued()?,
            skipped: self.session.misses(),
            ..Sums::default()
        };
        for key in self.map(STACKS)?.keys::<u32>()? {
            sums.stacks.insert(key.into(), self.stack(key)?);
        }
        for &cpu in &self.cpus {
            let state = self.state(cpu)?;
            sums.close(cpu, state);
        }
        Ok(sums)
    }

    /// Ends the windows, begins the next ones without a gap, and reads the sums since the last turn
    /// or the start. Each CPU takes an interrupt for it, which is counted. Tallies are read a
    /// moment later, and belong to the windows in whose turn they are read.
    ///
    /// # Errors
    ///
    /// Returns an error if a map can't be read, or a CPU is gone.
    pub fn turn(&mut self) -> Result<Sums, SchedError> {
        self.run_on_all(self.start + 2)?;
        let misses = self.session.misses();
        let mut sums = Sums {
            // The sums by kind alone have an event between reading and removing.
            tallies: self.map(TALLIES)?.drain()?.into_iter().collect(),
            waiting: self.waiting()?,
            queued: self.queued()?,
            skipped: misses.saturating_sub(std::mem::replace(&mut self.turns.skipped, misses)),
            ..Sums::default()
        };
        sums.stacks = self.known_stacks(&sums)?;
        for &cpu in &self.cpus {
            let state = self.state(cpu)?;
            let before = self.turns.states.insert(cpu, state);
            sums.cpus.push(CpuSums {
                cpu,
                state: since(&state, before.as_ref()),
            });
        }
        Ok(sums)
    }

    /// Returns the audited CPUs.
    pub fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    /// Begins the window of one more CPU.
    ///
    /// # Errors
    ///
    /// Returns an error if the CPU does not exist, or the map can't be changed.
    pub fn add_cpu(&mut self, cpu: u32) -> Result<(), SchedError> {
        if self.cpus.contains(&cpu) {
            return Ok(());
        }
        // It may have been audited before.
        self.map(STATES)?.put(cpu, &State::default())?;
        self.turns.states.remove(&cpu);
        if !self.session.run_on(self.start, cpu) {
            return Err(SchedError::Unreachable { cpu });
        }
        self.cpus.push(cpu);
        Ok(())
    }

    /// Ends the window of a CPU, without reading its sums since the last turn.
    ///
    /// # Errors
    ///
    /// Returns an error if a map can't be changed.
    pub fn remove_cpu(&mut self, cpu: u32) -> Result<(), SchedError> {
        self.cpus.retain(|&audited| audited != cpu);
        // A CPU that is gone is not audited either.
        self.session.run_on(self.start + 1, cpu);
        let left = self
            .waiting()?
            .into_iter()
            .filter(|(_, waiting)| waiting.cpu == cpu);
        left.map(|(tid, _)| tid)
            .try_for_each(|tid| self.forget(tid))
    }

    /// Detaches the programs; returns whether all are detached. If the kernel does not release them
    /// in time, because a starved CPU holds up a grace period, the rest is left to the end of this
    /// process.
    pub fn close(self, at_most: Duration) -> bool {
        let (done, wait) = channel();
        let Self {
            session, reader, ..
        } = self;
        drop(reader);
        let closer = std::thread::Builder::new()
            .name("detach".into())
            .spawn(move || {
                drop(session);
                // SANITY: nobody waits any more if it took too long.
                let _ = done.send(());
            });
        closer.is_ok() && wait.recv_timeout(at_most).is_ok()
    }

    fn run_on_all(&self, program: usize) -> Result<(), SchedError> {
        let gone = self
            .cpus
            .iter()
            .find(|&&cpu| !self.session.run_on(program, cpu));
        gone.map_or(Ok(()), |&cpu| Err(SchedError::Unreachable { cpu }))
    }

    /// Returns the stacks that queued work; each is read once.
    fn known_stacks(&mut self, sums: &Sums) -> Result<HashMap<u64, Vec<u64>>, SchedError> {
        let of_tallies = sums
            .tallies
            .keys()
            .filter(|key| key.by_kind == kind::STACK)
            .map(|key| key.by);
        let of_queued = sums.queued.iter().map(|(_, item)| item.stack);
        for number in of_tallies
            .chain(of_queued)
            .filter_map(|stack| u32::try_from(stack).ok())
        {
            if !self.turns.stacks.contains_key(&number.into()) {
                let frames = self.stack(number)?;
                self.turns.stacks.insert(number.into(), frames);
            }
        }
        Ok(self.turns.stacks.clone())
    }

    /// Returns the callers of a stack; empty if it does not exist.
    fn stack(&self, number: u32) -> Result<Vec<u64>, SchedError> {
        let frames = self.map(STACKS)?.values(number)?;
        Ok(frames.into_iter().take_while(|&frame| frame != 0).collect())
    }

    fn state(&self, cpu: u32) -> Result<State, SchedError> {
        self.map(STATES)?.require(&cpu)
    }

    fn map(&self, name: &'static str) -> Result<NamedMap<'_>, SchedError> {
        NamedMap::find(&self.session, name)
    }
}
