//! Loading and attaching of all programs, in their order.

use bpf_program::Module;
use bpf_session::{Features, Scope, Session, SessionError};
use observer::Observer;
use sched_programs::{ProcessSet, SchedError};
use sys::process::make_room_for_files;
use uapi::perf::Counter;

use super::triggers::{self, PlacedTrigger, PreparedTrigger};
use super::{Facts, Tracer, upcall_counter};
use crate::error::DelayError;
use crate::layout;
use crate::names::poll_numbers;
use crate::programs::{self, Absences, EventOptions, FAULT_TRACEPOINT, Setting, Turn};
use crate::trigger::Trigger;

/// Programs to attach, and their processes.
pub struct AttachOptions<'a> {
    /// Numbers of the processes; at least one.
    pub pids: Vec<u32>,
    /// True to account for the processes that they start, too.
    pub children: bool,
    /// Maximum number of threads.
    pub max_threads: u32,
    /// System calls to send as events, if any.
    pub events: Option<EventOptions>,
    /// Triggers that start and stop windows, instead of the clock. Two programs at one place would
    /// start and stop at the same hit: a trigger that does both is one, with
    /// [`TriggerUse::Both`](programs::TriggerUse::Both).
    pub triggers: Vec<PlacedTrigger<'a>>,
    /// True to count the upcalls of the kernel's Open vSwitch, if it is loaded.
    pub count_upcalls: bool,
    /// Absences to count, if any.
    pub absences: Option<Absences>,
    /// True to give page faults times of their own: this slows down each page fault on the machine.
    pub page_faults: bool,
    /// Observer of each step of long work, from any thread, so that a waiting user sees progress.
    pub observer: Observer,
}

impl AttachOptions<'_> {
    fn processes(&self) -> ProcessSet {
        ProcessSet {
            pids: self.pids.clone(),
            children: self.children,
        }
    }
}

/// Attached programs.
pub struct AttachedPrograms<'a> {
    /// Tracer that makes windows with them.
    pub tracer: Tracer,
    /// Each trigger, and the processes for which it fires.
    pub triggers: Vec<(&'a Trigger, &'static str)>,
    /// Reason that requested upcalls are not counted.
    pub uncounted_upcalls: Option<SessionError>,
    /// Reason that requested page faults have no times of their own; they then count as the
    /// threads' own code.
    pub unseen_faults: Option<SessionError>,
}

/// Makes the programs, of triggers too, and attaches them all.
pub fn attach<'a>(
    facts: &Facts,
    options: AttachOptions<'a>,
) -> Result<AttachedPrograms<'a>, DelayError> {
    let named: Vec<&Trigger> = options
        .triggers
        .iter()
        .map(|placed| placed.trigger)
        .collect();
    attach_all(facts, options).map_err(|error| triggers::explain(error, &named))
}

/// Describes the programs that are to be made.
fn setting(
    facts: &Facts,
    options: &AttachOptions<'_>,
    (processes, exchange): (&ProcessSet, bool),
) -> Result<Setting, DelayError> {
    let cpus = host::cpus::possible().map_err(SchedError::map(layout::TEMPLATE))?;
    Ok(Setting {
        processes: processes.known_by(),
        task: facts.programs.task,
        registers: facts.registers,
        polls: poll_numbers(),
        threads: options.max_threads,
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        events: options.events.clone(),
        absences: options.absences.clone(),
        exchange,
    })
}

/// Adds the programs of page faults to the module; returns their indices and counters.
fn add_page_faults(
    setting: &Setting,
    tracepoint: Option<u32>,
    module: &mut Module,
) -> Result<Vec<(usize, &'static [Counter])>, DelayError> {
    let mut faults = Vec::new();
    for (program, counters) in programs::page_faults(setting, tracepoint)? {
        faults.push((module.programs.len(), counters));
        module.programs.push(program);
    }
    Ok(faults)
}

