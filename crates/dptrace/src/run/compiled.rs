//! From a script's text to programs.

use bt_abi::{Attach, ScriptProbe};
use bt_compiler::{Compiled, Script};
use bt_lang::Diagnostic;
use bt_lang::ast::Program;

use super::bundled::Bundled;
use super::facts::Facts;
use super::options::RunArgs;
use super::source::ScriptText;
use crate::failure::{note, unsupported, usage};

/// The syntax tree; all mistakes are told.
pub(super) fn parse(text: &ScriptText, args: &RunArgs) -> anyhow::Result<Program> {
    let options = bt_lang::Options { params: Some(&text.params) };
    let parsed = bt_lang::parse_with(&text.text, options);
    tell(text, &parsed.diagnostics, args)?;
    Ok(parsed.program)
}

/// The programs; all mistakes are told.
pub(super) fn compile(text: &ScriptText, program: &Program, facts: &Facts, args: &RunArgs) -> anyhow::Result<Script> {
    let compiled = bt_compiler::compile(program, facts);
    match text.bundled {
        Some(script) => tell_of_bundled(script, text, &compiled, args)?,
        None => tell(text, &compiled.diagnostics, args)?,
    }
    compiled.script.ok_or_else(|| anyhow::anyhow!("{} was not compiled, for no reason that was told", text.name))
}

/// What must be said of a bundled script. It has no mistakes: what it asks for is not here. The first thing that is missing
/// is told, and what the script needs, without its text and what follows from the first.
fn tell_of_bundled(bundled: Bundled, text: &ScriptText, compiled: &Compiled, args: &RunArgs) -> anyhow::Result<()> {
    let (name, needs) = (bundled.name, bundled.needs());
    let fails = |why: &str| Err(unsupported(format!("{name} can't run here: {why}. It needs {needs}")));
    if let Some(first) = compiled.diagnostics.iter().find(|it| it.is_error()) {
        return fails(&first.message);
    }
    // Warnings are of probes that are not there: versions differ in them.
    let missing = compiled.diagnostics.len();
    let is_there = |probe: &ScriptProbe| !matches!(probe.attach, Attach::Begin | Attach::End | Attach::Interval { .. });
    if missing > 0 && !compiled.script.as_ref().is_some_and(|script| script.probes.iter().any(is_there)) {
        return fails("none of its probes is there");
    }
    if args.verbose > 0 {
        return tell(text, &compiled.diagnostics, args);
    }
    if missing > 0 && !args.no_warnings {
        let (are, them) = if missing == 1 { ("probe of it is", "it") } else { ("probes of it are", "them") };
        note(&format!("{name}: {missing} {are} not there, which other versions have (-v names {them})"));
    }
    Ok(())
}

/// Tells diagnostics, and fails if there is an error among them.
fn tell(text: &ScriptText, diagnostics: &[Diagnostic], args: &RunArgs) -> anyhow::Result<()> {
    let shown = diagnostics.iter().filter(|it| it.is_error() || !args.no_warnings);
    shown.for_each(|diagnostic| text.tell(diagnostic));
    match diagnostics.iter().filter(|it| it.is_error()).count() {
        0 => Ok(()),
        1 => Err(usage(format!("{} has a mistake", text.name))),
        count => Err(usage(format!("{} has {count} mistakes", text.name))),
    }
}
