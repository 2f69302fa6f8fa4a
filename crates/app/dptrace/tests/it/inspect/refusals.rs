//! Expressions that are wrong, processes that cannot be read, and rights.

use std::fs;
use std::path::Path;

use super::{PROGRAM, Target, run};
use testkit::kernel::skip;

/// Expressions that are wrong, with the exit status and the words of the message.
const WRONG: &[(&str, i32, &[&str])] = &[
    (
        "counter",
        2,
        &[
            "there are 2 variables counter, in main.c, other.c",
            "uaddr(\"other.c:counter\")",
        ],
    ),
    (
        "g_cons",
        2,
        &[
            "there is no variable or enumerator g_cons",
            "did you mean g_conns",
        ],
    ),
    (
        "g_all[0].pear",
        2,
        &["has no member pear: did you mean peer?", "          ^^^^"],
    ),
    ("g_null->id", 1, &["the pointer is NULL"]),
    (
        "g_wild->id",
        1,
        &["0x123456789010 can't be read: not mapped"],
    ),
    (
        "list(g_circle, link)",
        2,
        &["leads back to", "after 1 elements"],
    ),
    ("g_all[", 2, &["expected an expression"]),
    (
        "g_all[4]",
        2,
        &["the index 4 is beyond the array, which has 4 elements"],
    ),
];

#[test]
fn mistakes_are_shown_at_their_place() {
    let Some(target) = Target::start("whole", &[]) else {
        return;
    };
    for &(expr, status, words) in WRONG {
        let (out, errors, found) = target.inspect(&[expr]);
        assert_eq!(
            (out.as_str(), found),
            ("", Some(status)),
            "{expr}: {errors}"
        );
        for word in words {
            assert!(errors.contains(word), "{expr}: {errors}");
        }
    }
    // The other expressions are printed.
    let (out, _, status) = target.inspect(&["g_null->id", "1 + 1"]);
    assert_eq!((out.as_str(), status), ("1 + 1 = 2\n", Some(1)));
    let (out, errors, status) =
        target.inspect(&["len(list(g_conns, link))", "--max-elements", "2"]);
    assert_eq!(
        (out.as_str(), status),
        ("len(list(g_conns, link)) = 2\n", Some(1))
    );
    assert!(
        errors.contains("a list goes on after 2 elements"),
        "{errors}"
    );
}

#[test]
fn processes_that_cannot_be_read_are_errors() {
    let Some(target) = Target::start("whole", &[]) else {
        return;
    };
    let pid = target.child.id().to_string();
    drop(target);
    let (_, errors, status) = run(Path::new(PROGRAM), &["inspect", "-p", &pid, "1"]);
    assert!(
        status == Some(1) && errors.contains("no process has the pid"),
        "{errors}"
    );
}

/// CAP_SYS_PTRACE alone suffices; without it the error names it.
#[test]
fn one_capability_is_enough() {
    let Some(target) = Target::start("whole", &[]) else {
        return;
    };
    let is_root = fs::metadata("/proc/self")
        .map(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
        .unwrap();
    if !is_root {
        skip("kernel", "not root");
        return;
    }
    let copy = target.path("dptrace");
    testkit::copy_program(PROGRAM, &copy);
    let pid = target.child.id().to_string();
    let words = [
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
        "--",
        copy.to_str().unwrap(),
        "inspect",
        "-p",
        &pid,
        "g_all[1].id",
    ];
    for (right, expected) in [(None, Some(3)), (Some("cap_sys_ptrace+ep"), Some(0))] {
        if let Some(right) = right {
            let done = testkit::command("setcap").arg(right).arg(&copy).output();
            if !done.is_ok_and(|done| done.status.success()) {
                skip("setcap", "capabilities can't be given to files here");
                return;
            }
        }
        let (out, errors, status) = run(Path::new("setpriv"), &words);
        assert_eq!(status, expected, "{errors}");
        if right.is_some() {
            assert_eq!(out, "g_all[1].id = 2\n");
        } else {
            assert!(errors.contains("CAP_SYS_PTRACE"), "{errors}");
        }
    }
}
