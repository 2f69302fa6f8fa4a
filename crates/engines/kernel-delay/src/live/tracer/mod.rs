//! Programs in the kernel, and the windows made with them.

mod reading;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use bpf_program::Module;
use bpf_session::{Features, Session};
use observer::Observer;
use sched_programs::{NamedMap, ProcessSet, hooks};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::functions::Functions;
use super::losses::LossCounts;
use super::proc_thread::{self, ProcThread};
use super::window::NEVER;
use crate::error::DelayError;
use crate::layout::{
    COUNTS, Counts, INTERRUPTS, PREEMPTORS, TEMPLATE, THREADS, UPCALLS, WINDOW, WindowValue,
};
use crate::programs::{self, PEEK};
use crate::sample::ProcFallback;
use crate::snapshot::Snapshot;

/// Key of the only element of a map.
const ONLY_KEY: u32 = 0;
/// Maximum number of readings of a thread's value that changes meanwhile.
const MAX_READS: usize = 64;
/// Maximum number of checks whether the threads of an exited process have ended.
const MAX_END_POLLS: usize = 50;
/// Interval between these checks.
const END_POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Time after a window's end in which programs may still account for time in it.
const SETTLE_TIME: Duration = Duration::from_micros(200);
/// Maximum number of times that the maps are read again if a budget lacks time, or if a program has
/// not finished: one may have been interrupted between taking the time and adding it. Each retry
/// waits a step longer than the one before, a fifth of a second in all: a virtual machine may have
/// lost its processor meanwhile.
const MAX_RETRIES: u32 = 20;
/// Increase of the pause from one retry to the next.
const RETRY_STEP: Duration = Duration::from_millis(1);

/// Attached programs, and the windows made with them.
pub struct Tracer {
    pub(super) session: Session,
    /// Requested processes.
    processes: ProcessSet,
    /// See [`AttachOptions::observer`](super::AttachOptions::observer).
    observer: Observer,
    /// Index of the program that looks at the thread running on a CPU.
    peek: Option<usize>,
    pub(super) number: u16,
    /// Processes that run 32-bit programs.
    are_32_bit: HashSet<u32>,
    /// Number of threads without room at the start.
    no_room: u64,
    /// Names of the functions that the kernel's workers ran.
    functions: Functions,
    /// True if upcalls are counted with their errors, false if without; `None` if they are not
    /// counted.
    pub(super) upcalls: Option<bool>,
    /// Values and `/proc` data of the threads when the window was prepared.
    pub(super) before: HashMap<u32, (Snapshot, ProcThread)>,
    /// Titles of the processes when the window was prepared.
    titles: HashMap<u32, String>,
    /// Number of start triggers that fired between two windows.
    pub(super) missed: u64,
    /// Count of missed triggers when the last window was over.
    pub(super) missed_before: Option<u64>,
}

impl Tracer {
    /// Loads the programs.
    pub(super) fn load(
        processes: ProcessSet,
        module: &Module,
        features: Features,
        observer: Observer,
    ) -> Result<Self, DelayError> {
        let session = Session::load(module, features)?;
        let peek = module
            .programs
            .iter()
            .position(|program| program.name == PEEK);
        let tracer = Self {
            session,
            processes,
            observer,
            peek,
            number: 0,
            are_32_bit: HashSet::new(),
            no_room: 0,
            functions: Functions::default(),
            upcalls: None,
            before: HashMap::new(),
            titles: HashMap::new(),
            missed: 0,
            missed_before: None,
        };
        tracer.put_templates()?;
        tracer.processes.enter(&tracer.session)?;
        tracer.put(
            WINDOW,
            &WindowValue {
                start: NEVER,
                stop: NEVER,
                ..WindowValue::default()
            },
        )?;
        Ok(tracer)
    }

    /// Attaches the first `own` programs of the module; the others are triggers, which attach by
    /// their kinds.
    pub(super) fn attach(&mut self, module: &Module, own: usize) -> Result<(), DelayError> {
        hooks::attach(&mut self.session, module, own)?;
        self.seed()
    }

    /// Returns the session, to attach triggers.
    pub(super) fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Returns the process, or the first one.
    pub fn pid(&self) -> u32 {
        self.processes.first()
    }

    /// Returns the requested processes and, if children are measured, the processes that they
    /// started. A process whose number was reused is left out.
    pub fn processes(&self) -> Result<Vec<u32>, DelayError> {
        Ok(self.processes.members(&self.session)?)
    }

    /// Removes exited processes from the map: their numbers may be reused.
    pub(super) fn forget_gone(&self) -> Result<(), DelayError> {
        let ended = self.processes.ended(&self.session)?;
        Ok(self.processes.forget(&self.session, &ended)?)
    }

