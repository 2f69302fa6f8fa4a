//! Completion as the shells do it: bash, zsh and fish, each with dptrace's script for it.

use std::path::Path;
use std::process::Stdio;

use crate::common::small::Small;
use crate::common::{dptrace, printed};

/// Runs a shell script of ours in that directory, with the tested `dptrace` in its path; returns
/// its output. `None` if there is no such shell.
fn shell(words: &[&str], script: &str, dir: &Path) -> Option<String> {
    let bin = Path::new(env!("CARGO_BIN_EXE_dptrace"))
        .parent()
        .expect("a directory");
    let path =
        std::env::join_paths([bin, Path::new("/usr/bin"), Path::new("/bin")]).expect("a path");
    let mut command = testkit::command(words[0]);
    command
        .args(&words[1..])
        .arg(script)
        .current_dir(dir)
        .stdin(Stdio::null());
    command
        .env("PATH", path)
        .env("HOME", dir)
        .env("LC_ALL", "C.UTF-8")
        .env("TERM", "dumb")
        .env_remove("COLUMNS");
    match command.output() {
        Ok(done) => {
            let messages = String::from_utf8_lossy(&done.stderr);
            assert!(
                done.status.success() && messages.is_empty(),
                "{words:?}: {}\n{messages}",
                done.status
            );
            Some(String::from_utf8_lossy(&done.stdout).into_owned())
        }
        Err(error) => {
            testkit::kernel::skip(words[0], &format!("no {} here: {error}", words[0]));
            None
        }
    }
}

/// Calls the function as bash does: `COMP_WORDS` are split at `COMP_WORDBREAKS`, and `COMP_TYPE` is
/// a second TAB (63, `?`) unless `TYPE` is set.
const BASH: &str = r#"
complete_line() {
    COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=${TYPE:-63} COLUMNS=60
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _dptrace
    printf '[%s]' "${COMPREPLY[@]}"
    echo
}
eval "$(dptrace completions bash)"
"#;

fn bash(lines: &str, dir: &Path) -> Option<String> {
    shell(
        &["bash", "--norc", "--noprofile", "-c"],
        &format!("{BASH}{lines}"),
        dir,
    )
}

#[test]
fn bash_completes_what_the_program_knows() {
    let small = Small::new();
    let lines = r#"
complete_line 'dptrace la' dptrace la
complete_line 'dptrace run runql' dptrace run runql
complete_line 'dptrace trace t.trace --tpoint RDMA' dptrace trace t.trace --tpoint RDMA
complete_line 'dptrace trace t.trace --tpoint=TCP_REQ_NEW,RDMA' dptrace trace t.trace --tpoint = TCP_REQ_NEW,RDMA
TYPE=37 complete_line 'dptrace trace t.trace --tpoint RDMA' dptrace trace t.trace --tpoint RDMA
complete_line 'dptrace latency t.trace --by lcore,owner.sub' dptrace latency t.trace --by lcore,owner.sub
complete_line "dptrace trace t.trace --where 'arg.qp" dptrace trace t.trace --where "'arg.qp"
complete_line "dptrace trace t.trace --where=owner.p" dptrace trace t.trace --where = owner.p
complete_line 'dptrace trace t.trace -o x' dptrace trace t.trace -o x
complete_line 'dptrace trace t.trace > x' dptrace trace t.trace '>' x
"#;
    let Some(printed) = bash(lines, small.dir.path()) else {
        return;
    };
    let expected = "\
        [latency]\n\
        [runqlat]\n\
        [RDMA_REQ_NEW        (qpair)][RDMA_REQ_COMPLETED  (qpair)]\n\
        [TCP_REQ_NEW,RDMA_REQ_NEW        (qpair)][TCP_REQ_NEW,RDMA_REQ_COMPLETED  (qpair)]\n\
        [RDMA_REQ_NEW][RDMA_REQ_COMPLETED]\n\
        [lcore,owner.subnqn]\n\
        [arg.qpair  (argument of records)][arg.qpair=]\n\
        [owner.peer]\n\
        []\n\
        []\n";
    assert_eq!(printed, expected);
}

#[test]
fn bash_lists_processes_with_their_names() {
    let dir = tempfile::tempdir().expect("a directory");
    // The test's own process, which lives long enough.
    let own = std::process::id().to_string();
    let Some(printed) = bash(
        "complete_line 'dptrace kernel-delay -p ' dptrace kernel-delay -p ''",
        dir.path(),
    ) else {
        return;
    };
    let mut entries = printed
        .trim_start_matches('[')
        .trim_end()
        .trim_end_matches(']')
        .split("][");
    assert!(
        entries.clone().all(|entry| entry.chars().count() <= 60),
        "{printed}"
    );
    let entry = entries.find(|entry| entry.split(' ').next() == Some(&own));
    assert!(
        entry.is_some_and(|entry| entry.contains("(it-")),
        "{own} in {printed}"
    );
}

