//! `dptrace scripts`, and the bundled script that a name means.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use bundled_scripts::{BundledScript, all, find, topics};
use clap::Args;
use console::output::Output;
use errors::usage;
use screen::wrap;
use serde_json::json;
use whole_file::Access;

/// Width limit of the list, in columns.
const LIST_WIDTH: usize = 80;

/// Returns whether the name means a bundled script that takes no arguments, rather than a file.
pub(super) fn takes_no_words(name: &str) -> bool {
    !Path::new(name).exists() && find(name).is_some_and(|script| !script.takes_arguments())
}

/// `dptrace scripts`, as typed.
#[derive(Args, Clone, Debug)]
pub(crate) struct ScriptsArgs {
    /// Print this script
    name: Option<String>,

    /// List the scripts with one JSON object on each line: name, arguments, topic, purpose, and what each needs
    #[arg(long, conflicts_with = "name")]
    json: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Lists the scripts, or prints one, for `dptrace scripts`.
pub(crate) fn scripts(args: &ScriptsArgs) -> anyhow::Result<()> {
    let script = args.name.as_deref().map(wanted).transpose()?;
    let mut output = Output::whole(args.output.as_deref(), Access::Umask)?;
    match script {
        Some(script) => output.buffer.extend(script.text.as_bytes()),
        None if args.json => list_json(&mut output)?,
        None => list(&mut output)?,
    }
    Ok(output.finish()?)
}

fn wanted(name: &str) -> anyhow::Result<BundledScript> {
    find(name).ok_or_else(|| {
        usage(format!(
            "there is no bundled script {name:?}{}",
            near_scripts(name)
        ))
    })
}

/// Returns a hint at the bundled scripts whose names begin with a name, or else are near it; empty
/// if there are none.
pub(crate) fn near_scripts(name: &str) -> String {
    let names = || all().map(|script| script.name);
    let longer: Vec<&str> = names()
        .filter(|it| !name.is_empty() && it.starts_with(name))
        .collect();
    if longer.is_empty() {
        text::patterns::hint(name, names())
    } else {
        text::patterns::did_you_mean_at_end(&longer)
    }
}

fn list_json(output: &mut Output) -> anyhow::Result<()> {
    for (topic, scripts) in topics() {
        for script in *scripts {
            let (about, needs, arguments) = (script.about(), script.needs(), script.arguments());
            let object = json!({ "name": script.name, "arguments": arguments, "topic": topic, "about": about, "needs": needs });
            writeln!(
                output.buffer,
                "{}",
                text::json::document("scripts.script", &object)
            )?;
        }
    }
    Ok(())
}

fn list(output: &mut Output) -> anyhow::Result<()> {
    let call_width = all()
        .map(|script| script.call().len())
        .max()
        .unwrap_or_default();
    let indent = call_width + 4;
    for (n, (topic, scripts)) in topics().iter().enumerate() {
        writeln!(output.buffer, "{}{topic}", if n > 0 { "\n" } else { "" })?;
        for script in *scripts {
            let kernel = script
                .kernel()
                .map(|release| format!(" Needs Linux {release}."));
            let about = format!("{}{}", script.about(), kernel.unwrap_or_default());
            let lines = wrap(&about, LIST_WIDTH - indent).join(&format!("\n{:indent$}", ""));
            writeln!(output.buffer, "  {:<call_width$}  {lines}", script.call())?;
        }
    }
    Ok(())
}
