//! Environment of the pollers' processes: limits, cpusets, memory.

use std::collections::{BTreeMap, BTreeSet};

use kernel_text::cpus::CpuSet;
use text::printable;

use crate::settings::Context;
use crate::settings::finding::{Finding, Key, Level};

/// Share of a process's memory, in percent, that may be on other nodes than its pollers.
const FAR_SHARE: u64 = 10;

/// Checks limits of CPU time (Documentation/admin-guide/cgroup-v2.rst, `cpu.max`): a poller needs
/// all of its CPU.
pub(crate) fn quotas(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for process in &context.facts.processes {
        let (cpus, name) = poller_cpus(context, process.pid);
        let needed = context
            .pollers
            .iter()
            .filter(|poller| poller.pid == process.pid)
            .count() as u64;
        for group in &process.groups {
            let enough = u128::from(group.quota) >= u128::from(needed) * u128::from(group.period);
            let level = if enough && group.throttled == 0 {
                Level::Yellow
            } else {
                Level::Red
            };
            let reason = format!(
                "a control group of {name} may use {} us of CPU time in each {} us, but its \
                 {needed} pollers need a full CPU each; the limit was reached {}",
                group.quota,
                group.period,
                screen::times(group.throttled)
            );
            let file = printable::text(group.file.as_bytes()).into_owned();
            let change = vec![format!(
                "echo {} > '{file}'",
                if group.is_v2 { "max" } else { "-1" }
            )];
            let value = if group.is_v2 {
                format!("{} {}", group.quota, group.period)
            } else {
                group.quota.to_string()
            };
            findings.push(
                Finding::new(Key::CpuQuota, level, &cpus, reason)
                    .from(file, value)
                    .change(change),
            );
        }
    }
    if findings.is_empty() && !context.facts.processes.is_empty() {
        let reason = "no control group limits the CPU time of these processes";
        findings.push(Finding::new(
            Key::CpuQuota,
            Level::Green,
            context.cpus,
            reason,
        ));
    }
    findings
}

/// Checks the CPUs of the cpusets (cpuset(7); `cpuset.cpus.effective` of version 2).
pub(crate) fn cpusets(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for process in &context.facts.processes {
        let Some((file, set)) = &process.cpuset else {
            continue;
        };
        let (_, name) = poller_cpus(context, process.pid);
        let file = printable::text(file.as_bytes()).into_owned();
        let missing = context.cpus.without(set);
        let (level, cpus, reason) = if missing.is_empty() {
            (
                Level::Green,
                context.cpus.clone(),
                format!("{name} may use these CPUs"),
            )
        } else {
            (
                Level::Yellow,
                missing.clone(),
                format!("{name} may not use CPU {missing}: its cpuset does not include it"),
            )
        };
        findings.push(Finding::new(Key::Cpuset, level, &cpus, reason).from(file, set));
    }
    findings
}

/// Checks the NUMA nodes of the processes' memory (`numa_maps`; numa(7)).
pub(crate) fn nodes(context: &Context<'_>) -> Vec<Finding> {
    let (facts, cpus) = (context.facts, context.cpus);
    if facts.nodes <= 1 {
        return vec![Finding::new(
            Key::NumaMemory,
            Level::Green,
            cpus,
            "the machine has one NUMA node",
        )];
    }
    let near: BTreeSet<u32> = cpus
        .iter()
        .filter_map(|cpu| facts.cores.get(&cpu)?.node)
        .collect();
    let nodes = near
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(",");
    let mut findings = Vec::new();
    for process in &facts.processes {
        let (cpus, name) = poller_cpus(context, process.pid);
        let setting = format!("/proc/{}/numa_maps", process.pid);
        let memory = match &process.memory {
            Ok(memory) => memory,
            Err(unread) => {
                findings.push(Finding::unread(Key::NumaMemory, &cpus, unread));
                continue;
            }
        };
        let all: u64 = memory.values().fold(0, |sum, kb| sum.saturating_add(*kb));
        let far: u64 = memory
            .iter()
            .filter(|(node, _)| !near.contains(node))
            .fold(0, |sum, (_, kb)| sum.saturating_add(*kb));
        let share = far.saturating_mul(100) / all.max(1);
        let finding = if share < FAR_SHARE {
            Finding::new(
                Key::NumaMemory,
                Level::Green,
                &cpus,
                format!("the memory of {name} is local, on node {nodes}"),
            )
        } else {
            let part = screen::percent(screen::share(far, all), 0);
            let reason =
                format!("{part} of the memory of {name} is remote: its CPUs are on node {nodes}");
            let change = vec![format!(
                "numactl --cpunodebind={nodes} --membind={nodes} COMMAND  # when starting the \
                 program"
            )];
            Finding::new(Key::NumaMemory, Level::Yellow, &cpus, reason).change(change)
        };
        findings.push(finding.from(setting, by_node(memory)));
    }
    findings
}

/// Formats sizes by node: `node 0: 12 MB, node 1: 3 MB`.
fn by_node(memory: &BTreeMap<u32, u64>) -> String {
    memory
        .iter()
        .map(|(node, kb)| format!("node {node}: {} MB", kb / 1024))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Returns the CPUs of a process's pollers, all if it has none, and the name of the process.
fn poller_cpus(context: &Context<'_>, pid: u32) -> (CpuSet, String) {
    let cpus: CpuSet = context
        .pollers
        .iter()
        .filter(|poller| poller.pid == pid)
        .map(|poller| poller.cpu)
        .collect();
    let name = context
        .facts
        .processes
        .iter()
        .find(|process| process.pid == pid)
        .map(|process| &process.name);
    let name = name
        .map(|name| printable::text(name).into_owned())
        .unwrap_or_default();
    (
        if cpus.is_empty() {
            context.cpus.clone()
        } else {
            cpus
        },
        format!("{name} [{pid}]"),
    )
}
