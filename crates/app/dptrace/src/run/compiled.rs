//! Compiles a script's text to programs, and reports on it.

use std::sync::Arc;

use bt_abi::{Attach, ScriptProbe};
use bt_engine::{
    Builder, Diagnostic, Diagnostics, Error, Notice, Observer, ParsedScript, Script, Target,
};
use bundled_scripts::BundledScript;
use console::interrupt;
use console::messages::{is_bpftrace_compat, note};
use errors::{ReportedMistakes, forbidden, unsupported, usage};
use process_selector::find_program;

use super::options::RunArgs;
use super::source::ScriptText;
use super::untraced::UntracedChildren;
use crate::run::engine_error::engine_error;

/// Largest possible number of processes: `PID_MAX_LIMIT` of `linux/threads.h`.
const MAX_PIDS: u32 = 4 << 20;
/// Prefix of environment variables that are settings.
const SETTING: &str = "BPFTRACE_";

/// Reports what the engine does.
struct EngineReporter {
    verbose: bool,
    remarks: bool,
}

impl Observer for EngineReporter {
    fn notice(&self, notice: &Notice) {
        let is_shown = match notice {
            Notice::Attached { .. } | Notice::Ended { .. } => self.verbose,
            Notice::NotLoaded { .. } => self.remarks,
            _ => true,
        };
        if is_shown {
            note(&notice.to_string());
        }
    }

    fn step(&self) {
        interrupt::step();
    }
}

