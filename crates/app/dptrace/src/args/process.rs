//! Options that name processes, the same for all commands.

use clap::{Arg, Args};
use process_selector::ProcessSelector;

/// Processes by options, as typed.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProcessOptions {
    /// A running process, by PID or name
    #[arg(short, long, value_name = "PID|NAME", conflicts_with = "name")]
    pid: Vec<String>,

    /// The process with this name, even if it looks like a number
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// Processes by options or by words of the command line, as typed.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProcessArgs {
    #[command(flatten)]
    options: ProcessOptions,

    /// The same as -p PID|NAME
    #[arg(value_name = "PID|NAME", conflicts_with_all = ["pid", "name"])]
    process: Vec<String>,
}

/// Returns a function for `mut_args` that gives `-p` another help text: the first line is for `-h`,
/// the rest for `--help` only. Unlike `mut_arg`, this keeps the order of the options.
pub(crate) fn with_help(text: &'static str) -> impl FnMut(Arg) -> Arg {
    move |arg| match text.split_once('\n') {
        _ if arg.get_id() != "pid" => arg,
        Some((first, _)) => arg.help(first).long_help(text),
        None => arg.help(text),
    }
}

/// Makes `-p` or `--name` required, for `mut_args`.
pub(crate) fn required(arg: Arg) -> Arg {
    if arg.get_id() == "pid" {
        arg.required_unless_present("name")
    } else {
        arg
    }
}

impl ProcessOptions {
    /// Returns the selector of these processes.
    pub(crate) fn selector(&self) -> ProcessSelector {
        match &self.name {
            Some(name) => ProcessSelector::from_name(name),
            None => ProcessSelector::new(&self.pid),
        }
    }
}

impl ProcessArgs {
    /// Returns the selector of these processes.
    pub(crate) fn selector(&self) -> ProcessSelector {
        if self.process.is_empty() {
            self.options.selector()
        } else {
            ProcessSelector::new(&self.process)
        }
    }
}
