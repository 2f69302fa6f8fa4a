//! The examples: commands in the documents and help texts, with the output shown for them.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::common::kernel::PROGRAM;

/// Command that a reader may type.
#[derive(Debug, Clone)]
pub(crate) struct Example {
    /// Place of the example: a file and a line, or a command whose help has it.
    place: String,
    /// Heading above it.
    pub(crate) section: String,
    pub(crate) command: String,
    /// Output shown for it, without lines that stand for omitted ones.
    pub(crate) shown: Vec<String>,
    /// Set if the reader ends the command.
    pub(crate) is_interrupted: bool,
}

impl fmt::Display for Example {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.command)
    }
}

impl Example {
    /// Returns whether its output is shown as on a terminal of 80 columns.
    pub(crate) fn is_on_terminal(&self) -> bool {
        !self.shown.is_empty() && (self.place.contains("README") || self.place.contains("tutorial"))
    }

    /// Returns the command without a trailing remark.
    pub(crate) fn without_remark(&self) -> &str {
        self.command
            .split("  # ")
            .next()
            .unwrap_or_default()
            .trim_end()
    }

    /// Returns whether it keeps running while the reader types the next one.
    pub(crate) fn is_background(&self) -> bool {
        self.command.ends_with('&')
    }
}

/// Lines in blocks of their own that only look like commands, with the reasons.
const NO_COMMANDS: &[(&str, &str)] = &[
    (
        "dptrace record and run can work here",
        "it is the verdict of `doctor`",
    ),
    ("dptrace 0.", "it is what `--version` prints"),
];

/// Returns all examples.
pub(crate) fn all() -> Vec<Example> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut files = vec![root.join("README.md")];
    for folder in ["docs", "docs/dev"] {
        let entries = std::fs::read_dir(root.join(folder)).expect("a folder");
        let mut pages: Vec<PathBuf> = entries
            .map(|entry| entry.expect("an entry").path())
            .collect();
        pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
        pages.sort();
        files.extend(pages);
    }
    let mut examples = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("text");
        let name = file
            .strip_prefix(&root)
            .expect("below the root")
            .display()
            .to_string();
        examples.extend(document_examples(&name, &text));
    }
    let overview = help(&[]);
    examples.extend(help_examples("dptrace -h", &overview));
    let all = printed(&["help", "--all"]);
    for command in commands(&all) {
        examples.extend(help_examples(
            &format!("dptrace {command} --help"),
            &help(&[command]),
        ));
    }
    examples
}

/// Returns the examples of a document: lines of indented blocks, with the lines after them in the
/// block.
fn document_examples(name: &str, text: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut section = String::new();
    // State of the scan: whether the lines belong to an example, and whether that has a prompt, so
    // that lines without one are output.
    let mut open = false;
    let mut prompted = false;
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(heading) = line
            .trim_start_matches('#')
            .strip_prefix(' ')
            .filter(|_| line.starts_with('#'))
        {
            heading.clone_into(&mut section);
        }
        let Some(line) = line.strip_prefix("    ") else {
            open &= line.is_empty();
            prompted &= open;
            continue;
        };
        if let Some(command) = typed(line, prompted) {
            prompted = line.starts_with(['$', '#']);
            let (place, section) = (format!("{name}:{number}"), section.clone());
            examples.push(Example {
                place,
                section,
                command: command.to_owned(),
                shown: Vec::new(),
                is_interrupted: false,
            });
            open = true;
        } else if open && line == "^C" {
            examples.last_mut().expect("it is open").is_interrupted = true;
        } else if open && !line.trim().is_empty() && line.trim() != "..." {
            examples
                .last_mut()
                .expect("it is open")
                .shown
                .push(line.to_owned());
        }
    }
    examples
}

/// Returns the command in a line of an indented block, if it is one.
fn typed(line: &str, has_prompt: bool) -> Option<&str> {
    if let Some(command) = line.strip_prefix("$ ") {
        return Some(command);
    }
    let command = line.strip_prefix("# ");
    let command = command
        .or((!has_prompt).then_some(line))
        .filter(|command| is_command(command))?;
    (!NO_COMMANDS
        .iter()
        .any(|(beginning, _)| command.starts_with(beginning)))
    .then_some(command)
}

/// Returns whether the shell text runs dptrace, or a program used with it.
fn is_command(text: &str) -> bool {
    let starts = |piece: &str| {
        let piece = piece.trim_start();
        let piece = piece.strip_prefix("sudo ").unwrap_or(piece);
        [
            "dptrace ",
            "BPFTRACE_STRLEN=",
            "apt-get install ./dptrace",
            "cargo ",
            "scripts/bpftrace.sh ",
        ]
        .iter()
        .any(|beginning| format!("{piece} ").starts_with(beginning))
    };
    text.split(" | ")
        .flat_map(|piece| piece.split(" && "))
        .any(starts)
}

/// Returns the examples of a help text: the lines below `Examples:`, with an explanation before or
/// after them.
fn help_examples(name: &str, text: &str) -> Vec<Example> {
    let below = text
        .lines()
        .skip_while(|line| !line.to_ascii_lowercase().starts_with("examples:"))
        .skip(1);
    let lines = below.take_while(|line| line.is_empty() || line.starts_with(' '));
    let commands = lines.flat_map(|line| {
        line.split("  ")
            .map(str::trim)
            .filter(|piece| is_command(piece))
    });
    let example = |command: &str| Example {
        place: name.to_owned(),
        section: String::new(),
        command: command.to_owned(),
        shown: Vec::new(),
        is_interrupted: false,
    };
    commands.map(example).collect()
}

fn help(command: &[&str]) -> String {
    let flag = if command.is_empty() { "-h" } else { "--help" };
    printed(&[command, &[flag]].concat())
}

fn printed(words: &[&str]) -> String {
    let output = testkit::command(PROGRAM)
        .args(words)
        .env("NO_COLOR", "1")
        .output()
        .expect("it runs");
    String::from_utf8(output.stdout).expect("help is UTF-8")
}

/// Returns the commands in the overview: two spaces, the name, two spaces or more, and a
/// description.
fn commands(overview: &str) -> Vec<&str> {
    let rows = overview
        .lines()
        .skip_while(|line| !line.starts_with("Any process"))
        .filter_map(|line| {
            let (name, about) = line.strip_prefix("  ")?.split_once("  ")?;
            let is_name = name
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
                && !name.starts_with('-');
            (is_name && !about.is_empty()).then_some(name)
        });
    let names: Vec<&str> = rows.collect();
    assert!(names.len() > 10, "the overview lists only {names:?}");
    names
}
