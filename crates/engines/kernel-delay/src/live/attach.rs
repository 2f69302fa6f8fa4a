//! All programs, loaded and attached in their order.

use bpf_session::{Features, Scope, Session, SessionError};
use observer::Observer;
use sched_programs::SchedError;
use sys::process::make_room_for_files;
use uapi::perf::Counter;

use super::triggers::{self, PlacedTrigger, Prepared};
use super::{Facts, Tracer, upcall_counter};
use crate::error::DelayError;
use crate::layout;
use crate::names::poll_numbers;
use crate::programs::{self, Absences, EventOptions, FAULT_TRACEPOINT, Processes, Setting, Turn};
use crate::trigger::Trigger;

/// What to attach, and to whom.
pub struct AttachOptions<'a> {
    /// The processes; there is at least one.
    pub pids: Vec<u32>,
    /// Whether the processes that they start are accounted for, too.
    pub children: bool,
    /// How many threads there is room for.
    pub max_threads: u32,
    /// Whether and which system calls are sent as events.
    pub events: Option<EventOptions>,
    /// What starts and stops windows, where that is not the clock. Two programs at one place would start and stop at the
    /// same hit: a trigger that does both is one, with [`TriggerUse::Both`](programs::TriggerUse::Both).
    pub triggers: Vec<PlacedTrigger<'a>>,
    /// Whether the upcalls of the kernel's Open vSwitch are counted, where it is loaded.
    pub count_upcalls: bool,
    /// Which absences are counted, if any.
    pub absences: Option<Absences>,
    /// Whether page faults have times of their own: each page fault of anybody on the machine is slower meanwhile.
    pub page_faults: bool,
    /// Learns of each step of what can take long, by any thread: who waits for an end knows by that that it comes.
    pub observer: Observer,
}

/// The programs, attached.
pub struct Attached<'a> {
    /// What makes windows with them.
    pub tracer: Tracer,
    /// Each trigger, and for whom it fires.
    pub triggers: Vec<(&'a Trigger, &'static str)>,
    /// Why upcalls are not counted, though they should be.
    pub uncounted_upcalls: Option<SessionError>,
    /// Reason for which page faults have no times of their own, though they should: then these are times of the threads' own code.
    pub unseen_faults: Option<SessionError>,
}

/// Makes the programs, of triggers too, and attaches them all.
pub fn attach<'a>(facts: &Facts, options: AttachOptions<'a>) -> Result<Attached<'a>, DelayError> {
    let named: Vec<&Trigger> = options.triggers.iter().map(|placed| placed.trigger).collect();
    attach_all(facts, options).map_err(|error| triggers::explain(error, &named))
}

fn attach_all<'a>(facts: &Facts, options: AttachOptions<'a>) -> Result<Attached<'a>, DelayError> {
    let AttachOptions { pids, children, max_threads, events, triggers, count_upcalls, absences, page_faults, observer } =
        options;
    // Triggers are for one process, which is the first one.
    let pid = pids.first().copied().unwrap_or_default();
    let several = pids.len() > 1 || children;
    let processes = if several { Processes::Several { children } } else { Processes::One(pid) };
    let features = Features::detect()?;
    let exchange = features.exchange;
    let cpus = host::cpus::possible().map_err(SchedError::map(layout::TEMPLATE))?;
    let cpus = u32::try_from(cpus).unwrap_or(u32::MAX);
    let setting = Setting {
        processes,
        task: facts.programs.task,
        registers: facts.registers,
        polls: poll_numbers(),
        threads: max_threads,
        cpus,
        events,
        absences,
        exchange,
    };
    let tracepoints = &facts.programs.tracepoints;
    let mut module = programs::module(&setting, tracepoints)?;
    let own = module.programs.len();
    let turn = if exchange { Turn::Exchange } else { Turn::Key };
    if turn == Turn::Key && !triggers.is_empty() {
        module.maps.push(layout::turns());
    }
    let prepare = |placed| Prepared::add(pid, placed, facts, turn, &mut module);
    let prepared: Vec<Prepared<'a>> = triggers.into_iter().map(prepare).collect::<Result<_, _>>()?;
    let upcalls = if count_upcalls { upcall_counter::add(facts, &mut module)? } else { None };
    module.programs.push(programs::peek(&setting)?);
    let mut faults = Vec::new();
    if page_faults {
        for (program, counters) in programs::page_faults(&setting, tracepoints.get(FAULT_TRACEPOINT).copied())? {
            faults.push((module.programs.len(), counters));
            module.programs.push(program);
        }
    }
    let mut tracer = Tracer::load(pids, several, &module, features.for_process(Some(pid)), observer)?;
    // At one place the kernel runs programs in the order in which they were attached.
    let (first, last): (Vec<_>, Vec<_>) = prepared.iter().partition(|prepared| prepared.comes_first());
    for prepared in first {
        prepared.attach(tracer.session(), pid)?;
    }
    tracer.attach(&module, own)?;
    for prepared in last {
        prepared.attach(tracer.session(), pid)?;
    }
    let upcalls = upcalls.map(|upcalls| upcalls.attach(tracer.session())).transpose();
    tracer.upcalls = upcalls.as_ref().ok().copied().flatten();
    let triggers = prepared.iter().map(|prepared| (prepared.trigger, prepared.whose)).collect();
    let unseen_faults = attach_counted(tracer.session(), &faults).err();
    Ok(Attached { tracer, triggers, uncounted_upcalls: upcalls.err(), unseen_faults })
}

/// Attaches each program to what the kernel counts, on each CPU, or to its tracepoint. The first ones are attached first: of page
/// faults these are the ends, since a begin whose end is not seen would never end.
fn attach_counted(session: &mut Session, programs: &[(usize, &[Counter])]) -> Result<(), SessionError> {
    let cpus = host::cpus::online();
    let events = programs.iter().map(|(_, counters)| counters.len()).sum::<usize>() * cpus.len();
    let failed = |source| SessionError::Attach { what: "the events of page faults".to_owned(), source };
    // Each is an event and its link: on a machine with many CPUs that is more than a process may usually open.
    make_room_for_files(2 * events as u64).map_err(failed)?;
    for (program, counters) in programs {
        if counters.is_empty() {
            session.attach_loaded_target(*program, &format!("the tracepoint {FAULT_TRACEPOINT}"))?;
        }
        for &counter in *counters {
            for &cpu in &cpus {
                session.attach_user_counter(*program, counter, Scope::Cpu(cpu))?;
            }
        }
    }
    Ok(())
}
