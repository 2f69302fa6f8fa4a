//! Circumstances of a window: the CPU limits of the threads' control groups, and the hypervisor below the machine.

use crate::Sample;
use crate::live::cpu_limits::{self, CpuLimit, CpuLimits};
use crate::live::steal::{self, Steal};

/// State of limits and hypervisor before a window.
pub struct Before {
    limits: CpuLimits,
    steal: Steal,
}

/// Limits that were used up, and time that was stolen, in the window.
pub struct Around {
    limits: Vec<CpuLimit>,
    stolen: Vec<(u32, u64)>,
}

impl Before {
    /// Reads what there is for these processes.
    pub fn read(pids: &[u32]) -> Self {
        Self { limits: CpuLimits::read(pids), steal: Steal::read() }
    }

    /// Returns what came since then.
    pub fn since(&self, pids: &[u32]) -> Around {
        Around { limits: self.limits.since(pids), stolen: self.steal.since() }
    }
}

impl Around {
    /// Sets for how long at most the limits kept each thread from running.
    pub fn limit(&self, sample: &mut Sample) {
        cpu_limits::limit(&mut sample.threads, &self.limits);
    }

    /// Returns the lines that stand behind the verdict of a window of this many nanoseconds.
    pub fn lines(&self, window: u64) -> Vec<String> {
        cpu_limits::lines(&self.limits).into_iter().chain(steal::line(&self.stolen, window)).collect()
    }

    /// Adds the same to an object for programs.
    pub fn add_to(&self, object: &mut serde_json::Value) {
        object["cpu_limits"] = cpu_limits::json(&self.limits);
        object["steal"] = steal::json(&self.stolen);
    }
}
