//! The programs of triggers, and what they are attached to.

use std::path::PathBuf;

use bpf_program::{BtfTarget, Module, ProgramDef, ProgramKind};
use bpf_session::{Session, SessionError, UprobePlace, Uprobes};
use host::PerfSource;
use sched_programs::SchedError;

use super::facts::Facts;
use crate::error::DelayError;
use crate::names::{call_number, calls_near};
use crate::programs::{TriggerKind, TriggerUse, Turn, trigger};
use crate::trigger::Trigger;

/// Places in files of the process.
pub type UserPlaces = Vec<(PathBuf, Vec<UprobePlace>)>;

/// A trigger, and where in the process it is.
#[derive(Debug)]
pub struct PlacedTrigger<'a> {
    /// The trigger.
    pub trigger: &'a Trigger,
    /// What it does.
    pub to: TriggerUse,
    /// Its places, where it is a probe or a function of the process.
    pub places: UserPlaces,
}

/// What a trigger's program is attached to.
enum Place {
    /// Places of files of the process.
    User(UserPlaces),
    /// What the program was loaded for.
    Loaded,
    /// A tracepoint of a module.
    Named,
    /// A kernel function.
    Kernel,
}

/// A trigger with its program.
pub(super) struct Prepared<'a> {
    pub(super) trigger: &'a Trigger,
    place: Place,
    /// The program's index in the module.
    program: usize,
    /// For whom it fires.
    pub(super) whose: &'static str,
    to: TriggerUse,
    /// Whether it is at the end of a system call.
    at_exit: bool,
}

impl<'a> Prepared<'a> {
    /// Adds a trigger's program to the module.
    pub(super) fn add(
        pid: u32,
        placed: PlacedTrigger<'a>,
        facts: &Facts,
        turn: Turn,
        module: &mut Module,
    ) -> Result<Self, DelayError> {
        let own = TriggerKind::Process(pid);
        let PlacedTrigger { trigger: wanted, to, places } = placed;
        let (kind, program_kind, target, place) = match wanted {
            Trigger::Usdt { .. } => (own, ProgramKind::Uprobe, None, Place::User(places)),
            Trigger::User { on_return, .. } => {
                let kind = if *on_return { ProgramKind::UprobeReturn } else { ProgramKind::Uprobe };
                (own, kind, None, Place::User(places))
            }
            Trigger::Tracepoint { system, event } => {
                let (kind, name) = tracepoint(pid, system, event, facts)?;
                match facts.programs.tracepoints.get(name) {
                    Some(&btf_id) => {
                        let target = BtfTarget { name: name.to_owned(), btf_id };
                        (kind, ProgramKind::BtfTracepoint, Some(target), Place::Loaded)
                    }
                    None => (kind, ProgramKind::RawTracepoint, None, Place::Named),
                }
            }
            Trigger::Kernel { function, on_return } => {
                let (kind, target, place) = kernel(function, *on_return, facts);
                (TriggerKind::Anyone, kind, target, place)
            }
        };
        let name = if to == TriggerUse::Stop { STOP_PROGRAM } else { START_PROGRAM };
        let code = trigger(kind, to, turn)?;
        let program = module.programs.len();
        module.programs.push(ProgramDef { target, ..ProgramDef::new(name, program_kind, code) });
        let whose = if kind == TriggerKind::Anyone { "any process" } else { "this process" };
        let at_exit = matches!(kind, TriggerKind::Call { in_registers: Some(_), .. });
        Ok(Self { trigger: wanted, place, program, whose, to, at_exit })
    }

    /// Whether it comes before the programs that account: so that a call whose begin starts a window, or whose end stops
    /// it, lies in the window.
    pub(super) fn comes_first(&self) -> bool {
        match self.to {
            TriggerUse::Start => true,
            TriggerUse::Stop => false,
            TriggerUse::Both => !self.at_exit,
        }
    }

