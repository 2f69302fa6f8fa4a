//! First process of the guest: mounts the file systems that programs expect, runs the given
//! commands, and powers off. Called by another name, it is one of the programs that checks need:
//! `sleep`, `datapath` and `starve`.
#![forbid(unsafe_code)]

mod datapath;
mod netlink;
mod starve;

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, reboot};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use xtask::{ANSWERS, GuestPlan, PLAN};

/// File systems and where they are mounted, as on a Debian system.
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
    let mut arguments = std::env::args();
    let own = arguments.next().unwrap_or_default();
    let arguments: Vec<String> = arguments.collect();
    if own.ends_with("sleep") {
        let seconds = arguments
            .first()
            .context("how long?")?
            .parse()
            .context("seconds")?;
        std::thread::sleep(Duration::from_secs_f64(seconds));
        return Ok(());
    }
    if own.ends_with("datapath") {
        return if arguments.is_empty() {
            datapath::play()
        } else {
            datapath::with_modules(&arguments)
        };
    }
    if own.ends_with("starve") {
        return starve::beside(&arguments);
    }
    // Anywhere else it would mount over existing folders, and switch the machine off.
    ensure!(
        std::process::id() == 1,
        "this is a guest's first process, started by: cargo xtask vm"
    );
    if let Err(error) = run() {
        eprintln!("vm-init: {error:#}");
    }
    reboot(RebootCommand::PowerOff).context("switching off")
}

fn run() -> anyhow::Result<()> {
    for (kind, at) in MOUNTS {
        // On a file system where folders can't be made, the folder exists already, or the mount
        // fails with a message.
        let _ = fs::create_dir_all(at);
        if let Err(error) = mount(kind, at, kind, MountFlags::empty(), None) {
            eprintln!("vm-init: mounting {kind} on {at}: {error}");
        }
    }
    let mut answers = OpenOptions::new()
        .write(true)
        .open(ANSWERS)
        .with_context(|| format!("opening {ANSWERS}"))?;
    make_raw(&answers)?;
    let plan = fs::read(PLAN).with_context(|| format!("reading {PLAN}"))?;
    let plan: GuestPlan = serde_json::from_slice(&plan).context("reading what to do")?;
    for (at, to) in &plan.links {
        let folder = Path::new(at).parent().context("a link to nowhere")?;
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        std::os::unix::fs::symlink(to, at).with_context(|| format!("linking {at}"))?;
    }
    // Processes have a session, as on every machine: the kernel's first process has none.
    rustix::process::setsid().context("becoming a session's leader")?;
    for command in plan.commands {
        let mut line = serde_json::to_vec(&command.run(Path::new("/tmp"), Path::new("/")))?;
        line.push(b'\n');
        answers.write_all(&line).context("answering")?;
    }
    answers.flush()?;
    // Nothing may still be in transit when the machine goes off.
    rustix::termios::tcdrain(&answers).context("waiting for the serial port")
}

/// Makes the port pass bytes unchanged.
fn make_raw(port: &File) -> anyhow::Result<()> {
    let mut settings = tcgetattr(port).context("looking at the serial port")?;
    settings.make_raw();
    tcsetattr(port, OptionalActions::Now, &settings).context("setting up the serial port")
}
