//! Finds the settings that explain an intruder.

use kernel_text::cpus::CpuSet;

use crate::settings::finding::{Finding, Key, Level, Subject};

/// Intruder that took time of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intruder<'a> {
    /// Device interrupt, by number.
    Interrupt(u32),
    /// Soft interrupt, by the name of its vector: `NET_RX`.
    SoftInterrupt(&'a str),
    /// Worker of the kernel. True if its workqueue is unbound, `None` if that is unknown.
    Worker(Option<bool>),
    /// Timer tick.
    Tick,
    /// Thread of user space, by its id.
    Thread(u32),
    /// Thread of the kernel that is not a worker.
    KernelThread,
}

/// Returns the findings that show how to remove an intruder from a CPU, best first. Findings
/// without a change are left out.
pub fn advice<'a>(findings: &'a [Finding], intruder: Intruder<'_>, cpu: u32) -> Vec<&'a Finding> {
    let keys: &[Key] = match intruder {
        Intruder::Interrupt(_) => &[Key::IrqAffinity, Key::Irqbalance],
        Intruder::SoftInterrupt("NET_RX") => &[Key::Rps, Key::IrqAffinity],
        Intruder::SoftInterrupt("NET_TX" | "BLOCK" | "TASKLET" | "HI" | "IRQ_POLL") => {
            &[Key::IrqAffinity]
        }
        Intruder::SoftInterrupt("RCU") => &[Key::RcuNocbs],
        Intruder::SoftInterrupt("TIMER" | "SCHED" | "HRTIMER") | Intruder::Tick => {
            &[Key::NohzFull, Key::Isolated]
        }
        Intruder::SoftInterrupt(_) => &[],
        Intruder::Worker(Some(true)) => &[Key::Workqueue],
        Intruder::Worker(Some(false)) => &[Key::StatInterval],
        Intruder::Worker(None) => &[Key::Workqueue, Key::StatInterval],
        Intruder::Thread(_) => &[Key::SharedCpu, Key::Isolated, Key::Cpuset],
        Intruder::KernelThread => &[Key::KernelThreads, Key::Watchdog],
    };
    let cpus: CpuSet = [cpu].into_iter().collect();
    let matches = |finding: &&Finding| {
        let is_about = match (&finding.subject, intruder) {
            (Subject::Interrupts(numbers), Intruder::Interrupt(number)) => {
                numbers.contains(&number)
            }
            (Subject::Thread(tid), Intruder::Thread(number)) => *tid == number,
            (Subject::Thread(_), _) => false,
            _ => true,
        };
        let can_change =
            matches!(finding.level, Level::Red | Level::Yellow) && !finding.change.is_empty();
        is_about && can_change && !finding.cpus.and(&cpus).is_empty()
    };
    let of_key = |key: &Key| {
        let key = *key;
        findings
            .iter()
            .filter(move |finding| finding.key == key)
            .filter(matches)
    };
    keys.iter().flat_map(of_key).collect()
}
