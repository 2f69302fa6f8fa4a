//! `dptrace objects -p PID`: a table of the objects that are alive in a process.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::bail;
use clap::Args;
use console::messages::note;
use console::output::{self, Output};
use console::terminal;
use errors::usage;
use live_objects::rpc::Answers;
use live_objects::spec_texts::{self, SpecForm};
use live_objects::{Finder, Snapshot, read_files, table};
use objects::{ObjectSpec, built_in};
use process_selector::{ProcessCount, ProcessSelector, Role};
use screen::counted;
use whole_file::Access;

use crate::args::process::{self, ProcessOptions};

/// Heading of the options that need a process.
const PROCESS_HEADING: &str = "Objects of a process";

/// `dptrace objects`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
#[command(mut_args(process::with_help("Print the live objects of this process, by PID or name",)))]
pub(crate) struct ObjectsArgs {
    /// Only this spec (qpair, ...); with -p several, separated by commas
    #[arg(value_name = "NAME")]
    spec: Option<String>,

    /// List name and purpose only, one line for each spec
    #[arg(short, long, conflicts_with_all = ["pid", "name"])]
    list: bool,

    /// Print one JSON object on each line, for the list or, with -p, instead of tables
    #[arg(long)]
    json: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten, next_help_heading = PROCESS_HEADING)]
    process: ProcessOptions,

    /// A file of additional object specs; a spec with the name of a built-in one replaces it
    #[arg(
        long,
        value_name = "FILE.toml",
        requires = "ProcessOptions",
        help_heading = PROCESS_HEADING
    )]
    objects: Vec<PathBuf>,

    /// Also search this directory for debug files
    ///
    /// For programs and libraries whose debug information is in separate files.
    #[arg(
        long = "debuginfo",
        value_name = "DIR",
        requires = "ProcessOptions",
        help_heading = PROCESS_HEADING
    )]
    debug_dirs: Vec<PathBuf>,

    /// Also ask the application's JSON-RPC at this socket, such as /var/tmp/spdk.sock
    ///
    /// It adds details that memory does not show, such as addresses of hosts. To list connections,
    /// SPDK pauses the admin queues of each subsystem for a moment. Without this option, no RPC is
    /// sent.
    #[arg(
        long,
        value_name = "SOCKET",
        requires = "ProcessOptions",
        help_heading = PROCESS_HEADING
    )]
    rpc: Option<PathBuf>,

    /// Also report where struct layouts come from
    ///
    /// And which specs do not fit them, and how long reading took.
    #[arg(short, long, requires = "ProcessOptions", help_heading = PROCESS_HEADING)]
    verbose: bool,
}

impl ObjectsArgs {
    /// Returns the process, and the name of a spec. A word that is no spec, but a process, counts as
    /// the process.
    fn process(&self) -> (ProcessSelector, Option<&str>) {
        let is_spec = |name: &str| spec_texts::spec_names().any(|(known, _)| known == name);
        let (selector, name) = (self.process.selector(), self.spec.as_deref());
        match name {
            Some(word)
                if selector.is_empty()
                    && !self.list
                    && !is_spec(word)
                    && process_selector::is_there(word) =>
            {
                (ProcessSelector::new([word]), None)
            }
            name => (selector, name),
        }
    }
}

const USAGE: &str = "dptrace objects [NAME] [--list | --json]
       dptrace objects -p <PID|NAME> [NAME,...] [--json]";

const EXAMPLES: &str = "\
The objects of a process are read from its memory while it runs, without stopping it. This needs \
its debug information, its symbols, or its trace file; and CAP_SYS_PTRACE for other users' \
processes.

Examples:
  dptrace objects -p nvmf_tgt                    all live objects
  dptrace objects -p PID qpair,bdev              connections and bdevs
  dptrace objects -p PID qpair --json | jq .hostnqn
  dptrace objects --list                         names of the specs
  dptrace objects                                all specs
  dptrace objects qpair -o own.toml              for trace --objects own.toml";

const ROLE: Role = Role {
    command: "objects",
    takes: ProcessCount::One,
    starts: false,
};

fn note_layout(finder: &Finder) {
    note(&format!(
        "layout: {}",
        if finder.source().is_empty() {
            "not known"
        } else {
            finder.source()
        }
    ));
    finder
        .misfits()
        .iter()
        .for_each(|misfit| note(&format!("not found: {misfit}")));
}

