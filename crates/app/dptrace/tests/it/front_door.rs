//! The first things that a user sees: the help with its twelve commands, and the commands that
//! have the work of others, whose names stay.

use std::fs;
use std::path::Path;

use capture::Timestamp;

use crate::common::pty;
use crate::common::scenes::{self, dptrace, sample};

/// Commands of the help, in its order.
const SHOWN: [&str; 12] = [
    "kernel-delay",
    "top",
    "cpus",
    "run",
    "list",
    "capture",
    "report",
    "trace",
    "latency",
    "serve",
    "doctor",
    "demo",
];

/// Commands of `help --all` only, in its order.
const MORE: [&str; 11] = [
    "watch",
    "timeline",
    "export",
    "pmd",
    "inspect",
    "record",
    "objects",
    "generate",
    "scripts",
    "completions",
    "man",
];

/// Returns the output of a command that succeeds in this folder.
#[track_caller]
fn printed(words: &[&str], dir: &Path) -> String {
    scenes::printed(words, dir).0
}

/// Asserts that the words are refused as wrong usage, with this in the message.
#[track_caller]
fn assert_refused(words: &[&str], why: &str, dir: &Path) {
    let done = dptrace(words, dir);
    let messages = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{words:?}: {messages}");
    assert!(messages.contains(why), "{words:?}: {messages}");
    assert!(done.stdout.is_empty(), "{words:?}");
}

/// Returns the commands that a help lists.
fn commands(help: &str) -> Vec<&str> {
    let indented = help.lines().filter_map(|line| line.strip_prefix("  "));
    let names = indented.filter_map(|line| line.split_once("  ").map(|(name, _)| name));
    names
        .filter(|name| !name.contains(' ') && !name.starts_with('-') && !name.starts_with('.'))
        .collect()
}

#[test]
fn the_help_has_twelve_commands_and_help_all_has_the_others_too() {
    let here = Path::new(".");
    for help in [&["-h"][..], &["--help"], &["help"]] {
        let text = printed(help, here);
        assert_eq!(commands(&text), SHOWN, "{help:?}");
        assert!(text.contains("`dptrace help --all` lists all commands"));
    }
    let all = printed(&["help", "--all"], here);
    assert_eq!(commands(&all), [&SHOWN[..], &MORE].concat());
    for name in SHOWN.iter().chain(&MORE) {
        let text = printed(&[name, "-h"], here);
        assert!(text.contains(&format!("dptrace {name}")), "{name}: {text}");
    }
    assert_refused(&["help", "--everything"], "--everything", here);
}

#[test]
fn the_help_begins_with_the_sentence_of_the_readme() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../README.md");
    let readme = fs::read_to_string(readme).expect("the README");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = words(readme.split("\n\n").nth(1).expect("a first paragraph"));
    let (sentence, _) = sentence.split_once(". ").expect("a sentence");
    let help = printed(&["-h"], Path::new("."));
    let about = words(help.split("\n\n").next().expect("a first paragraph"));
    assert_eq!(
        sentence,
        format!("dptrace {}", about.replacen('S', "s", 1)),
        "both are the package's description"
    );
}

#[test]
fn report_writes_what_timeline_writes() {
    let dir = sample();
    let dir = dir.path();
    for words in [
        &["--text"][..],
        &["--text", "--slowest", "3", "--all"],
        &["--over", "20us"],
        &["--json"],
        &["--json", "--by", "lcore", "--slowest", "1000"],
    ] {
        let timeline: Vec<_> = words.iter().filter(|word| **word != "--text").collect();
        let timeline: Vec<&str> = timeline.into_iter().copied().collect();
        assert_eq!(
            printed(&[&["report", "demo.trace"], words].concat(), dir),
            printed(&[&["timeline", "demo.trace"], &timeline[..]].concat(), dir),
            "{words:?}"
        );
    }
    let mut files = Vec::new();
    for (command, file) in [("report", "a.pftrace"), ("timeline", "b.pftrace")] {
        let words = [
            command,
            "demo.trace",
            "--perfetto",
            file,
            "--window",
            "..1ms",
        ];
        assert_eq!(printed(&words, dir), "");
        files.push(fs::read(dir.join(file)).expect("a file"));
    }
    assert_eq!(files[0], files[1]);
    printed(&["report", "demo.trace", "--json", "-o", "x.json"], dir);
    assert_eq!(
        fs::read_to_string(dir.join("x.json")).expect("a file"),
        printed(&["timeline", "demo.trace", "--json"], dir)
    );
}

