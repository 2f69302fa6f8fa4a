//! An audit that goes on: programs attached, windows begun and ended.

use std::sync::mpsc::channel;
use std::time::Duration;

use bpf_program::wire::{WrongSize, read_key, read_value, read_values};
use bpf_session::{Features, Map, RingReader, Session};
use sys::clock::monotonic_nanos;
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::error::AuditError;
use crate::facts::Facts;
use crate::layout::{self, Episode, Key, Queued, RING, STACKS, STATES, State, Tally, Waiting};
use crate::programs::{self, Setting};
use crate::sums::Sums;

/// The bytes of the ring for single ones.
const RING_BYTES: u32 = 1 << 20;
/// How often a map is tried that has just changed.
const BATCHES: usize = 64;

/// What is to be audited.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The CPUs.
    pub cpus: Vec<u32>,
    /// Each one that took at least this many nanoseconds is handed out.
    pub each: Option<u64>,
}

/// A thread that could run and did not when the audit began, as `/proc` has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StuckThread {
    /// Its number.
    pub tid: u32,
    /// Its process.
    pub pid: u32,
    /// For which CPU it waits.
    pub cpu: u32,
    /// Its name.
    pub name: Vec<u8>,
}

/// The programs, attached.
pub struct Audit {
    session: Session,
    reader: Option<RingReader<Result<Episode, WrongSize>>>,
    cpus: Vec<u32>,
    /// The program with which an audit begins; the next one is that with which it ends.
    start: usize,
    began: u64,
}

impl Audit {
    /// Attaches the programs, and begins the windows of the CPUs. The calling thread, and those that it starts, should not run
    /// on one of these.
    ///
    /// # Errors
    ///
    /// The kernel does not take the programs: it is too old, or the rights are missing. A CPU is not there.
    pub fn start(facts: &Facts, options: &Options) -> Result<Self, AuditError> {
        let possible = host::cpus::possible().map_err(|source| AuditError::Map { name: STATES, source })?;
        let features = Features::detect()?;
        let ring_bytes = if options.each.is_some() { RING_BYTES } else { 0 };
        let setting = Setting { facts, exchange: features.exchange, each: options.each, ring_bytes };
        let module = programs::module(&setting, u32::try_from(possible).unwrap_or(u32::MAX))?;
        let mut session = Session::load(&module, features)?;
        let reader = match options.each {
            Some(_) => Some(RingReader::start(&session, RING, |bytes| Some(read_episode(bytes)))?),
            None => None,
        };
        let start = module.programs.len().saturating_sub(2);
        for (index, program) in module.programs.iter().enumerate().take(start) {
            match program.target {
                Some(_) => session.attach_loaded_target(index, &format!("the tracepoint {}", program.name))?,
                None => session.attach_raw_tracepoint(index, &program.name)?,
            }
        }
        let audit = Self { session, reader, cpus: options.cpus.clone(), start, began: monotonic_nanos() };
        for &cpu in &audit.cpus {
            if !audit.session.run_on(audit.start, cpu) {
                return Err(AuditError::Unreachable { cpu });
            }
        }
        Ok(audit)
    }

    /// When it began, in nanoseconds of the monotonic clock: nothing is known of what was before.
    pub fn began(&self) -> u64 {
        self.began
    }

    /// Enters threads that could run and did not when it began. One that has run since then is not entered again by that.
    ///
    /// # Errors
    ///
    /// The map does not take them.
    pub fn add_stuck(&self, threads: &[StuckThread]) -> Result<(), AuditError> {
        let map = self.map(layout::WAITING)?;
        for StuckThread { tid, pid, cpu, name } in threads {
            let mut waiting = Waiting { cpu: *cpu, tgid: *pid, since: self.began, ..Waiting::default() };
            waiting.name.iter_mut().take(15).zip(name).for_each(|(to, from)| *to = *from);
            map.insert(&tid.to_ne_bytes(), waiting.as_bytes()).map_err(failed(layout::WAITING))?;
        }
        Ok(())
    }

    /// The threads that wait for one of the CPUs at present.
    ///
    /// # Errors
    ///
    /// The map can't be read.
    pub fn waiting(&self) -> Result<Vec<(u32, Waiting)>, AuditError> {
        self.pairs(layout::WAITING)
    }

    /// Forgets that a thread waits: `/proc` shows that it does not.
    ///
    /// # Errors
    ///
    /// The map can't be changed.
    pub fn forget(&self, tid: u32) -> Result<(), AuditError> {
        self.map(layout::WAITING)?.delete(&tid.to_ne_bytes()).map(drop).map_err(failed(layout::WAITING))
    }

