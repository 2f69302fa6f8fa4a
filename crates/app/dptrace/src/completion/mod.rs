//! `dptrace completions` prints shell scripts; those of bash, zsh and fish call `dptrace complete`
//! at each TAB.
//!
//! Most candidates are known only then: processes, the tracepoints of a file named earlier in the
//! line, fields of the user's own specs. So the scripts contain no lists. They pass the words of
//! the line, and read a first line of [`grammar::complete::Answer::offers`], then a line
//! `VALUE<TAB>DESCRIPTION` for each candidate. A value replaces the whole word.

mod values;

use std::ffi::OsString;
use std::io::Write as _;

use clap::{Args, CommandFactory as _, ValueEnum};
use clap_complete::Shell;
use console::output::Output;
use grammar::complete::{self, Candidate};

use crate::cli::Cli;

/// `dptrace complete`, as a shell's script calls it.
#[derive(Args, Clone, Debug)]
pub(crate) struct CompleteArgs {
    /// The shell, which determines how words are quoted
    shell: ShellName,

    /// The words after the program's name; the last one is completed
    #[arg(last = true)]
    words: Vec<OsString>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum ShellName {
    Bash,
    Zsh,
    Fish,
}

/// Prints the completions of the last word.
pub(crate) fn print(args: &CompleteArgs) -> anyhow::Result<()> {
    // zsh and fish pass words without their quotes.
    let plain = |word: &OsString| match args.shell {
        ShellName::Zsh => complete::home(&word.to_string_lossy()),
        ShellName::Bash | ShellName::Fish => {
            complete::home(&complete::removed(&word.to_string_lossy()))
        }
    };
    let words: Vec<String> = args.words.iter().map(plain).collect();
    let mut grammar = Cli::command();
    grammar.build();
    let answer = complete::complete(&grammar, &words, values::value);
    let mut output = Output::open(None)?;
    writeln!(output.buffer, "{}", answer.offers())?;
    for Candidate { value, about } in &answer.candidates {
        // fish adds no blank after this, and has no other way to suppress it.
        let end = if answer.goes_on && args.shell == ShellName::Fish {
            "="
        } else {
            ""
        };
        writeln!(output.buffer, "{value}{end}\t{about}")?;
    }
    Ok(output.flush()?)
}

/// Prints the completion script of a shell.
pub(crate) fn completions(shell: Shell) -> anyhow::Result<()> {
    let mut output = Output::open(None)?;
    match shell {
        Shell::Bash => output
            .buffer
            .extend_from_slice(include_bytes!("dptrace.bash")),
        Shell::Zsh => output
            .buffer
            .extend_from_slice(include_bytes!("dptrace.zsh")),
        Shell::Fish => output
            .buffer
            .extend_from_slice(include_bytes!("dptrace.fish")),
        // Into memory: the generator panics if standard output is closed.
        other => {
            clap_complete::generate(
                other,
                &mut complete::without_hidden(&Cli::command()),
                "dptrace",
                &mut output.buffer,
            );
        }
    }
    Ok(output.flush()?)
}

#[cfg(test)]
mod tests;
