//! Outputs that accept no more: a full disk, and a reader that has gone.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use super::{assert_nothing_is_left, end_of, ready};
use crate::common::kernel::{Demo, PROGRAM};

/// Returns commands that print while attached, and do not end by themselves.
fn endless(pid: &str) -> [Vec<&str>; 4] {
    let script = "usdt:*:spdk:nvmf_ctrlr_add_qpair { printf(\"%s\\n\", str(arg3)); }";
    [
        vec!["record", "-p", pid, "--objects", "all"],
        vec!["run", "-p", pid, "-e", script],
        vec!["run", "-p", pid, "-f", "json", "-e", script],
        vec![
            "kernel-delay",
            "-p",
            pid,
            "--sample-time",
            "0.05",
            "--sample-count",
            "1000000",
        ],
    ]
}

#[test]
fn a_full_disk_ends_it_with_an_error() {
    let Some((_guard, before)) = ready() else {
        return;
    };
    let mut demo = Demo::start(&["--life", "2", "--for", "10m"]);
    demo.go();
    let pid = demo.process.pid().to_string();
    for args in endless(&pid) {
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .expect("it is there");
        let mut tracer = testkit::command(PROGRAM);
        tracer
            .args(&args)
            .stdin(Stdio::null())
            .stdout(full)
            .stderr(Stdio::piped());
        let mut tracer = tracer.spawn().expect("it starts");
        let status = end_of(&mut tracer);
        let messages =
            std::io::read_to_string(tracer.stderr.take().expect("it is piped")).expect("text");
        assert_eq!(status.code(), Some(1), "{args:?}: {messages}");
        assert!(
            messages.contains("No space left on device"),
            "{args:?}: {messages}"
        );
    }
    demo.process.signal("TERM");
    demo.truth();
    assert_nothing_is_left(&before);
}

/// As in `dptrace record -p PID | head -1`: no error, since nothing is wrong.
#[test]
fn a_reader_that_has_gone_ends_it() {
    let Some((_guard, before)) = ready() else {
        return;
    };
    let mut demo = Demo::start(&["--life", "2", "--for", "10m"]);
    demo.go();
    let pid = demo.process.pid().to_string();
    for args in endless(&pid) {
        let mut tracer = testkit::command(PROGRAM);
        tracer
            .args(&args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut tracer = tracer.spawn().expect("it starts");
        let mut line = String::new();
        let mut reader = BufReader::new(tracer.stdout.take().expect("it is piped"));
        assert!(reader.read_line(&mut line).expect("text") > 0, "{args:?}");
        drop(reader);
        end_of(&mut tracer);
        let messages =
            std::io::read_to_string(tracer.stderr.take().expect("it is piped")).expect("text");
        assert!(
            !messages.contains("error") && !messages.contains("panic"),
            "{args:?}: {messages}"
        );
    }
    demo.process.signal("TERM");
    demo.truth();
    assert_nothing_is_left(&before);
}
