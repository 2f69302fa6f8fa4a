//! The bundled scripts, and `dptrace scripts`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use errors::usage;
use serde_json::json;
use whole_file::Access;

use crate::output::Output;

/// Script that is part of dptrace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bundled {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

macro_rules! bundled {
    ($($name:literal),* $(,)?) => {
        &[$(Bundled { name: $name, text: include_str!(concat!("../../../../scripts/", $name, ".bt")) }),*]
    };
}

/// All scripts by topic, in list order.
const TOPICS: &[(&str, &[Bundled])] = &[
    ("CPU and threads", bundled!["runqlat", "offcpu", "offcpu-folded", "cpu-folded", "futex-waits"]),
    ("Memory", bundled!["page-faults", "memory-growth"]),
    (
        "System calls, files and disks",
        bundled![
            "syscalls",
            "syslat",
            "syslat-hist",
            "syscall-errors",
            "file-calls",
            "opensnoop",
            "files-opened",
            "failed-opens",
            "fsync-files",
            "readv",
            "disk-latency",
        ],
    ),
    ("Network", bundled!["peer-calls", "tcp-connects", "tcp-resets", "tcp-retransmits", "dns", "tls-handshakes"]),
    ("Processes", bundled!["execs", "signals"]),
    ("Applications", bundled!["pg-queries", "pg-waits", "usdt-count"]),
    ("Open vSwitch", bundled!["upcalls", "bridge_loop"]),
    ("SPDK", bundled!["nvmf", "nvme", "nvmf_timeout", "sched", "send_msg", "intr-wakeups"]),
];

/// Width limit of the list, in columns.
const LIST_WIDTH: usize = 80;

/// Returns all scripts.
pub(super) fn all() -> impl Iterator<Item = Bundled> {
    TOPICS.iter().flat_map(|(_, scripts)| scripts.iter().copied())
}

/// Returns the names of all scripts, each with its purpose.
pub(crate) fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    all().map(|script| (script.name, script.about()))
}

impl Bundled {
    /// Returns its purpose: the first line of its first comment.
    fn about(self) -> &'static str {
        let comments = self.text.lines().filter_map(|line| line.strip_prefix("//"));
        comments.map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
    }

    /// Returns its requirements, in its own words.
    pub(super) fn needs(self) -> &'static str {
        self.text.lines().find_map(|line| line.strip_prefix("// needs:")).map(str::trim).unwrap_or_default()
    }

    /// Returns its arguments, such as `[MS]`; empty if it takes none.
    pub(super) fn arguments(self) -> &'static str {
        self.text.lines().find_map(|line| line.strip_prefix("// takes:")).map(named).unwrap_or_default()
    }

    /// Returns whether it needs a process to look into.
    pub(super) fn needs_process(self) -> bool {
        let mut code = self.text.lines().filter(|line| !line.starts_with("//"));
        code.any(|line| line.contains("__EXE__") || line.contains("__PID__"))
    }

    /// Returns an example value for `-p`: a name from the script's requirements, with `--children`
    /// if that follows (`-p postgres --children`), or PID.
    pub(super) fn example_process(self) -> &'static str {
        const CHILDREN: &str = " --children";
        let example = |rest: &'static str| {
            let word = rest.find([' ', ',']).unwrap_or(rest.len());
            let children = if rest[word..].starts_with(CHILDREN) { CHILDREN.len() } else { 0 };
            &rest[..word + children]
        };
        self.needs().split("-p ").skip(1).map(example).find(|word| *word != "PID").unwrap_or("PID")
    }

    /// Returns the words that run it: its name and its arguments.
    fn call(self) -> String {
        format!("{} {}", self.name, self.arguments()).trim_end().to_owned()
    }
}

/// Returns the names of the arguments in a script's comment on them: the part before a semicolon.
pub(super) fn named(takes: &str) -> &str {
    takes.split(';').next().unwrap_or_default().trim()
}

/// Returns the script of this name.
pub(super) fn find(name: &str) -> Option<Bundled> {
    all().find(|script| script.name == name)
}

/// Returns whether a script has this name.
pub(crate) fn is_bundled(name: &str) -> bool {
    find(name).is_some()
}

/// Returns whether the name means a bundled script that takes no arguments, rather than a file.
pub(super) fn takes_no_words(name: &str) -> bool {
    let asks = |text: &str| {
        text.match_indices('$').any(|(at, _)| text[at + 1..].starts_with(|c: char| c == '#' || c.is_ascii_digit()))
    };
    !Path::new(name).exists() && find(name).is_some_and(|script| !asks(script.text))
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

fn wanted(name: &str) -> anyhow::Result<Bundled> {
    let hint = || text::patterns::hint(name, all().map(|script| script.name));
    find(name).ok_or_else(|| usage(format!("there is no bundled script {name:?}{}", hint())))
}

fn list_json(output: &mut Output) -> anyhow::Result<()> {
    for (topic, scripts) in TOPICS {
        for script in *scripts {
            let (about, needs, arguments) = (script.about(), script.needs(), script.arguments());
            let object =
                json!({ "name": script.name, "arguments": arguments, "topic": topic, "about": about, "needs": needs });
            writeln!(output.buffer, "{object}")?;
        }
    }
    Ok(())
}

fn list(output: &mut Output) -> anyhow::Result<()> {
    let call_width = all().map(|script| script.call().len()).max().unwrap_or_default();
    let indent = call_width + 4;
    for (n, (topic, scripts)) in TOPICS.iter().enumerate() {
        writeln!(output.buffer, "{}{topic}", if n > 0 { "\n" } else { "" })?;
        for script in *scripts {
            let lines = wrapped(script.about(), LIST_WIDTH - indent).join(&format!("\n{:indent$}", ""));
            writeln!(output.buffer, "  {:<call_width$}  {lines}", script.call())?;
        }
    }
    Ok(())
}

/// Wraps the words of a text into lines of at most `width` columns.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= width => line.extend([" ", word]),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_says_what_it_is_for_and_what_it_needs() {
        for script in all() {
            assert!(!script.about().is_empty() && !script.needs().is_empty(), "{}", script.name);
        }
    }

    #[test]
    fn every_script_that_takes_arguments_says_which() {
        for script in all() {
            assert_eq!(script.arguments().is_empty(), takes_no_words(script.name), "{}", script.name);
        }
        assert_eq!(find("pg-queries").unwrap().call(), "pg-queries [MS]");
    }

    #[test]
    fn scripts_about_a_process_say_so() {
        for script in all() {
            let says = script.needs().contains("-p PID") && !script.needs().contains("or all processes");
            assert_eq!(script.needs_process(), says, "{}", script.name);
        }
        assert_eq!(find("pg-queries").unwrap().example_process(), "postgres --children");
        assert_eq!(find("syslat").unwrap().example_process(), "PID");
    }

    #[test]
    fn names_are_unique_and_all_files_are_bundled() {
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts")).unwrap();
        let mut files: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        let mut names: Vec<String> = all().map(|script| format!("{}.bt", script.name)).collect();
        files.sort();
        names.sort();
        assert_eq!(names, files);
    }

    #[test]
    fn the_list_is_wrapped_between_words() {
        assert_eq!(wrapped("a bc def", 4), ["a bc", "def"]);
        assert_eq!(wrapped("long", 2), ["long"]);
    }
}
