use clap::CommandFactory as _;
use grammar::complete::{Names, complete};

use super::values;
use crate::cli::Cli;

/// Returns the completions of a line's last word; a first entry with `|` stands for the names that
/// the shell adds.
fn completions(line: &str) -> Vec<String> {
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    words.remove(0);
    let mut grammar = Cli::command();
    grammar.build();
    let answer = complete(&grammar, &words, values::value);
    let names = (answer.names != Names::None).then(|| format!("|{}", answer.offers()));
    names
        .into_iter()
        .chain(answer.candidates.into_iter().map(|it| it.value))
        .collect()
}

fn offered(line: &str) -> String {
    completions(line).join(" ")
}

#[test]
fn commands_and_options_without_hidden_ones() {
    assert_eq!(offered("dptrace la"), "latency");
    assert_eq!(offered("dptrace help la"), "latency");
    assert_eq!(offered("dptrace trace --list"), "--list-tpoints");
    let commands = completions("dptrace ");
    assert!(
        commands.contains(&"doctor".to_owned()) && !commands.contains(&"demo-target".to_owned()),
        "{commands:?}"
    );
    assert!(!commands.contains(&"complete".to_owned()), "{commands:?}");
    assert_eq!(offered("dptrace run --usdt-file"), "");
    assert_eq!(offered("dptrace no-such-command "), "");
}

#[test]
fn an_option_is_offered_once_unless_it_repeats() {
    assert_eq!(offered("dptrace latency --summary --summ"), "");
    assert_eq!(offered("dptrace latency --where a=b --wher"), "--where");
}

#[test]
fn values_are_found_however_they_are_typed() {
    for line in ["--format n", "--format=n", "--input x --format n"] {
        let lead = if line.contains('=') { "--format=" } else { "" };
        assert_eq!(
            offered(&format!("dptrace trace {line}")),
            format!("{lead}ndjson"),
            "{line}"
        );
    }
    assert_eq!(
        offered("dptrace latency --by lcore,owner.sub"),
        "lcore,owner.subnqn"
    );
    assert_eq!(
        offered("dptrace latency --by=lcore,owner.sub"),
        "--by=lcore,owner.subnqn"
    );
    assert_eq!(
        offered("dptrace latency --where qpair.hostn"),
        "qpair.hostnqn"
    );
    assert_eq!(offered("dptrace latency --where qpair.hostnqn=x"), "");
    assert_eq!(offered("dptrace run -vB f"), "full");
    assert_eq!(offered("dptrace run -vBf"), "-vBfull");
}

#[test]
fn scripts_and_specs_are_known() {
    assert_eq!(offered("dptrace run runq"), "|files runqlat");
    assert_eq!(offered("dptrace run runqlat runq"), "|files");
    assert_eq!(offered("dptrace run -p 1 --for 5s runq"), "|files runqlat");
    assert_eq!(offered("dptrace scripts runq"), "runqlat");
    assert_eq!(offered("dptrace objects qp"), "qpair");
    assert_eq!(
        offered("dptrace record --objects qpair,thr"),
        "|files qpair,thread"
    );
    assert_eq!(offered("dptrace completions z"), "zsh");
}

#[test]
fn a_shell_completes_what_it_knows_better() {
    assert_eq!(offered("dptrace trace -o "), "|files");
    assert_eq!(offered("dptrace demo --write "), "|directories");
    assert_eq!(offered("dptrace record -- "), "|commands");
    assert_eq!(
        offered("dptrace record --objects qpair -- cat -"),
        "|commands"
    );
    assert_eq!(offered("dptrace list "), "|files");
    assert_eq!(offered("dptrace list --tracepoints "), "");
    assert_eq!(offered("dptrace trace --head "), "");
}

#[test]
fn processes_are_offered_by_number_and_by_name() {
    let one = host::proc::processes()
        .into_iter()
        .find(|&pid| !host::proc::command_line(host::Pid(pid)).is_empty());
    let pid = one.unwrap().to_string();
    let name = host::proc::name(&host::proc::folder(host::Pid(pid.parse().unwrap()))).unwrap();
    let name = String::from_utf8_lossy(&name).into_owned();
    for (line, value) in [
        ("kernel-delay -p ", &pid),
        ("run runqlat --pid=", &pid),
        ("kernel-delay --name ", &name),
    ] {
        let values = completions(&format!("dptrace {line}"));
        let is_offered = values
            .iter()
            .any(|it| it.trim_start_matches("--pid=") == value);
        assert!(
            is_offered || value.contains(|c: char| !c.is_ascii_alphanumeric()),
            "{line}: no {value} in {values:?}"
        );
    }
}
