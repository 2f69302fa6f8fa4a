//! Programs of triggers, and their places.

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

/// Trigger, with its places in the process.
#[derive(Debug)]
pub struct PlacedTrigger<'a> {
    /// Trigger to attach.
    pub trigger: &'a Trigger,
    /// Use of the trigger.
    pub to: TriggerUse,
    /// Places of a probe or a function of the process; otherwise empty.
    pub places: UserPlaces,
}

/// Place of a trigger's program.
enum TriggerTarget {
    /// Places in files of the process.
    User(UserPlaces),
    /// Target for which the program was loaded.
    Loaded,
    /// Tracepoint of a module.
    Named,
    /// Kernel function.
    Kernel,
}

/// Trigger with its program.
pub(super) struct PreparedTrigger<'a> {
    pub(super) trigger: &'a Trigger,
    place: TriggerTarget,
    /// Index of the program in the module.
    program: usize,
    /// Processes for which it fires.
    pub(super) whose: &'static str,
    to: TriggerUse,
    /// True if it is at the end of a system call.
    at_exit: bool,
}

/// Program of a trigger: its kind, and the place that it is for.
struct TriggerProgram {
    kind: TriggerKind,
    program: ProgramKind,
    target: Option<BtfTarget>,
    place: TriggerTarget,
}

impl TriggerProgram {
    /// Chooses the kind of program for a trigger; `places` are those in files of the process.
    fn new(
        pid: u32,
        wanted: &Trigger,
        places: UserPlaces,
        facts: &Facts,
    ) -> Result<Self, DelayError> {
        let own = TriggerKind::Process(pid);
        let (kind, program, target, place) = match wanted {
            Trigger::Usdt { .. } => (own, ProgramKind::Uprobe, None, TriggerTarget::User(places)),
            Trigger::User { on_return, .. } => {
                let kind = if *on_return {
                    ProgramKind::UprobeReturn
                } else {
                    ProgramKind::Uprobe
                };
                (own, kind, None, TriggerTarget::User(places))
            }
            Trigger::Tracepoint { system, event } => {
                let (kind, name) = tracepoint(pid, system, event, facts)?;
                match facts.programs.tracepoints.get(name) {
                    Some(&btf_id) => {
                        let target = BtfTarget {
                            name: name.to_owned(),
                            btf_id,
                        };
                        (
                            kind,
                            ProgramKind::BtfTracepoint,
                            Some(target),
                            TriggerTarget::Loaded,
                        )
                    }
                    None => (kind, ProgramKind::RawTracepoint, None, TriggerTarget::Named),
                }
            }
            Trigger::Kernel {
                function,
                on_return,
            } => {
                let (kind, target, place) = kernel(function, *on_return, facts);
                (TriggerKind::Anyone, kind, target, place)
            }
        };
        Ok(Self {
            kind,
            program,
            target,
            place,
        })
    }
}

impl<'a> PreparedTrigger<'a> {
    /// Adds a trigger's program to the module.
    pub(super) fn add(
        pid: u32,
        placed: PlacedTrigger<'a>,
        facts: &Facts,
        turn: Turn,
        module: &mut Module,
    ) -> Result<Self, DelayError> {
        let PlacedTrigger {
            trigger: wanted,
            to,
            places,
        } = placed;
        let TriggerProgram {
            kind,
            program: program_kind,
            target,
            place,
        } = TriggerProgram::new(pid, wanted, places, facts)?;
        let name = if to == TriggerUse::Stop {
            STOP_PROGRAM
        } else {
            START_PROGRAM
        };
        let code = trigger(kind, to, turn)?;
        let program = module.programs.len();
        module.programs.push(ProgramDef {
            target,
            ..ProgramDef::new(name, program_kind, code)
        });
        let whose = if kind == TriggerKind::Anyone {
            "any process"
        } else {
            "this process"
        };
        let at_exit = matches!(
            kind,
            TriggerKind::Call {
                in_registers: Some(_),
                ..
            }
        );
        Ok(Self {
            trigger: wanted,
            place,
            program,
            whose,
            to,
            at_exit,
        })
    }

    /// Returns whether it comes before the programs that account for time, so that a call whose
    /// start opens a window, or whose end closes it, lies in the window.
    pub(super) fn comes_first(&self) -> bool {
        match self.to {
            TriggerUse::Start => true,
            TriggerUse::Stop => false,
            TriggerUse::Both => !self.at_exit,
        }
    }

