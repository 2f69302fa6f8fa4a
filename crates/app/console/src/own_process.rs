//! Another process of this program, started by it, and a folder for both.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use text::printable::path as printable;

use crate::interrupt::Interrupt;

/// Time between two looks at a process.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Process of this program that ends with us, with its messages in a file.
#[derive(Debug)]
pub struct OwnProcess {
    what: &'static str,
    child: Child,
    messages: PathBuf,
}

impl OwnProcess {
    /// Starts it with these arguments; `what` names it in errors. Its messages go to a file of that
    /// name in the folder.
    ///
    /// # Errors
    /// Fails if the file cannot be created, or the process cannot be started.
    pub fn start<'a>(
        what: &'static str,
        folder: &Scratch,
        args: impl Iterator<Item = &'a OsStr>,
        input: Stdio,
    ) -> anyhow::Result<Self> {
        let messages = folder.file(what);
        let file = File::create(&messages)
            .with_context(|| format!("creating {}", printable(&messages)))?;
        let mut command = Command::new(host::proc::OWN_PROGRAM);
        let child = command
            .args(args)
            .stdin(input)
            .stdout(Stdio::null())
            .stderr(file)
            .spawn();
        Ok(Self {
            what,
            child: child.with_context(|| format!("starting the {what}"))?,
            messages,
        })
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes its standard input, if that is a pipe.
    pub fn close_input(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits for a message with these words; returns false if a signal came first.
    ///
    /// # Errors
    /// Fails with the process's own error if it ends without that message.
    pub fn wait_for(&mut self, words: &str, interrupt: Interrupt) -> anyhow::Result<bool> {
        while !interrupt.is_requested() {
            let has_ended = self.has_ended()?;
            let text = fs::read_to_string(&self.messages).unwrap_or_default();
            if text.contains(words) {
                return Ok(true);
            }
            if has_ended {
                let why = text
                    .lines()
                    .rev()
                    .find_map(|line| line.strip_prefix("error: "))
                    .unwrap_or("it ended");
                bail!("the {}: {why}", self.what);
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(false)
    }

    fn has_ended(&mut self) -> anyhow::Result<bool> {
        let status = self.child.try_wait();
        let status = status.with_context(|| format!("waiting for the {}", self.what))?;
        Ok(status.is_some())
    }

    /// Waits for its end; returns false if a signal came first.
    ///
    /// # Errors
    /// Fails if the kernel cannot say whether it has ended.
    pub fn wait(&mut self, interrupt: Interrupt) -> anyhow::Result<bool> {
        while !interrupt.is_requested() {
            if self.has_ended()? {
                return Ok(true);
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(false)
    }
}

impl Drop for OwnProcess {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // SANITY: this can fail only if the process has already ended.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Temporary folder that nobody else can read.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates the folder; `what` is a part of its name.
    ///
    /// # Errors
    /// Fails if it exists, or cannot be created.
    pub fn new(what: &str) -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("dptrace-{what}-{}", std::process::id()));
        // An existing folder is not used: its creator may have put links there.
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("creating {}", printable(&path)))?;
        Ok(Self(path))
    }

    /// Returns the path of a file in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SANITY: whether it can be removed or not, nothing more can be done about it.
        let _ = fs::remove_dir_all(&self.0);
    }
}
