//! Which finding explains an intruder.

use kernel_text::cpus::CpuSet;

use crate::settings::finding::{Finding, Key, Level, Subject};

/// Who took time of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intruder<'a> {
    /// A device's interrupt, by number.
    Interrupt(u32),
    /// A soft interrupt, by the name of its vector: `NET_RX`.
    SoftInterrupt(&'a str),
    /// A worker of the kernel, and whether its workqueue is unbound if that is known.
    Worker(Option<bool>),
    /// The tick.
    Tick,
    /// A thread of user space, by its number.
    Thread(u32),
    /// A thread of the kernel that is no worker.
    KernelThread,
}

/// The findings that say how to be rid of an intruder on a CPU, the best first. Those with nothing to change are left out.
pub fn advice<'a>(findings: &'a [Finding], intruder: Intruder<'_>, cpu: u32) -> Vec<&'a Finding> {
    let keys: &[Key] = match intruder {
        Intruder::Interrupt(_) => &[Key::IrqAffinity, Key::Irqbalance],
        Intruder::SoftInterrupt("NET_RX") => &[Key::Rps, Key::IrqAffinity],
        Intruder::SoftInterrupt("NET_TX" | "BLOCK" | "TASKLET" | "HI" | "IRQ_POLL") => &[Key::IrqAffinity],
        Intruder::SoftInterrupt("RCU") => &[Key::RcuNocbs],
        Intruder::SoftInterrupt("TIMER" | "SCHED" | "HRTIMER") | Intruder::Tick => &[Key::NohzFull, Key::Isolated],
        Intruder::SoftInterrupt(_) => &[],
        Intruder::Worker(Some(true)) => &[Key::Workqueue],
        Intruder::Worker(Some(false)) => &[Key::StatInterval],
        Intruder::Worker(None) => &[Key::Workqueue, Key::StatInterval],
        Intruder::Thread(_) => &[Key::SharedCpu, Key::Isolated, Key::Cpuset],
        Intruder::KernelThread => &[Key::KernelThreads, Key::Watchdog],
    };
    let cpus: CpuSet = [cpu].into_iter().collect();
    let is_it = |finding: &&Finding| {
        let is_about = match (&finding.subject, intruder) {
            (Subject::Interrupts(numbers), Intruder::Interrupt(number)) => numbers.contains(&number),
            (Subject::Thread(tid), Intruder::Thread(number)) => *tid == number,
            (Subject::Thread(_), _) => false,
            _ => true,
        };
        let can_change = matches!(finding.level, Level::Red | Level::Yellow) && !finding.change.is_empty();
        is_about && can_change && !finding.cpus.and(&cpus).is_empty()
    };
    let of_key = |key: &Key| {
        let key = *key;
        findings.iter().filter(move |finding| finding.key == key).filter(is_it)
    };
    keys.iter().flat_map(of_key).collect()
}
