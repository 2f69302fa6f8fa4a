//! CPU time that processes use between two readings.

use std::collections::HashMap;
use std::time::Instant;

use crate::proc::{self, Stat, TICK_NANOS};
use crate::process::Pid;

/// Use of the CPUs by one process.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ProcessUse {
    /// Process id.
    pub pid: u32,
    /// CPU time per time: 1 is one CPU.
    pub cpus: f64,
    /// Number of its threads.
    pub threads: u64,
}

/// Meter of the CPU time of processes.
#[derive(Clone, Debug, Default)]
pub struct CpuMeter {
    /// Start and CPU time of each process at the reading before, both in clock ticks.
    before: HashMap<u32, (u64, u64)>,
    read_at: Option<Instant>,
}

impl CpuMeter {
    /// Reads these processes, without this one, those that have ended, and threads of the kernel.
    /// Returns their use since the reading before; 0 at the first one. The kernel counts CPU time in
    /// ticks of 10 ms.
    pub fn read(&mut self, pids: impl IntoIterator<Item = u32>) -> Vec<ProcessUse> {
        let now = Instant::now();
        let nanos = self.read_at.replace(now).map(|at| (now - at).as_nanos());
        let mut ticks = HashMap::new();
        let use_of = |pid| {
            let stat = Stat::read(&proc::folder(Pid(pid))).ok()?;
            if pid == std::process::id() || stat.is_kernel_thread() || stat.has_ended() {
                return None;
            }
            let (begin, used) = (stat.start()?, stat.cpu_ticks()?);
            ticks.insert(pid, (begin, used));
            // A process that was not there has used all of it since.
            let before = self.before.get(&pid).filter(|before| before.0 == begin);
            let since = used.saturating_sub(before.map_or(0, |before| before.1));
            let cpus = nanos.map_or(0.0, |nanos| {
                (u128::from(since) * u128::from(TICK_NANOS)) as f64 / nanos.max(1) as f64
            });
            let threads = stat.number(20)?;
            Some(ProcessUse { pid, cpus, threads })
        };
        let found = pids.into_iter().filter_map(use_of).collect();
        self.before = ticks;
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_no_use_before_the_second_reading_and_its_own_is_left_out() {
        let mut child = testkit::command("sleep").arg("60").spawn().unwrap();
        let pids = [child.id(), std::process::id()];
        let mut meter = CpuMeter::default();
        let first = meter.read(pids);
        child.kill().unwrap();
        child.wait().unwrap();
        let whole = ProcessUse {
            pid: child.id(),
            cpus: 0.0,
            threads: 1,
        };
        assert_eq!(first, [whole]);
        assert_eq!(meter.read(pids), []);
    }
}