    /// The work items that are queued and not begun, by their address.
    ///
    /// # Errors
    ///
    /// The map can't be read.
    pub fn queued(&self) -> Result<Vec<(u64, Queued)>, AuditError> {
        let mut queued: Vec<(u64, Queued)> = self.pairs(layout::QUEUED)?;
        queued.retain(|(_, item)| u32::try_from(item.cpu).is_ok_and(|cpu| self.cpus.contains(&cpu)));
        Ok(queued)
    }

    /// Single ones of the length that was asked for, as they come.
    ///
    /// # Errors
    ///
    /// What came is none: a mistake of ours.
    pub fn each(&self, at_most: Duration) -> Result<Vec<Episode>, AuditError> {
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

    /// The states of the CPUs at present; they change while they are read.
    ///
    /// # Errors
    ///
    /// The map can't be read.
    pub fn states(&self) -> Result<Vec<(u32, State)>, AuditError> {
        self.cpus.iter().map(|&cpu| Ok((cpu, self.state(cpu)?))).collect()
    }

    /// Ends the windows, and reads what came of them. Then nothing of ours runs on the CPUs but a comparison at each event, until
    /// [`Audit::close`].
    ///
    /// # Errors
    ///
    /// A map can't be read.
    pub fn stop(&self) -> Result<Sums, AuditError> {
        for &cpu in &self.cpus {
            if !self.session.run_on(self.start + 1, cpu) {
                return Err(AuditError::Unreachable { cpu });
            }
        }
        let mut sums = Sums {
            tallies: self.pairs::<Key, Tally>(layout::TALLIES)?.into_iter().collect(),
            waiting: self.waiting()?,
            queued: self.queued()?,
            skipped: self.session.misses(),
            ..Sums::default()
        };
        let numbers = self.map(STACKS)?.keys().map_err(failed(STACKS))?;
        for number in numbers {
            let frames = self.map(STACKS)?.lookup(&number).map_err(failed(STACKS))?.unwrap_or_default();
            let frames: Vec<u64> = read_values(STACKS, &frames)?;
            let key: u32 = read_key(STACKS, &number)?;
            sums.stacks.insert(key.into(), frames.into_iter().take_while(|&frame| frame != 0).collect());
        }
        for &cpu in &self.cpus {
            let state = self.state(cpu)?;
            sums.close(cpu, state);
        }
        Ok(sums)
    }

    /// Detaches the programs. If the kernel does not let go of them in time, because a grace period does not end while a CPU is
    /// starved, the rest is left to the end of this process. Returns whether all are detached.
    pub fn close(self, at_most: Duration) -> bool {
        let (done, wait) = channel();
        let Self { session, reader, .. } = self;
        drop(reader);
        let closer = std::thread::Builder::new().name("detach".into()).spawn(move || {
            drop(session);
            // SANITY: nobody waits any more if it took too long.
            let _ = done.send(());
        });
        closer.is_ok() && wait.recv_timeout(at_most).is_ok()
    }

    fn state(&self, cpu: u32) -> Result<State, AuditError> {
        let bytes = self.map(STATES)?.lookup(&cpu.to_ne_bytes()).map_err(failed(STATES))?;
        Ok(read_value(STATES, &bytes.unwrap_or_default())?)
    }

    fn map(&self, name: &'static str) -> Result<&Map, AuditError> {
        self.session.map(name).ok_or_else(|| failed(name)(std::io::ErrorKind::NotFound.into()))
    }

    /// All that is in a map.
    fn pairs<K: zerocopy::FromBytes, V: zerocopy::FromBytes>(
        &self,
        name: &'static str,
    ) -> Result<Vec<(K, V)>, AuditError> {
        let map = self.map(name)?;
        let mut pairs = Vec::new();
        for key in map.keys().map_err(failed(name))? {
            // One may go while they are read.
            if let Some(value) = map.lookup(&key).map_err(failed(name))? {
                pairs.push((read_key(name, &key)?, read_value(name, &value)?));
            }
        }
        Ok(pairs)
    }
}

fn failed(name: &'static str) -> impl Fn(std::io::Error) -> AuditError {
    move |source| AuditError::Map { name, source }
}

fn read_episode(bytes: &[u8]) -> Result<Episode, WrongSize> {
    Episode::read_from_bytes(bytes).map_err(|_| WrongSize::event(bytes.len(), size_of::<Episode>()))
}
