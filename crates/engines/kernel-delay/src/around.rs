//! Circumstances of a window: the CPU limits of the threads' control groups, and the hypervisor
//! below the machine.

use crate::Sample;
use crate::live::cpu_limits::{self, CpuLimit, CpuLimits};
use crate::live::steal::{self, Steal};

/// State of limits and hypervisor before a window.
pub struct WindowBaseline {
    limits: CpuLimits,
    steal: Steal,
}

/// Used-up limits and stolen time in the window.
pub struct WindowContext {
    limits: Vec<CpuLimit>,
    stolen: Vec<(u32, u64)>,
}

impl WindowBaseline {
    /// Reads the state for these processes.
    pub fn read(pids: &[u32]) -> Self {
        Self {
            limits: CpuLimits::read(pids),
            steal: Steal::read(),
        }
    }

    /// Returns the changes since the reading.
    pub fn since(&self, pids: &[u32]) -> WindowContext {
        WindowContext {
            limits: self.limits.since(pids),
            stolen: self.steal.since(),
        }
    }
}

impl WindowContext {
    /// Sets the maximum time for which the limits kept each thread from running.
    pub fn limit(&self, sample: &mut Sample) {
        cpu_limits::limit(&mut sample.threads, &self.limits);
    }

    /// Returns the lines that follow the verdict of a window of `window` nanoseconds.
    pub fn lines(&self, window: u64) -> Vec<String> {
        cpu_limits::lines(&self.limits)
            .into_iter()
            .chain(steal::line(&self.stolen, window))
            .collect()
    }

    /// Adds the limits and stolen times to a JSON object.
    pub fn add_to(&self, object: &mut serde_json::Value) {
        object["cpu_limits"] = cpu_limits::json(&self.limits);
        object["steal"] = steal::json(&self.stolen);
    }
}
