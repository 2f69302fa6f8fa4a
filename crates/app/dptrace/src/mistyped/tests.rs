use super::*;

/// Returns the message for a command line that clap rejects.
#[track_caller]
fn said(line: &str) -> String {
    let words: Vec<OsString> = std::iter::once("dptrace")
        .chain(line.split(' '))
        .map(OsString::from)
        .collect();
    let error = Cli::parse_words(&words).expect_err("it is rejected");
    explain(&words, &error)
}

/// Command lines with each kind of error that clap knows, and each hint; with a part of the message.
const MISTAKES: &[(&str, &str)] = &[
    (
        "kerneldelay",
        "unrecognized subcommand 'kerneldelay'; did you mean kernel-delay?",
    ),
    ("capure", "; did you mean capture?"),
    ("reprot", "; did you mean report?"),
    ("timelin", "; did you mean timeline?"),
    (
        "foo",
        "unrecognized subcommand 'foo'; dptrace --help lists the commands",
    ),
    ("syslat", "; it is a bundled script: dptrace run syslat"),
    (
        "4711",
        "; give a process to a command, with -p: dptrace kernel-delay -p 4711",
    ),
    ("own.bt", "; to run a script: dptrace run own.bt"),
    (
        "-p 1",
        "unexpected argument '-p' found; put it after a command that has it: trace, latency, ",
    ),
    ("--versio", "found; did you mean --version?"),
    ("trace --tial 3", "found; did you mean --tail?"),
    (
        "trace --summary",
        "found; these commands have it: latency, kernel-delay, cpus",
    ),
    (
        "trace --sample-time 1",
        "found; these commands have it: kernel-delay",
    ),
    (
        "trace --nothing-like-it",
        "found; dptrace trace --help lists all options",
    ),
    (
        "run own.bt --top 3",
        "put an option of the script after --: dptrace run SCRIPT -- --top",
    ),
    ("trace --head -3", "found; a number must be 0 or more"),
    (
        "trace --head x",
        "invalid value 'x' for '--head <N>': expected a whole number",
    ),
    (
        "trace --format xml",
        "[possible values: text, spdk, json, ndjson, csv]",
    ),
    ("completions bsh", "; did you mean bash?"),
    (
        "latency --format text",
        "found; text is the default, and --json prints JSON",
    ),
    ("kernel-delay --fro 1s", "; did you mean --for?"),
    (
        "strace",
        "; for system calls with their times: dptrace run ",
    ),
    ("trace --for", "a value is required for '--for <DURATION>'"),
    (
        "trace --no-probes",
        "required arguments were not provided: <--pid <PID|NAME>|--name <NAME>>",
    ),
    ("record --buffer 0", ": 0 is not in 1..=1024"),
    ("trace -F -F", "'--follow' cannot be used multiple times"),
    (
        "run -p 1 -c x",
        "'--pid <PID|NAME>' cannot be used with '--cmd <COMMAND>'",
    ),
    (
        "completions",
        "were not provided: <SHELL>\nusage: dptrace completions <SHELL>",
    ),
    (
        "record ls -l",
        "; dptrace record -h lists the options; one of a program to start comes after --: dptrace \
         record -- PROGRAM -l",
    ),
    (
        "kernel-delay -f json",
        "; text is the default, and --json prints JSON",
    ),
    (
        "kernel-delay -t 2",
        "; dptrace kernel-delay -h lists the options",
    ),
    (
        "timeline -p 4711",
        "unexpected argument '-p' found; capture the process first, ",
    ),
    (
        "timeline --pid nvmf_tgt",
        "dptrace capture -p nvmf_tgt --for 3s",
    ),
    ("report -p", "dptrace capture -p PID --slow 500us"),
    (
        "doctor x",
        "unexpected argument 'x' found\nusage: dptrace doctor [OPTIONS]",
    ),
    (
        "objects 1 4711",
        "; to name a process, use -p: dptrace objects -p 4711",
    ),
    (
        "list a b c",
        "; no more were expected\nusage: dptrace list ",
    ),
];

#[test]
fn each_mistake_says_what_to_do() {
    let mut wrong = Vec::new();
    for (line, words) in MISTAKES {
        let said = said(line);
        let repeated = ["tip:", "error:", "For more information"];
        if !said.contains(words) || repeated.iter().any(|text| said.contains(text)) {
            wrong.push(format!("{line}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn words_of_others_are_escaped() {
    for line in [
        "\u{1b}[2J",
        "trace --\u{1b}[2J",
        "trace --head \u{1b}[2J",
        "list a b \u{1b}[2J",
        "trace --format \u{1b}[2J",
    ] {
        assert!(!said(line).contains('\u{1b}'), "{line:?}");
    }
}
