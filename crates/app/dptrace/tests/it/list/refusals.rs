//! Targets without probes, mistakes, and missing rights.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;

use super::{OWN, Waiting, is_root, libstdcxx, messages};
use crate::common::dptrace;

#[test]
fn broken_notes_are_reported() {
    let Some(path) = libstdcxx() else { return };
    let mut bytes = std::fs::read(path).expect("it is there");
    let note = b"libstdcxx\0throw\0";
    let at = bytes
        .windows(note.len())
        .position(|window| window == note)
        .expect("the note");
    bytes[at] = 1;
    let dir = tempfile::tempdir().expect("a directory");
    let broken = dir.path().join("broken.so");
    std::fs::write(&broken, bytes).expect("it is ours");
    let done = dptrace().arg("list").arg(&broken).assert().success();
    let out = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
    let messages = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(
        out.contains("libstdcxx:catch") && !out.contains(":throw"),
        "{out}"
    );
    assert!(
        messages.contains("left out 1 invalid USDT note")
            && messages.contains("provider is not printable"),
        "{messages}"
    );
}

#[test]
fn a_program_without_probes_is_no_failure() {
    let child = Waiting::start(testkit::command("sleep").arg("60"));
    dptrace()
        .args(["list", "-p", &child.pid()])
        .assert()
        .success();
    let error = messages(&["-p", &child.pid(), "no_such_probe"], 1);
    assert!(
        error.contains("no USDT probe of pid") && error.contains("sleep"),
        "{error}"
    );
}

#[test]
fn a_process_without_a_program_is_refused() {
    let error = messages(&["-p", "4194305"], 1);
    assert!(error.contains("no process has the pid 4194305"), "{error}");
    if std::fs::read("/proc/2/comm").is_ok_and(|name| name == b"kthreadd\n") {
        let error = messages(&["-p", "2"], 1);
        assert!(
            error.contains("pid 2 (kthreadd) is a thread of the kernel"),
            "{error}"
        );
    } else {
        testkit::kernel::skip_if_permitted(
            "kernel threads",
            "no kernel thread is to be seen here (a container?)",
        );
    }
}

#[test]
fn a_file_without_a_program_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).expect("it is ours");
        path
    };
    let error = messages(&[file("script", b"#!/usr/bin/env python3\n")], 1);
    assert!(
        error.contains("script") && error.contains("/usr/bin/env python3"),
        "{error}"
    );
    assert!(messages(&[file("text", b"hello")], 1).contains("not an ELF file"));
    assert!(messages(&[file("empty", b"")], 1).contains("no bytes"));
    let mut narrow = [0; 64];
    narrow[..5].copy_from_slice(b"\x7fELF\x01");
    narrow[18] = 3;
    assert!(messages(&[file("narrow", &narrow)], 1).contains("32-bit ELF file (machine i386)"));
    assert!(
        messages(
            &[file(
                "cut",
                &std::fs::read(OWN).expect("it is there")[..500]
            )],
            1
        )
        .contains("truncated")
    );
    assert!(messages(&[dir.path()], 1).contains("not a regular file"));
    assert!(messages(&["/no/such/file"], 1).contains("/no/such/file"));
    assert!(
        !messages(&[file("\u{1b}[31m", b"x")], 1).contains('\u{1b}'),
        "control characters go to no terminal"
    );
}

#[test]
fn a_library_in_place_of_a_pattern_is_explained() {
    let child = Waiting::start(testkit::command("sleep").arg("60"));
    for words in [&["libc", "--functions"][..], &["libc.so.6"]] {
        let error = messages(&[&["-p", &child.pid()], words].concat(), 1);
        let library = words[0];
        assert!(
            error.contains(&format!("{library} is a library of pid "))
                && error.contains(&format!("dptrace run libcalls {library} -p PID")),
            "{error}"
        );
    }
}

#[test]
fn mistakes_are_usage_errors() {
    assert!(messages(&[""; 0], 2).contains("-p PID"));
    assert!(messages(&["-p", "1", "a", "b"], 2).contains("only one pattern is allowed"));
    assert!(messages(&[OWN, ""], 2).contains("pattern"));
    messages(&["--tracepoints", "-p", "1"], 2);
    messages(&["a", "b", "c"], 2);
}

/// Another user's process: status 3, and the rights that it takes.
#[test]
fn a_missing_permission_is_reported() {
    if !is_root() {
        return testkit::kernel::skip_if_permitted("root", "not root, so nobody else can be tried");
    }
    let child = Waiting::start(testkit::command("sleep").arg("60"));
    // Our own folder may be closed to other users.
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).expect("it is ours");
    let copy = dir.path().join("dptrace");
    testkit::copy_program(OWN, &copy);
    let nobody = 65534;
    let done = testkit::command(&copy)
        .args(["list", "-p", &child.pid()])
        .uid(nobody)
        .gid(nobody)
        .output();
    let done = done.expect("nobody may run it");
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(3), "{error}");
    assert!(error.contains("CAP_SYS_PTRACE"), "{error}");
}