    pub(super) fn map(&self, name: &'static str) -> Result<NamedMap<'_>, DelayError> {
        Ok(NamedMap::find(&self.session, name)?)
    }

    /// Reads the value of a map of one element.
    pub(super) fn get<V: FromBytes>(&self, name: &'static str) -> Result<V, DelayError> {
        Ok(self.map(name)?.require(&ONLY_KEY)?)
    }

    /// Sets the value of a map of one element.
    pub(super) fn put(
        &self,
        name: &'static str,
        value: &(impl IntoBytes + Immutable),
    ) -> Result<(), DelayError> {
        Ok(self.map(name)?.put(ONLY_KEY, value)?)
    }

    /// Writes each CPU's template of new threads.
    fn put_templates(&self) -> Result<(), DelayError> {
        let (map, template) = (self.map(TEMPLATE)?, programs::new_thread());
        Ok((0..map.max_entries()).try_for_each(|cpu| map.put(cpu, &template))?)
    }

    /// Enters the existing threads; their first events will show their states. A thread that ends
    /// meanwhile may have had its last event before it was entered.
    fn seed(&mut self) -> Result<(), DelayError> {
        let map = self.map(THREADS)?;
        let mut no_room = 0;
        for &pid in &self.processes.pids {
            for tid in proc_thread::threads(pid) {
                let name = proc_thread::raw_name(pid, tid).unwrap_or_default();
                match map.insert(tid, &programs::found_thread(pid, &name)) {
                    Ok(true) if self.read(pid, tid).has_ended() => map.delete(&tid)?,
                    Ok(_) => {}
                    Err(_) => no_room += 1,
                }
            }
        }
        self.no_room = no_room;
        Ok(())
    }

    /// Prepares a window: clears the maps of the last window, and takes a snapshot of the
    /// threads.
    pub fn prepare(&mut self) -> Result<(), DelayError> {
        // After the last number the first one comes again; 0 is never a window's number.
        self.number = self.number.checked_add(1).unwrap_or(1);
        self.end_window()?;
        self.forget_gone()?;
        let processes = self.processes()?;
        let title = |&pid: &u32| Some((pid, host::proc::title(pid)?));
        self.titles = processes.iter().filter_map(title).collect();
        self.are_32_bit = processes
            .into_iter()
            .filter(|&pid| proc_thread::is_32_bit(pid))
            .collect();
        for name in [PREEMPTORS, INTERRUPTS, UPCALLS] {
            // Upcalls have a map only where they are counted.
            if self.session.map(name).is_some() {
                self.map(name)?.clear()?;
            }
        }
        let mut before = HashMap::new();
        for (tid, snapshot) in self.snapshots(0)? {
            let pid = snapshot.process();
            let mut thread = self.read(pid, tid);
            // Events show it for the others.
            if snapshot.is_unsure() {
                thread.look_if_frozen(pid, tid);
            }
            before.insert(tid, (snapshot, thread));
        }
        self.before = before;
        self.ask_cpus();
        Ok(())
    }

    /// Looks at the CPUs of runnable threads without an event: this shows those that do run, and
    /// the others wait. On a CPU without a timer's tick nothing else would show it.
    fn ask_cpus(&self) {
        let Some(peek) = self.peek else { return };
        let unsure = |(snapshot, thread): &&(Snapshot, ProcThread)| {
            snapshot.is_unsure() && thread.state == 'R'
        };
        let cpus: BTreeSet<u32> = self
            .before
            .values()
            .filter(unsure)
            .map(|(_, thread)| thread.cpu)
            .collect();
        for cpu in cpus {
            self.session.run_on(peek, cpu);
        }
    }

    /// Waits a little for the last steps of an exited process: its end is known before its last
    /// thread is switched off its CPU for good.
    pub fn wait_for_last(&self) -> Result<(), DelayError> {
        for _ in 0..MAX_END_POLLS {
            if self
                .snapshots(0)?
                .iter()
                .all(|(_, thread)| thread.is_dead())
            {
                break;
            }
            std::thread::sleep(END_POLL_INTERVAL);
        }
        Ok(())
    }

    /// Returns the losses since the start.
    pub fn lost(&self) -> Result<LossCounts, DelayError> {
        let counts: Counts = self.get(COUNTS)?;
        Ok(LossCounts {
            threads: self.no_room + counts.no_thread,
            preemptors: counts.no_preemptor,
            interrupts: counts.no_interrupt,
            events: counts.no_event,
            upcalls: counts.no_upcall,
            processes: counts.no_process,
            triggers: self.missed,
            skipped: self.session.misses(),
        })
    }
}

pub(super) fn fallback(before: ProcThread, after: ProcThread) -> ProcFallback {
    ProcFallback {
        state: before.state,
        // It is only used if there was no event of a call: then any moment will do in which it did
        // not run.
        call: before.call.or(after.call),
        is_frozen: before.is_frozen,
        user: after.user_ticks.saturating_sub(before.user_ticks),
        system: after.system_ticks.saturating_sub(before.system_ticks),
        ran: after.ran.saturating_sub(before.ran),
    }
}
