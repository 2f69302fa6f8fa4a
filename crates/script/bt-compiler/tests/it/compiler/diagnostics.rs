//! Messages about scripts that the compiler refuses: `diagnostics.txt` has a script for each text.
//!
//! A case consists of lines that begin with `> ` (the script), of lines before them that begin with
//! `@ ` (differences from the machine of `compiler_testkit::sample`), and of the messages. With
//! `UPDATE_EXPECT=1` the test rewrites the messages.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use bt_compiler::ConfigFact;
use bt_compiler::language::words;
use compiler_testkit::{FakeTarget, check, diagnostics, sample};
use uapi::Arch;

use crate::compiler::expect;

/// Texts that no script can produce here, each with the reason.
const OUT_OF_REACH: &[(&str, &str)] = &[
    (
        "what a cut string ends with",
        "any text is a value of that setting",
    ),
    ("++ and -- can be used on variables and maps only", PARSER),
    (
        "a script can't walk a list of a process",
        "in scripts the parser takes no list",
    ),
    (
        "the & operator can only be used with variables and maps",
        PARSER,
    ),
    ("only variables and maps can be assigned to", PARSER),
    ("a uprobe needs a function or an address", PARSER),
    ("as in uprobe:/bin/bash:readline", PARSER),
    ("a uretprobe can't be put within a function", PARSER),
    ("leave the offset out, or use a uprobe", PARSER),
    ("{} needs a number above 0", PARSER),
    ("as in interval:s:1", PARSER),
    ("{unit} is an invalid unit for {}", PARSER),
    ("use hz, s, ms or us", PARSER),
    (
        "{} probes are not supported",
        "there is no kind of probe left that is parsed and not supported",
    ),
    (
        "use a uprobe, usdt or tracepoint probe",
        "there is no kind of probe left that is parsed and not supported",
    ),
    (
        "a map's function can't be assigned to a variable: ${name}",
        "a value of a map's function is no expression",
    ),
    (
        "buf() expects an integer, pointer or array argument",
        "of all else a copy is cut",
    ),
    (
        "loops nest too deep",
        "the number of the innermost one nests too deep before",
    ),
    ("assert failed: %s", "what a running script prints"),
    ("signed char", "a type of C, not a text"),
    ("unsigned char", "a type of C, not a text"),
];

/// Reason used in [`OUT_OF_REACH`].
const PARSER: &str = "the parser finds it first";

/// Case of the file.
struct Case {
    /// Lines before the script, as in the file.
    options: Vec<String>,
    script: String,
}

