//! Hostile names in messages.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use super::{EVIL, harmless};
use crate::common::kernel::PROGRAM;

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
    let dash = |word: &str| OsString::from(word);
    for args in [
        vec![missing.clone()],
        vec![dash("list"), missing.clone()],
        vec![dash("list"), not_text.clone()],
        vec![dash("list"), dash("-p"), missing.clone()],
        vec![dash("run"), missing.clone()],
        vec![dash("run"), script.clone()],
        vec![dash("run"), dash("--check"), script.clone()],
        vec![dash("run"), not_text.clone()],
        vec![
            dash("run"),
            dash("-c"),
            missing.clone(),
            dash("-e"),
            dash("begin { }"),
        ],
        vec![
            dash("run"),
            dash("--include"),
            missing.clone(),
            dash("-e"),
            dash("begin { }"),
        ],
        vec![
            dash("run"),
            dash("-e"),
            dash("begin { @x = foo\u{1b}[31m\u{9b}; } uprobe:/no\u{1b}/\u{7f}:f { }"),
        ],
        vec![dash("run"), dash("-l"), dash("uprobe:/no\u{1b}\u{9b}:*")],
        vec![dash("trace"), dash("-i"), missing.clone()],
        vec![dash("trace"), dash("-i"), json.clone()],
        vec![dash("trace"), dash("-i"), not_text.clone()],
        vec![
            dash("trace"),
            dash("-i"),
            json.clone(),
            dash("-b"),
            missing.clone(),
        ],
        vec![dash("trace"), dash("--follow"), dash("-i"), json.clone()],
        vec![
            dash("trace"),
            dash("-s"),
            dash("a\u{1b}[31m\n"),
            dash("-p1"),
        ],
        vec![dash("latency"), dash("-i"), missing.clone()],
        vec![dash("latency"), dash("-i"), json.clone()],
        vec![dash("generate"), dash("--objects"), spec.clone()],
        vec![dash("generate"), dash("--objects"), broken],
        vec![dash("generate"), dash("--objects"), not_text],
        vec![dash("record"), dash("--objects"), spec, dash("-p1")],
        vec![dash("record"), dash("--"), missing.clone()],
        vec![dash("kernel-delay"), dash("--"), missing.clone()],
        vec![dash("kernel-delay"), dash("--thread"), dash("[\u{1b}[31m")],
        vec![dash("objects"), dash("a\u{1b}[31m\u{9b}")],
        vec![dash("man"), missing.clone()],
        vec![dash("--\u{1b}[31m")],
    ] {
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
