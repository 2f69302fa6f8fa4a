//! What the program tells about itself: built-in specs, completions, man pages.

use std::path::Path;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::failure::usage;
use crate::names;
use crate::output::Output;

/// Prints the built-in object specs, or one of them.
pub(crate) fn objects(name: Option<&str>) -> anyhow::Result<()> {
    let known = objects::BUILT_IN;
    let stem = |file: &'static str| file.trim_end_matches(".toml");
    let wanted: Vec<_> = known.iter().filter(|(file, _)| name.is_none_or(|n| n == stem(file))).collect();
    if wanted.is_empty() {
        let all: Vec<_> = known.iter().map(|(file, _)| stem(file)).collect();
        let name = name.unwrap_or_default();
        let hint = names::hint(name, all.iter().copied());
        return Err(usage(format!("no object spec is called {name:?}{hint}; there is {}", all.join(", "))));
    }
    let text: Vec<_> = wanted.iter().map(|(_, text)| *text).collect();
    print(text.join("\n").into_bytes())
}

fn print(text: Vec<u8>) -> anyhow::Result<()> {
    let mut output = Output::open(None)?;
    output.buffer = text;
    Ok(output.flush()?)
}

/// Prints a shell's completions.
pub(crate) fn completions(shell: Shell) -> anyhow::Result<()> {
    // Into memory first: the generator panics where standard output is closed.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "dptrace", &mut script);
    print(script)
}

/// Writes a man page for the program and one for each command.
pub(crate) fn man(dir: &Path) -> anyhow::Result<()> {
    clap_mangen::generate_to(Cli::command(), dir).with_context(|| format!("writing man pages into {}", dir.display()))
}
