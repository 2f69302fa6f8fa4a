//! Words of the command line that are wrong, and the advice that is printed.

use super::run;
use crate::common::small::Small;

#[test]
fn slips_in_filters() {
    let small = Small::new();
    for (args, words) in [
        (
            &["--where", "owner.subnqm=x"][..],
            &["there is no field \"owner.subnqm\"; did you mean owner.subnqn"][..],
        ),
        (
            &["--where", "zzzz=x"],
            &[
                "the fields are lcore, ",
                "tpoint",
                "arg.NAME",
                "qpair.hostnqn",
            ],
        ),
        (&["--where", "subnqn"], &["= != < <= > >="]),
        (&["--where", "size>big"], &["\"big\" is not a number"]),
        (&["--where", "tpoint=["], &["\"[\""]),
        (&["--tpoint", "TCP_[REQ"], &["TCP_[REQ"]),
        (&["--owner", "a**b"], &["a**b"]),
        (&["--lcore", "one"], &["one", "0,4-7"]),
        (&["--lcore", "7-4"], &["7-4"]),
        (&["--object", "10"], &["10", "r10"]),
        (&["--since", "nan"], &["nan"]),
        (&["--until", "soon"], &["soon"]),
        (&["--format", "xml"], &["ndjson"]),
        (&["--no-such-option"], &["--no-such-option"]),
    ] {
        let (out, messages) = run(small.args("trace", args), 2);
        assert_eq!(out, "", "{args:?}");
        assert!(
            words.iter().all(|word| messages.contains(word)),
            "{args:?}: {messages}"
        );
    }
}

/// One of several names may belong to another version; if none matches, the command fails.
#[test]
fn a_tracepoint_that_the_trace_does_not_have() {
    let small = Small::new();
    for command in ["trace", "latency"] {
        let (out, messages) = run(small.args(command, &["--tpoint", "TCP_REQ_NWE"]), 1);
        assert!(
            out.is_empty() && messages.contains("did you mean TCP_REQ_NEW"),
            "{messages}"
        );
        let (out, messages) = run(
            small.args(command, &["--tpoint", "TCP_REQ_NWE,TCP_REQ_*"]),
            0,
        );
        assert!(
            !out.is_empty() && messages.contains("did you mean TCP_REQ_NEW"),
            "{messages}"
        );
    }
}

#[test]
fn times_are_refused_in_our_own_words() {
    for (command, more) in [
        ("trace", &["-F"][..]),
        ("record", &["-p", "1"]),
        ("run", &["-e", "begin { exit() }"]),
    ] {
        for (time, words) in [
            ("0", "longer than 0"),
            ("5x", "5 or 5s (seconds), 500ms, 1m30s"),
        ] {
            let (_, messages) = run([&[command], more, &["--for", time]].concat(), 2);
            assert!(messages.contains(words), "{command} {time}: {messages}");
        }
    }
}

/// All mistyped arguments get one form of message: `error:`, what is wrong, and what to do. Nothing
/// goes to standard output, and the status is 2.
#[test]
fn usage_errors_have_one_form() {
    for (args, words) in [
        (&["kerneldelay"][..], "did you mean kernel-delay?"),
        (&["-p", "1"], "put it after a command"),
        (&["trace", "--tial", "3"], "did you mean --tail?"),
        (
            &["trace", "--head", "x"],
            "invalid value 'x' for '--head <N>'",
        ),
        (&["trace", "--head"], "a value is required for '--head <N>'"),
        (
            &["run", "syslat", "--top", "3"],
            "after --: dptrace run SCRIPT -- --top",
        ),
        (
            &["run", "-p", "1", "-c", "x"],
            "'--pid <PID|NAME>' cannot be used with",
        ),
        (&["completions"], "usage: dptrace completions"),
    ] {
        let (out, messages) = run(args, 2);
        assert!(
            out.is_empty() && messages.starts_with("error: ") && messages.contains(words),
            "{args:?}: {messages}"
        );
        assert!(
            !messages.contains("tip:") && !messages.contains("For more information"),
            "{args:?}: {messages}"
        );
    }
}

/// As in `list`: the reason, near names, and status 1; a note if something else was found.
#[test]
fn probes_that_are_not_there_are_not_listed() {
    let own = env!("CARGO_BIN_EXE_dptrace");
    let usdt = |name: &str| format!("usdt:{own}:{name}");
    for (pattern, words) in [
        (
            usdt("spdk:nvmf_ctrlr_add_qpar"),
            "has no USDT probe spdk:nvmf_ctrlr_add_qpar; did you mean spdk:nvmf_ctrlr_add_qpair",
        ),
        (
            usdt("nvmf_ctrlr_add_qpar"),
            "did you mean spdk:nvmf_ctrlr_add_qpair",
        ),
        (
            usdt("sqdk:nvmf_ctrlr_add_qpair"),
            "did you mean spdk:nvmf_ctrlr_add_qpair",
        ),
        (
            "usdt:/no/such/file:*".to_owned(),
            "there is no file /no/such/file",
        ),
        (
            "kprob:*".to_owned(),
            "there is no kind of probe \"kprob\" to list (did you mean kprobe",
        ),
        ("software:page-falts".to_owned(), "did you mean page-faults"),
        (
            format!("uprobe:{own}:maim"),
            "has no function maim; did you mean main",
        ),
        // glibc has one version for each kind of processor.
        (
            "uprobe:libc:strlen".to_owned(),
            "strlen is the code that chooses the function when a program starts (IFUNC)",
        ),
    ] {
        let (out, messages) = run(["run", "-l", &pattern], 1);
        assert!(
            out.is_empty() && messages.contains(words),
            "{pattern}: {messages}"
        );
        assert!(
            messages.starts_with(&format!("error: no probe matches {pattern:?}: ")),
            "{pattern}: {messages}"
        );
    }
    let (out, messages) = run(["run", "-l", "software:page-faults,software:page-falts"], 0);
    assert!(
        out == "software:page-faults:\n" && messages.starts_with("note: no probe matches "),
        "{out}{messages}"
    );
    let (_, messages) = run(["list", own, "sqdk:nvmf_ctrlr_add_qpair"], 1);
    assert!(
        messages.contains("did you mean spdk:nvmf_ctrlr_add_qpair"),
        "{messages}"
    );
}

#[test]
fn follow_needs_a_file() {
    let (_, messages) = run(["trace", "--follow", "-i", "-"], 2);
    assert!(
        messages.contains("--follow") && messages.contains("standard input"),
        "{messages}"
    );
    run(["trace", "--follow", "--tail", "3"], 2);
}
