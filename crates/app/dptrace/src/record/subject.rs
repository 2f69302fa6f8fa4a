//! Process or command that is recorded.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context as _;
use console::{output, terminal};
use errors::usage;
use host::{Files, Pid, Process};
use process_selector::find_program;
use sys::process::HeldChild;
use text::printable::path as printable;

use super::{ROLE, RecordArgs};

/// Process or command to record.
pub(super) struct Subject<'a> {
    /// Process id, if the process runs already.
    pub(super) pid: Option<u32>,
    pub(super) files: Files,
    /// Name for messages.
    pub(super) name: String,
    /// Path of the program to start, with its arguments.
    command: Option<(PathBuf, &'a [OsString])>,
}

impl<'a> Subject<'a> {
    pub(super) fn from_args(args: &'a RecordArgs) -> anyhow::Result<Self> {
        let selector = args.process.selector();
        if !selector.is_empty() {
            let pid = selector.one(ROLE, &terminal::observer())?;
            let (files, name) = Files::from_process(pid)?;
            Process::open(Pid(pid))?.is_first_thread()?;
            return Ok(Self {
                pid: Some(pid),
                files,
                name,
                command: None,
            });
        }
        let Some((program, arguments)) = args.command.split_first() else {
            return Err(usage(
                "nothing to record: give -p PID, -p NAME, or -- COMMAND",
            ));
        };
        let path = find_program(program)?;
        let (files, name) = (Files::from_program(&path), printable(&path));
        Ok(Self {
            pid: None,
            files,
            name,
            command: Some((path, arguments)),
        })
    }

    /// Returns an error if an output would overwrite the program before it starts.
    pub(super) fn check_output(&self, args: &RecordArgs) -> anyhow::Result<()> {
        for output in [&args.output, &args.emit_object] {
            let program = self
                .command
                .iter()
                .map(|(path, _)| ("the program to start", path.as_path()));
            output::refuse_inputs(output.as_deref(), program.chain(args.specs.files()))?;
        }
        Ok(())
    }

    /// Starts the command's process, which waits until it is released.
    pub(super) fn start(&self) -> anyhow::Result<Option<HeldChild>> {
        let Some((path, arguments)) = &self.command else {
            return Ok(None);
        };
        let held = HeldChild::spawn(path.as_os_str(), arguments);
        held.map(Some)
            .with_context(|| format!("starting {}", self.name))
    }
}
