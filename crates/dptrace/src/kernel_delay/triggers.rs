//! The programs of triggers, and what they are attached to.

use std::path::PathBuf;

use bpf_codegen::delay::{TriggerKind, TriggerUse, trigger};
use bpf_codegen::{BtfTarget, Module, ProgramDef, ProgramKind};
use bpf_session::{Session, SessionError, UprobePlace, Uprobes};
use host::{ElfFile, PerfSource};
use kernel_delay::call_number;
use kernel_delay::trigger::Trigger;
use probes::pattern::nearest;
use probes::symbols::Functions;
use probes::usdt::UsdtProbes;
use probes::{Aim, Code};

use super::facts::Facts;
use super::subject::Subject;
use crate::failure::{unsupported, usage};
use crate::target::{Depth, printable};

/// What a trigger's program is attached to.
enum Place {
    /// Places of files of the process.
    User(Vec<(PathBuf, Vec<UprobePlace>)>),
    /// What the program was loaded for.
    Loaded,
    /// A tracepoint of a module.
    Named,
    /// A kernel function.
    Kernel,
}

/// A trigger with its program.
pub(super) struct Prepared {
    name: String,
    place: Place,
    /// The program's index in the module.
    program: usize,
    /// For whom it fires.
    pub(super) whose: &'static str,
    to: TriggerUse,
    /// Whether it is at the end of a system call.
    at_exit: bool,
}

/// What is needed to look for a trigger's place.
pub(super) struct Finder<'a> {
    pub(super) pid: u32,
    pub(super) subject: &'a Subject,
    pub(super) facts: &'a Facts,
}

impl Finder<'_> {
    /// Finds a trigger's place, and adds its program to the module.
    pub(super) fn add(&self, wanted: &Trigger, to: TriggerUse, module: &mut Module) -> anyhow::Result<Prepared> {
        let own = TriggerKind::Process(self.pid);
        let (kind, program_kind, target, place) = match wanted {
            Trigger::Usdt { provider, probe } => {
                (own, ProgramKind::Uprobe, None, Place::User(self.usdt(provider, probe)?))
            }
            Trigger::User { function, on_return } => {
                let kind = if *on_return { ProgramKind::UprobeReturn } else { ProgramKind::Uprobe };
                (own, kind, None, Place::User(self.function(function, *on_return)?))
            }
            Trigger::Tracepoint { system, event } => {
                let (kind, name) = self.tracepoint(system, event)?;
                match self.facts.tracepoints.get(name) {
                    Some(&btf_id) => {
                        let target = BtfTarget { name: name.to_owned(), btf_id };
                        (kind, ProgramKind::BtfTracepoint, Some(target), Place::Loaded)
                    }
                    None => (kind, ProgramKind::RawTracepoint, None, Place::Named),
                }
            }
            Trigger::Kernel { function, on_return } => {
                let (kind, target, place) = self.kernel(function, *on_return);
                (TriggerKind::Anyone, kind, target, place)
            }
        };
        let name = if to == TriggerUse::Stop { STOP_PROGRAM } else { START_PROGRAM };
        let code = trigger(kind, to)?;
        let program = module.programs.len();
        module.programs.push(ProgramDef {
            name: name.into(),
            kind: program_kind,
            target,
            sleepable: false,
            code,
            subprograms: Vec::new(),
        });
        let whose = if kind == TriggerKind::Anyone { "any process" } else { "this process" };
        let at_exit = matches!(kind, TriggerKind::Call { in_registers: Some(_), .. });
        Ok(Prepared { name: wanted.to_string(), place, program, whose, to, at_exit })
    }

    /// A probe's places in all files of the process that have it.
    fn usdt(&self, provider: &str, probe: &str) -> anyhow::Result<Vec<(PathBuf, Vec<UprobePlace>)>> {
        let (mut found, mut known, mut broken) = (Vec::new(), Vec::new(), None);
        self.subject.files()?.for_each(Depth::Notes, |file| {
            let probes = UsdtProbes::read_with(&file.image()?, &file.code()?);
            if let Some(first) = probes.faults.first() {
                broken.get_or_insert_with(|| format!("; {}: left out {first}", printable(file.path())));
            }
            let places = probes.get(provider, probe).map_or(&[][..], |probe| &probe.places);
            let place = |place: &probes::usdt::Place| UprobePlace {
                at: place.at,
                semaphore: place.semaphore.map(|semaphore| semaphore.offset.0),
                cookie: 0,
            };
            if !places.is_empty() {
                found.push((file.opened().to_owned(), places.iter().map(place).collect()));
            }
            known.extend(probes.probes.iter().map(|probe| format!("{}:{}", probe.provider, probe.name)));
            Ok(())
        })?;
        if found.is_empty() {
            let none = if known.is_empty() { "; it has no USDT probes at all" } else { "" };
            let wanted = format!("{provider}:{probe}");
            let (near, broken) = (hint(&wanted, &known), broken.unwrap_or_default());
            return Err(usage(format!("the process has no USDT probe {wanted}{none}{near}{broken}")));
        }
        Ok(found)
    }

    /// A function's places in the files of the process: the first file that has it.
    fn function(&self, name: &str, on_return: bool) -> anyhow::Result<Vec<(PathBuf, Vec<UprobePlace>)>> {
        let (mut found, mut known) = (Vec::new(), Vec::new());
        self.subject.files()?.for_each(Depth::Whole, |file: &ElfFile| {
            if !found.is_empty() {
                return Ok(());
            }
            let debug = file.debug_file();
            let debug = debug.as_ref().and_then(|debug| debug.image().ok());
            let image = file.image()?;
            let functions = Functions::read(&image, debug.as_ref());
            let code = Code::with_functions(&image, &image, &functions);
            let aim = if on_return { Aim::Return } else { Aim::Within(0) };
            let place = |function: &probes::symbols::Function<'_>| match code.function(function, aim) {
                Ok(at) => Ok(UprobePlace { at, semaphore: None, cookie: 0 }),
                Err(fault) => Err(usage(format!("the trigger {name}: {fault}"))),
            };
            let places: Vec<UprobePlace> = functions.named(name).map(place).collect::<anyhow::Result<_>>()?;
            if places.is_empty() {
                known.extend(functions.all().iter().map(|function| function.display_name().into_owned()));
            } else {
                found.push((file.opened().to_owned(), places));
            }
            Ok(())
        })?;
        if found.is_empty() {
            let none = if known.is_empty() { "; its files are stripped" } else { "" };
            return Err(usage(format!("the process has no function {name}{none}{}", hint(name, &known))));
        }
        Ok(found)
    }

    /// For whom a tracepoint is a trigger, and the tracepoint that it is made of.
    fn tracepoint<'t>(&self, system: &str, event: &'t str) -> anyhow::Result<(TriggerKind, &'t str)> {
        if system != "syscalls" {
            return Ok((TriggerKind::Anyone, event));
        }
        let (entry, call) = match (event.strip_prefix("sys_enter_"), event.strip_prefix("sys_exit_")) {
            (Some(call), _) => (true, call),
            (_, Some(call)) => (false, call),
            _ => return Err(usage(format!("no tracepoint is called syscalls:{event}: sys_enter_NAME, sys_exit_NAME"))),
        };
        let number = call_number(call).ok_or_else(|| usage(format!("no system call is called {call}")))?;
        let in_registers = (!entry).then_some(self.facts.task.call_number);
        let kind = TriggerKind::Call { tgid: self.pid, number, in_registers };
        Ok((kind, if entry { "sys_enter" } else { "sys_exit" }))
    }

    /// A kernel function: a kprobe, or where the kernel has none, what it can attach to functions by its BTF.
    fn kernel(&self, function: &str, on_return: bool) -> (ProgramKind, Option<BtfTarget>, Place) {
        if self.facts.has_kprobes {
            let kind = if on_return { ProgramKind::KprobeReturn } else { ProgramKind::Kprobe };
            return (kind, None, Place::Kernel);
        }
        let btf_id = self.facts.functions.get(function).copied().unwrap_or_default();
        let kind = if on_return { ProgramKind::Fexit } else { ProgramKind::Fentry };
        (kind, Some(BtfTarget { name: function.to_owned(), btf_id }), Place::Loaded)
    }
}