/// Returns the builder of a script, without its target.
pub(super) fn builder(text: &str, params: &[String], args: &RunArgs) -> Builder {
    let mut builder = Script::builder(text)
        .params(params)
        .allow_unsafe(args.r#unsafe)
        .report_reads(args.helper_errors > 0)
        .follow_forks(args.follow_forks)
        // bpftrace's -c limits user probes only.
        .command_limits_user_probes(is_bpftrace_compat())
        .ordered(!args.no_order)
        .observer(Arc::new(EngineReporter {
            verbose: args.verbose > 0,
            remarks: args.reports_remarks(),
        }));
    for folder in &args.debug_dirs {
        builder = builder.debug_folder(folder);
    }
    if let Some(file) = &args.traceable_functions {
        builder = builder.traceable_functions(file);
    }
    let ours = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    for (name, value) in ours {
        if let Some(name) = name.strip_prefix(SETTING) {
            builder = builder.setting(name.to_ascii_lowercase(), value);
        }
    }
    if args.stacks.is_some() {
        builder = builder.setting("stack_mode", "folded");
    }
    builder
}

/// Returns the processes whose events count: those of `-p`, the command of `-c`, or all.
pub(super) fn target(args: &RunArgs) -> anyhow::Result<Target> {
    match (&args.pid, &args.command) {
        _ if !args.pids.is_empty() => Ok(Target::Pids(args.pids.clone())),
        (Some(pid), _) => process(pid),
        (_, Some(command)) => {
            // Words are separated by blanks; there is no shell.
            let mut words = command.split(' ').filter(|word| !word.is_empty());
            let program = words
                .next()
                .ok_or_else(|| usage("-c: the command is empty"))?;
            if !is_bpftrace_compat() {
                find_program(program.as_ref())?;
            }
            Ok(Target::command(program, words))
        }
        (None, None) => Ok(Target::All),
    }
}

fn process(pid: &str) -> anyhow::Result<Target> {
    let digits = pid.bytes().take_while(u8::is_ascii_digit).count();
    let what = if digits == 0 {
        "invalid integer"
    } else {
        "invalid trailing bytes"
    };
    if digits < pid.len() || digits == 0 {
        return Err(usage(format!("failed to parse pid: {what}: {pid}")));
    }
    let number = pid.parse().ok().filter(|number| *number <= MAX_PIDS);
    number.map(Target::Pid).ok_or_else(|| {
        if is_bpftrace_compat() {
            usage(format!("pid out of range: {pid}"))
        } else {
            anyhow::anyhow!("no process has the pid {pid}")
        }
    })
}

/// Parses the script; reports all mistakes.
pub(super) fn parse(text: &ScriptText, args: &RunArgs) -> anyhow::Result<ParsedScript> {
    // A bundled script has probes for all cases, most of which do not occur.
    let marks_hits = args.reports_remarks() && !args.quiet && text.bundled.is_none();
    match builder(&text.text, &text.params, args)
        .mark_hits(marks_hits)
        .parse()
    {
        Ok(parsed) => {
            warn(text, parsed.warnings(), args);
            Ok(parsed)
        }
        Err(Error::Script(mistakes)) => Err(refused(text, mistakes.as_slice(), args)),
        Err(error) => Err(engine_error(error)),
    }
}

/// Compiles the wanted probes, and finds the processes whose children are not traced; reports all
/// mistakes.
pub(super) fn compile(
    text: &ScriptText,
    parsed: ParsedScript,
    args: &RunArgs,
) -> anyhow::Result<(Script, Option<UntracedChildren>)> {
    let asks_for_target = parsed.asks_for_target();
    let mut script = match parsed.target(target(args)?).compile() {
        Ok(script) => script,
        Err(Error::Script(mistakes)) => return Err(not_compiled(text, &mistakes, args)),
        Err(error) => return Err(engine_error(error)),
    };
    match text.bundled {
        Some(bundled) => {
            warn_of_bundled(bundled, text, &script, args)?;
            if !asks_for_target {
                warn_of_whole_machine(bundled, &script, args);
            }
        }
        None => warn(text, script.warnings(), args),
    }
    let untraced = if asks_for_target || is_limited(&script) {
        UntracedChildren::report(args)
    } else {
        None
    };
    if let Some(filter) = &args.probe_filter {
        let regex = regex_lite::Regex::new(filter)
            .map_err(|error| usage(format!("--probe-filter: {error}")))?;
        script.retain_probes(move |name| regex.is_match(name));
    }
    Ok((script, untraced))
}

/// Reports why a script does not compile. A bundled script has no mistakes: something that it needs
/// is missing here. So the report has only the first missing thing and the script's requirements,
/// without its text and the errors that follow from the first.
fn not_compiled(text: &ScriptText, mistakes: &Diagnostics, args: &RunArgs) -> anyhow::Error {
    // The thing may exist, but this user may not see it.
    let forbidden_here = mistakes
        .tracepoints_refused()
        .map(|why| (why, forbidden(why)));
    let forbidden_here =
        forbidden_here.or_else(|| mistakes.file_refused().map(|why| (why, unreadable(why))));
    if let Some(bundled) = text.bundled {
        let first = mistakes.as_slice().iter().find(|it| it.is_error());
        let cannot =
            |error: anyhow::Error| error.context(format!("{} can't run here", bundled.name));
        if let Some((_, error)) = forbidden_here {
            return cannot(error);
        }
        let why = first.map_or("", |first| &first.message);
        return if text.params.is_empty() {
            missing_here(bundled, why)
        } else {
            let hints = first.into_iter().flat_map(|first| &first.hints);
            let mut hints = hints.filter(|hint| !hint.contains("BPFTRACE_MISSING_PROBES"));
            wrong_arguments(bundled, why, hints.next().map(String::as_str))
        };
    }
    let Some((why, error)) = forbidden_here else {
        return refused(text, mistakes.as_slice(), args);
    };
    // This is no mistake, and the error states it.
    let others: Vec<Diagnostic> = mistakes
        .as_slice()
        .iter()
        .filter(|it| !it.message.contains(why))
        .cloned()
        .collect();
    warn(text, &others, args);
    error
}

/// Returns the error for a file that the script names and the user may not read: it is opened with
/// the user's own rights, not the program's.
pub(super) fn unreadable(why: &str) -> anyhow::Error {
    unsupported(format!(
        "{why}: run dptrace as root, or as a user who may read the file"
    ))
}

/// Returns the error for a bundled script with arguments: either they are wrong or something is
/// missing, so it states both.
fn wrong_arguments(bundled: BundledScript, why: &str, hint: Option<&str>) -> anyhow::Error {
    let (name, takes) = (bundled.name, bundled.arguments());
    let more = match hint {
        Some(hint) if hint.ends_with('?') => hint.to_owned(),
        Some(hint) => format!("{hint}; it takes {takes} (dptrace run {name} --help)"),
        None => format!(
            "it takes {takes} (dptrace run {name} --help) and needs {}",
            bundled.needs()
        ),
    };
    usage(format!(
        "{name} can't run with these arguments: {why}; {more}"
    ))
}

fn missing_here(bundled: BundledScript, why: &str) -> anyhow::Error {
    unsupported(format!(
        "{} can't run here: {why}. It needs {}",
        bundled.name,
        bundled.needs()
    ))
}

/// Prints the warnings for a bundled script. They are about missing probes: versions differ in
/// them.
fn warn_of_bundled(
    bundled: BundledScript,
    text: &ScriptText,
    script: &Script,
    args: &RunArgs,
) -> anyhow::Result<()> {
    let missing = script.warnings().len();
    let is_there = |probe: &ScriptProbe| {
        !matches!(
            probe.attach,
            Attach::Begin | Attach::End | Attach::Interval { .. }
        )
    };
    if missing > 0 && !script.compiled().probes.iter().any(is_there) {
        return Err(missing_here(bundled, "none of its probes is there"));
    }
    if args.verbose > 0 {
        warn(text, script.warnings(), args);
    } else if missing > 0 && !args.no_warnings {
        let (are, them) = if missing == 1 {
            ("of its probes is", "it")
        } else {
            ("of its probes are", "them")
        };
        note(&format!(
            "{}: {missing} {are} missing here; other versions have {them} (-v names {them})",
            bundled.name
        ));
    }
    Ok(())
}

/// Prints a note if a bundled script is about something that belongs to no process, such as the
/// requests to a disk, but a process was named.
fn warn_of_whole_machine(bundled: BundledScript, script: &Script, args: &RunArgs) {
    let (option, is_asked_for) = match (&args.pid, &args.command) {
        (Some(_), _) => ("-p", true),
        (None, command) => ("-c", command.is_some()),
    };
    if is_asked_for && !is_limited(script) && !args.no_warnings && !is_bpftrace_compat() {
        note(&format!(
            "{} covers the whole machine, even with {option}",
            bundled.name
        ));
    }
}

/// Returns whether at least some of its probes see only the named processes.
fn is_limited(script: &Script) -> bool {
    let is_of_process = |probe: &ScriptProbe| matches!(probe.attach, Attach::Uprobe { .. });
    script.compiled().config.filter_pid || script.compiled().probes.iter().any(is_of_process)
}

/// Prints diagnostics: errors, and warnings if they are wanted.
fn warn(text: &ScriptText, diagnostics: &[Diagnostic], args: &RunArgs) {
    let shown = diagnostics
        .iter()
        .filter(|it| it.is_error() || !args.no_warnings);
    shown.for_each(|diagnostic| text.print(diagnostic));
}

/// Prints diagnostics with errors among them; returns the error that ends the program.
fn refused(text: &ScriptText, diagnostics: &[Diagnostic], args: &RunArgs) -> anyhow::Error {
    warn(text, diagnostics, args);
    ReportedMistakes.into()
}
