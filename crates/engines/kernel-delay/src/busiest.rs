//! Table of the busiest processes of the machine.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use host::Pid;
use host::proc::{self, Stat, TICK_NANOS, shown_command_line};

/// Time over which CPU use is measured.
const SAMPLING_TIME: Duration = Duration::from_millis(500);
/// Maximum number of processes listed.
const MAX_LISTED: usize = 10;
/// Maximum number of characters of a command line, so that a line fits 80 columns.
const COMMAND: usize = 50;

/// Process and its CPU use.
struct BusyProcess {
    pid: u32,
    percent: f64,
    threads: u64,
}

/// Returns a table of the processes that used the most CPU time in half a second.
pub fn busiest_table() -> String {
    let mut text = String::from("       PID   CPU %  THREADS  COMMAND\n");
    for BusyProcess {
        pid,
        percent,
        threads,
    } in busiest()
    {
        let command: String = shown_command_line(pid).chars().take(COMMAND).collect();
        // Writing to a string does not fail.
        let _ = writeln!(text, "{pid:>10} {percent:>7.0} {threads:>8}  {command}");
    }
    text
}

/// Measures the processes; returns the busiest first.
fn busiest() -> Vec<BusyProcess> {
    let (begun, before) = (Instant::now(), ticks());
    std::thread::sleep(SAMPLING_TIME);
    let nanos = begun.elapsed().as_nanos() as f64;
    let busy = ticks().into_iter().map(|(pid, (ticks, threads))| {
        let before = before.get(&pid).map_or(0, |(before, _)| *before);
        BusyProcess {
            pid,
            percent: (ticks.saturating_sub(before) * TICK_NANOS) as f64 / nanos * 100.0,
            threads,
        }
    });
    let mut busy: Vec<BusyProcess> = busy.collect();
    busy.sort_by(|a, b| b.percent.total_cmp(&a.percent).then(a.pid.cmp(&b.pid)));
    // Threads of the kernel have no command line, and can't be measured.
    busy.retain(|busy| {
        proc::command_line(Pid(busy.pid))
            .iter()
            .any(|word| !word.is_empty())
    });
    busy.truncate(MAX_LISTED);
    busy
}

/// Returns the CPU time in ticks and the number of threads (proc_pid_stat(5), field 20) of all
/// processes but this one.
fn ticks() -> HashMap<u32, (u64, u64)> {
    let own = std::process::id();
    let others = proc::processes().into_iter().filter(|&pid| pid != own);
    let read = |pid| {
        let stat = Stat::read(&proc::folder(Pid(pid))).ok()?;
        Some((pid, (stat.cpu_ticks()?, stat.number(20)?)))
    };
    others.filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_80_columns_and_this_process_is_not_listed() {
        let table = busiest_table();
        assert!(
            table.lines().all(|line| screen::columns(line) <= 80),
            "{table}"
        );
        let own = std::process::id().to_string();
        assert!(
            !table
                .lines()
                .any(|line| line.split_whitespace().next() == Some(&own)),
            "{table}"
        );
    }
}
