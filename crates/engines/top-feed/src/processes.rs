//! Processes from which the user chooses one, with the CPU time that they take.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host::Pid;
use host::proc::{self, Stat};
use text::printable;
use top::Candidate;
use trace_source::{Application, traces};

/// Flag of the kernel's own threads (`PF_KTHREAD`, field 9 of proc_pid_stat(5)).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Time between the first two readings: the kernel counts CPU time in ticks of 10 ms.
const FIRST_INTERVAL: Duration = Duration::from_millis(200);

/// Readings of all processes, or of some: each gives the CPU time since the one before.
pub struct Processes {
    /// Processes to read; all if this is empty.
    among: Vec<u32>,
    /// Start and CPU time of each process at the reading before, both in clock ticks.
    before: HashMap<u32, (u64, u64)>,
    read_at: Instant,
}

impl Processes {
    /// Makes the first reading of these processes, or of all if there are none. Waits a moment, so
    /// that the next one has CPU time to show.
    pub fn watch(among: Vec<u32>) -> Self {
        let mut this = Self {
            among,
            before: HashMap::new(),
            read_at: Instant::now(),
        };
        this.read();
        std::thread::sleep(FIRST_INTERVAL);
        this
    }

    /// Returns the processes as they are now, except this one and the kernel's.
    pub fn read(&mut self) -> Vec<Candidate> {
        let now = Instant::now();
        let elapsed = (now - std::mem::replace(&mut self.read_at, now)).as_nanos();
        let writers = writers();
        let mut ticks = HashMap::new();
        let all = if self.among.is_empty() {
            proc::processes()
        } else {
            self.among.clone()
        };
        let candidates = all.into_iter().filter_map(|pid| {
            let stat = Stat::read(&proc::folder(Pid(pid))).ok()?;
            let is_kernel = stat.number(9)? & KERNEL_THREAD != 0;
            if pid == std::process::id() || is_kernel || stat.has_ended() {
                return None;
            }
            let (begin, used) = (stat.start()?, stat.cpu_ticks()?);
            ticks.insert(pid, (begin, used));
            let before = self.before.get(&pid).filter(|before| before.0 == begin);
            let since = before.map_or(0, |before| used.saturating_sub(before.1));
            Some(Candidate {
                pid,
                name: printable::text(&proc::program_name(Pid(pid))?).into_owned(),
                has_trace: writers.contains(&pid),
                is_ours: proc::program(Pid(pid)).is_ok(),
                cpu: (u128::from(since) * u128::from(proc::TICK_NANOS)) as f64
                    / elapsed.max(1) as f64,
                command: proc::shown_command_line(pid),
            })
        });
        let candidates = candidates.collect();
        self.before = ticks;
        candidates
    }

    /// Returns the only process that writes an SPDK trace; `None` if there are none or several.
    pub fn only_target() -> Option<u32> {
        let mut writers = writers().into_iter();
        writers.next().filter(|_| writers.next().is_none())
    }
}

/// Returns the processes that write SPDK's traces.
fn writers() -> BTreeSet<u32> {
    // Without the folder there are no traces.
    let paths: Vec<PathBuf> = traces().unwrap_or_default();
    let found = Application::find_each(paths.iter().map(Path::new));
    found.iter().flat_map(Application::pids).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_process_has_its_cpu_time() {
        let mut child = testkit::command("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .expect("a shell");
        let mut processes = Processes::watch(vec![child.id(), std::process::id()]);
        // Clock ticks are 10 ms.
        let until = Instant::now() + Duration::from_secs(20);
        let mut found = Vec::new();
        while Instant::now() < until {
            std::thread::sleep(Duration::from_millis(50));
            found = processes.read();
            if found.first().is_some_and(|it| it.cpu > 0.0) {
                break;
            }
        }
        let pid = child.id();
        child.kill().expect("ours");
        child.wait().expect("ours");
        // This process itself is left out.
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].pid == pid && found[0].cpu > 0.0 && found[0].is_ours);
        assert!(found[0].command.contains("while"), "{found:?}");
        assert!(processes.read().is_empty());
    }
}
