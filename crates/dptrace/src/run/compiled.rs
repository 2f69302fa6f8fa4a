//! From a script's text to programs.

use bpf_codegen::script::Script;
use bt_lang::Diagnostic;
use bt_lang::ast::Program;

use super::facts::Facts;
use super::options::RunArgs;
use super::source::ScriptText;
use crate::failure::{unsupported, usage};

/// The syntax tree; all mistakes are told.
pub(super) fn parse(text: &ScriptText, args: &RunArgs) -> anyhow::Result<Program> {
    let options = bt_lang::Options { params: Some(&text.params) };
    let parsed = bt_lang::parse_with(&text.text, options);
    tell(text, &parsed.diagnostics, args)?;
    Ok(parsed.program)
}

/// The programs; all mistakes are told.
///
/// A bundled script has none: what it asks for is not here. Then the first thing that is missing is told, and what the
/// script needs, without its text and what follows from the first.
pub(super) fn compile(text: &ScriptText, program: &Program, facts: &Facts, args: &RunArgs) -> anyhow::Result<Script> {
    let compiled = bpf_codegen::script::compile(program, facts);
    let first = compiled.diagnostics.iter().find(|it| it.is_error());
    if let (Some(script), Some(first)) = (text.bundled, first) {
        let (name, needs) = (script.name, script.needs());
        return Err(unsupported(format!("{name} can't run here: {}. It needs {needs}", first.message)));
    }
    tell(text, &compiled.diagnostics, args)?;
    compiled.script.ok_or_else(|| anyhow::anyhow!("{} was not compiled, for no reason that was told", text.name))
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
