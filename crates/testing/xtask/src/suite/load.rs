//! Load of the machine, printed beside every verdict that depends on it.

use std::fmt;
use std::fs;

/// Load of the machine over some time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Load {
    /// Number of runnable threads, averaged over a minute, at the end of that time
    /// (`/proc/loadavg`, proc(5)).
    pub(crate) average: f64,
    /// Share of the CPUs' time that a hypervisor took, in percent (`steal` of `/proc/stat`).
    pub(crate) stolen: f64,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "load {:.1}, {:.1} % stolen", self.average, self.stolen)
    }
}

/// CPU times at one moment, in clock ticks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LoadSample {
    all: u64,
    stolen: u64,
}

impl LoadSample {
    /// Reads the times now; zeros if they cannot be read.
    pub(crate) fn now() -> Self {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        text.lines().next().map(Self::parse).unwrap_or_default()
    }

    /// Parses the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq,
    /// steal, and two that are part of user and nice.
    fn parse(line: &str) -> Self {
        let times: Vec<u64> = line
            .split_whitespace()
            .skip(1)
            .take(8)
            .filter_map(|word| word.parse().ok())
            .collect();
        Self {
            all: times.iter().sum(),
            stolen: times.get(7).copied().unwrap_or(0),
        }
    }

    /// Returns the load since this sample.
    pub(crate) fn until_now(self) -> Load {
        let now = Self::now();
        let all = now.all.saturating_sub(self.all).max(1);
        let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let average = text
            .split_whitespace()
            .next()
            .and_then(|word| word.parse().ok())
            .unwrap_or(0.0);
        Load {
            average,
            stolen: now.stolen.saturating_sub(self.stolen) as f64 * 100.0 / all as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_the_eighth_number() {
        let sample = LoadSample::parse("cpu  10 20 30 40 50 60 70 80 5 5");
        assert_eq!((sample.all, sample.stolen), (360, 80));
    }
}
