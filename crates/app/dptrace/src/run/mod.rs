//! `dptrace run`: scripts in bpftrace's language.

mod asked;
pub(crate) mod compat;
mod compiled;
pub(crate) mod engine_error;
mod events;
mod failures;
mod listing;
mod live;
mod options;
mod params;
mod show;
mod signals;
mod source;
mod stacks;
mod untraced;

use std::fmt::Write as _;
use std::time::Duration;

use bt_engine::{Benchmark, ParsedScript, Session, TestResult};
use bt_lang::ast::{Item, ItemKind};
use bt_lang::inputs::ScriptInputs;
use bt_runtime::Printer;
use console::interrupt::Interrupt;
use console::messages::{is_bpftrace_compat, note};
use console::output::{self, Output};
use errors::{unsupported, usage};
use whole_file::{Access, WholeFile};

use engine_error::engine_error;
use events::EventPrinter;
use live::RunningScript;
use source::ScriptText;
use stacks::StackCollector;
use untraced::UntracedChildren;

pub(crate) use crate::bundled::{ScriptsArgs, scripts};
pub(crate) use options::RunArgs;

/// Width of a script's help that goes to a pipe or file, in columns.
const HELP_WIDTH: usize = 80;
/// Least duration of a benchmark.
const BENCHMARK_TIME: Duration = Duration::from_millis(1);

/// Runs the command; returns the exit status that the script requested.
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<u8> {
    let args = &args.resolved()?;
    if args.list {
        return listing::list(args).map(|()| 0);
    }
    args.form()?;
    if args.helper_errors > 0 && args.no_warnings {
        return Err(usage("-k and --no-warnings contradict each other"));
    }
    let text = ScriptText::read(args)?;
    let parsed = compiled::parse(&text, args)?;
    let inputs = ScriptInputs::from_program(parsed.syntax_tree());
    // Under bpftrace's name, an error lists them instead.
    if params::is_help_asked(&inputs, &text.params) && !is_bpftrace_compat() {
        let help = params::help(&inputs, &text);
        let screen = output::screen(args.output.as_deref());
        let width = screen.width().unwrap_or(HELP_WIDTH);
        let help = screen::wrap_message(&screen::join_paragraphs(&help), 0, width);
        return print(args, &help);
    }
    if args.fmt {
        // The output may be the script itself: all of it has been read.
        return print(
            args,
            &bt_lang::fmt::format(parsed.syntax_tree(), &text.text),
        );
    }
    for output in [&args.output, &args.emit_object] {
        output::refuse_inputs(output.as_deref(), args.files())?;
    }
    if args.dump == Some(options::DumpName::Ast) {
        return print(args, &bt_lang::dump::dump(parsed.syntax_tree()));
    }
    check(&text, &parsed)?;
    if !args.no_warnings && !is_bpftrace_compat() {
        for remark in params::remarks(&inputs, &text) {
            note(&remark);
        }
    }
    check_processes(args)?;
    let (script, untraced) = compiled::compile(&text, parsed, args)?;
    if args.check {
        return Ok(0);
    }
    if let Some(path) = &args.emit_object {
        let bytes = script.compiled().module.to_object().build()?;
        WholeFile::write_whole(path, Access::Umask, &bytes)?;
        return Ok(0);
    }
    if let Some(what) = args.dump {
        return show::dump(script.compiled(), what, args).map(|()| 0);
    }
    execute(script.load().map_err(engine_error)?, untraced, &text, args)
}

