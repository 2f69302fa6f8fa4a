//! A process that calls itself ovs-vswitchd and answers with as much as `pmd` accepts.

use std::process::Stdio;

use super::{WITH_BPF, compiled, limited};
use crate::common::kernel::{Process, kernel, needs};

/// Numbers of 7-byte values below and above the longest accepted answer, each with the expected
/// message.
const ANSWERS: [(&str, &str); 2] = [
    ("4500000", "its answer can't be read"),
    ("9000000", "more than 32 MiB"),
];

#[test]
fn answers_that_take_many_times_their_bytes_are_not_kept() {
    let Some(_guard) = kernel() else { return };
    if !needs("gcc") {
        return;
    }
    for (values, expected) in ANSWERS {
        let dir = tempfile::tempdir().expect("a directory");
        let program = compiled(dir.path(), include_str!("daemon.c"), &["-pthread"]);
        let socket = dir.path().join("v.ctl");
        let mut command = testkit::command(program);
        let mut daemon = Process::start(command.arg(&socket).arg(values).stdout(Stdio::null()));
        daemon.wait_for("ready");
        let output = limited(
            WITH_BPF,
            &["pmd", "-p", &daemon.pid().to_string(), "--for", "1s"],
        );
        let text = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .concat();
        assert!(
            output.status.success() && text.contains(expected),
            "{values}: {text}"
        );
        daemon.signal("KILL");
        daemon.end();
    }
}