/// Attaches triggers and our `own` programs of the module.
fn attach_in_order(
    tracer: &mut Tracer,
    module: &Module,
    own: usize,
    (prepared, pid): (&[PreparedTrigger<'_>], u32),
) -> Result<(), DelayError> {
    // At one place the kernel runs programs in the order in which they were attached.
    let (first, last): (Vec<_>, Vec<_>) =
        prepared.iter().partition(|prepared| prepared.comes_first());
    for prepared in first {
        prepared.attach(tracer.session(), pid)?;
    }
    tracer.attach(module, own)?;
    for prepared in last {
        prepared.attach(tracer.session(), pid)?;
    }
    Ok(())
}

fn attach_all<'a>(
    facts: &Facts,
    options: AttachOptions<'a>,
) -> Result<AttachedPrograms<'a>, DelayError> {
    let processes = options.processes();
    // Triggers are for one process, the first one.
    let pid = processes.first();
    let features = Features::detect()?;
    let setting = setting(facts, &options, (&processes, features.exchange))?;
    let tracepoints = &facts.programs.tracepoints;
    let mut module = programs::module(&setting, tracepoints)?;
    let own = module.programs.len();
    let turn = if setting.exchange {
        Turn::Exchange
    } else {
        Turn::Key
    };
    if turn == Turn::Key && !options.triggers.is_empty() {
        module.maps.push(layout::turns());
    }
    let prepare = |placed| PreparedTrigger::add(pid, placed, facts, turn, &mut module);
    let prepared: Vec<PreparedTrigger<'a>> = options
        .triggers
        .into_iter()
        .map(prepare)
        .collect::<Result<_, _>>()?;
    let upcalls = if options.count_upcalls {
        upcall_counter::add(facts, &mut module)?
    } else {
        None
    };
    module.programs.push(programs::peek(&setting)?);
    let faults = if options.page_faults {
        add_page_faults(
            &setting,
            tracepoints.get(FAULT_TRACEPOINT).copied(),
            &mut module,
        )?
    } else {
        Vec::new()
    };
    let mut tracer = Tracer::load(
        processes,
        &module,
        features.for_process(Some(pid)),
        options.observer,
    )?;
    attach_in_order(&mut tracer, &module, own, (&prepared, pid))?;
    let upcalls = upcalls
        .map(|upcalls| upcalls.attach(tracer.session()))
        .transpose();
    tracer.upcalls = upcalls.as_ref().ok().copied().flatten();
    let triggers = prepared
        .iter()
        .map(|prepared| (prepared.trigger, prepared.whose))
        .collect();
    let unseen_faults = attach_counted(tracer.session(), &faults).err();
    Ok(AttachedPrograms {
        tracer,
        triggers,
        uncounted_upcalls: upcalls.err(),
        unseen_faults,
    })
}

/// Attaches each program to its counters in the kernel, on each CPU, or to its tracepoint, in the
/// given order. For page faults the ends come first, since a start whose end is not seen would
/// never end.
fn attach_counted(
    session: &mut Session,
    programs: &[(usize, &[Counter])],
) -> Result<(), SessionError> {
    let cpus = host::cpus::online();
    let events = programs
        .iter()
        .map(|(_, counters)| counters.len())
        .sum::<usize>()
        * cpus.len();
    let failed = |source| SessionError::Attach {
        what: "the events of page faults".to_owned(),
        source,
    };
    // Each is an event and its link: on a machine with many CPUs that is more than a process may
    // usually open.
    make_room_for_files(2 * events as u64).map_err(failed)?;
    for (program, counters) in programs {
        if counters.is_empty() {
            session
                .attach_loaded_target(*program, &format!("the tracepoint {FAULT_TRACEPOINT}"))?;
        }
        for &counter in *counters {
            for &cpu in &cpus {
                session.attach_user_counter(*program, counter, Scope::Cpu(cpu))?;
            }
        }
    }
    Ok(())
}
