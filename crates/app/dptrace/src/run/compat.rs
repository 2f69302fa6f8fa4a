//! The program under the name `bpftrace`: options that only bpftrace has, and sentences that tools
//! look for.

use std::ffi::OsString;
use std::fmt::Write as _;

use bt_engine::unstable::NOTHING_LEFT;
use bt_engine::{Diagnostic, FailureKind, RuntimeFailure};
use console::output::Output;

/// Version of the language, for scripts. Tools read the number after `v`.
const VERSION: &str = concat!("bpftrace v0.27.1 (dptrace ", env!("CARGO_PKG_VERSION"), ")");
/// Options that take the next word, in any form (bpftrace(8)).
const VALUED: [&str; 14] = [
    "-e",
    "-c",
    "--cmd",
    "-p",
    "--pid",
    "-f",
    "-o",
    "-B",
    "--include",
    "--probe-filter",
    "--traceable-functions",
    "--mode",
    "--fmt",
    "--usdt-location",
];
/// Options with a value that are ignored: no C header is read, and the kernel's features are not
/// chosen by hand.
const IGNORED: [&str; 3] = ["-I", "--no-feature", "--dwarf-pid"];
/// Stages of `-d` (bpftrace(8), "Debug Output"), with our dump for each. Stages without one are of
/// LLVM and libbpf.
const STAGES: [(&str, &str); 9] = [
    ("ast", "ast"),
    ("parse", "ast"),
    ("types", "types"),
    ("codegen", "insns"),
    ("codegen-opt", "insns"),
    ("dis", "insns"),
    ("all", "insns"),
    ("libbpf", ""),
    ("verifier", ""),
];

/// Request under the name `bpftrace`.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum BpftraceRequest {
    /// Words of the equivalent `dptrace` command, the program's name first.
    Run(Vec<OsString>),
    /// Option `--version`.
    Version,
    /// Option `--info`.
    Info,
}

impl BpftraceRequest {
    /// Parses the words of a command line, the program's name first.
    pub(crate) fn parse(words: Vec<OsString>) -> Self {
        let mut words = words.into_iter();
        let mut run: Vec<OsString> = words.next().into_iter().chain(["run".into()]).collect();
        let mut words = words.skip_while(|word| word == "run").peekable();
        while let Some(word) = words.next() {
            let text = word.to_string_lossy();
            match &*text {
                "-V" | "--version" => return Self::Version,
                "--info" => return Self::Info,
                "--" => {
                    run.push(word);
                    break;
                }
                "--test" => run.extend(["--mode".into(), "test".into()]),
                "--bench" => run.extend(["--mode".into(), "bench".into()]),
                "--debuginfo" => debug_folders(&mut run, words.next()),
                "-d" | "-dd" => {
                    let stage = words
                        .peek()
                        .and_then(|next| stage_of(&next.to_string_lossy()));
                    if stage.is_some() {
                        words.next();
                    }
                    // Until 0.20 the option had no value: `-d` meant the syntax tree, `-dd` the
                    // code.
                    dump(
                        &mut run,
                        stage.unwrap_or(if text == "-d" { "ast" } else { "insns" }),
                    );
                }
                ignored if IGNORED.contains(&ignored) => drop(words.next()),
                valued if VALUED.contains(&valued) => {
                    run.push(word);
                    run.extend(words.next());
                }
                joined => {
                    if !take_joined(&mut run, joined) {
                        run.push(word);
                    }
                }
            }
        }
        run.extend(words);
        Self::Run(run)
    }
}

fn stage_of(name: &str) -> Option<&'static str> {
    STAGES
        .iter()
        .find(|(stage, _)| *stage == name)
        .map(|(_, ours)| *ours)
}

/// Takes an option with its value in the same word: `-dast`, `-I/usr/include`, `--debuginfo=DIR`.
/// Returns false for other words.
fn take_joined(run: &mut Vec<OsString>, word: &str) -> bool {
    if let Some(ours) = word.strip_prefix("-d").and_then(stage_of) {
        dump(run, ours);
    } else if let Some(folders) = word.strip_prefix("--debuginfo=") {
        debug_folders(run, Some(folders.into()));
    } else {
        return word.starts_with("-I") || is_ignored(word);
    }
    true
}

/// Returns whether to ignore a word such as `--no-feature=uprobe_multi`.
fn is_ignored(word: &str) -> bool {
    IGNORED
        .iter()
        .any(|option| option.starts_with("--") && word.split('=').next() == Some(option))
}

fn dump(run: &mut Vec<OsString>, ours: &str) {
    if !ours.is_empty() {
        run.extend(["--dump".into(), ours.into()]);
    }
}

/// Adds folders `DIR:DIR`; a `+` before one requests a check that is always made.
fn debug_folders(run: &mut Vec<OsString>, folders: Option<OsString>) {
    let folders = folders.unwrap_or_default();
    for folder in folders
        .to_string_lossy()
        .split(':')
        .filter(|folder| !folder.is_empty())
    {
        run.extend(["--debuginfo".into(), folder.trim_start_matches('+').into()]);
    }
}

