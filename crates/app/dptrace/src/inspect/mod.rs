//! `dptrace inspect`: variables, structs and lists of a running process, read from its memory.

mod print;

use std::io::IsTerminal as _;
use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use bt_lang::Diagnostic;
use bt_lang::ast::Block;
use bt_lang::render::{Source, render};
use clap::Args;
use console::messages::note;
use console::{output, terminal};
use host::{Pid, Process, ProcessMemory, user_file};
use live_memory::{Cause, Evaluator, Fault, LimitedMemory, Limits, MAX_ELEMENTS, Mentions, Shape};
use live_objects::struct_layouts::{self, StructLayouts};
use objects::layouts::SpdkVersion;
use process_selector::{ProcessCount, Role};
use symbolize::{DebugFolders, ProcessVariables};
use text::printable;
use typeinfo::TypeStore;

use crate::args::process::{self, ProcessOptions};
use crate::exit::{DONE, FAILED, NOT_PERMITTED, USAGE};
use print::Printer;

/// `dptrace inspect`, as typed.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
#[command(mut_args(process::required))]
pub(crate) struct InspectArgs {
    /// Expressions, or statements with ; between them, in the language of scripts
    #[arg(value_name = "EXPR", required = true)]
    expressions: Vec<String>,

    #[command(flatten)]
    process: ProcessOptions,

    /// Also search this directory for debug files
    ///
    /// For programs and libraries whose debug information is in separate files.
    #[arg(long = "debuginfo", value_name = "DIR")]
    debug_dirs: Vec<PathBuf>,

    /// Read struct definitions in C from this file: for a program without debug information
    #[arg(long = "types", value_name = "FILE")]
    definitions: Vec<PathBuf>,

    /// Use built-in structs of this version of SPDK
    ///
    /// Such as 24.09, for a program without debug information. Default: the version that fits most
    /// of the objects in the process's memory, or else the one stated in the program's file.
    #[arg(long, value_name = "VERSION")]
    layout: Option<SpdkVersion>,

    /// Follow at most this many elements of each list
    #[arg(long, value_name = "COUNT", default_value_t = MAX_ELEMENTS)]
    max_elements: usize,

    /// Print structs within structs to this depth
    #[arg(
        long,
        value_name = "LEVELS",
        default_value_t = 4,
        help_heading = "Output"
    )]
    depth: usize,

    /// Print at most this many elements of a list
    ///
    /// Applies to each array and each list.
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 100,
        help_heading = "Output"
    )]
    elements: usize,

    /// Print at most this many bytes of a text
    ///
    /// Applies to each text and each buffer.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 256,
        help_heading = "Output"
    )]
    text: usize,

    /// Print one JSON object on each line
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    /// Report which files the types come from, and how much of the process's memory was read
    #[arg(short, long, help_heading = "Output")]
    verbose: bool,
}

const EXAMPLES: &str = "\
The process is neither stopped nor changed. Types and static variables come from its debug \
information (from a build with -g or a debug symbol package), and for SPDK's main structs also \
from built-in layouts. Quote expressions for the shell.

Examples:
  dptrace inspect -p PID g_config                       a variable or struct
  dptrace inspect -p PID 'g_config.name' 'g_count + 1'  members, arithmetic
  dptrace inspect -p PID '((struct conn *)0x55d0c8a0)->state'
  dptrace inspect -p PID '((struct spdk_nvmf_qpair *)0x55d0c8a0)->qid'
  dptrace inspect -p PID '*uaddr(\"conn.c:g_state\")'     one of several statics
  dptrace inspect -p PID 'for ($c : list(g_conns, link)) { print($c->id) }'
  dptrace inspect -p PID --json 'list(g_conns, link)'   pointers to all elements";

const ROLE: Role = Role {
    command: "inspect",
    takes: ProcessCount::One,
    starts: false,
};

fn note_sources(variables: &ProcessVariables) {
    for (file, has_types) in variables.sources() {
        note(&format!(
            "{} {file}",
            if has_types {
                "types are read from"
            } else {
                "there are no types in"
            }
        ));
    }
}