/// The shell reads it without messages, with and without the package `bash-completion`.
#[test]
fn bash_takes_the_script() {
    let dir = tempfile::tempdir().expect("a directory");
    let with = "[[ -e /usr/share/bash-completion/bash_completion ]] && . /usr/share/bash-completion/bash_completion\n";
    let Some(printed) = bash(
        &format!("{with}eval \"$(dptrace completions bash)\"; complete -p dptrace"),
        dir.path(),
    ) else {
        return;
    };
    assert!(
        printed.starts_with("complete ") && printed.ends_with(" -F _dptrace dptrace\n"),
        "{printed}"
    );
}

/// Calls the function with the variables that zsh sets, and prints the words it adds.
const ZSH: &str = r#"
compdef() { : }
compset() { return 1 }
compadd() { local -a suffix; [[ "$*" == *-S* ]] && suffix=nospace; print -r -- ${(j:|:)values} $suffix; print -rl -- $shown }
_files() { print "files $*" }
eval "$(dptrace completions zsh)"
complete_words() { words=("$@") CURRENT=$# PREFIX=${@[-1]}; _dptrace || print none; true }
"#;

#[test]
fn zsh_completes_what_the_program_knows() {
    let small = Small::new();
    let lines = r"
complete_words dptrace la
complete_words dptrace trace t.trace --tpoint RDMA
complete_words dptrace trace t.trace --where arg.q
complete_words dptrace demo --write x
complete_words dptrace run runql
complete_words dptrace trace --head 1
";
    let Some(printed) = shell(
        &["zsh", "-f", "-c"],
        &format!("{ZSH}{lines}"),
        small.dir.path(),
    ) else {
        return;
    };
    let lines: Vec<_> = printed.lines().collect();
    let expected = [
        "latency",
        "latency  -- Report how long each stage of a request takes",
        "RDMA_REQ_NEW|RDMA_REQ_COMPLETED",
        "RDMA_REQ_NEW        -- qpair",
        "RDMA_REQ_COMPLETED  -- qpair",
        "arg.qpair|arg.qd nospace",
        "arg.qpair  -- argument of records",
        "arg.qd     -- argument of records",
        "files -/",
        "runqlat",
        "runqlat  -- Measures how long runnable threads wait for a CPU.",
        "files ",
        "none",
    ];
    assert_eq!(lines, expected);
}

/// fish completes a line without a terminal.
#[test]
fn fish_completes_what_the_program_knows() {
    let small = Small::new();
    let lines = "dptrace completions fish | source
complete -C 'dptrace la'
complete -C 'dptrace trace t.trace --tpoint RDMA'
complete -C \"dptrace latency t.trace --by lcore,owner.sub\"
complete -C \"dptrace trace t.trace --where 'arg.q\"
complete -C 'dptrace trace t.tr'
complete -C 'dptrace run runql'
complete -C 'dptrace run --usdt-file'
";
    let Some(printed) = shell(&["fish", "--no-config", "-c"], lines, small.dir.path()) else {
        return;
    };
    let expected = "\
        latency\tReport how long each stage of a request takes\n\
        RDMA_REQ_NEW\tqpair\n\
        RDMA_REQ_COMPLETED\tqpair\n\
        lcore,owner.subnqn\tpart of the owner's description\n\
        arg.qpair=\targument of records\n\
        arg.qd=\targument of records\n\
        t.trace\n\
        runqlat\tMeasures how long runnable threads wait for a CPU.\n";
    // fish does not define the order in which it prints files among the others.
    let recordings = |text: &str| {
        text.lines()
            .filter(|line| !line.contains("t.recording"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(recordings(&printed), recordings(expected));
}

/// A line that is still being typed is no error: any content gets an answer that the scripts can
/// read.
#[test]
fn any_line_has_an_answer() {
    let dir = tempfile::tempdir().expect("a directory");
    let fifo = dir.path().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .expect("made");
    let fifo = fifo.to_str().expect("UTF-8");
    for words in [
        &[][..],
        &[""],
        &["--"],
        &["no-such", ""],
        &["trace", "--no-such", "--tpoint", ""],
        &["trace", "/no/such", "--tpoint", ""],
        &["trace", fifo, "--tpoint", ""],
        &["trace", "/dev/zero", "--by", ""],
        &["latency", "--by", "lcore,", ""],
        &["run", "-", ""],
        &["run", "-vvv\u{1b}", "größe"],
        &["kernel-delay", "-s", "-"],
    ] {
        for shell in ["bash", "zsh", "fish"] {
            let answer = printed(["complete", shell, "--"].iter().chain(words));
            let mut lines = answer.lines();
            let offers = lines.next().expect("a first line");
            assert!(
                ["none", "files", "directories", "commands"]
                    .contains(&offers.trim_end_matches(" nospace")),
                "{offers}"
            );
            assert!(
                lines.all(|line| line.matches('\t').count() == 1),
                "{words:?}: {answer}"
            );
        }
    }
    dptrace().args(["complete", "tcsh"]).assert().code(2);
}
