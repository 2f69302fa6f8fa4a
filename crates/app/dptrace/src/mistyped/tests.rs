use super::*;

/// Returns the message for a command line that clap rejects.
#[track_caller]
fn said(line: &str) -> String {
    let words: Vec<OsString> = std::iter::once("dptrace")
        .chain(line.split(' '))
        .map(OsString::from)
        .collect();
    let error = Cli::of(&words).expect_err("it is rejected");
    explain(&words, &error)
}

/// Mistakes, with words of the message that each must have.
const MISTAKES: &[(&str, &str)] = &[
    (
        "kerneldelay",
        "there is no command \"kerneldelay\"; near: kernel-delay",
    ),
    (
        "foo",
        "there is no command \"foo\"; dptrace --help lists the commands",
    ),
    (
        "syslat",
        "there is no command \"syslat\"; it is a bundled script: dptrace run syslat",
    ),
    (
        "4711",
        "give a process to a command, with -p: dptrace kernel-delay -p 4711",
    ),
    ("own.bt", "dptrace run own.bt"),
    ("help trce", "there is no command \"trce\"; near: trace"),
    ("-p 1", "dptrace has no option -p of its own; trace, "),
    (
        "--versio",
        "dptrace has no option --versio; near: --version; dptrace --help lists all",
    ),
    (
        "trace --tial 3",
        "dptrace trace has no option --tial; near: --tail; dptrace trace --help lists all",
    ),
    (
        "trace --summary",
        "dptrace trace has no option --summary; latency, kernel-delay and cpus have it",
    ),
    (
        "run own.bt --top 3",
        "; put an option of the script after --: dptrace run SCRIPT -- --top",
    ),
    (
        "trace --head -3",
        "--head -3: expected a number of 0 or more",
    ),
    ("trace --head x", "--head x: expected a whole number"),
    (
        "trace --format xml",
        "--format xml: expected text, spdk, json, ndjson or csv",
    ),
    (
        "completions bsh",
        "SHELL bsh: expected bash, elvish, fish, powershell or zsh; near: bash",
    ),
    ("trace --for", "--for needs a value: --for DURATION ("),
    (
        "trace --no-probes",
        "--no-probes needs --pid PID|NAME as well",
    ),
    (
        "trace x --name y",
        "FILE and --name cannot be used together",
    ),
    (
        "record --buffer 0",
        "--buffer 0: expected a whole number from 1 to 1024",
    ),
    (
        "record --buffer 99999999999999999999",
        "--buffer 99999999999999999999: the number is too large",
    ),
    (
        "kernel-delay --sample-count 4294967296",
        "--sample-count 4294967296: expected a whole number from 0 to 4294967295",
    ),
    ("trace -F -F", "-F is given twice: give it once"),
    (
        "run -p 1 -c x",
        "-p and -c cannot be used together: leave out one of them",
    ),
    (
        "kernel-delay -p 1 --trigger-delta 3",
        "--trigger-delta needs --stop-trigger TRIGGER as well",
    ),
    (
        "kernel-delay --each-event",
        "--each-event needs --syscall-events NS as well",
    ),
    (
        "completions",
        "dptrace completions needs SHELL (one of bash, elvish, fish, powershell, zsh)\nusage: dptrace completions",
    ),
    (
        "record ls -l",
        "put an option of a program to start after --: dptrace record -- PROGRAM -l",
    ),
    (
        "timeline -p 4711",
        "dptrace timeline has no option -p: capture the process first, ",
    ),
    (
        "timeline --pid nvmf_tgt",
        "dptrace capture -p nvmf_tgt --for 3s",
    ),
    ("report -p", "dptrace watch -p PID --slow 500us"),
    (
        "doctor x",
        "unexpected word \"x\": dptrace doctor takes only options\nusage:",
    ),
    (
        "list a b c",
        "unexpected word \"c\": one too many for dptrace list\nusage: dptrace list",
    ),
];

/// Each kind of error that clap knows, and each message of a foreign parser, whose wording may
/// change.
#[test]
fn each_mistake_says_what_to_do() {
    let mut wrong = Vec::new();
    for &(line, words) in MISTAKES {
        let said = said(line);
        let foreign = [
            "tip:",
            "invalid digit",
            "invalid float",
            "For more information",
            "'",
        ];
        if !said.contains(words) || foreign.iter().any(|foreign| said.contains(foreign)) {
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
