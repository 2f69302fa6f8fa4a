//! The first process of the guest: mounts what programs expect, runs the commands it was given, and switches off.
#![forbid(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, reboot};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use xtask::{ANSWERS, COMMANDS, GuestAnswer, GuestCommand, NOBODY};

/// File system and place, as a Debian system has them.
const MOUNTS: [(&str, &str); 8] = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("tmpfs", "/dev/shm"),
    ("tmpfs", "/tmp"),
    ("securityfs", "/sys/kernel/security"),
    ("tracefs", "/sys/kernel/tracing"),
    ("debugfs", "/sys/kernel/debug"),
];

fn main() -> anyhow::Result<()> {
    // Anywhere else it would mount over what is there, and switch the machine off.
    ensure!(std::process::id() == 1, "this is a guest's first process, started by: cargo xtask vm");
    if let Err(error) = run() {
        eprintln!("vm-init: {error:#}");
    }
    reboot(RebootCommand::PowerOff).context("switching off")
}

fn run() -> anyhow::Result<()> {
    for (kind, at) in MOUNTS {
        // A directory of a file system that makes none of its own is there already, or the mount fails and says so.
        let _ = fs::create_dir_all(at);
        if let Err(error) = mount(kind, at, kind, MountFlags::empty(), None) {
            eprintln!("vm-init: mounting {kind} on {at}: {error}");
        }
    }
    let mut answers = OpenOptions::new().write(true).open(ANSWERS).with_context(|| format!("opening {ANSWERS}"))?;
    make_raw(&answers)?;
    let commands = fs::read(COMMANDS).with_context(|| format!("reading {COMMANDS}"))?;
    let commands: Vec<GuestCommand> = serde_json::from_slice(&commands).context("reading the commands")?;
    for command in commands {
        let mut line = serde_json::to_vec(&answer(&command))?;
        line.push(b'\n');
        answers.write_all(&line).context("answering")?;
    }
    answers.flush()?;
    // Nothing may still be on its way when the machine goes.
    rustix::termios::tcdrain(&answers).context("waiting for the serial port")
}

/// Bytes are to go out as they are.
fn make_raw(port: &File) -> anyhow::Result<()> {
    let mut settings = tcgetattr(port).context("looking at the serial port")?;
    settings.make_raw();
    tcsetattr(port, OptionalActions::Now, &settings).context("setting up the serial port")
}

fn answer(command: &GuestCommand) -> GuestAnswer {
    let Some((program, arguments)) = command.argv.split_first() else {
        return GuestAnswer::default();
    };
    let mut process = Command::new(program);
    process.args(arguments).current_dir("/tmp").stdin(Stdio::null()).env("PATH", "/").env("NO_COLOR", "1");
    if command.as_nobody {
        process.uid(NOBODY).gid(NOBODY);
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match process.output() {
        Ok(done) => GuestAnswer {
            status: done.status.code(),
            stdout: text(&done.stdout),
            stderr: text(&done.stderr),
            file: command.file.as_ref().and_then(|path| fs::read_to_string(path).ok()),
        },
        Err(error) => GuestAnswer { stderr: format!("running {program}: {error}"), ..GuestAnswer::default() },
    }
}
