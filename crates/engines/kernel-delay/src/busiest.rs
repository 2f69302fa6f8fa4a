//! Table of the busiest processes of the machine.

use std::fmt::Write as _;
use std::time::Duration;

use host::Pid;
use host::cpu_use::{CpuMeter, ProcessUse};
use host::proc::{self, shown_command_line};
use ordering::Order as _;

/// Time over which CPU use is measured.
const SAMPLING_TIME: Duration = Duration::from_millis(500);
/// Maximum number of processes listed.
const MAX_LISTED: usize = 10;
/// Maximum number of characters of a command line, so that a line fits 80 columns.
const COMMAND: usize = 50;

/// Returns a table of the processes that used the most CPU time in half a second.
pub fn busiest_table() -> String {
    let mut text = String::from("       PID   CPU %  THREADS  COMMAND\n");
    for ProcessUse { pid, cpus, threads } in busiest() {
        let percent = cpus * 100.0;
        let command: String = shown_command_line(pid).chars().take(COMMAND).collect();
        // Writing to a string does not fail.
        let _ = writeln!(text, "{pid:>10} {percent:>7.0} {threads:>8}  {command}");
    }
    text
}

/// Measures the processes; returns the busiest first.
fn busiest() -> Vec<ProcessUse> {
    let mut meter = CpuMeter::default();
    meter.read(proc::processes());
    std::thread::sleep(SAMPLING_TIME);
    let mut busy = meter.read(proc::processes());
    busy.order_by(|a, b| b.cpus.total_cmp(&a.cpus).then(a.pid.cmp(&b.pid)));
    // Processes without a command line can't be chosen by it.
    busy.retain(|busy| {
        proc::command_line(Pid(busy.pid))
            .iter()
            .any(|word| !word.is_empty())
    });
    busy.truncate(MAX_LISTED);
    busy
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