/// Prints the version.
pub(crate) fn version() -> anyhow::Result<()> {
    print(&format!("{VERSION}\n"))
}

/// Prints the findings of `doctor`, in the form `name: yes`.
pub(crate) fn info() -> anyhow::Result<()> {
    let release = host::system::kernel_release().unwrap_or_else(|| "unknown".to_owned());
    let mut text = format!(
        "System\n  OS: Linux {release}\n  Arch: {}\n\n",
        std::env::consts::ARCH
    );
    // SANITY: writing to a string doesn't fail.
    let _ = write!(text, "Build\n  version: {VERSION}\n\nKernel features\n");
    for (name, word) in doctor::answers() {
        let _ = writeln!(text, "  {}: {word}", name.to_ascii_lowercase());
    }
    print(&text)
}

/// Prints the usage, after an error of the command line.
pub(crate) fn print_usage() {
    use std::io::Write as _;
    // If standard error is gone, nobody reads it.
    let _ = writeln!(
        std::io::stderr(),
        "USAGE:\n  bpftrace [OPTIONS] FILENAME\n  bpftrace [OPTIONS] -e PROGRAM"
    );
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut output = Output::open(None)?;
    output.buffer.extend(text.as_bytes());
    Ok(output.flush()?)
}

/// Returns bpftrace's words for a failure, if users of its scripts look for them.
pub(super) fn failure_words(failure: &RuntimeFailure) -> Option<&'static str> {
    Some(match failure.kind {
        FailureKind::DivisionByZero => {
            "Divide or modulo by 0 detected. This can lead to unexpected results. 1 is being used as the result."
        }
        FailureKind::OutOfBounds => {
            "Array access out of bounds. This can lead to unexpected results."
        }
        FailureKind::MapFull => {
            "Map full; can't update element. config = { max_map_keys = N } makes it larger."
        }
        FailureKind::Helper("map_lookup_elem" | "map_lookup_percpu_elem") => {
            "Can't lookup map element because it does not exist."
        }
        _ => return None,
    })
}

/// Prefixes of our messages about missing kernel functions.
const NO_FUNCTION: [&str; 2] = ["no matches for kprobe ", "no matches for kretprobe "];

/// Returns bpftrace's warnings that accompany a diagnostic of ours.
pub(super) fn also(diagnostic: &Diagnostic) -> Vec<String> {
    let mut also = Vec::new();
    if let Some(rest) = NO_FUNCTION
        .iter()
        .find_map(|start| diagnostic.message.strip_prefix(start))
    {
        let place = rest
            .split(". Skipping")
            .next()
            .unwrap_or_default()
            .split(": ")
            .next()
            .unwrap_or_default();
        let function = place.rsplit(':').next().unwrap_or_default();
        also.push(format!(
            "{function} is not traceable (either non-existing, inlined, or marked as \"notrace\"); attaching to it will likely fail"
        ));
    }
    if diagnostic.hints.iter().any(|hint| hint == NOTHING_LEFT) {
        also.push(
            "Probe has no valid attach points. It is being removed which may cause issues with program behavior."
                .to_owned(),
        );
    }
    also
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(words: &str) -> BpftraceRequest {
        BpftraceRequest::parse(
            std::iter::once("bpftrace")
                .chain(words.split(' '))
                .map(OsString::from)
                .collect(),
        )
    }

    fn run(words: &str) -> BpftraceRequest {
        let words = words.split(' ').filter(|word| !word.is_empty());
        BpftraceRequest::Run(
            ["bpftrace", "run"]
                .into_iter()
                .chain(words)
                .map(OsString::from)
                .collect(),
        )
    }

    #[test]
    fn options_become_ours() {
        let cases = [
            ("-e X -c Y 1", "-e X -c Y 1"),
            ("run -e X", "-e X"),
            ("-d ast s.bt", "--dump ast s.bt"),
            ("-d codegen-opt -e X", "--dump insns -e X"),
            ("-dtypes -e X", "--dump types -e X"),
            ("-d s.bt", "--dump ast s.bt"),
            ("-dd s.bt", "--dump insns s.bt"),
            ("-d libbpf -e X", "-e X"),
            ("-I dir -Iother --no-feature a --no-feature=b s.bt", "s.bt"),
            (
                "--debuginfo +a:b --debuginfo=c -e X",
                "--debuginfo a --debuginfo b --debuginfo c -e X",
            ),
            ("--test -e X", "--mode test -e X"),
            ("--bench -e X", "--mode bench -e X"),
            ("-e --info", "-e --info"),
            ("-e X -- -V --info -d ast", "-e X -- -V --info -d ast"),
        ];
        for (typed, ours) in cases {
            assert_eq!(called(typed), run(ours), "{typed}");
        }
        assert_eq!(called("-q -V"), BpftraceRequest::Version);
        assert_eq!(called("--info"), BpftraceRequest::Info);
    }
}