#[test]
fn report_is_text_and_a_page_if_that_is_requested() {
    let dir = sample();
    let (on_terminal, succeeded) = pty::on_terminal_in(
        dir.path(),
        80,
        &[("NO_COLOR", "1")],
        &["report", "demo.trace"],
    );
    assert!(
        succeeded && on_terminal.contains("the 2 slowest"),
        "{on_terminal}"
    );
    let text = printed(&["report", "demo.trace"], dir.path());
    assert!(text.contains("the 2 slowest"), "{text}");
    let page = printed(&["report", "demo.trace", "-o", "-"], dir.path());
    assert!(page.starts_with("<!doctype html>"), "{}", &page[..60]);
}

#[test]
fn report_writes_the_tables_of_export() {
    let dir = sample();
    let dir = dir.path();
    let at = ["--host", "h", "--at", "2026-11-30T12:30:00Z"];
    let two = ["demo.trace", "demo.trace"];
    let parquet = |command, folder| {
        let words = [&[command], &two[..], &["--parquet", folder], &at].concat();
        printed(&words, dir)
    };
    assert_eq!(parquet("report", "a"), parquet("export", "b"));
    let requests = |folder: &str| {
        let hour = dir
            .join(folder)
            .join("requests/date=2026-11-30/hour=12/host=h");
        let tables = fs::read_dir(&hour).expect("tables");
        let path = tables.map(|entry| entry.expect("a table").path()).min();
        let path = path.expect("a table");
        fs::read(path).expect("a table")
    };
    assert_eq!(requests("a"), requests("b"));
}

#[test]
fn one_report_writes_several_forms() {
    let dir = sample();
    let words = "report demo.trace -o it.html --perfetto it.pftrace --parquet tables";
    let words: Vec<_> = words.split(' ').collect();
    printed(&words, dir.path());
    for name in ["it.html", "it.pftrace", "tables/requests"] {
        assert!(dir.path().join(name).exists(), "{name}");
    }
}

#[test]
fn contradictory_forms_of_a_report_are_refused() {
    let dir = sample();
    let refused = |words: &str, why: &str| {
        let words: Vec<_> = words.split(' ').collect();
        assert_refused(&words, why, dir.path());
    };
    refused("report demo.trace --json -o it.html", "are not for pages");
    refused(
        "report demo.trace --over 1ms --svg it.svg",
        "are not for pages",
    );
    refused("report demo.trace --text --json", "--json");
    refused(
        "report demo.trace demo.trace demo.trace",
        "only --parquet alone takes more",
    );
    refused(
        "report demo.trace demo.trace --parquet t -o it.html",
        "--parquet is not for a comparison",
    );
    refused("report demo.trace --window 1ms..2ms", "--perfetto");
    refused("report demo.trace --tables requests", "--parquet");
    refused("report demo.trace --slowest 201 -o it.html", "at most 200");
    refused("report", "<CAPTURE>");
    for name in ["it.html", "it.svg", "t"] {
        assert!(!dir.path().join(name).exists(), "{name}");
    }
}

#[test]
fn options_of_slow_requests_need_slow() {
    let here = Path::new(".");
    for option in [
        &["--before", "5ms"][..],
        &["--every", "1s"],
        &["--keep", "3"],
        &["--tpoint", "TCP_REQ_NEW"],
        &["--json"],
    ] {
        assert_refused(&[&["capture", "-p", "1"], option].concat(), "--slow", here);
    }
    assert_refused(&["capture", "--slow", "1ms"], "nothing to capture", here);
    assert_refused(
        &["capture", "--slow", "1ms", "--buffer", "3", "-p", "1"],
        "not a power of two",
        here,
    );
}

