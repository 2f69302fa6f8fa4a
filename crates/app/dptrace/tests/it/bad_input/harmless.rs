//! Bytes of an input that must not reach the terminal.

use std::ffi::OsString;
use std::path::Path;

use crate::common::small::{START, Small};
use crate::common::{dptrace, printed};

/// Asserts that this text leaves a terminal as it was.
#[track_caller]
fn assert_harmless(bytes: &[u8], what: &[OsString]) {
    let text = std::str::from_utf8(bytes).unwrap_or_else(|error| panic!("{what:?}: {error}"));
    let bad = text
        .char_indices()
        .find(|(_, c)| c.is_control() && *c != '\n');
    assert_eq!(bad, None, "{what:?}: {text:?}");
}

/// Writes a trace whose names and texts all try to clear the screen, and are not UTF-8.
fn hostile(path: &Path) {
    let evil = "\u{1b}[2J\u{9b}m\r";
    let mut t = crate::common::small::declared().slots(64);
    t.tpoint(
        testkit::Tpoint::new(330, format!("E{evil}"))
            .owner_type(0x30)
            .object_type(0x81)
            .new_object()
            .str(evil, 32),
    );
    t.tpoint(
        testkit::Tpoint::new(331, "E_END")
            .owner_type(0x30)
            .object_type(0x81)
            .ptr("qpair"),
    );
    t.object_type(0x81, 0x1b).owner_type(0x30, 0x9b);
    t.owner(258, 0x30, 5, &format!("1.2.3.4:5 nqn.{evil}"));
    t.lcore(0).thread_name(evil);
    let text = testkit::Arg::text(&b"\xff\xfe\x1b]0;x\x07\n"[..]);
    t.record(
        0,
        testkit::Record::new(330, START)
            .owner(258)
            .object(1)
            .args([text]),
    );
    t.record(
        0,
        testkit::Record::new(331, START + 9)
            .owner(258)
            .object(1)
            .ptr(0xc0),
    );
    let mut file = t.build_file();
    file.tpoint_mut(331)[2..4].copy_from_slice(&[0xff, 0x1b]);
    std::fs::write(path, file.bytes).expect("written");
}

#[test]
fn nothing_foreign_reaches_the_terminal_as_it_is() {
    let small = Small::new();
    hostile(&small.path("t.trace"));
    let recording = "nvmf_poll_group_add_qpair: tsc=0x1, qpair=0xc0, thread=0x1\n\
                     nvmf_ctrlr_add_qpair: tsc=0x2, qpair=0xc0, qid=0x1, subnqn='n\u{1b}[2J\u{9b}', hostnqn='\u{7f}\r'\n";
    std::fs::write(small.path("evil"), recording).expect("written");
    let forms = ["text", "spdk", "json", "ndjson", "csv"];
    let mut runs: Vec<_> = forms
        .iter()
        .map(|form| small.args("trace", &["-b", "@evil", "--format", form]))
        .collect();
    let json = printed(runs[2].clone());
    std::fs::write(small.path("evil.json"), json).expect("written");
    for more in [&["--info"][..], &["--list-tpoints"], &["--tpoint", "E_,*"]] {
        runs.push(small.args("trace", more));
    }
    for more in [
        &["--by", "owner,owner.subnqn,qpair.subnqn"][..],
        &["--slowest", "3"],
        &["--json", "--by", "owner"],
    ] {
        runs.push(small.args("latency", &[&["-b", "@evil"], more].concat()));
    }
    let again = runs.clone();
    for mut args in again {
        args[2] = small.path("evil.json").into();
        runs.push(args);
    }
    for args in runs {
        let done = dptrace().args(&args).assert().success();
        assert_harmless(&done.get_output().stdout, &args);
        assert_harmless(&done.get_output().stderr, &args);
        assert!(!done.get_output().stdout.is_empty(), "{args:?}");
    }
}
