//! `dptrace run`: scripts in bpftrace's language.

mod attach;
mod bundled;
mod compiled;
mod events;
mod facts;
mod failures;
mod listing;
mod live;
mod lookups;
mod manual;
mod maps;
mod name_tables;
mod options;
mod process_id;
mod show;
mod source;

use std::fmt::Write as _;

use anyhow::Context as _;
use bpf_session::{Session, SessionError};
use bt_abi::Script;
use bt_lang::ast::Program;
use bt_runtime::{Decoder, Printer};
use sys::process::{HeldChild, PidFd};

use crate::failure::{USAGE, status, unsupported, usage};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::target::printable;
use events::Events;
use facts::{Facts, Subject};
use live::{Live, Setting};
use lookups::Machine;
use source::ScriptText;

pub(crate) use bundled::scripts;
pub(crate) use options::RunArgs;

/// Runs the command; gives the exit status that the script asked for.
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<u8> {
    let args = &args.understood();
    if args.list {
        return listing::list(args).map(|()| 0);
    }
    args.form()?;
    if args.helper_errors > 0 && args.no_warnings {
        return Err(usage("-k and --no-warnings contradict each other"));
    }
    let text = ScriptText::of(args)?;
    let mut program = compiled::parse(&text, args)?;
    if args.fmt {
        return print(args, &bt_lang::fmt::format(&program, &text.text));
    }
    if args.dump == Some(options::DumpName::Ast) {
        return print(args, &bt_lang::dump::dump(&program));
    }
    if args.follow_forks {
        check_follow_forks(args)?;
    }
    let (subject, held) = subject(args)?;
    let facts = Facts::new(subject, text.params.clone(), args);
    process_id::put_in(&mut program, facts.files.subject().pid())?;
    name_tables::put_in(&mut program, |name| facts.files.enumeration(name));
    let script = compile(&text, &program, &facts, args)?;
    if args.check {
        return Ok(0);
    }
    if let Some(path) = &args.emit_object {
        let bytes = script.module.to_object().build()?;
        std::fs::write(path, bytes).with_context(|| format!("writing {}", printable(path)))?;
        return Ok(0);
    }
    if let Some(what) = args.dump {
        return show::dump(&script, what, args).map(|()| 0);
    }
    match Session::load(&script.module, facts.features()) {
        // Where the kernel does not let what this script does wait for memory, it does without.
        Err(SessionError::Refused { .. }) if script.module.programs.iter().any(|program| program.sleepable) => {
            facts.stay_awake();
            let script = compile(&text, &program, &facts, args)?;
            let session = Session::load(&script.module, facts.features())?;
            execute(&script, session, &text, &facts, args, held)
        }
        loaded => execute(&script, loaded?, &text, &facts, args, held),
    }
}

/// The programs of the probes that are wanted.
fn compile(text: &ScriptText, program: &Program, facts: &Facts, args: &RunArgs) -> anyhow::Result<Script> {
    let compiled = compiled::compile(text, program, facts, args);
    // What the script asks for may be there: this user may not see it.
    let mut script = compiled.map_err(|error| match facts.kernel.tracepoints_refused() {
        Some(why) if status(&error) == USAGE => unsupported(why),
        _ => error,
    })?;
    if let Some(filter) = &args.probe_filter {
        attach::filter(&mut script, filter)?;
    }
    Ok(script)
}

/// Runs it.
fn execute(
    script: &Script,
    mut session: Session,
    text: &ScriptText,
    facts: &Facts,
    args: &RunArgs,
    held: Option<HeldChild>,
) -> anyhow::Result<u8> {
    if args.dry_run {
        attach::all(script, &mut session, args.verbose > 0)?;
        return Ok(0);
    }
    let folders = facts.files.debug_folders().clone();
    let machine = Machine::new(facts.kernel_symbols(), &script.config, attach::files(script), folders);
    let decoder = Decoder::new(&machine, &script.config.str_trunc_trailer);
    let printer = Printer::new(args.form()?);
    let events = Events { script, text, machine: &machine, decoder, printer, warnings: !args.no_warnings, exit: None };
    let output = Output::open(args.output.as_deref())?;
    if args.mode.is_some() {
        return manual::bench(script, &session, printer, output).map(|()| 0);
    }
    let pid = facts.files.subject().pid().filter(|_| held.is_none());
    let process = pid.map(|pid| PidFd::open(pid).with_context(|| format!("process {pid}"))).transpose()?;
    // Not before there is something to finish: what comes earlier ends the process at once.
    let interrupt = &Interrupt::catch()?;
    let setting = Setting { args, interrupt, held, child: None, process, pid };
    let (status, session) = Live::new(session, events, output, &setting).run(setting)?;
    if session.has_links() {
        sys::process::exit_leaving_rest(status, &session.slow_to_close());
    }
    Ok(status)
}

/// Forks are followed by the kernel's numbers of processes, which only its first PID namespace has.
fn check_follow_forks(args: &RunArgs) -> anyhow::Result<()> {
    if args.pid.is_none() && args.command.is_none() {
        return Err(usage("--follow-forks is about a process: say which with -p PID, or -c COMMAND"));
    }
    if host::system::in_first_pid_namespace() == Some(false) {
        return Err(unsupported(
            "--follow-forks needs the kernel's first PID namespace: run it outside of the container",
        ));
    }
    Ok(())
}

/// Whom the script is about, and the command of `-c`, which waits.
fn subject(args: &RunArgs) -> anyhow::Result<(Subject, Option<HeldChild>)> {
    match (&args.pid, &args.command) {
        (Some(pid), _) => Ok((Subject::process(pid)?, None)),
        (_, Some(command)) => Subject::command(command).map(|(subject, held)| (subject, Some(held))),
        (None, None) => Ok((Subject::All, None)),
    }
}

fn print(args: &RunArgs, text: &str) -> anyhow::Result<u8> {
    let mut output = Output::open(args.output.as_deref())?;
    output.buffer.extend(text.as_bytes());
    output.flush()?;
    Ok(0)
}

/// Lines of text.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn push(&mut self, line: impl std::fmt::Display) {
        // SANITY: writing to a string doesn't fail.
        let _ = writeln!(self.0, "{line}");
    }
}
