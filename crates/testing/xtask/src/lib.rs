//! Protocol between the host and its guest. Commands are passed in the initial memory disk. Answers
//! come back over the second serial port, one line of JSON each, so that the kernel's messages on
//! the first port do not mix with them.
#![forbid(unsafe_code)]

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// File in the guest with its [`GuestPlan`].
pub const PLAN: &str = "/plan";
/// Device for the guest's answers: the second serial port. On aarch64 the first one is of another
/// kind (`ttyAMA0`).
pub const ANSWERS: &str = if cfg!(target_arch = "aarch64") {
    "/dev/ttyS0"
} else {
    "/dev/ttyS1"
};
/// Folder in the guest with the modules of its kernel, if any; their names are in the order of
/// loading.
pub const MODULES: &str = "/modules";
/// File to which `datapath` writes the truth.
pub const TRUTH_OF_DATAPATH: &str = "datapath.json";
/// User and group id of `nobody`, as Debian numbers it.
pub const NOBODY: u32 = 65534;

/// Plan of a guest.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GuestPlan {
    /// Symbolic links to make first: location and destination.
    pub links: Vec<(String, String)>,
    /// Commands to run, one after the other.
    pub commands: Vec<GuestCommand>,
}

/// Command for the guest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GuestCommand {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// True to run as the user nobody instead of root.
    #[serde(default)]
    pub as_nobody: bool,
    /// File to send back after the end of the command.
    #[serde(default)]
    pub file: Option<String>,
    /// Additional environment variables.
    #[serde(default)]
    pub environment: Vec<(String, String)>,
}

impl GuestCommand {
    /// Makes a command that root runs.
    pub fn new(argv: &[&str]) -> Self {
        let argv = argv.iter().map(ToString::to_string).collect();
        Self {
            argv,
            as_nobody: false,
            file: None,
            environment: Vec::new(),
        }
    }

    /// Runs the command as the user nobody.
    #[must_use]
    pub fn as_nobody(self) -> Self {
        Self {
            as_nobody: true,
            ..self
        }
    }

    /// Adds a file to send back.
    #[must_use]
    pub fn with_file(self, path: &str) -> Self {
        Self {
            file: Some(path.to_owned()),
            ..self
        }
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs the command in a folder, with programs from another one.
    pub fn run(&self, folder: &Path, programs: &Path) -> GuestAnswer {
        let Some((program, arguments)) = self.argv.split_first() else {
            return GuestAnswer::default();
        };
        let own = programs.join(program);
        let mut process = Command::new(if own.exists() {
            own.as_os_str()
        } else {
            program.as_ref()
        });
        process
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null())
            .env("NO_COLOR", "1");
        // In the guest, PATH names nothing else; on this machine, its own programs follow.
        let path = std::env::var("PATH").unwrap_or_default();
        process.env("PATH", format!("{}:{path}", programs.display()));
        process.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if self.as_nobody {
            process.uid(NOBODY).gid(NOBODY);
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let since = Instant::now();
        match process.output() {
            Ok(done) => GuestAnswer {
                status: done.status.code(),
                stdout: text(&done.stdout),
                stderr: text(&done.stderr),
                file: self
                    .file
                    .as_ref()
                    .and_then(|path| fs::read_to_string(folder.join(path)).ok()),
                seconds: since.elapsed().as_secs_f64(),
            },
            Err(error) => GuestAnswer {
                stderr: format!("running {program}: {error}"),
                ..GuestAnswer::default()
            },
        }
    }
}

/// Truth about packets that came into a datapath without flows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DatapathTruth {
    /// Number of packets without a flow, by the kernel's own count: all of them.
    pub missed: u64,
    /// Number of packets that nobody received, by the kernel's own count.
    pub lost: u64,
    /// Number of packets that the listener received.
    pub received: u64,
    /// Number of lost packets that were sent when nobody listened; for the other lost ones the
    /// listener had no room.
    pub unheard: u64,
    /// Port by which the packets came in.
    pub port: String,
}

/// Result of a command.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct GuestAnswer {
    /// Exit status; `None` if a signal ended the command or it could not be started.
    pub status: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error, or the reason that the command could not be started.
    pub stderr: String,
    /// Requested file, if it could be read.
    pub file: Option<String>,
    /// Run time, in seconds.
    #[serde(default)]
    pub seconds: f64,
}
