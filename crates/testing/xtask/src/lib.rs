//! The protocol between the host and its guest. Commands are passed in the initial memory disk. Answers come back over the
//! second serial port, one line of JSON each, so that the kernel's messages on the first port do not mix with them.
#![forbid(unsafe_code)]

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// Where the guest finds what to do: a [`GuestPlan`].
pub const PLAN: &str = "/plan";
/// Where the guest writes its answers: the second serial port. On aarch64 the first one is of another kind (`ttyAMA0`).
pub const ANSWERS: &str = if cfg!(target_arch = "aarch64") { "/dev/ttyS0" } else { "/dev/ttyS1" };
/// Where the guest finds the modules of its kernel, if there are some; their names are in the order of loading.
pub const MODULES: &str = "/modules";
/// Where `datapath` writes the truth.
pub const TRUTH_OF_DATAPATH: &str = "datapath.json";
/// The user and group `nobody`, as Debian numbers it.
pub const NOBODY: u32 = 65534;

/// What a guest does.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GuestPlan {
    /// Symbolic links that are made first: where, and to what.
    pub links: Vec<(String, String)>,
    /// What is run, one after the other.
    pub commands: Vec<GuestCommand>,
}

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
    /// What is put into its environment.
    #[serde(default)]
    pub environment: Vec<(String, String)>,
}

impl GuestCommand {
    /// A command that root runs.
    pub fn new(argv: &[&str]) -> Self {
        let argv = argv.iter().map(ToString::to_string).collect();
        Self { argv, as_nobody: false, file: None, environment: Vec::new() }
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

    /// The same, with a variable in its environment.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs it in a folder, with programs from another one.
    pub fn run(&self, folder: &Path, programs: &Path) -> GuestAnswer {
        let Some((program, arguments)) = self.argv.split_first() else {
            return GuestAnswer::default();
        };
        let own = programs.join(program);
        let mut process = Command::new(if own.exists() { own.as_os_str() } else { program.as_ref() });
        process.args(arguments).current_dir(folder).stdin(Stdio::null()).env("NO_COLOR", "1");
        // The guest has nothing else; on a machine there are its own programs behind it.
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
                file: self.file.as_ref().and_then(|path| fs::read_to_string(folder.join(path)).ok()),
                seconds: since.elapsed().as_secs_f64(),
            },
            Err(error) => GuestAnswer { stderr: format!("running {program}: {error}"), ..GuestAnswer::default() },
        }
    }
}

/// What happened to packets that came into a datapath without flows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DatapathTruth {
    /// Those without a flow, by the kernel's own count: all of them.
    pub missed: u64,
    /// Those that nobody got, by the kernel's own count.
    pub lost: u64,
    /// Those that the listener got.
    pub received: u64,
    /// Those of the lost that were sent when nobody listened; for the others the listener had no room.
    pub unheard: u64,
    /// The port that they came in by.
    pub port: String,
}

/// What came of a command.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct GuestAnswer {
    /// Its exit status; none if a signal ended it or it could not be started.
    pub status: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error, or why it could not be started.
    pub stderr: String,
    /// The file that was asked for, if it could be read.
    pub file: Option<String>,
    /// How long it took, in seconds.
    #[serde(default)]
    pub seconds: f64,
}