#[test]
fn a_folder_of_captures_stands_for_its_newest_one() {
    let dir = sample();
    let old = "slow-20261130-010000.000-1.capture";
    let new = "slow-20261130-020000.000-1.capture";
    let empty = "slow-20261130-030000.000-1.capture";
    for name in [old, new, empty] {
        fs::create_dir_all(dir.path().join("it.watch").join(name)).expect("a folder");
    }
    for name in [old, new] {
        let meta = dir.path().join("it.watch").join(name).join("meta.json");
        fs::write(meta, "not read here").expect("a file");
    }
    for command in ["trace", "latency"] {
        let done = dptrace(&[command, "it.watch"], dir.path());
        let messages = String::from_utf8_lossy(&done.stderr);
        let note = format!("it.watch has 2 captures: reading the newest one, it.watch/{new}");
        assert!(messages.contains(&note), "{command}: {messages}");
    }
    // A report has all of them; if none can be read, it fails as it does for the newest one.
    let done = dptrace(&["report", "it.watch"], dir.path());
    let messages = String::from_utf8_lossy(&done.stderr);
    assert!(messages.contains(new), "{messages}");
    fs::create_dir(dir.path().join("none")).expect("a folder");
    let done = dptrace(&["report", "none"], dir.path());
    let messages = String::from_utf8_lossy(&done.stderr);
    assert!(messages.contains("not a capture"), "{messages}");
}

#[test]
fn a_report_lists_all_captures_of_a_folder() {
    let dir = tempfile::tempdir().expect("a folder");
    let [old, new] =
        ["01", "02"].map(|hour| format!("it.watch/slow-20261130-{hour}0000.000-1.capture"));
    for name in [&old, &new] {
        let folder = dir.path().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        let begin = Timestamp {
            utc: "2026-11-30T01:00:00Z".into(),
            boot_nanos: 1_000_000,
        };
        scenes::write_absences(&folder, begin, b"other");
        scenes::add_rings(&folder);
    }
    let (text, _) = scenes::printed(&["report", "it.watch"], dir.path());
    let rows = "\n  1 2026-11-30 01:00:00.000        -  no request";
    assert!(
        text.starts_with("it.watch has 2 captures\n") && text.contains(rows),
        "{text}"
    );
    assert!(
        text.contains(&format!(
            "number 2, the newest, {new}\nanother one: dptrace report {old}\n"
        )),
        "{text}"
    );
    let (json, _) = scenes::printed(&["report", "it.watch", "--json"], dir.path());
    for name in [&old, &new] {
        assert!(json.contains(&format!("\"capture\":\"{name}\"")), "{json}");
    }
    // A page is of one, and says so.
    let (_, messages) = scenes::printed(&["report", "it.watch", "-o", "it.html"], dir.path());
    let note =
        format!("2 captures: this is about the newest, {new}; another one: dptrace report {old}");
    assert!(messages.contains(&note), "{messages}");
    let (_, messages) = scenes::printed(&["report", "it.watch", "--parquet", "tables"], dir.path());
    assert!(!messages.contains("this is about"), "{messages}");
    // Whoever names none is told what there is.
    let done = dptrace(&["report"], dir.path());
    let messages = String::from_utf8_lossy(&done.stderr);
    assert!(
        messages.contains("the newest here: dptrace report it.watch"),
        "{messages}"
    );
}

#[test]
fn all_forms_of_a_report_are_of_the_newest_capture_which_is_looked_for_once() {
    let dir = tempfile::tempdir().expect("a folder");
    let captures = dir.path().join("it.watch");
    let newest = captures.join("slow-20261130-020000.000-1.capture");
    fs::create_dir_all(&newest).expect("a folder");
    let begin = Timestamp {
        utc: "2026-11-30T02:00:00Z".into(),
        boot_nanos: 1_000_000,
    };
    scenes::write_absences(&newest, begin, b"other");
    let words = "report it.watch -o it.html --perfetto it.pftrace --parquet tables";
    let words: Vec<_> = words.split(' ').collect();
    let (_, messages) = scenes::printed(&words, dir.path());
    assert_eq!(messages.matches("reading the newest one").count(), 1);
    let page = fs::read_to_string(dir.path().join("it.html")).expect("a page");
    assert!(page.contains("slow-20261130-020000.000-1.capture"));
    let (text, _) = scenes::printed(&["report", "it.watch"], dir.path());
    assert!(text.contains("other"), "{text}");
}
