//! Processes from which the user chooses one, with the CPU time that they take.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::Pid;
use host::cpu_use::{CpuMeter, ProcessUse};
use host::proc;
use text::printable;
use top::Candidate;
use trace_source::{Application, traces};

/// Time between the first two readings.
const FIRST_INTERVAL: Duration = Duration::from_millis(200);

/// Readings of all processes, or of some: each gives the CPU time since the one before.
pub struct Processes {
    /// Processes to read; all if this is empty.
    among: Vec<u32>,
    meter: CpuMeter,
}

impl Processes {
    /// Makes the first reading of these processes, or of all if there are none. Waits a moment, so
    /// that the next one has CPU time to show.
    pub fn watch(among: Vec<u32>) -> Self {
        let mut this = Self {
            among,
            meter: CpuMeter::default(),
        };
        this.read();
        std::thread::sleep(FIRST_INTERVAL);
        this
    }

    /// Returns the processes as they are now, except this one and the kernel's.
    pub fn read(&mut self) -> Vec<Candidate> {
        let all = if self.among.is_empty() {
            proc::processes()
        } else {
            self.among.clone()
        };
        let writers = writers();
        let used = self.meter.read(all).into_iter();
        let candidates = used.filter_map(|ProcessUse { pid, cpus, .. }| {
            Some(Candidate {
                pid,
                name: printable::text(&proc::program_name(Pid(pid))?).into_owned(),
                has_trace: writers.contains(&pid),
                is_ours: proc::program(Pid(pid)).is_ok(),
                cpu: cpus,
                command: proc::shown_command_line(pid),
            })
        });
        candidates.collect()
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
    use std::time::Instant;

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