fn hint(wanted: &str, known: &[String]) -> String {
    let near = nearest(wanted, known.iter().map(String::as_str), 3);
    if near.is_empty() { String::new() } else { format!("; near: {}", near.join(", ")) }
}

/// What each of our programs needs and this kernel lacks is what the command needs; and a kernel function as a trigger needs
/// what this kernel may not have. Says so of an error that comes of that, and leaves others as they are.
pub(super) fn explain(error: anyhow::Error, triggers: &[&Trigger]) -> anyhow::Error {
    let error = match error.downcast::<SessionError>() {
        Ok(SessionError::TooOld { what, since, program }) if !is_trigger(&program) => {
            return SessionError::TooOld { what, since, program: "kernel-delay".to_owned() }.into();
        }
        Ok(error) => error,
        Err(error) => return error,
    };
    let is_kernels = |trigger: &&&Trigger| matches!(trigger, Trigger::Kernel { .. });
    match triggers.iter().find(is_kernels) {
        Some(trigger) if PerfSource::find("kprobe").is_none() && is_of(&error, trigger) => unsupported(format!(
            "the trigger {trigger} needs kprobes (CONFIG_KPROBES), which this kernel lacks, and it does not take fentry \
             either (CONFIG_FUNCTION_TRACER with CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS); a tracepoint (t:) or a probe \
             of the process (u:, up:) needs neither"
        )),
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

impl Prepared {
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
    pub(super) fn attach(&self, session: &mut Session, pid: u32, trigger: &Trigger) -> anyhow::Result<()> {
        match &self.place {
            Place::Loaded => session.attach_loaded_target(self.program, &self.name)?,
            Place::User(files) => {
                for (path, places) in files {
                    session.attach_uprobes(self.program, &Uprobes { path, places, pid: Some(pid) })?;
                }
            }
            Place::Named => {
                if let Trigger::Tracepoint { event, .. } = trigger {
                    session.attach_raw_tracepoint(self.program, event)?;
                }
            }
            Place::Kernel => {
                if let Trigger::Kernel { function, .. } = trigger {
                    session.attach_kprobe(self.program, function, 0)?;
                }
            }
        }
        Ok(())
    }
}
