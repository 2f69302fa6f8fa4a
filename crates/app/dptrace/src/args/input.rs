//! Options that name a trace: a file, standard input, or the shared memory of an application.

use std::fs;
use std::io::{self, IsTerminal as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use capture_recorder::RequestSource;
use clap::Args;
use console::messages::note;
use console::{output, terminal};
use errors::usage;
use host::user_file;
use process_selector::ProcessSelector;
use text::printable::path as printable;
use trace_source::{
    LoadedTrace, NAME_BASE, PipedInput, Place, SHM, captures, describe_available, named, trace_of,
    traces,
};

use crate::args::objects::ObjectArgs;
use crate::args::process::{self, ProcessOptions};
use crate::args::requests::{Recording, RequestArgs};

/// Context of an error at standard input.
const READING_STDIN: &str = "reading standard input";

const APPLICATION: &str = "\
The application's process, by PID or name

Without -s, the trace is the file that the process has open; dptrace trace then follows it and \
records the application's objects.";

/// Source of the trace, as typed.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Input", mut_args(process::with_help(APPLICATION)))]
pub(crate) struct InputArgs {
    /// A trace file, or the output of spdk_trace -j
    ///
    /// A raw trace file of any SPDK version, JSON, or the folder of a capture; "-" is standard
    /// input. Default without -i, -s and -p: standard input if it is a pipe or a file, else the
    /// newest *_trace.* in /dev/shm.
    #[arg(
        short,
        long,
        value_name = "FILE",
        short_alias = 'f',
        conflicts_with_all = ["pid", "name", "requests"]
    )]
    pub(crate) input: Option<PathBuf>,

    /// The same as -i FILE; if there is no such file, a PID or process name, as with -p
    #[arg(value_name = "FILE", conflicts_with_all = ["input", "app", "pid", "name"])]
    file: Option<PathBuf>,

    /// Read the trace of this application (nvmf, ...)
    ///
    /// The application must be running, with its trace in /dev/shm. If several have this name,
    /// choose one with -p or --shm-id.
    #[arg(
        short = 's',
        long = "app",
        value_name = "APP",
        conflicts_with_all = ["input", "requests"]
    )]
    app: Option<String>,

    #[command(flatten)]
    process: ProcessOptions,

    #[command(flatten)]
    requests: RequestArgs,

    /// The application's shared memory id, if it was started with --shm-id
    #[arg(
        long,
        requires = "app",
        conflicts_with_all = ["pid", "name"],
        value_name = "ID"
    )]
    shm_id: Option<u32>,
}

/// Source of the trace, resolved.
pub(crate) struct Input {
    pub(crate) place: Place,
    /// Process that was named instead of a trace.
    pub(crate) process: Option<u32>,
    /// Recording that writes the trace, if it is one of requests at sockets.
    pub(crate) recording: Option<Recording>,
}

impl InputArgs {
    /// Resolves the options to a trace. With requests of sockets, starts to record it. `done` is
    /// the word for what the command does with several processes of a server.
    pub(crate) fn resolve(
        &self,
        command: &'static str,
        done: &'static str,
    ) -> anyhow::Result<Input> {
        let bare = self.bare_process().map(|word| ProcessSelector::new([word]));
        let selector = bare.unwrap_or_else(|| self.process.selector());
        let requests = self.requests.clone().or_found(&selector, command);
        let processes = if selector.is_empty() {
            None
        } else {
            Some(requests.processes(&selector, (command, done))?)
        };
        if requests.source() == RequestSource::Sockets {
            let processes = processes.ok_or_else(|| self.without_server())?;
            let (recording, source) = Recording::start(processes)?;
            return Ok(Input {
                place: Place::Recorded(source),
                process: None,
                recording: Some(recording),
            });
        }
        let pid = processes.map(|it| it.first());
        let (place, process) = match (pid, &self.app) {
            (Some(pid), None) => (Place::File(trace_of(pid)?), Some(pid)),
            _ => (self.place(pid)?, None),
        };
        Ok(Input {
            place,
            process,
            recording: None,
        })
    }

    /// Returns the error for requests of sockets without a process.
    fn without_server(&self) -> anyhow::Error {
        usage(match &self.file {
            Some(word) => format!(
                "--requests sockets needs a running server, and no process is called {}",
                printable(word)
            ),
            None => "--requests sockets needs a running server: give -p PID or -p NAME".to_owned(),
        })
    }

    /// Returns the file that the options name, if any, for completing names in it. Reads and
    /// reports nothing.
    pub(crate) fn file_named(&self) -> Option<PathBuf> {
        if let Some(path) = self.input.as_ref().or(self.file.as_ref()) {
            return Some(path.clone());
        }
        let pid = self.process.selector().if_clear();
        match (&self.app, pid) {
            (None, Some(pid)) => trace_of(pid).ok(),
            (app, _) => {
                let end = pid
                    .map(|pid| format!("pid{pid}"))
                    .or(self.shm_id.map(|id| id.to_string()));
                let name = format!(
                    "{}{NAME_BASE}{}",
                    app.as_deref().unwrap_or_default(),
                    end.unwrap_or_default()
                );
                let matches = |path: &PathBuf| {
                    app.is_none() || path.to_string_lossy().starts_with(&format!("{SHM}/{name}"))
                };
                traces().ok()?.into_iter().rfind(matches)
            }
        }
    }

