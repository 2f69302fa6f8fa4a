//! Possible values of options and words: from the machine, from the named trace, and our own.

use std::collections::BTreeMap;

use clap::{Arg, CommandFactory as _, FromArgMatches};
use grammar::complete::{Answer, Candidate, CursorContext, Names};
use host::{Pid, proc};
use spdk_trace::Tpoint;

use crate::args::input::InputArgs;
use crate::args::objects::ObjectArgs;
use crate::cli::Cli;

/// Returns the values of an option, or of a command's N-th word.
pub(super) fn value(place: &CursorContext<'_>, arg: &Arg, nth: usize) -> Answer {
    let of_word = |candidates: Vec<Candidate>| Answer {
        candidates,
        names: Names::Files,
        goes_on: false,
    };
    match (place.command.get_name(), arg.get_id().as_str()) {
        ("run", "words") if nth == 0 => of_word(scripts()),
        ("run", "words") => Answer::from_names(Names::Files),
        ("run", "format") => Answer::from_candidates(
            ["text", "json"]
                .map(|name| Candidate::new(name, ""))
                .to_vec(),
        ),
        ("scripts", "name") => Answer::from_candidates(scripts()),
        ("objects", "spec") => Answer::from_candidates(specs()),
        ("record" | "capture" | "watch" | "top" | "generate", "objects") => {
            let all = Candidate::new("all", "every built-in kind");
            of_word(specs().into_iter().chain([all]).collect())
        }
        ("list", "words") => list_words(place, nth),
        ("trace" | "latency", "file" | "input") => of_word(traces()),
        ("trace" | "latency", "app") => Answer::from_candidates(applications()),
        (_, "tpoint") => Answer::from_candidates(tracepoints(place)),
        (_, "by") => Answer::from_candidates(fields(place)),
        (_, "conditions") => condition(place),
        ("kernel-delay", "start_trigger" | "stop_trigger") => Answer {
            goes_on: true,
            ..triggers()
        },
        (_, "name") => Answer::from_candidates(process_names()),
        (_, "pid" | "process") => Answer::from_candidates(processes(&place.typed)),
        _ => by_value_name(place, arg),
    }
}

/// Derives the kind of value from its name in `--help`.
fn by_value_name(place: &CursorContext<'_>, arg: &Arg) -> Answer {
    if arg.is_last_set() && place.command.get_name() != "run" {
        return Answer::from_names(Names::Commands);
    }
    let name = arg
        .get_value_names()
        .and_then(<[_]>::first)
        .map_or("", |name| name.as_str());
    match name {
        "DIR" => Answer::from_names(Names::Directories),
        "PATH" if arg.get_id() == "cgroup" => Answer::from_names(Names::Directories),
        _ if name.starts_with("PID") => Answer::from_candidates(processes(&place.typed)),
        _ if name.starts_with("FILE") || name.starts_with("PATH") => {
            Answer::from_names(Names::Files)
        }
        _ => Answer::default(),
    }
}

/// Completes `list [PATH] [PATTERN]`: with -p or --tracepoints, the first word is a pattern.
fn list_words(place: &CursorContext<'_>, nth: usize) -> Answer {
    let is_said = place
        .before
        .iter()
        .any(|word| word.starts_with("-p") || word.starts_with("--pid") || word == "--tracepoints");
    if nth == 0 && !is_said {
        Answer::from_names(Names::Files)
    } else {
        Answer::default()
    }
}

fn scripts() -> Vec<Candidate> {
    bundled_scripts::names()
        .map(|(name, about)| Candidate::new(name, about))
        .collect()
}

fn specs() -> Vec<Candidate> {
    live_objects::spec_texts::spec_names()
        .map(|(name, about)| Candidate::new(name, about))
        .collect()
}

fn traces() -> Vec<Candidate> {
    let files = trace_source::traces().unwrap_or_default();
    // Newest first.
    files
        .iter()
        .rev()
        .filter_map(|path| Some(Candidate::new(path.to_str()?, "trace of an application")))
        .collect()
}

/// Returns the names of applications that have a trace in shared memory.
fn applications() -> Vec<Candidate> {
    let files = trace_source::traces().unwrap_or_default();
    let name = |path: &std::path::PathBuf| {
        Some(
            path.file_name()?
                .to_str()?
                .split_once(trace_source::NAME_BASE)?
                .0
                .to_owned(),
        )
    };
    files
        .iter()
        .filter_map(name)
        .map(|name| Candidate::new(name, ""))
        .collect()
}

