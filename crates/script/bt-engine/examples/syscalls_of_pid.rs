//! Counts the system calls of a running process for some seconds: `syscalls_of_pid PID [SECONDS]`.

use std::io::Write;
use std::time::{Duration, Instant};

use bt_engine::{Script, Target};

const SCRIPT: &str = "tracepoint:raw_syscalls:sys_enter { @calls[@syscall[args.id]] = count(); }";

/// Counts the calls of the process in `words`, and writes them to `out`, the most frequent first.
pub(crate) fn count(
    words: &[String],
    mut out: impl Write,
) -> Result<(), Box<dyn std::error::Error>> {
    let [pid, rest @ ..] = words else {
        return Err("usage: syscalls_of_pid PID [SECONDS]".into());
    };
    let seconds: f64 = rest.first().map_or(Ok(5.0), |seconds| seconds.parse())?;

    let session = Script::builder(SCRIPT)
        .target(Target::Pid(pid.parse()?))
        .compile()?
        .load()?;
    let end = Instant::now() + Duration::try_from_secs_f64(seconds)?;
    let result = session.run_until(|| Instant::now() >= end, |event| eprintln!("{event:?}"))?;

    let calls = result.map("@calls").ok_or("the script has no such map")?;
    // Rows are in the order of their values, as bpftrace prints them.
    for (call, count) in calls.rows.iter().rev() {
        writeln!(out, "{count} {call}")?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    count(&words, std::io::stdout())
}
