//! What the machine and its guest say to each other: commands go in with the initial memory disk, answers come back over
//! the second serial port, a line of JSON each, so that the kernel's own words on the first one can't get between.
#![forbid(unsafe_code)]

use serde::{Deserialize, Serialize};

/// Where the guest finds its commands.
pub const COMMANDS: &str = "/commands";
/// Where the guest writes its answers: the second serial port.
pub const ANSWERS: &str = "/dev/ttyS1";
/// The user and group `nobody`, as Debian numbers it.
pub const NOBODY: u32 = 65534;

/// A command for the guest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GuestCommand {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Whether it runs as the user nobody instead of root.
    #[serde(default)]
    pub as_nobody: bool,
    /// A file to send back when it has ended.
    #[serde(default)]
    pub file: Option<String>,
}

impl GuestCommand {
    /// A command that root runs.
    pub fn new(argv: &[&str]) -> Self {
        Self { argv: argv.iter().map(ToString::to_string).collect(), as_nobody: false, file: None }
    }

    /// The same as the user nobody.
    #[must_use]
    pub fn as_nobody(self) -> Self {
        Self { as_nobody: true, ..self }
    }

    /// The same, with a file to send back.
    #[must_use]
    pub fn with_file(self, path: &str) -> Self {
        Self { file: Some(path.to_owned()), ..self }
    }
}

/// What came of a command.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GuestAnswer {
    /// Its exit status; none if a signal ended it or it could not be started.
    pub status: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error, or why it could not be started.
    pub stderr: String,
    /// The file that was asked for, if it could be read.
    pub file: Option<String>,
}
