//! Attach points that a run never hit.

use crate::common::kernel::{PROGRAM, kernel};

/// `ls` calls the first function, and none of the others.
const SCRIPT: &str = "uprobe:libc:malloc { @ = 1; } uprobe:libc:qecvt, uprobe:libc:qfcvt { @q = 1; } \
     uprobe:libc:q?cvt_r / pid == 1 / { @r = 1; } interval:s:1000 { @i = 1; } end { @e = 1; }";

/// Runs a program with a script and `ls`; returns its standard output and standard error.
fn run(program: &str, options: &[&str], script: &str) -> (String, String) {
    let output = testkit::command(program)
        .args(options)
        .args(["-e", script, "-c", "ls /"])
        .env("NO_COLOR", "1")
        .output()
        .expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{options:?}: {out}{err}");
    (out, err)
}

#[test]
fn attach_points_that_were_never_hit_are_named_at_the_end() {
    let Some(_alone) = kernel() else { return };
    let (out, err) = run(PROGRAM, &["run"], SCRIPT);
    assert!(
        out.contains("@: 1\n") && !out.contains("never hit"),
        "{out}"
    );
    let names = "uprobe:libc:qecvt, uprobe:libc:qfcvt, uprobe:libc:q?cvt_r";
    let last = err.lines().last();
    assert_eq!(last, Some(&*format!("note: never hit: {names}")), "{err}");
    // Nothing was attached.
    let ended = format!("begin {{ exit(); }} {SCRIPT}");
    for (options, script) in [
        (&["run"][..], &*ended),
        (&["run"], "uprobe:libc:malloc { @ = 1; }"),
        (&["run", "-q"], SCRIPT),
        (&["run", "--no-warnings"], SCRIPT),
    ] {
        let (_, err) = run(PROGRAM, options, script);
        assert!(!err.contains("never hit"), "{options:?}: {err}");
    }
    let folder = tempfile::tempdir().expect("a directory");
    let bpftrace = folder.path().join("bpftrace");
    std::os::unix::fs::symlink(PROGRAM, &bpftrace).expect("a link");
    let (_, err) = run(bpftrace.to_str().expect("UTF-8"), &[], SCRIPT);
    assert!(!err.contains("never hit"), "{err}");
}