/// Returns processes by number, each with its command line; by name if the typed text is no number.
fn processes(typed: &str) -> Vec<Candidate> {
    if !typed.bytes().all(|byte| byte.is_ascii_digit()) {
        return process_names();
    }
    let own = std::process::id();
    let pids = proc::processes()
        .into_iter()
        .filter(|&pid| pid != own && pid.to_string().starts_with(typed));
    let candidate = |pid| {
        let words = proc::command_line(Pid(pid));
        let (program, arguments) = words.split_first()?;
        // The path of a program, or the title that some programs write there.
        let is_title = program.contains(&b' ');
        let program = program
            .rsplit(|&byte| byte == b'/' && !is_title)
            .next()
            .filter(|name| !name.is_empty())?;
        let words = [
            &[program],
            arguments
                .iter()
                .map(Vec::as_slice)
                .collect::<Vec<_>>()
                .as_slice(),
        ]
        .concat();
        let line: Vec<u8> = words
            .join(&b' ')
            .into_iter()
            .map(|byte| if byte == b'\n' { b' ' } else { byte })
            .collect();
        Some(Candidate::new(
            pid.to_string(),
            String::from_utf8_lossy(&line).trim_end(),
        ))
    };
    // Kernel threads have no command line.
    pids.filter_map(candidate).collect()
}

/// Returns the names of processes, each with its numbers.
fn process_names() -> Vec<Candidate> {
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let own = std::process::id();
    for pid in proc::processes().into_iter().filter(|&pid| pid != own) {
        let is_program = proc::command_line(Pid(pid))
            .iter()
            .any(|word| !word.is_empty());
        let name = proc::name(&proc::folder(Pid(pid)))
            .filter(|_| is_program)
            .map(String::from_utf8);
        if let Some(Ok(name)) = name {
            names.entry(name).or_default().push(pid.to_string());
        }
    }
    names
        .into_iter()
        .map(|(name, pids)| Candidate::new(name, pids.join(", ")))
        .collect()
}

fn triggers() -> Answer {
    let kinds = [
        ("u:", "USDT probe: u:PROVIDER:PROBE"),
        ("t:", "tracepoint: t:SYSTEM:EVENT"),
        ("k:", "kernel function is called"),
        ("kr:", "kernel function returns"),
        ("up:", "function of the process is called"),
        ("ur:", "function of the process returns"),
    ];
    Answer::from_candidates(
        kinds
            .map(|(kind, about)| Candidate::new(kind, about))
            .to_vec(),
    )
}

/// Completes a condition: a field, an operator and a value; only values of tracepoints are known.
fn condition(place: &CursorContext<'_>) -> Answer {
    let Some(at) = place.typed.find(['=', '!', '<', '>']) else {
        return Answer {
            goes_on: true,
            ..Answer::from_candidates(fields(place))
        };
    };
    let (field, rest) = place.typed.split_at(at);
    if field != "tpoint" || !matches!(rest.as_bytes(), [b'=', ..] | [b'!', b'=', ..]) {
        return Answer::default();
    }
    let operator = if rest.starts_with('!') { "!=" } else { "=" };
    let whole = |it: Candidate| Candidate {
        value: format!("{field}{operator}{}", it.value),
        ..it
    };
    Answer::from_candidates(tracepoints(place).into_iter().map(whole).collect())
}

/// Returns the fields that records of the trace have.
fn fields(place: &CursorContext<'_>) -> Vec<Candidate> {
    let specs = parsed::<ObjectArgs>(place).and_then(|objects| objects.sources().specs().ok());
    let mut fields: Vec<Candidate> = records::known(&specs.unwrap_or_default())
        .into_iter()
        .map(|(name, about)| Candidate::new(name, about))
        .collect();
    for tpoint in tpoints(place) {
        let arguments = tpoint
            .args
            .iter()
            .map(|arg| Candidate::new(format!("arg.{}", arg.name), "argument of records"));
        fields.extend(arguments);
    }
    fields
}

fn tracepoints(place: &CursorContext<'_>) -> Vec<Candidate> {
    let arguments = |tpoint: &Tpoint| {
        tpoint
            .args
            .iter()
            .map(|arg| arg.name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    tpoints(place)
        .into_iter()
        .map(|tpoint| Candidate::new(tpoint.name.as_str(), arguments(&tpoint)))
        .collect()
}

/// Returns the tracepoints of the trace named by the earlier words, or of the newest trace.
fn tpoints(place: &CursorContext<'_>) -> Vec<Tpoint> {
    let file = parsed::<InputArgs>(place).and_then(|input| input.file_named());
    file.and_then(|path| trace_source::tpoints_of(&path))
        .unwrap_or_default()
}

/// Parses a group of the options of `trace` or `latency` from the earlier words.
fn parsed<T: FromArgMatches>(place: &CursorContext<'_>) -> Option<T> {
    let words = std::iter::once("dptrace").chain(place.before.iter().map(String::as_str));
    let matches = Cli::command()
        .ignore_errors(true)
        .try_get_matches_from(words)
        .ok()?;
    let (name, matches) = matches.subcommand()?;
    matches!(name, "trace" | "latency").then(|| T::from_arg_matches(matches).ok())?
}
