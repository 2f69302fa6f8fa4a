//! Mistakes in scripts and in their arguments, and the advice that is printed.

use super::{may_trace, run};

#[test]
fn arguments_that_are_missing_or_too_many_are_noted() {
    let check = |words: &[&str]| run(&[&["run", "--check"], words].concat());
    let one = "begin { print($1); }";
    let cases: [(&[&str], &str); 6] = [
        (
            &["-e", one],
            "note: -e reads $1, which is not given and so 0: put arguments after -e PROGRAM\n",
        ),
        (&["-e", one, "5"], ""),
        (
            &["-e", one, "5", "x"],
            "note: -e takes one argument; not used: x\n",
        ),
        (
            &["-e", "begin { }", "4711"],
            "note: -e takes no arguments; not used: 4711 (to name a process, use -p PID)\n",
        ),
        (&["-e", "begin { print($# > 0 ? $1 : 3); }"], ""),
        (&["-e", one, "--no-warnings"], ""),
    ];
    for (words, notes) in cases {
        let (_, err, status) = check(words);
        assert_eq!((err.as_str(), status), (notes, 0), "{words:?}");
    }
}

#[test]
fn an_invalid_script_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.bt");
    std::fs::write(&empty, "// nothing\n").unwrap();
    let program = folder.path().join("program");
    std::fs::write(&program, b"\x7fELF\xff").unwrap();
    for (words, expected) in [
        (
            &["run", empty.to_str().unwrap()][..],
            "empty.bt has no probe",
        ),
        (&["run", "-e", ""], "-e has no probe"),
        (
            &["run", program.to_str().unwrap()],
            "it is a program (dptrace run SCRIPT -c ",
        ),
        (
            &["run", "libcalls"],
            "; for example: dptrace run libcalls libz -p PID --for 10s\n",
        ),
        (
            &["run", "nosuch"],
            "dptrace scripts lists the bundled scripts",
        ),
    ] {
        let (_, err, status) = run(words);
        assert!(status == 2 && err.contains(expected), "{words:?}: {err}");
    }
    for words in [
        ["run", "-e", "begin { exit() }", "-c"],
        ["kernel-delay", "--sample-time", "0.1", "--"],
    ] {
        for (program, expected) in [
            (empty.as_path(), "is not executable"),
            (folder.path(), "is a directory"),
        ] {
            let (_, err, status) = run(&[&words[..], &[program.to_str().unwrap()]].concat());
            assert!(status == 1 && err.contains(expected), "{words:?}: {err}");
        }
    }
}

#[test]
fn all_mistakes_are_reported_each_with_what_may_be_meant() {
    let script = "begin { @hits = 1; @c = cont(); printf(\"%s\", 5); print(@hit); $n = nsec; @hits = strlem(\"\"); }";
    let (_, err, status) = run(&["run", "--check", "-e", script]);
    assert_eq!(status, 2, "{err}");
    for hint in [
        "did you mean count?",
        "did you mean @hits?",
        "did you mean nsecs?",
        "did you mean strlen?",
    ] {
        assert!(err.contains(hint), "{hint}: {err}");
    }
    // The mistakes are all that is said.
    assert!(
        err.starts_with("error: ") && !err.contains("-e has"),
        "{err}"
    );
    assert_eq!(err.matches("error: ").count(), 5, "{err}");
}

