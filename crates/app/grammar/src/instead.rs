//! Suggestions for words that a command line does not have.

use clap::{Arg, Command};
use text::patterns::nearest;

/// Other tools whose names people type as a command, with the command to use here.
const TOOLS: [(&str, &str); 12] = [
    ("bpftrace", "to run a script: dptrace run"),
    ("btop", "for a live view: dptrace top"),
    (
        "gdb",
        "for stacks of waiting threads: dptrace kernel-delay -s",
    ),
    ("htop", "for a live view: dptrace top"),
    ("lsof", "for what a process waits for: dptrace kernel-delay"),
    (
        "ltrace",
        "to count calls of functions: dptrace run with uprobes, which dptrace list --functions lists",
    ),
    (
        "offcputime",
        "for waits with stacks: dptrace kernel-delay -s",
    ),
    (
        "perf",
        "for a process's time: dptrace kernel-delay, for its stacks: dptrace run profile",
    ),
    ("spdk_top", "for a live view: dptrace top"),
    ("spdk_trace", "for an SPDK trace: dptrace trace"),
    (
        "strace",
        "for system calls with their times: dptrace run syslat -p PID",
    ),
    ("trace-cmd", "for the kernel's events: dptrace run"),
];

/// Returns the command to use instead of another tool.
pub fn of_tool(name: &str) -> Option<&'static str> {
    let found = TOOLS.iter().find(|(tool, _)| *tool == name);
    found.map(|(_, instead)| *instead)
}

/// Returns the option for JSON of a command without a choice of formats, for a choice of it that
/// was typed: `-f json`, `--format=json`.
pub fn json_option(command: &Command, option: &str, value: Option<&str>) -> Option<&'static str> {
    let (option, value) = match option.split_once('=') {
        Some((option, value)) => (option, Some(value)),
        None => (option, value),
    };
    let has_json = command
        .get_arguments()
        .any(|arg| arg.get_long() == Some("json"));
    let is_wanted =
        matches!(option, "-f" | "-o" | "--format" | "--output") && value == Some("json");
    (has_json && is_wanted).then_some("--json")
}

/// Returns the long option of a command that an unknown option may be a slip of.
pub fn near_option(command: &Command, typed: &str) -> Option<String> {
    let typed = typed.strip_prefix("--")?;
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let near = nearest(typed, shown.filter_map(Arg::get_long), 1);
    near.first().map(|long| format!("--{long}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_of_json_names_the_option() {
        let command = clap::Command::new("top").arg(Arg::new("json").long("json"));
        let of = |option, value| json_option(&command, option, value);
        assert_eq!(of("-f", Some("json")), Some("--json"));
        assert_eq!(of("--format=json", None), Some("--json"));
        assert_eq!((of("-f", Some("csv")), of("-f", None)), (None, None));
        assert_eq!(
            json_option(&clap::Command::new("x"), "-f", Some("json")),
            None
        );
    }
}
