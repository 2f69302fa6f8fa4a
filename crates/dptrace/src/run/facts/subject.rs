//! Whom the script is about: a running process, a command that waits to run, or everybody.

use std::path::PathBuf;

use anyhow::Context as _;
use host::{Pid, Process};
use sys::process::HeldChild;

use crate::failure::usage;
use crate::record::find_program;

/// More processes there can't be: `PID_MAX_LIMIT` of `linux/threads.h`.
const MOST: u32 = 4 << 20;

/// Whom the script is about.
pub(in crate::run) enum Subject {
    /// Everybody.
    All,
    /// A process that runs, as it was when we looked.
    Process(Box<Process>),
    /// A command that waits before its first instruction: its process runs nothing of its own yet.
    Command { program: PathBuf, pid: u32 },
}

impl Subject {
    /// The process of `-p`.
    pub(in crate::run) fn process(pid: &str) -> anyhow::Result<Self> {
        let digits = pid.bytes().take_while(u8::is_ascii_digit).count();
        let what = if digits == 0 { "invalid integer" } else { "invalid trailing bytes" };
        let wrong = || usage(format!("failed to parse pid: {what}: {pid}"));
        if digits < pid.len() || digits == 0 {
            return Err(wrong());
        }
        let number = pid
            .parse()
            .ok()
            .filter(|number| *number <= MOST)
            .ok_or_else(|| usage(format!("pid out of range: {pid}")))?;
        Ok(Self::Process(Box::new(Process::open(Pid(number))?)))
    }

    /// The command of `-c`, made and held. Its words are separated by blanks; there is no shell.
    pub(in crate::run) fn command(command: &str) -> anyhow::Result<(Self, HeldChild)> {
        let mut words = command.split(' ').filter(|word| !word.is_empty());
        let name = words.next().ok_or_else(|| usage("-c: the command is empty"))?;
        let program = find_program(name.as_ref())?;
        let arguments: Vec<&str> = words.collect();
        let held = HeldChild::spawn(program.as_os_str(), &arguments).with_context(|| format!("starting {name}"))?;
        Ok((Self::Command { program, pid: held.pid() }, held))
    }

    pub(in crate::run) fn pid(&self) -> Option<u32> {
        match self {
            Self::All => None,
            Self::Process(process) => Some(process.pid().0),
            Self::Command { pid, .. } => Some(*pid),
        }
    }

    pub(in crate::run) fn child(&self) -> Option<u32> {
        match self {
            Self::Command { pid, .. } => Some(*pid),
            _ => None,
        }
    }
}