fn own(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn cases() -> Vec<Case> {
    let text = std::fs::read_to_string(own("tests/it/compiler/diagnostics.txt")).unwrap();
    let mut cases = Vec::new();
    for part in text.split("\n\n") {
        let of = |mark: &str| {
            part.lines()
                .filter_map(|line| line.strip_prefix(mark))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let script = of("> ").join("\n");
        if !script.is_empty() {
            cases.push(Case {
                options: of("@ "),
                script,
            });
        }
    }
    cases
}

/// Returns the machine, with the differences of a case.
fn target(options: &[String]) -> FakeTarget {
    let mut target = FakeTarget {
        params: Vec::new(),
        ..sample::target()
    };
    for option in options {
        let (name, value) = option.split_once(' ').unwrap_or((option, ""));
        match name {
            "params" => target.params = value.split(' ').map(str::to_owned).collect(),
            "env" => {
                let (name, value) = value.split_once('=').unwrap();
                target.settings.push(ConfigFact {
                    name: name.to_owned(),
                    value: value.to_owned(),
                });
            }
            "function" => target = target.with_function("/bin/many", value, 0x100),
            "no-kprobes" => target.no_kprobes = true,
            "safe" => target.allows_unsafe = false,
            "aarch64" => target = sample::on(Arch::Aarch64),
            "no-btf" => target.btf = None,
            "pid" => target.pid = value.parse().ok(),
            "others" => target.others = value.split(' ').map(|pid| pid.parse().unwrap()).collect(),
            "most-samples" => target.most_samples = value.parse().ok(),
            "changed" => {
                for (name, vaddr) in [("g.isra.0", 16), ("g.constprop.1", 32)] {
                    target = target.with_function("/bin/changed", name, vaddr);
                }
            }
            "functions" => {
                for number in 0..value.parse().unwrap() {
                    target = target.with_function("/bin/many", &format!("f{number}"), number * 16);
                }
            }
            _ => panic!("{option}: not known"),
        }
    }
    target
}

/// Removes the length of a program, which changes with the emitter.
fn without_lengths(said: &str) -> String {
    let Some((before, after)) = said.split_once(" instructions away") else {
        return said.to_owned();
    };
    format!(
        "{}N instructions away{after}",
        before.trim_end_matches(|c: char| c.is_ascii_digit())
    )
}

/// Returns all cases in the file's format, with the current messages.
fn said() -> String {
    let head =
        "Scripts that the compiler refuses or warns about, and what it says: see diagnostics.rs.\n";
    let mut text = head.to_owned();
    for case in cases() {
        text.push('\n');
        for option in &case.options {
            writeln!(text, "@ {option}").unwrap();
        }
        for line in case.script.lines() {
            writeln!(text, "> {line}").unwrap();
        }
        let said = diagnostics(&case.script, &target(&case.options));
        assert!(!said.is_empty(), "nothing is wrong with {}", case.script);
        text += &without_lengths(&said);
    }
    text
}

#[test]
fn every_script_gets_the_messages_of_the_file() {
    expect::file(&own("tests/it/compiler/diagnostics.txt"), &said());
}

#[test]
fn one_line_is_enough_for_a_case() {
    check(
        "begin { print($a); }",
        "undefined or undeclared variable: $a",
    );
}

/// Returns the string literals of a source file that contain several words, except those of
/// attributes and of its tests.
fn literals(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let (mut found, mut is_internal) = (Vec::new(), false);
    for line in joined(source).lines() {
        let code = line.trim_start();
        // No script can trigger mistakes of the compiler itself.
        let was_internal = is_internal;
        is_internal |= code.contains("impossible(");
        is_internal &= !code.contains(')') || code.ends_with('(');
        if was_internal
            || code.contains("impossible(")
            || code.starts_with("reason = ")
            || code.starts_with("//")
            || code.starts_with("#[")
            || code.starts_with("#![")
        {
            continue;
        }
        // Quotes in a literal are escaped; nothing else here is.
        let hidden = code.replace("\\\"", "\u{1}").replace("'\"'", "");
        for (index, part) in hidden.split('"').enumerate() {
            if index % 2 == 1 && part.trim().contains(' ') {
                found.push(part.replace('\u{1}', "\""));
            }
        }
    }
    found
}

/// Joins the lines within a source's literals.
fn joined(source: &str) -> String {
    let mut text = String::new();
    let mut goes_on = false;
    for line in source.lines() {
        text += if goes_on { line.trim_start() } else { line };
        goes_on = line.ends_with('\\') && !line.trim_start().starts_with("//");
        if goes_on {
            text.pop();
        } else {
            text.push('\n');
        }
    }
    text
}

/// Returns true if a line can be the output of a format.
fn made_by(format: &str, line: &str) -> bool {
    let mut rest = line;
    pieces(format)
        .iter()
        .all(|piece| match rest.find(piece.as_str()) {
            Some(at) => {
                rest = &rest[at + piece.len()..];
                true
            }
            None => false,
        })
}

/// Returns the parts of a format between its values.
fn pieces(format: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut chars = format
        .replace("{{", "\u{1}")
        .replace("}}", "\u{2}")
        .into_bytes()
        .into_iter()
        .map(char::from)
        .peekable();
    while let Some(c) = chars.next() {
        if c == '{' {
            while chars.next().is_some_and(|c| c != '}') {}
            pieces.push(String::new());
        } else if let Some(last) = pieces.last_mut() {
            last.push(match c {
                '\u{1}' => '{',
                '\u{2}' => '}',
                c => c,
            });
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        if entry.is_dir() {
            sources(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry);
        }
    }
}

/// Returns true if a source contains messages for users.
fn speaks(path: &Path) -> bool {
    let place = path
        .strip_prefix(own("src"))
        .unwrap()
        .to_string_lossy()
        .into_owned();
    place.starts_with("check/")
        || place.starts_with("resolve/")
        || place.starts_with("types/")
        || place.starts_with("compile/") && place != "compile/tests.rs"
        || place == "settings.rs"
}

#[test]
fn every_text_of_the_compiler_is_in_a_case() {
    // The tables' texts on functions are in docs/language.md.
    let documented: BTreeSet<&str> = words()
        .into_iter()
        .flat_map(|word| [word.form, word.doc])
        .collect();
    let is_documented = |text: &str| documented.iter().any(|known| known.contains(text));
    let mut files = Vec::new();
    sources(&own("src"), &mut files);
    let said = said();
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| !line.starts_with("> "))
        .collect();
    let mut missing = BTreeSet::new();
    for path in files.into_iter().filter(|path| speaks(path)) {
        for text in literals(&std::fs::read_to_string(&path).unwrap()) {
            let is_long = pieces(&text)
                .iter()
                .flat_map(|piece| piece.chars())
                .filter(char::is_ascii_alphabetic)
                .count()
                > 5;
            let reached = || lines.iter().any(|line| made_by(&text, line));
            if is_long && !is_documented(&text) && !reached() {
                missing.insert((
                    text,
                    path.file_name().unwrap().to_string_lossy().into_owned(),
                ));
            }
        }
    }
    let unknown: Vec<_> = missing
        .iter()
        .filter(|(text, _)| OUT_OF_REACH.iter().all(|known| known.0 != text))
        .collect();
    assert!(
        unknown.is_empty(),
        "{} texts are in no case of diagnostics.txt: {unknown:#?}",
        unknown.len()
    );
    let needless: Vec<_> = OUT_OF_REACH
        .iter()
        .filter(|known| missing.iter().all(|(text, _)| known.0 != text))
        .collect();
    assert!(
        needless.is_empty(),
        "these are reached or gone: {needless:#?}"
    );
}