/// Runs the command; returns the exit status. An error in one expression does not stop the others.
pub(crate) fn run(args: &InspectArgs) -> anyhow::Result<u8> {
    let parsed: Vec<Option<Block>> = args.expressions.iter().map(|text| parse(text)).collect();
    if parsed.iter().any(Option::is_none) {
        return Ok(USAGE);
    }
    let definitions = args
        .definitions
        .iter()
        .map(|file| ("the file of struct definitions", file.as_path()));
    output::refuse_inputs(args.output.as_deref(), definitions)?;
    let blocks: Vec<Block> = parsed.into_iter().flatten().collect();
    let mut mentions = Mentions::default();
    for block in &blocks {
        mentions.add(block);
    }

    // Memory comes first: it identifies the process, so that everything after it is from the same
    // one.
    let pid = Pid(args.process.selector().one(ROLE, &terminal::observer())?);
    let memory = ProcessMemory::open(pid)?;
    let process = Process::open(pid)?;
    process.is_first_thread()?;
    let memory = LimitedMemory::new(memory, Limits::default());
    let variables = ProcessVariables::for_process(&process, DebugFolders(args.debug_dirs.clone()));
    let mut types = variables.types(&mentions);
    define(&mut types, args)?;
    let layout = struct_layouts::add(
        &mut types,
        &mentions,
        args.layout,
        (pid.0, &args.debug_dirs),
    )?;
    if let Some(source) = &layout.source {
        note(&format!("structs are read by {source}"));
    }
    if args.verbose {
        note_sources(&variables);
    }
    let globals = variables.globals();
    let evaluator = Evaluator::new(&memory, types, &globals).with_max_elements(args.max_elements);
    let shape = Shape {
        depth: args.depth,
        elements: args.elements,
        text: args.text,
    };
    let status = print_all(args, &blocks, (&evaluator, &layout), shape)?;
    if args.verbose {
        let spent = memory.spent();
        note(&format!(
            "read {} bytes of the process's memory in {} ranges",
            spent.bytes, spent.reads
        ));
    }
    Ok(status)
}

/// Prints each expression's output and error; returns the exit status.
fn print_all(
    args: &InspectArgs,
    blocks: &[Block],
    (evaluator, layout): (&Evaluator<'_>, &StructLayouts),
    shape: Shape,
) -> anyhow::Result<u8> {
    let mut status = DONE;
    let mut printer = Printer::open(shape, args.json, args.output.as_deref())?;
    for (text, block) in args.expressions.iter().zip(blocks) {
        printer.begin(text, block);
        let result = live_memory::run(evaluator, block, &mut printer);
        printer.flush()?;
        for remark in evaluator.take_remarks() {
            note(&remark);
            status = status.max(FAILED);
        }
        let Err(error) = result.map_err(|error| layout.explain(error)) else {
            continue;
        };
        report(text, &error.diagnostic());
        status = status.max(match &error.fault {
            Fault::Unreadable { source, .. } if source.cause == Cause::NotPermitted => {
                NOT_PERMITTED
            }
            Fault::Unreadable { .. } | Fault::Null { .. } => FAILED,
            _ => USAGE,
        });
        if error.is_final() {
            break;
        }
    }
    printer.finish(status == DONE)?;
    Ok(status)
}

fn parse(text: &str) -> Option<Block> {
    let (block, diagnostics) = bt_lang::parse_statements(text);
    for diagnostic in &diagnostics {
        report(text, diagnostic);
    }
    (!diagnostics.iter().any(Diagnostic::is_error)).then_some(block)
}

/// Prints the error of an expression on standard error.
fn report(text: &str, diagnostic: &Diagnostic) {
    report_in("expression", text, diagnostic);
}

fn report_in(name: &str, text: &str, diagnostic: &Diagnostic) {
    use std::io::Write as _;
    let shown = render(
        diagnostic,
        &Source::new(name, text),
        std::io::stderr().is_terminal(),
    );
    // If standard error is gone, nobody reads it.
    let _ = write!(anstream::stderr(), "{shown}");
}

/// Adds the types of the user's files.
fn define(types: &mut TypeStore<'_>, args: &InspectArgs) -> anyhow::Result<()> {
    for path in &args.definitions {
        let shown = printable::path(path);
        let bytes =
            user_file::read(path, user_file::SCRIPT).with_context(|| format!("reading {shown}"))?;
        let text =
            String::from_utf8(bytes).map_err(|_| errors::usage(format!("{shown} is not UTF-8")))?;
        if let Err(diagnostics) = live_memory::define_types(types, &text) {
            for diagnostic in &diagnostics {
                report_in(&shown, &text, diagnostic);
            }
            return Err(anyhow!(errors::UsageError(format!(
                "{shown} has definitions that can't be used"
            ))));
        }
    }
    Ok(())
}