    /// Attaches it.
    pub(super) fn attach(&self, session: &mut Session, pid: u32) -> Result<(), SessionError> {
        match &self.place {
            Place::Loaded => session.attach_loaded_target(self.program, &self.trigger.to_string())?,
            Place::User(files) => {
                for (path, places) in files {
                    session.attach_uprobes(self.program, &Uprobes { path, places, pid: Some(pid) })?;
                }
            }
            Place::Named => {
                if let Trigger::Tracepoint { event, .. } = self.trigger {
                    session.attach_raw_tracepoint(self.program, event)?;
                }
            }
            Place::Kernel => {
                if let Trigger::Kernel { function, .. } = self.trigger {
                    session.attach_kprobe(self.program, function, 0)?;
                }
            }
        }
        Ok(())
    }
}

/// For whom a tracepoint is a trigger, and the tracepoint that it is made of.
fn tracepoint<'t>(pid: u32, system: &str, event: &'t str, facts: &Facts) -> Result<(TriggerKind, &'t str), DelayError> {
    if system != "syscalls" {
        return Ok((TriggerKind::Anyone, event));
    }
    let (entry, call) = match (event.strip_prefix("sys_enter_"), event.strip_prefix("sys_exit_")) {
        (Some(call), _) => (true, call),
        (_, Some(call)) => (false, call),
        _ => return Err(DelayError::NoCallEvent { event: event.to_owned() }),
    };
    let number =
        call_number(call).ok_or_else(|| DelayError::NoCall { name: call.to_owned(), near: calls_near(call) })?;
    let in_registers = (!entry).then_some(facts.registers.call_number);
    let kind = TriggerKind::Call { tgid: pid, number, in_registers };
    Ok((kind, if entry { "sys_enter" } else { "sys_exit" }))
}

/// A kernel function: a kprobe, or where the kernel has none, what it can attach to functions by its BTF.
fn kernel(function: &str, on_return: bool, facts: &Facts) -> (ProgramKind, Option<BtfTarget>, Place) {
    if facts.has_kprobes {
        let kind = if on_return { ProgramKind::KprobeReturn } else { ProgramKind::Kprobe };
        return (kind, None, Place::Kernel);
    }
    let btf_id = facts.functions.get(function).copied().unwrap_or_default();
    let kind = if on_return { ProgramKind::Fexit } else { ProgramKind::Fentry };
    (kind, Some(BtfTarget { name: function.to_owned(), btf_id }), Place::Loaded)
}
/// What each of our programs needs and this kernel lacks is what the command needs; and a kernel function as a trigger needs
/// what this kernel may not have. Says so of an error that comes of that, and leaves others as they are.
pub(super) fn explain(error: DelayError, triggers: &[&Trigger]) -> DelayError {
    let error = match error {
        DelayError::Programs(SchedError::Session(SessionError::TooOld { what, since, program }))
            if !is_trigger(&program) =>
        {
            return SessionError::TooOld { what, since, program: "kernel-delay".to_owned() }.into();
        }
        DelayError::Programs(SchedError::Session(error)) => error,
        error => return error,
    };
    let is_kernels = |trigger: &&&Trigger| matches!(trigger, Trigger::Kernel { .. });
    match triggers.iter().find(is_kernels) {
        Some(&trigger) if PerfSource::find("kprobe").is_none() && is_of(&error, trigger) => {
            DelayError::NoKprobes { trigger: trigger.clone() }
        }
        _ => error.into(),
    }
}

/// Whether an error came of a trigger's program: where that was loaded, or attached.
fn is_of(error: &SessionError, trigger: &Trigger) -> bool {
    match error {
        SessionError::Locked { program, .. } | SessionError::Refused { program, .. } => is_trigger(program),
        SessionError::Attach { what, .. } => *what == trigger.to_string(),
        _ => false,
    }
}

/// The names of triggers' programs.
const START_PROGRAM: &str = "start_trigger";
const STOP_PROGRAM: &str = "stop_trigger";

fn is_trigger(program: &str) -> bool {
    [START_PROGRAM, STOP_PROGRAM].contains(&program)
}