#[test]
fn a_missing_file_or_target_is_reported() {
    let cases: [(&[&str], &str); 9] = [
        (&["run"], "nothing to run: give"),
        (
            &["run", "no-such-script"],
            "failed to open file 'no-such-script'",
        ),
        (
            &["run", "-f", "xml", "-e", "begin {}"],
            "invalid output format \"xml\"",
        ),
        (&["scripts", "sysla"], "did you mean syslat"),
        (
            &["run", "pgqueries", "-p", "no-such-process"],
            "'pgqueries': No such file or directory; did you mean pg-queries",
        ),
        (
            &["run", "pg-queries", "5"],
            "pg-queries needs a process: dptrace run pg-queries 5 -p postgres --children\n",
        ),
        (
            &["run", "syslat"],
            "syslat needs a process: dptrace run syslat -p PID\n",
        ),
        (
            &["run", "pg-queries", "soon"],
            "pg-queries: MS is \"soon\": expected whole milliseconds, as in 100, 100ms or 2s\n",
        ),
        (
            &["run", "pg-queries", "100ms"],
            "pg-queries needs a process: dptrace run pg-queries 100ms -p postgres --children\n",
        ),
    ];
    for (words, expected) in cases {
        let (_, err, status) = run(words);
        assert_eq!(status, 2, "{words:?}: {err}");
        assert!(err.contains(expected), "{words:?}: {err}");
    }
    let (_, err, status) = run(&["run", "-p", "99999999", "-e", "begin {}"]);
    assert_eq!(
        (err.as_str(), status),
        ("error: no process has the pid 99999999\n", 1)
    );
}

/// Triggers of kernel-delay and probes of scripts have different short names.
#[test]
fn short_names_of_the_other_command_are_explained() {
    for (script, hint) in [
        ("up:f {}", "a function is `uprobe:FILE:FUNCTION` (`u:`)"),
        (
            "upr:f {}",
            "a function's return is `uretprobe:FILE:FUNCTION` (`ur:`)",
        ),
        (
            "u:no-such-provider:probe {}",
            "a USDT probe is `usdt:FILE:PROVIDER:PROBE` (`U:`)",
        ),
    ] {
        let (_, err, status) = run(&["run", "--check", "-e", script]);
        assert!(
            status == 2 && err.contains(hint),
            "{script}: {status}: {err}"
        );
    }
    for trigger in ["u:/bin/sh:main", "up:/bin/sh:main"] {
        let (_, err, status) = run(&["kernel-delay", "-p", "1", "--start-trigger", trigger]);
        assert!(
            status == 2 && err.contains("names a file") && err.contains("u:FUNCTION"),
            "{trigger}: {err}"
        );
    }
}

#[test]
fn arguments_that_a_bundled_script_does_not_take_are_reported() {
    let (_, err, status) = run(&["run", "--check", "fsync-files", "100", "200"]);
    assert!([0, 3].contains(&status), "{err}");
    assert!(
        err.contains("note: fsync-files.bt takes one argument; not used: 200"),
        "{err}"
    );
}

/// Packages have other names than libraries, and a pattern of functions can fit too many.
#[test]
fn wrong_arguments_of_a_bundled_script_have_a_remedy() {
    if !may_trace() {
        return;
    }
    let (_, err, status) = run(&["run", "--check", "libcalls", "clib"]);
    assert_eq!(
        (status, err.as_str()),
        (
            2,
            "error: libcalls can't run with these arguments: there is no program in PATH and no \
             library called clib; did you mean libc?\n"
        )
    );
    let (_, err, status) = run(&["run", "--check", "libcalls", "libc", "no_such_function"]);
    assert!(
        status == 2 && err.contains("it takes LIBRARY [START] (dptrace run libcalls --help)"),
        "{err}"
    );
    let (_, err, _) = run(&["list", "clib"]);
    assert!(err.contains("clib (did you mean libc?): "), "{err}");
}

#[test]
fn a_script_in_place_of_a_trace_is_recognized() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("own.bt");
    std::fs::write(&script, "begin { }\n").unwrap();
    let script = script.to_str().unwrap();
    for (name, what) in [(script, "a script"), ("syslat", "a bundled script")] {
        let (_, err, status) = run(&["trace", name]);
        assert_eq!(status, 2, "{err}");
        assert!(
            err.contains(&format!(
                "it is {what}, not a trace: use dptrace run {name}\n"
            )),
            "{err}"
        );
    }
}
