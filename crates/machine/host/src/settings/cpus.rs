//! Properties of single CPUs: their cores, frequency and idle states; and the kernel's clock.

use std::collections::BTreeMap;

use kernel_text::cpus::CpuSet;

use super::root::{Reading, Root};

/// A CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Core {
    /// CPUs of its core, including itself (`thread_siblings_list`;
    /// Documentation/admin-guide/cputopology.rst).
    pub siblings: CpuSet,
    /// NUMA node.
    pub node: Option<u32>,
    /// Frequency governor (Documentation/admin-guide/pm/cpufreq.rst), if there is one.
    pub governor: Option<String>,
    /// Driver that sets the frequency.
    pub driver: Option<String>,
    /// Highest frequency that is allowed now, and highest that it has, in kHz.
    pub highest: Option<(i64, i64)>,
    /// Idle states.
    pub idle: Vec<IdleState>,
}

/// A state in which a CPU waits (Documentation/admin-guide/pm/cpuidle.rst).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleState {
    /// The number in the name of its folder.
    pub number: u32,
    /// Name of the state.
    pub name: String,
    /// Microseconds until the CPU runs again.
    pub latency: i64,
    /// True if it is switched off.
    pub disabled: bool,
}

impl Core {
    /// Reads the properties of a CPU.
    pub(super) fn read(root: &Root, cpu: u32) -> Self {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}");
        let word = |name: &str| {
            root.text(&format!("{folder}/{name}"))
                .ok()
                .map(|text| text.trim().to_owned())
        };
        let number = |name: &str| root.number(&format!("{folder}/{name}")).ok();
        let names = root.names(&folder).unwrap_or_default();
        Self {
            siblings: root
                .list(&format!("{folder}/topology/thread_siblings_list"))
                .unwrap_or_default(),
            node: names
                .iter()
                .find_map(|name| name.strip_prefix("node")?.parse().ok()),
            governor: word("cpufreq/scaling_governor"),
            driver: word("cpufreq/scaling_driver"),
            highest: number("cpufreq/scaling_max_freq").zip(number("cpufreq/cpuinfo_max_freq")),
            idle: idle_states(root, &folder),
        }
    }
}

fn idle_states(root: &Root, folder: &str) -> Vec<IdleState> {
    let folder = format!("{folder}/cpuidle");
    let names = root.names(&folder).unwrap_or_default();
    let state = |name: &String| {
        let number = name.strip_prefix("state")?.parse().ok()?;
        let file = |file: &str| format!("{folder}/{name}/{file}");
        Some(IdleState {
            number,
            name: root.text(&file("name")).ok()?.trim().to_owned(),
            latency: root.number(&file("latency")).ok()?,
            disabled: root.number(&file("disable")).ok()? != 0,
        })
    };
    names.iter().filter_map(state).collect()
}

/// Source of the kernel's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Source in use.
    pub current: Reading<String>,
    /// Sources that could be used.
    pub available: Vec<String>,
}

impl Clock {
    pub(super) fn read(root: &Root) -> Self {
        const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
        let available = root
            .text(&format!("{FOLDER}/available_clocksource"))
            .unwrap_or_default();
        Self {
            current: root
                .text(&format!("{FOLDER}/current_clocksource"))
                .map(|text| text.trim().to_owned()),
            available: available.split_whitespace().map(str::to_owned).collect(),
        }
    }
}

/// Reads the runtime of each CPU's fair server (kernel/sched/debug.c, `debugfs_fair_server_init`;
/// since Linux 6.12).
pub(super) fn fair_servers(root: &Root, online: &CpuSet) -> Reading<BTreeMap<u32, u64>> {
    const FOLDER: &str = "/sys/kernel/debug/sched/fair_server";
    root.names(FOLDER)?;
    let runtime = |cpu: u32| {
        Some((
            cpu,
            root.number(&format!("{FOLDER}/cpu{cpu}/runtime"))
                .ok()?
                .try_into()
                .ok()?,
        ))
    };
    Ok(online.iter().filter_map(runtime).collect())
}
