//! The program, run as a user runs it.

use std::ffi::OsStr;

use assert_cmd::Command;

/// Timeout for anything that is sure to end.
const TIMEOUT: std::time::Duration = std::time::Duration::from_mins(1);

/// Returns a command for the program, with an empty standard input.
pub(crate) fn dptrace() -> Command {
    let mut command = Command::from_std(testkit::command(env!("CARGO_BIN_EXE_dptrace")));
    command
        .timeout(TIMEOUT)
        .env("NO_COLOR", "1")
        .write_stdin("");
    command
}

/// Returns its output with these arguments; it must succeed.
#[track_caller]
pub(crate) fn printed<I: IntoIterator<Item: AsRef<OsStr>>>(args: I) -> String {
    let done = dptrace().args(args).assert().success();
    String::from_utf8(done.get_output().stdout.clone()).expect("output is UTF-8")
}
