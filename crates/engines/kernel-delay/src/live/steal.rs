//! CPU time that a hypervisor took for others. A thread's budget has it in the part that ran at the
//! time, since no event shows it.

use std::collections::HashMap;

use host::busy::stolen;
use ordering::Order as _;
use serde_json::{Value, json};

/// Nanoseconds of a tick: the kernel counts stolen time in hundredths of a second.
const TICK: u64 = 1_000_000_000 / 100;
/// Minimum share of a CPU's time, in percent, that is reported.
const MIN_REPORTED_PERCENT: u64 = 1;
/// Maximum number of CPUs named.
const MAX_NAMED: usize = 3;

/// Stolen times before a window.
#[derive(Debug)]
pub struct Steal {
    before: HashMap<u32, u64>,
}

impl Steal {
    /// Reads the stolen times.
    pub fn read() -> Self {
        Self { before: stolen() }
    }

    /// Returns the nanoseconds stolen since the reading from each CPU that lost any, largest first.
    pub fn since(&self) -> Vec<(u32, u64)> {
        grown(&self.before, &stolen())
    }
}

fn grown(before: &HashMap<u32, u64>, after: &HashMap<u32, u64>) -> Vec<(u32, u64)> {
    let of = |(&cpu, &after): (&u32, &u64)| {
        (
            cpu,
            after.saturating_sub(before.get(&cpu).copied().unwrap_or(after)) * TICK,
        )
    };
    let mut all: Vec<(u32, u64)> = after
        .iter()
        .map(of)
        .filter(|(_, nanos)| *nanos > 0)
        .collect();
    all.order_by_key(|&(cpu, nanos)| (std::cmp::Reverse(nanos), cpu));
    all
}

/// Returns a line, if one of the CPUs lost at least a hundredth of a window of `window`
/// nanoseconds.
pub fn line(stolen: &[(u32, u64)], window: u64) -> Option<String> {
    stolen.first().filter(|(_, most)| {
        most.saturating_mul(100) >= window.saturating_mul(MIN_REPORTED_PERCENT)
    })?;
    let named = stolen
        .iter()
        .map(|(cpu, nanos)| format!("{} of CPU {cpu}", screen::time(*nanos)));
    Some(format!(
        "a hypervisor took {} for other machines: the budgets count that as whatever ran \
         there; this kernel did not cause it",
        screen::join_some(named, MAX_NAMED)
    ))
}

/// Returns the stolen times of all CPUs as JSON.
pub fn json(stolen: &[(u32, u64)]) -> Value {
    stolen
        .iter()
        .map(|(cpu, nanos)| json!({ "cpu": cpu, "ns": nanos }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newly_stolen_time_is_reported_above_a_threshold() {
        let (before, after) = (
            [(0, 100), (1, 7), (2, 0)],
            [(0, 101), (1, 27), (2, 0), (3, 50)],
        );
        let grown = grown(&before.into(), &after.into());
        assert_eq!(
            grown,
            [(1, 200_000_000), (0, 10_000_000)],
            "of one that was not there nothing is known"
        );
        let line_of = |window| line(&grown, window);
        let text = line_of(1_000_000_000).unwrap();
        assert!(
            text.starts_with(
                "a hypervisor took 200 ms of CPU 1, 10.0 ms of CPU 0 for other machines:"
            ),
            "{text}"
        );
        assert_eq!((line_of(20_000_000_001), line(&[], 1)), (None, None));
        assert_eq!(json(&grown)[0]["ns"], 200_000_000);
    }
}
