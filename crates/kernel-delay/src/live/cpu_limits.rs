//! CPU limits of the process's control groups: who has used one up waits for a CPU while others are idle.

pub use host::cgroups::CpuLimit;
use host::cgroups::cpu_limits;
use serde_json::{Value, json};

/// What the limits had done before a window.
#[derive(Debug)]
pub struct CpuLimits {
    before: Vec<CpuLimit>,
}

impl CpuLimits {
    /// Reads those of these processes, each once.
    pub fn read(pids: &[u32]) -> Self {
        Self { before: of_all(pids) }
    }

    /// What they did since then.
    pub fn since(&self, pids: &[u32]) -> Vec<CpuLimit> {
        grown(&self.before, &of_all(pids))
    }
}

fn of_all(pids: &[u32]) -> Vec<CpuLimit> {
    let mut limits: Vec<CpuLimit> = Vec::new();
    for limit in pids.iter().flat_map(|&pid| cpu_limits(pid)) {
        if !limits.iter().any(|known| known.group == limit.group) {
            limits.push(limit);
        }
    }
    limits
}

/// The limits of which a period has ended, with the periods that did.
fn grown(before: &[CpuLimit], after: &[CpuLimit]) -> Vec<CpuLimit> {
    let of = |after: &CpuLimit| {
        let before = before.iter().find(|before| before.group == after.group);
        let periods = after.periods.saturating_sub(before.map_or(0, |before| before.periods));
        let throttled = after.throttled.saturating_sub(before.map_or(0, |before| before.throttled));
        (periods > 0).then(|| CpuLimit { group: after.group.clone(), periods, throttled })
    };
    after.iter().filter_map(of).collect()
}

/// A line for each that was used up.
pub fn lines(limits: &[CpuLimit]) -> Vec<String> {
    let used_up = limits.iter().filter(|limit| limit.throttled > 0);
    let line = |CpuLimit { group, periods, throttled }: &CpuLimit| {
        let group = printable::text(group.as_bytes()).into_owned();
        format!(
            "the CPU limit of cgroup {group} (cpu.max) was used up in {throttled} of {periods} periods: its threads then \
             wait for the next one"
        )
    };
    used_up.map(line).collect()
}

/// The same for programs, of all.
pub fn json(limits: &[CpuLimit]) -> Value {
    let one = |CpuLimit { group, periods, throttled }: &CpuLimit| {
        let group = printable::text(group.as_bytes());
        json!({ "cgroup": group, "periods": periods, "used_up": throttled })
    };
    limits.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_up_since_is_reported() {
        let limit = |group: &str, periods, throttled| CpuLimit { group: group.into(), periods, throttled };
        let before = [limit("/pod", 100, 7), limit("/pod/one", 100, 50)];
        let after = [limit("/pod", 110, 7), limit("/pod/one", 110, 59), limit("/pod/idle", 0, 0)];
        let grown = grown(&before, &after);
        assert_eq!(grown, [limit("/pod", 10, 0), limit("/pod/one", 10, 9)]);
        let lines = lines(&grown);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].contains("cgroup /pod/one (cpu.max) was used up in 9 of 10 periods"), "{lines:?}");
        assert_eq!(json(&grown)[1]["used_up"], 9);
    }
}