/// Reads the objects, and reports how long that took if it is verbose.
fn read(finder: &Finder, is_verbose: bool) -> Snapshot {
    let begun = Instant::now();
    let snapshot = finder.read();
    if is_verbose {
        note(&format!(
            "{} read twice in {:.1} ms",
            counts(finder, &snapshot),
            begun.elapsed().as_secs_f64() * 1e3
        ));
    }
    snapshot
}

/// Runs the command.
pub(crate) fn run(args: &ObjectsArgs) -> anyhow::Result<()> {
    let path = args.output.as_deref();
    output::refuse_inputs(
        path,
        args.objects
            .iter()
            .map(|spec| ("the file of object specs", spec.as_path())),
    )?;
    let (selector, name) = args.process();
    if selector.is_empty() {
        let form = if args.json {
            SpecForm::Json
        } else if args.list {
            SpecForm::List
        } else {
            SpecForm::Whole
        };
        let text = spec_texts::specs(name, form)?;
        let mut output = Output::whole(path, Access::Umask)?;
        output.buffer = text.into_bytes();
        return Ok(output.finish()?);
    }
    let pid = selector.one(ROLE, &terminal::observer())?;
    let specs = specs(args, name)?;
    let finder = Finder::open(pid, &specs, &args.debug_dirs)?;
    if args.verbose {
        note_layout(&finder);
    }
    if finder.kinds().is_empty() {
        bail!("{}", nothing(pid, finder.misfits(), args.verbose));
    }
    let snapshot = read(&finder, args.verbose);
    let answers = args
        .rpc
        .as_deref()
        .map(|socket| Answers::ask(socket, finder.kinds(), &terminal::observer()))
        .transpose()?;
    let answers = answers.unwrap_or_default();
    let mut output = Output::whole(path, Access::Umask)?;
    if args.json {
        table::json(&finder, &snapshot, &answers, &mut output.buffer);
    } else {
        output.buffer.extend_from_slice(
            table::text(&finder, &snapshot, &answers, output::screen(path)).as_bytes(),
        );
    }
    output.finish()?;
    snapshot
        .left_out(finder.kinds())
        .iter()
        .for_each(|left_out| note(left_out));
    if snapshot.object_count() == 0 {
        note(&format!(
            "process {pid} has none of these objects: {}",
            counted(finder.kinds().len() as u64, "kind")
        ));
    }
    Ok(())
}

/// Formats the number of objects of each kind.
fn counts(finder: &Finder, snapshot: &Snapshot) -> String {
    let kinds = finder
        .kinds()
        .iter()
        .zip(&snapshot.found)
        .filter(|(_, found)| !found.objects.is_empty());
    let counts = kinds.map(|(kind, found)| counted(found.objects.len() as u64, &kind.spec.name));
    let counts: Vec<_> = counts.collect();
    if counts.is_empty() {
        "no objects".to_owned()
    } else {
        counts.join(", ")
    }
}

/// Returns the reason that nothing can be found.
pub(crate) fn nothing(pid: u32, misfits: &[String], verbose: bool) -> String {
    let first = misfits
        .first()
        .map_or(String::new(), |misfit| format!(": {misfit}"));
    let more = if verbose || misfits.len() < 2 {
        ""
    } else {
        " (-v lists the others)"
    };
    format!(
        "no objects can be found in the memory of process {pid}{first}{more}; finding them needs \
         its debug information, its symbols, or a trace file whose records point to live objects"
    )
}

/// Returns the requested specs: all, or those of these names.
fn specs(args: &ObjectsArgs, names: Option<&str>) -> anyhow::Result<Vec<ObjectSpec>> {
    let mut specs = read_files(args.objects.iter().map(PathBuf::as_path))?;
    for spec in built_in()? {
        if !specs.iter().any(|own| own.name == spec.name) {
            specs.push(spec);
        }
    }
    let Some(names) = names else { return Ok(specs) };
    for name in names.split(',') {
        match specs.iter().find(|spec| spec.name == name) {
            None => {
                let hint = text::patterns::hint(name, specs.iter().map(|spec| spec.name.as_str()));
                return Err(usage(format!(
                    "there is no object spec {name:?}; dptrace objects --list lists them{hint}"
                )));
            }
            Some(spec) if spec.alive.is_empty() => {
                return Err(usage(format!(
                    "the object spec {name:?} does not say where its objects are in memory"
                )));
            }
            Some(_) => {}
        }
    }
    specs.retain(|spec| names.split(',').any(|name| name == spec.name));
    Ok(specs)
}
