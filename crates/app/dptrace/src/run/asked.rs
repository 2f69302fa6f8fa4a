//! Errors of the command line that are found before a process is looked up and a script is
//! compiled.

use std::path::Path;

use bundled_scripts::{BundledScript, find};
use console::messages::is_bpftrace_compat;
use errors::usage;
use text::shell;

use super::options::{DumpName, RunArgs};
use super::source;

/// Returns an error if the script does not exist, or if it is a bundled one that can't run with
/// these words.
pub(super) fn check(args: &RunArgs) -> anyhow::Result<()> {
    let Some((script, params)) = args.words.split_first() else {
        return Ok(());
    };
    if !args.programs.is_empty() || args.list || is_bpftrace_compat() || script == "-" {
        return Ok(());
    }
    let path = Path::new(script);
    match (path.metadata(), find(script)) {
        (Ok(_), _) => Ok(()),
        (Err(_), Some(bundled)) => check_bundled(bundled, params, args),
        (Err(error), None) => Err(usage(source::no_script(path, &error))),
    }
}

fn check_bundled(bundled: BundledScript, params: &[String], args: &RunArgs) -> anyhow::Result<()> {
    let is_help = params.iter().any(|param| param == "--help");
    if is_help || args.fmt || args.dump == Some(DumpName::Ast) {
        return Ok(());
    }
    let given = params.iter().map(String::as_str);
    let given: Vec<&str> = given.filter(|param| !param.starts_with("--")).collect();
    if let Some(mistake) = bundled.mistake_in(&given) {
        return Err(usage(mistake));
    }
    let has_process = args.pid.is_some() || args.command.is_some();
    if has_process || !bundled.needs_process() {
        return Ok(());
    }
    let words: Vec<_> = args
        .words
        .iter()
        .map(|word| shell::word(word.as_str()))
        .collect();
    let (name, words, process) = (bundled.name, words.join(" "), bundled.example_process());
    Err(usage(format!(
        "{name} needs a process: dptrace run {words} -p {process}"
    )))
}
