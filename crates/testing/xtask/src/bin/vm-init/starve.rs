//! `starve COMMAND ARG...`: runs a command while a thread with `SCHED_FIFO` occupies CPU 0 and
//! never yields, with throttling off, so that work that the kernel has bound to this CPU can't run.
//! The command's standard error is passed on with the time since its start before each line:
//! `[1.52 s] CPU 0: ...`.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use sys::sched::{run_first, run_on};
use xtask::PLAN;

/// CPU that starves.
const STARVED: usize = 0;
/// CPU for all other threads.
const OTHER: usize = 1;
/// Time after which the spinner ends in any case.
const MAX_SPIN_TIME: Duration = Duration::from_secs(100);
/// Time after which a command counts as stuck.
const STUCK_TIMEOUT: Duration = Duration::from_mins(1);
/// Interval at which a separate thread queues work for each CPU; it waits until all of it is done.
const QUEUE_INTERVAL: Duration = Duration::from_millis(500);
/// File whose reading queues `refresh_vm_stats` on each CPU (`vmstat_refresh` of `mm/vmstat.c`).
const QUEUES_WORK: &str = "/proc/sys/vm/stat_refresh";
/// Settings, with their values for off, that would let others run on the CPU for a part of each
/// second: throttling, and since Linux 6.12 the fair server.
const LETS_OTHERS_RUN: [(&str, &str); 2] = [
    ("/proc/sys/kernel/sched_rt_runtime_us", "-1"),
    ("/sys/kernel/debug/sched/fair_server/cpu0/runtime", "0"),
];

/// Runs the command, and exits with its status.
pub(crate) fn beside(command: &[String]) -> anyhow::Result<()> {
    if !Path::new(PLAN).exists() {
        eprintln!("error: starving a CPU is for guests only");
        std::process::exit(3);
    }
    // The files are written before the CPU is taken, and restored afterwards, for the checks that
    // follow.
    let before: Vec<Option<String>> = LETS_OTHERS_RUN
        .iter()
        .map(|(path, _)| fs::read_to_string(path).ok())
        .collect();
    for ((path, none), old) in LETS_OTHERS_RUN.iter().zip(&before) {
        if old.is_some() {
            fs::write(path, none).with_context(|| format!("writing {path}"))?;
        }
    }
    run_on(&[OTHER]).context("leaving the CPU")?;
    let over = Arc::new(AtomicBool::new(false));
    let spinner = thread::Builder::new().name("spinner".into()).spawn({
        let over = Arc::clone(&over);
        move || spin(&over)
    })?;
    let queuer = thread::spawn({
        let over = Arc::clone(&over);
        move || queue_work(&over)
    });
    let done = run(command);
    over.store(true, Ordering::Relaxed);
    let spun = spinner.join().ok().context("the spinner broke off")?;
    ensure!(queuer.join().is_ok(), "the queuer broke off");
    for ((path, _), old) in LETS_OTHERS_RUN.iter().zip(&before).rev() {
        // Linux 6.12 refuses to enable throttling again (EBUSY). No other check has such threads.
        if let Some(Err(error)) = old.as_ref().map(|old| fs::write(path, old.trim())) {
            eprintln!("starve: writing {path}: {error}");
        }
    }
    spun?;
    std::process::exit(done?.code().unwrap_or(1));
}

fn spin(over: &AtomicBool) -> anyhow::Result<()> {
    run_on(&[STARVED]).context("occupying a CPU")?;
    run_first().context("becoming a thread with SCHED_FIFO")?;
    let began = Instant::now();
    while !over.load(Ordering::Relaxed) && began.elapsed() < MAX_SPIN_TIME {
        std::hint::spin_loop();
    }
    Ok(())
}

fn queue_work(over: &AtomicBool) {
    thread::scope(|scope| {
        while !over.load(Ordering::Relaxed) {
            scope.spawn(|| fs::read(QUEUES_WORK));
            thread::sleep(QUEUE_INTERVAL);
        }
    });
}

/// Prints where the threads of a process that takes too long wait in the kernel.
fn show_waits(pid: u32) {
    for task in fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let read = |name: &str| fs::read_to_string(task.path().join(name)).unwrap_or_default();
        eprintln!("starve: {} waits:\n{}", read("comm").trim(), read("stack"));
    }
}

/// Runs the command with our standard output, and stamps its standard error.
fn run(command: &[String]) -> anyhow::Result<ExitStatus> {
    let (program, arguments) = command.split_first().context("no command")?;
    let began = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("running {program}"))?;
    let (pid, (ends, ended)) = (child.id(), std::sync::mpsc::channel::<()>());
    thread::spawn(move || {
        if ended.recv_timeout(STUCK_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            show_waits(pid);
        }
    });
    let lines = BufReader::new(child.stderr.take().context("no standard error")?).lines();
    for line in lines {
        let mut to = std::io::stderr().lock();
        writeln!(
            to,
            "[{:.2} s] {}",
            began.elapsed().as_secs_f64(),
            line.context("reading what it says")?
        )?;
    }
    let done = child
        .wait()
        .with_context(|| format!("waiting for {program}"));
    drop(ends);
    done
}
