//! Effects of a machine's settings on CPUs on which threads poll. Facts go in, findings come out,
//! each with the reason, its setting and the line that changes it.
//!
//! It opens no file and changes nothing: `host` reads the facts, at the end of a window in which
//! `watch` has the machine watched. The other modules read no clock: facts are data. Each check
//! names the source of its claims about the kernel; its advice holds for Linux 5.10 to 6.18.

mod advice;
mod boot;
mod command_line;
mod devices;
mod finding;
mod hardware;
mod memory;
mod pollers;
mod processes;
mod report;
mod scheduling;
#[cfg(test)]
mod tests;
mod watch;

use host::settings::Facts;
use kernel_text::cpus::CpuSet;
use ordering::Order as _;

pub use advice::{Intruder, advice};
pub use finding::{Finding, Key, Level, Subject};
pub use pollers::{Poller, pollers};
pub use report::CheckReport;

/// Input of the checks.
struct Context<'a> {
    facts: &'a Facts,
    /// CPUs on which threads poll.
    cpus: &'a CpuSet,
    /// Polling threads.
    pollers: &'a [Poller],
    /// CPUs for all else; empty if there are none.
    others: CpuSet,
}

/// Returns all findings for these CPUs and the threads that poll on them: red ones first, and in
/// the order of the keys.
pub fn check(facts: &Facts, cpus: &CpuSet, pollers: &[Poller]) -> Vec<Finding> {
    let mut context = Context {
        facts,
        cpus,
        pollers,
        others: CpuSet::default(),
    };
    let free = facts.online.without(cpus);
    let housekeeping = free.without(&context.isolated());
    context.others = if housekeeping.is_empty() {
        free
    } else {
        housekeeping
    };
    let checks = [
        boot::isolated,
        boot::nohz_full,
        boot::rcu_nocbs,
        devices::interrupts,
        devices::irqbalance,
        devices::rps,
        devices::xps,
        devices::workqueues,
        scheduling::shared,
        scheduling::real_time,
        scheduling::kernel_threads,
        scheduling::watchdogs,
        processes::quotas,
        processes::cpusets,
        processes::nodes,
        hardware::first_cpu,
        hardware::siblings,
        hardware::frequency,
        hardware::idle_states,
        hardware::clock,
        memory::huge_pages,
        memory::statistics,
    ];
    let mut findings: Vec<Finding> = checks.iter().flat_map(|check| check(&context)).collect();
    findings.order_by_key(|finding| (finding.level, finding.key));
    findings
}

impl Context<'_> {
    /// Returns the CPUs that are isolated at boot or in a partition.
    fn isolated(&self) -> CpuSet {
        let boot = self.facts.isolated.clone().unwrap_or_default();
        let partitions = boot.or(&self.facts.partitions.clone().unwrap_or_default());
        // Kernels before 6.11 list partitions nowhere; that of a process is known all the same.
        let own = self
            .facts
            .processes
            .iter()
            .filter(|process| process.is_isolated);
        let own = own.filter_map(|process| process.cpuset.as_ref());
        own.fold(partitions, |cpus, (_, own)| cpus.or(own))
    }

    /// Returns a line that needs a CPU for all else; nothing if there is no such CPU.
    fn line(&self, line: impl FnOnce(&CpuSet) -> String) -> Vec<String> {
        if self.others.is_empty() {
            Vec::new()
        } else {
            vec![line(&self.others)]
        }
    }

    /// Returns true if a thread is one of the pollers.
    fn is_poller(&self, tid: u32) -> bool {
        self.pollers.iter().any(|poller| poller.tid == tid)
    }
}
