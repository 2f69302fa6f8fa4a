//! `dptrace run`, to its end.

/// Returns standard output and standard error of a run, which must succeed.
#[track_caller]
pub(crate) fn run(words: &[&str]) -> (String, String) {
    let mut command = testkit::command(env!("CARGO_BIN_EXE_dptrace"));
    let output = command
        .args([&["run", "-q"], words].concat())
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{words:?}: {out}{err}");
    (out, err)
}