/// Runs the script.
fn execute(
    mut session: Session,
    untraced: Option<UntracedChildren>,
    text: &ScriptText,
    args: &RunArgs,
) -> anyhow::Result<u8> {
    if args.dry_run {
        session.attach_only().map_err(engine_error)?;
        return Ok(0);
    }
    let printer = Printer::new(args.form()?);
    let output = Output::open(args.output.as_deref())?;
    let shown = EventPrinter {
        text,
        printer,
        warnings: !args.no_warnings,
        stacks: args
            .stacks
            .as_ref()
            .map(|file| StackCollector::create(file, &text.name))
            .transpose()?,
    };
    match args.mode.as_deref() {
        Some("test") => return test(session, &shown, output),
        Some(_) => return benchmark(&session, printer, output).map(|()| 0),
        None => {}
    }
    // Not before there is something to finish: an earlier signal ends the process at once.
    let interrupt = &Interrupt::catch()?;
    let (status, session) = RunningScript {
        session,
        untraced,
        shown,
        output,
        interrupt,
        args,
    }
    .run()?;
    if session.has_links() {
        sys::process::exit_leaving_rest(status, &session.slow_to_close());
    }
    Ok(status)
}

/// Runs `test:` probes. The status is 1 if one failed; a script without any is a mistake.
fn test(mut session: Session, shown: &EventPrinter<'_>, mut output: Output) -> anyhow::Result<u8> {
    let printer = shown.printer;
    let results = session.test().map_err(engine_error)?;
    if results.is_empty() {
        return Err(usage("the script has no test: probe to run"));
    }
    output
        .buffer
        .extend(printer.tests_head(results.len()).as_bytes());
    let mut failed = Vec::new();
    let count = results.len();
    for TestResult {
        name,
        passed,
        nanos,
        events,
        ..
    } in results
    {
        // Its output is part of its result.
        let mut text = Output::discarded();
        for event in events {
            shown.show(event, &mut text)?;
        }
        let text = String::from_utf8_lossy(&text.buffer);
        output
            .buffer
            .extend(printer.test(&name, passed, nanos, &text).as_bytes());
        output.drain()?;
        if !passed {
            failed.push(name);
        }
    }
    output
        .buffer
        .extend(printer.tests_end(count, &failed).as_bytes());
    output.finish()?;
    Ok(u8::from(!failed.is_empty()))
}

/// Times `bench:` probes.
fn benchmark(session: &Session, printer: Printer, mut output: Output) -> anyhow::Result<()> {
    output.buffer.extend(printer.benchmark_head().as_bytes());
    for Benchmark {
        name,
        average,
        runs,
        ..
    } in session.benchmark(BENCHMARK_TIME).map_err(engine_error)?
    {
        output
            .buffer
            .extend(printer.benchmark(&name, average, runs).as_bytes());
    }
    Ok(output.finish()?)
}

/// Checks that the script has a probe, unless it runs as bpftrace, whose tests define another
/// message.
fn check(text: &ScriptText, parsed: &ParsedScript) -> anyhow::Result<()> {
    let is_probe = |item: &Item| matches!(item.kind, ItemKind::Probe(_));
    if is_bpftrace_compat() || parsed.syntax_tree().items.iter().any(is_probe) {
        return Ok(());
    }
    Err(usage(format!(
        "{} has no probe: a script consists of probes with actions, as in: begin {{ \
         print(\"hello\"); }}",
        text.name
    )))
}

/// Checks that forks can be followed: that takes the kernel's process numbers, which only its first
/// PID namespace has.
fn check_processes(args: &RunArgs) -> anyhow::Result<()> {
    let option = if args.children {
        "--children"
    } else {
        "--follow-forks"
    };
    if !args.follow_forks {
        return Ok(());
    }
    if args.pid.is_none() && args.command.is_none() {
        return Err(usage(format!(
            "{option} needs a process: give -p PID or -c COMMAND"
        )));
    }
    if host::system::in_first_pid_namespace() == Some(false) {
        let need = "needs the kernel's first PID namespace: run it outside of the container";
        return Err(unsupported(format!("{option} {need}")));
    }
    Ok(())
}

fn print(args: &RunArgs, text: &str) -> anyhow::Result<u8> {
    let mut output = Output::whole(args.output.as_deref(), Access::Umask)?;
    output.buffer.extend(text.as_bytes());
    output.finish()?;
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
