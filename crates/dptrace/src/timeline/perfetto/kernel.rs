//! What the kernel did, as events of ftrace, from which Perfetto draws its own views.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use perfetto::Writer;
use perfetto::proto::{Ftrace, Ipi, IrqEntry, IrqExit, LocalTimer, SchedSwitch, SchedWaking, Softirq, SysCall};
use timeline::{BootNanos, Cpu, EventKind, Interrupt, KernelEvent, Leaves, Tid};

use super::Facts;

/// The priority of a task that nobody gave another one: events do not report priorities.
const USUAL_PRIORITY: i32 = 120;
/// The vector of the timer's interrupt on x86 (`LOCAL_TIMER_VECTOR`): Perfetto shows it, and events do not report it.
const TIMER_VECTOR: i32 = 0xec;

/// What must be known of earlier events.
#[derive(Debug)]
pub(super) struct Kernel {
    /// The process's.
    threads: HashSet<Tid>,
    /// CPUs of which it is known who has them.
    seen: HashSet<Cpu>,
    /// Until when events of a CPU were lost.
    lost: HashMap<Cpu, BootNanos>,
    /// By thread: the system call that it is in.
    calls: HashMap<Tid, u32>,
}

/// `prev_state` of `sched_switch`: the bits of its format (`trace_sched_switch` in include/trace/events/sched.h; 0x100 is
/// `TASK_REPORT_MAX`, which stands for preempted).
fn state(leaves: Leaves) -> i64 {
    match leaves {
        Leaves::Preempted => 0x100,
        // What it waits for may be interruptible or not: that is not reported.
        Leaves::Blocked => 0x1,
        Leaves::Stopped => 0x4,
        Leaves::Ended => 0x10,
    }
}

impl Kernel {
    pub(super) fn new(facts: &Facts<'_>) -> Self {
        let threads = facts.threads.iter().map(|(tid, _)| *tid).collect();
        Self { threads, seen: HashSet::new(), lost: HashMap::new(), calls: HashMap::new() }
    }

    /// Writes one event.
    pub(super) fn write<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        facts: &Facts<'_>,
        event: &KernelEvent,
    ) -> io::Result<()> {
        let KernelEvent { at, cpu, kind } = *event;
        let mut put = |tid: Tid, what| writer.kernel(cpu.0, at.0, tid.0, what);
        match kind {
            EventKind::Switch { prev, leaves, next } => {
                self.had(writer, facts, cpu, prev)?;
                self.seen.insert(cpu);
                writer.kernel(cpu.0, at.0, prev.0, switch(facts, at, (prev, leaves), next))
            }
            EventKind::Found { tid, off_cpu: None } => self.had(writer, facts, cpu, tid),
            EventKind::Found { .. } | EventKind::Migrate { .. } => Ok(()),
            EventKind::Wake { tid, on } => put(
                Tid(0),
                Ftrace::SchedWaking(SchedWaking {
                    comm: Some(name(facts, tid, at)),
                    pid: Some(tid.0.cast_signed()),
                    prio: Some(USUAL_PRIORITY),
                    target_cpu: Some(on.0.cast_signed()),
                }),
            ),
            EventKind::Begin { tid, interrupt } => {
                self.had(writer, facts, cpu, tid)?;
                writer.kernel(cpu.0, at.0, tid.0, begin(interrupt))
            }
            EventKind::End { tid, interrupt } => put(tid, end(interrupt)),
            EventKind::CallEnter { tid, number } => {
                self.calls.insert(tid, number);
                self.had(writer, facts, cpu, tid)?;
                writer.kernel(cpu.0, at.0, tid.0, Ftrace::SysEnter(SysCall { id: Some(number.into()) }))
            }
            EventKind::CallExit { tid } => match self.calls.remove(&tid) {
                Some(number) => put(tid, Ftrace::SysExit(SysCall { id: Some(number.into()) })),
                // It was in the call before the trace began.
                None => Ok(()),
            },
            EventKind::Lost { .. } => {
                self.seen.remove(&cpu);
                self.lost.insert(cpu, at);
                writer.lost(cpu.0)
            }
        }
    }

    /// That a thread of the process had this CPU up to now, if no switch has shown that: a poller that nobody disturbs has no
    /// switch, and would not be seen at all.
    fn had<W: Write>(&mut self, writer: &mut Writer<W>, facts: &Facts<'_>, cpu: Cpu, tid: Tid) -> io::Result<()> {
        if !self.threads.contains(&tid) || !self.seen.insert(cpu) {
            return Ok(());
        }
        let known = self.lost.get(&cpu).copied().unwrap_or(facts.start);
        let from = facts.window.from.max(known);
        writer.kernel(cpu.0, from.0, 0, switch(facts, from, (Tid(0), Leaves::Preempted), tid))
    }
}

fn switch(facts: &Facts<'_>, at: BootNanos, (prev, leaves): (Tid, Leaves), next: Tid) -> Ftrace {
    Ftrace::SchedSwitch(SchedSwitch {
        prev_comm: Some(name(facts, prev, at)),
        prev_pid: Some(prev.0.cast_signed()),
        prev_prio: Some(USUAL_PRIORITY),
        prev_state: Some(state(leaves)),
        next_comm: Some(name(facts, next, at)),
        next_pid: Some(next.0.cast_signed()),
        next_prio: Some(USUAL_PRIORITY),
    })
}

fn name(facts: &Facts<'_>, tid: Tid, at: BootNanos) -> String {
    if tid == Tid(0) { "swapper".to_owned() } else { (facts.name)(tid, at).unwrap_or_default() }
}

fn begin(interrupt: Interrupt) -> Ftrace {
    match interrupt {
        Interrupt::Hard(number) => {
            Ftrace::IrqEntry(IrqEntry { irq: Some(number.cast_signed()), name: Some(format!("irq {number}")) })
        }
        Interrupt::Soft(vector) => Ftrace::SoftirqEntry(Softirq { vec: Some(vector) }),
        Interrupt::Tick => Ftrace::TimerEntry(LocalTimer { vector: Some(TIMER_VECTOR) }),
        Interrupt::Call => Ftrace::IpiEntry(call()),
    }
}

fn end(interrupt: Interrupt) -> Ftrace {
    match interrupt {
        Interrupt::Hard(number) => Ftrace::IrqExit(IrqExit { irq: Some(number.cast_signed()) }),
        Interrupt::Soft(vector) => Ftrace::SoftirqExit(Softirq { vec: Some(vector) }),
        Interrupt::Tick => Ftrace::TimerExit(LocalTimer { vector: Some(TIMER_VECTOR) }),
        Interrupt::Call => Ftrace::IpiExit(call()),
    }
}

/// As arm64 calls it in its own `ipi_entry`.
fn call() -> Ipi {
    Ipi { reason: Some("Function call interrupts".to_owned()) }
}
