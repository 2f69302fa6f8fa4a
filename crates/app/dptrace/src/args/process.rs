//! Options that name processes, the same for all commands.

use clap::Args;
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

impl ProcessOptions {
    /// Returns the selector of these processes.
    pub(crate) fn selector(&self) -> ProcessSelector {
        match &self.name {
            Some(name) => ProcessSelector::of_name(name),
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