    /// Attaches the program.
    pub(super) fn attach(&self, session: &mut Session, pid: u32) -> Result<(), SessionError> {
        match &self.place {
            TriggerTarget::Loaded => {
                session.attach_loaded_target(self.program, &self.trigger.to_string())?;
            }
            TriggerTarget::User(files) => {
                for (path, places) in files {
                    session.attach_uprobes(
                        self.program,
                        &Uprobes {
                            path,
                            places,
                            pid: Some(pid),
                        },
                    )?;
                }
            }
            TriggerTarget::Named => {
                if let Trigger::Tracepoint { event, .. } = self.trigger {
                    session.attach_raw_tracepoint(self.program, event)?;
                }
            }
            TriggerTarget::Kernel => {
                if let Trigger::Kernel { function, .. } = self.trigger {
                    session.attach_kprobe(self.program, function, 0)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the condition under which a tracepoint fires as a trigger, and the tracepoint that it
/// uses.
fn tracepoint<'t>(
    pid: u32,
    system: &str,
    event: &'t str,
    facts: &Facts,
) -> Result<(TriggerKind, &'t str), DelayError> {
    if system != "syscalls" {
        return Ok((TriggerKind::Anyone, event));
    }
    let (entry, call) = match (
        event.strip_prefix("sys_enter_"),
        event.strip_prefix("sys_exit_"),
    ) {
        (Some(call), _) => (true, call),
        (_, Some(call)) => (false, call),
        _ => {
            return Err(DelayError::NoCallEvent {
                event: event.to_owned(),
            });
        }
    };
    let number = call_number(call).ok_or_else(|| DelayError::NoCall {
        name: call.to_owned(),
        near: calls_near(call),
    })?;
    let in_registers = (!entry).then_some(facts.registers.call_number);
    let kind = TriggerKind::Call {
        tgid: pid,
        number,
        in_registers,
    };
    Ok((kind, if entry { "sys_enter" } else { "sys_exit" }))
}

/// Returns the program's kind and place for a kernel function: a kprobe or, on a kernel without
/// kprobes, an attachment by BTF.
fn kernel(
    function: &str,
    on_return: bool,
    facts: &Facts,
) -> (ProgramKind, Option<BtfTarget>, TriggerTarget) {
    if facts.has_kprobes {
        let kind = if on_return {
            ProgramKind::KprobeReturn
        } else {
            ProgramKind::Kprobe
        };
        return (kind, None, TriggerTarget::Kernel);
    }
    let btf_id = facts.functions.get(function).copied().unwrap_or_default();
    let kind = if on_return {
        ProgramKind::Fexit
    } else {
        ProgramKind::Fentry
    };
    (
        kind,
        Some(BtfTarget {
            name: function.to_owned(),
            btf_id,
        }),
        TriggerTarget::Loaded,
    )
}
/// Explains an error that comes from a missing kernel feature, and leaves others as they are. A
/// feature that one of our own programs needs is attributed to the command; a trigger at a kernel
/// function may need kprobes, which this kernel may lack.
pub(super) fn explain(error: DelayError, triggers: &[&Trigger]) -> DelayError {
    let error = match error {
        DelayError::Programs(SchedError::Session(SessionError::TooOld {
            what,
            since,
            program,
        })) if !is_trigger(&program) => {
            return SessionError::TooOld {
                what,
                since,
                program: "kernel-delay".to_owned(),
            }
            .into();
        }
        DelayError::Programs(SchedError::Session(error)) => error,
        error => return error,
    };
    let is_kernels = |trigger: &&&Trigger| matches!(trigger, Trigger::Kernel { .. });
    match triggers.iter().find(is_kernels) {
        Some(&trigger) if PerfSource::find("kprobe").is_none() && is_of(&error, trigger) => {
            DelayError::NoKprobes {
                trigger: trigger.clone(),
            }
        }
        _ => error.into(),
    }
}

/// Returns whether an error came from loading or attaching a trigger's program.
fn is_of(error: &SessionError, trigger: &Trigger) -> bool {
    match error {
        SessionError::Locked { program, .. } | SessionError::Refused { program, .. } => {
            is_trigger(program)
        }
        SessionError::Attach { what, .. } => *what == trigger.to_string(),
        _ => false,
    }
}

/// Name of the program of a trigger that starts windows, or starts and stops them.
const START_PROGRAM: &str = "start_trigger";
/// Name of the program of a trigger that only stops windows.
const STOP_PROGRAM: &str = "stop_trigger";

fn is_trigger(program: &str) -> bool {
    [START_PROGRAM, STOP_PROGRAM].contains(&program)
}
