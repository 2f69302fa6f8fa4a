//! Hostile names in messages.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use super::{EVIL, harmless};
use crate::common::kernel::PROGRAM;

/// Commands that print a message. A word in capitals stands for a file of that content, or for one
/// that is missing.
const COMMANDS: &[&[&str]] = &[
    &["MISSING"],
    &["list", "MISSING"],
    &["list", "NOT_TEXT"],
    &["list", "-p", "MISSING"],
    &["run", "MISSING"],
    &["run", "SCRIPT"],
    &["run", "--check", "SCRIPT"],
    &["run", "NOT_TEXT"],
    &["run", "-c", "MISSING", "-e", "begin { }"],
    &["run", "--include", "MISSING", "-e", "begin { }"],
    &[
        "run",
        "-e",
        "begin { @x = foo\u{1b}[31m\u{9b}; } uprobe:/no\u{1b}/\u{7f}:f { }",
    ],
    &["run", "-l", "uprobe:/no\u{1b}\u{9b}:*"],
    &["trace", "-i", "MISSING"],
    &["trace", "-i", "JSON"],
    &["trace", "-i", "NOT_TEXT"],
    &["trace", "-i", "JSON", "-b", "MISSING"],
    &["trace", "--follow", "-i", "JSON"],
    &["trace", "-s", "a\u{1b}[31m\n", "-p1"],
    &["latency", "-i", "MISSING"],
    &["latency", "-i", "JSON"],
    &["generate", "--objects", "SPEC"],
    &["generate", "--objects", "BROKEN"],
    &["generate", "--objects", "NOT_TEXT"],
    &["record", "--objects", "SPEC", "-p1"],
    &["record", "--", "MISSING"],
    &["kernel-delay", "--", "MISSING"],
    &["kernel-delay", "--thread", "[\u{1b}[31m"],
    &["objects", "a\u{1b}[31m\u{9b}"],
    &["man", "MISSING"],
    &["--\u{1b}[31m"],
];

#[test]
fn names_in_messages_are_not_obeyed() {
    let dir = tempfile::tempdir().expect("a directory");
    let evil = |name: &[u8], text: &[u8]| {
        let path = dir.path().join(OsStr::from_bytes(&[name, EVIL].concat()));
        std::fs::write(&path, text).expect("written");
        path.into_os_string()
    };
    let missing = dir.path().join(OsStr::from_bytes(EVIL)).into_os_string();
    let script = evil(
        b"script",
        &[
            b"begin { ",
            &EVIL[..EVIL.len() - 1],
            b" \"\x1b[31m\"; foo(); }",
        ]
        .concat(),
    );
    let not_text = evil(b"not-text", EVIL);
    let spec = evil(b"spec", b"[[object]]\nname = \"\\u001b[31m\\u009b\\u007f\\n\"\nkey = \"k\"\n[[object.probe]]\nname = \"\\u001b[31m\"\nrole = \"begin\"\nargs = [\"tsc\", \"k\"]\n");
    let broken = evil(b"broken", b"[[object]]\nname = \xc2\x9b \x7f\x1b\n");
    let json = evil(b"json", b"{\"\x1b[31m\": \xc2\x9b}");
    let files = [
        ("MISSING", missing),
        ("SCRIPT", script.clone()),
        ("NOT_TEXT", not_text),
        ("SPEC", spec),
        ("BROKEN", broken),
        ("JSON", json),
    ];
    let word = |word: &&str| {
        let file = files.iter().find(|(name, _)| name == word);
        file.map_or_else(|| OsString::from(word), |(_, path)| path.clone())
    };
    for command in COMMANDS {
        let args: Vec<OsString> = command.iter().map(word).collect();
        let (output, all) = harmless(&args);
        assert!(
            !output.status.success() || all.is_empty() || args[0] != "trace",
            "{args:?}: {all}"
        );
    }
    let mut as_bpftrace = testkit::command(PROGRAM);
    std::os::unix::process::CommandExt::arg0(&mut as_bpftrace, "bpftrace");
    let done = as_bpftrace.arg(&script).output().expect("it runs");
    let said = String::from_utf8(done.stderr).expect("it is UTF-8");
    assert!(
        !said.contains(|c: char| c.is_control() && c != '\n'),
        "{said:?}"
    );
}
