//! Virtual machine: boots it, waits for it, and reads its output.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use xtask::GuestAnswer;

use super::kernels::Kernel;

/// Time after which a guest counts as hung: most need two minutes, on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(15);
/// Limit on boots of a kernel that does not get as far as its first answer.
const MAX_BOOTS: u32 = 3;
/// Interval between two checks whether the guest has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Number of lines of the kernel's console that are shown after a failure.
const CONSOLE_LINES: usize = 30;

/// Boots a kernel with these files, and returns the answers to the commands in them.
///
/// The processor is emulated (`tcg`): a guest in hardware virtualization hangs where this machine
/// is itself a guest. One thread emulates both processors: with two, QEMU 7.2 now and then loses a
/// kernel that changes its own code, as tracing does.
///
/// A kernel that panics in its first second, because of the emulation of its locks, is booted
/// again.
pub(super) fn boot(
    kernel: &Kernel,
    initrd: &Path,
    work: &Path,
) -> anyhow::Result<Vec<GuestAnswer>> {
    let mut tries = 1;
    loop {
        match boot_once(kernel, initrd, work) {
            Err(error)
                if tries < MAX_BOOTS
                    && std::fs::read(work.join("answers")).is_ok_and(|text| text.is_empty()) =>
            {
                println!("once more: {error:#}");
                tries += 1;
            }
            done => return done,
        }
    }
}

/// Returns the command that starts the machine, with the files for its console and its answers.
fn machine(kernel: &Kernel, initrd: &Path, console: &Path, answers: &Path) -> Command {
    let hardware = kernel.hardware;
    let mut machine = Command::new(hardware.qemu.0);
    machine
        .args(hardware.parts)
        .args(["-accel", "tcg,thread=single", "-smp", "2", "-m", "1024"]);
    machine.args([
        "-display",
        "none",
        "-monitor",
        "none",
        "-nodefaults",
        "-no-reboot",
    ]);
    machine
        .arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(initrd);
    // A panic restarts at once, and no-reboot turns that into an end.
    machine
        .arg("-append")
        .arg(format!("console={} loglevel=4 panic=-1", hardware.console));
    machine
        .arg("-serial")
        .arg(format!("file:{}", console.display()));
    match hardware.answers_device {
        None => {
            _ = machine
                .arg("-serial")
                .arg(format!("file:{}", answers.display()));
        }
        Some(device) => {
            machine
                .arg("-chardev")
                .arg(format!("file,id=answers,path={}", answers.display()));
            machine
                .arg("-device")
                .arg(format!("{device},chardev=answers"));
        }
    }
    machine
}

fn boot_once(kernel: &Kernel, initrd: &Path, work: &Path) -> anyhow::Result<Vec<GuestAnswer>> {
    let (console, answers) = (work.join("console"), work.join("answers"));
    for file in [&console, &answers] {
        std::fs::write(file, "").with_context(|| format!("writing {}", file.display()))?;
    }
    let (program, package) = kernel.hardware.qemu;
    let mut machine = machine(kernel, initrd, &console, &answers);
    sys::process::bind_to_starter(&mut machine, TIMEOUT + Duration::from_mins(1));
    let started = machine.stdin(Stdio::null()).spawn();
    let ended = wait(started.with_context(|| format!("running {program} (package {package})"))?)?;
    let text = std::fs::read(&answers).with_context(|| format!("reading {}", answers.display()))?;
    let text = String::from_utf8_lossy(&text);
    let parsed: Result<Vec<GuestAnswer>, _> = text.lines().map(serde_json::from_str).collect();
    match parsed {
        Ok(answers) if ended && !answers.is_empty() => Ok(answers),
        _ => {
            let said = std::fs::read(&console).unwrap_or_default();
            let said = String::from_utf8_lossy(&said);
            let lines: Vec<&str> = said.lines().collect();
            let last = lines[lines.len().saturating_sub(CONSOLE_LINES)..].join("\n");
            let how = if ended {
                "ended without its answers"
            } else {
                "did not end"
            };
            bail!("the guest {how}; its answers: {text:?}; its console ends with\n{last}")
        }
    }
}

/// Waits for the machine; returns whether it ended by itself.
fn wait(mut machine: Child) -> anyhow::Result<bool> {
    let deadline = Instant::now() + TIMEOUT;
    while machine
        .try_wait()
        .context("waiting for the guest")?
        .is_none()
    {
        if Instant::now() > deadline {
            machine.kill().context("ending the guest")?;
            machine.wait().context("ending the guest")?;
            return Ok(false);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(true)
}