    /// Returns the file argument if no file has that name, but a process has.
    fn bare_process(&self) -> Option<&str> {
        let word = self.file.as_ref()?.to_str()?;
        (word != "-"
            && !word.contains('/')
            && !Path::new(word).exists()
            && process_selector::is_there(word))
        .then_some(word)
    }

    /// Finds the trace, unless a process was named instead.
    fn place(&self, pid: Option<u32>) -> anyhow::Result<Place> {
        if let Some(path) = self.input.as_ref().or(self.file.as_ref()) {
            return if path.as_os_str() == "-" {
                Ok(Place::Piped(
                    PipedInput::begin(io::stdin()).context(READING_STDIN)?,
                ))
            } else {
                Ok(Place::File(named(path, &terminal::observer())))
            };
        }
        if let Some(app) = &self.app {
            let path = match (pid, self.shm_id) {
                (Some(pid), _) => format!("{SHM}/{app}{NAME_BASE}pid{pid}"),
                (None, Some(id)) => format!("{SHM}/{app}{NAME_BASE}{id}"),
                (None, None) => {
                    let there = describe_available()?;
                    return Err(usage(format!(
                        "-s needs the application's -p PID or --shm-id ID; {there}"
                    )));
                }
            };
            if !Path::new(&path).exists() {
                bail!("there is no {path}; {}", describe_available()?);
            }
            return Ok(Place::File(path.into()));
        }
        if is_piped() {
            let piped = PipedInput::begin(io::stdin()).context(READING_STDIN)?;
            if !piped.is_empty() {
                return Ok(Place::Piped(piped));
            }
        }
        let Some(newest) = traces()?.into_iter().next_back() else {
            bail!(
                "no trace file in {SHM}: give one with -i FILE, or pipe the output of spdk_trace \
                 -j into dptrace"
            );
        };
        note(&format!(
            "reading the newest trace file, {}",
            printable(&newest)
        ));
        Ok(Place::File(newest))
    }
}

/// Returns the error for a script that was given instead of a trace, by file or bundled name;
/// otherwise returns `error`.
pub(crate) fn explained(error: anyhow::Error, path: &Path) -> anyhow::Error {
    let is_file = path.exists();
    let start = user_file::start(path).unwrap_or_default();
    let is_script = path.extension().is_some_and(|it| it == "bt") || start.starts_with(b"#!");
    let is_bundled = path.to_str().is_some_and(bundled_scripts::is_bundled);
    let what = match () {
        () if is_file && is_script => "a script",
        () if !is_file && is_bundled => "a bundled script",
        () => return error,
    };
    let name = printable(path);
    usage(format!(
        "reading {name}: it is {what}, not a trace: use dptrace run {}",
        text::shell::word(path)
    ))
}

/// Loads a trace and measures its tick rate, as [`Place::load_measured`] does, and explains other
/// files that users pass by mistake.
pub(crate) fn load_measured(place: Place) -> anyhow::Result<LoadedTrace> {
    explaining(place, |place| place.load_measured(&terminal::observer()))
}

/// Loads a trace, as [`Place::load`] does, and explains other files that users pass by mistake.
pub(crate) fn load(place: Place, again: bool) -> anyhow::Result<LoadedTrace> {
    explaining(place, |place| place.load(again, &terminal::observer()))
}

fn explaining(
    place: Place,
    load: impl FnOnce(Place) -> anyhow::Result<LoadedTrace>,
) -> anyhow::Result<LoadedTrace> {
    let path = place.path().map(Path::to_owned);
    load(place).map_err(|error| match path {
        Some(path) => explained(error, &path),
        None => error,
    })
}

/// Returns true if standard input is a pipe, a socket or a file, rather than a terminal or
/// /dev/null.
fn is_piped() -> bool {
    if io::stdin().is_terminal() {
        return false;
    }
    let kind = match fs::metadata("/dev/stdin") {
        Ok(metadata) => metadata.file_type(),
        // Closed, as by `<&-`.
        Err(_) => return false,
    };
    kind.is_fifo() || kind.is_file() || kind.is_socket()
}

/// Returns an error if `-o` names an input, which it would destroy.
pub(crate) fn refuse_to_overwrite(
    place: &Place,
    objects: &ObjectArgs,
    output: Option<&Path>,
) -> anyhow::Result<()> {
    let trace = place.path().map(|path| ("the trace itself", path));
    let captured = place.path().map(captures::files).unwrap_or_default();
    let captured = captured.iter().map(|(what, path)| (*what, path.as_path()));
    output::refuse_inputs(
        output,
        trace
            .into_iter()
            .chain(captured)
            .chain(objects.sources().for_place(place).files()),
    )
}

/// Returns whether an argument that should be a capture is a process: any number, or the name of a
/// running process.
fn is_process(word: &str) -> bool {
    !std::path::Path::new(word).exists()
        && !word.contains('/')
        && (text::number::is_digits(word) || process_selector::is_there(word))
}

/// Returns the trace or capture that a user named, for commands that read no process. An error for
/// a process advises to capture it first.
pub(crate) fn capture_or_trace(path: &Path) -> anyhow::Result<PathBuf> {
    if let Some(process) = path.to_str().filter(|word| is_process(word)) {
        return Err(usage(format!(
            "{} is not a file or folder: {}",
            printable(path),
            captures::captured_first(process)
        )));
    }
    Ok(named(path, &terminal::observer()))
}
