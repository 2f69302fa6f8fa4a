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
        "to count calls of a library's functions: dptrace run libcalls LIB -p PID",
    ),
    (
        "offcputime",
        "for waits with stacks: dptrace kernel-delay -s",
    ),
    (
        "perf",
        "for a process's time: dptrace kernel-delay, for its stacks: dptrace run cpu-folded",
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

/// Options that other tools have for the same purpose, the option of ours, and what to say.
const OPTIONS: [(&[&str], &str, &str); 2] = [
    (
        &["--format", "-f"],
        "json",
        "text is the default, and --json prints JSON",
    ),
    (
        &["--duration", "--time", "--seconds", "-d"],
        "for",
        "--for DURATION sets the time: --for 5s",
    ),
];

/// Returns what to type in place of an option of other tools: `-f json`, `--format=csv`,
/// `--duration 5`.
pub fn of_option(command: &Command, typed: &str) -> Option<&'static str> {
    let option = typed.split_once('=').map_or(typed, |(option, _)| option);
    let has = |long: &str| {
        command
            .get_arguments()
            .any(|arg| arg.get_long() == Some(long))
    };
    let found = OPTIONS
        .iter()
        .find(|(theirs, ours, _)| theirs.contains(&option) && has(ours));
    found.map(|(.., instead)| *instead)
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
    fn options_of_other_tools_name_ours() {
        let command = clap::Command::new("top").arg(Arg::new("json").long("json"));
        for typed in ["-f", "--format", "--format=json"] {
            let instead = of_option(&command, typed);
            assert!(instead.is_some_and(|it| it.contains("--json")), "{typed}");
        }
        assert_eq!(of_option(&command, "--duration"), None);
        let timed = clap::Command::new("x").arg(Arg::new("for").long("for"));
        assert!(of_option(&timed, "--duration=5").is_some());
        assert_eq!(of_option(&timed, "-f"), None);
    }
}
