//! The kernel's events in ftrace's form, from which Perfetto draws its own views.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use ordering::Order as _;
use perfetto::Writer;
use perfetto::proto::{
    Ftrace, Ipi, IrqEntry, IrqExit, LocalTimer, SchedSwitch, SchedWaking, Softirq, SysCall,
};
use scene::{BootNanos, Cpu, EventKind, Interrupt, KernelEvent, LeaveReason, Tid, Waker};

use super::Facts;

/// Default priority of a task: events do not report priorities.
const USUAL_PRIORITY: i32 = 120;
/// Vector of the timer's interrupt on x86 (`LOCAL_TIMER_VECTOR`): Perfetto shows it, but events do
/// not report it.
const TIMER_VECTOR: i32 = 0xec;

/// A `prev_state` that no kernel reports: from there on, Perfetto shows a thread's state as unknown
/// (it knows the bits below 0x200 of kernels since 4.14: `task_state.cc` of its trace processor).
const UNKNOWN_STATE: i64 = 0x8000;

/// State from earlier events.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// Threads of the process.
    threads: HashSet<Tid>,
    /// CPUs with a known current thread.
    seen: HashSet<Cpu>,
    /// Last thread shown on each CPU.
    last: HashMap<Cpu, Tid>,
    /// Time up to which events of a CPU were lost.
    lost: HashMap<Cpu, BootNanos>,
    /// Last thread that was found off its CPU, and when. An event of the same time shows the call
    /// that it is in, not that it has a CPU.
    asleep: Option<(Tid, BootNanos)>,
    /// System call that each thread is in.
    calls: HashMap<Tid, u32>,
}

/// Returns `prev_state` of `sched_switch`, in the bits of its format (`trace_sched_switch` in
/// include/trace/events/sched.h; 0x100 is `TASK_REPORT_MAX`, which stands for preempted).
fn state(leaves: LeaveReason) -> i64 {
    match leaves {
        LeaveReason::Preempted => 0x100,
        // Whether the wait is interruptible is not reported.
        LeaveReason::Blocked => 0x1,
        LeaveReason::Stopped => 0x4,
        LeaveReason::Ended => 0x10,
    }
}

impl Kernel {
    pub(crate) fn new(facts: &Facts<'_>) -> Self {
        let threads = facts.threads.iter().map(|(tid, _)| *tid).collect();
        Self {
            threads,
            seen: HashSet::new(),
            last: HashMap::new(),
            lost: HashMap::new(),
            asleep: None,
            calls: HashMap::new(),
        }
    }

    /// Writes one event.
    pub(crate) fn write<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        facts: &Facts<'_>,
        event: &KernelEvent,
    ) -> io::Result<()> {
        let KernelEvent { at, cpu, kind } = *event;
        match kind {
            EventKind::Switch { prev, .. } => self.had(writer, facts, cpu, prev)?,
            EventKind::Found {
                tid,
                off_cpu: Some(_),
            } => self.asleep = Some((tid, at)),
            EventKind::CallEnter { tid, .. } if self.asleep == Some((tid, at)) => {}
            EventKind::Found { tid, off_cpu: None }
            | EventKind::Begin { tid, .. }
            | EventKind::CallEnter { tid, .. } => self.had(writer, facts, cpu, tid)?,
            _ => {}
        }
        match self.ftrace(facts, event) {
            Some((tid, what)) => writer.kernel(cpu.0, at.0, tid.0, what),
            None if matches!(kind, EventKind::Lost { .. }) => writer.lost(cpu.0),
            None => Ok(()),
        }
    }

    /// Converts an event to ftrace's form, with the thread in which it happened. `None` if ftrace
    /// has no such event.
    fn ftrace(&mut self, facts: &Facts<'_>, event: &KernelEvent) -> Option<(Tid, Ftrace)> {
        let KernelEvent { at, cpu, kind } = *event;
        Some(match kind {
            EventKind::Switch { prev, leaves, next } => {
                self.seen.insert(cpu);
                self.last.insert(cpu, next);
                (prev, switch(facts, at, (prev, state(leaves)), next))
            }
            EventKind::Found { .. }
            | EventKind::Migrate { .. }
            | EventKind::StopSignal { .. }
            | EventKind::Unseen { .. }
            | EventKind::Inside { .. } => return None,
            // Perfetto names the thread of the event as the waker.
            EventKind::Wake { tid, on, by } => {
                let waker = match by {
                    Waker::Thread(waker) => waker,
                    Waker::Interrupt(_) | Waker::Unknown => Tid(0),
                };
                (waker, waking(facts, at, tid, on))
            }
            EventKind::Begin { tid, interrupt } => (tid, begin(interrupt)),
            EventKind::End { tid, interrupt } => (tid, end(interrupt)),
            EventKind::CallEnter { tid, number } => {
                self.calls.insert(tid, number);
                (
                    tid,
                    Ftrace::SysEnter(SysCall {
                        id: Some(number.into()),
                    }),
                )
            }
            // Without a number, the thread was in the call before the trace began.
            EventKind::CallExit { tid } => (
                tid,
                Ftrace::SysExit(SysCall {
                    id: Some(self.calls.remove(&tid)?.into()),
                }),
            ),
            EventKind::Lost { .. } => {
                self.seen.remove(&cpu);
                self.lost.insert(cpu, at);
                return None;
            }
        })
    }

    /// Writes that a thread of the process had this CPU up to now, if no switch has shown that: an
    /// undisturbed poller has no switch, and would not be visible at all.
    fn had<W: Write>(
        &mut self,
        writer: &mut Writer<W>,
        facts: &Facts<'_>,
        cpu: Cpu,
        tid: Tid,
    ) -> io::Result<()> {
        if !self.threads.contains(&tid) || !self.seen.insert(cpu) {
            return Ok(());
        }
        self.last.insert(cpu, tid);
        let known = self.lost.get(&cpu).copied().unwrap_or(facts.start);
        let from = facts.window.from.max(known);
        writer.kernel(
            cpu.0,
            from.0,
            0,
            switch(facts, from, (Tid(0), state(LeaveReason::Preempted)), tid),
        )
    }

    /// If the events end before the trace, writes that nobody is known to have a CPU from then on:
    /// Perfetto would show the last thread until the end.
    pub(crate) fn finish<W: Write>(
        &self,
        writer: &mut Writer<W>,
        facts: &Facts<'_>,
    ) -> io::Result<()> {
        let Some(cut) = facts.known_until else {
            return Ok(());
        };
        let mut last: Vec<(Cpu, Tid)> = self.last.iter().map(|(cpu, tid)| (*cpu, *tid)).collect();
        last.order();
        for (cpu, tid) in last.into_iter().filter(|(_, tid)| *tid != Tid(0)) {
            writer.kernel(
                cpu.0,
                cut.0,
                tid.0,
                switch(facts, cut, (tid, UNKNOWN_STATE), Tid(0)),
            )?;
        }
        Ok(())
    }
}

fn switch(facts: &Facts<'_>, at: BootNanos, (prev, state): (Tid, i64), next: Tid) -> Ftrace {
    Ftrace::SchedSwitch(SchedSwitch {
        prev_comm: Some(name(facts, prev, at)),
        prev_pid: Some(prev.0.cast_signed()),
        prev_prio: Some(USUAL_PRIORITY),
        prev_state: Some(state),
        next_comm: Some(name(facts, next, at)),
        next_pid: Some(next.0.cast_signed()),
        next_prio: Some(USUAL_PRIORITY),
    })
}

fn waking(facts: &Facts<'_>, at: BootNanos, tid: Tid, on: Cpu) -> Ftrace {
    Ftrace::SchedWaking(SchedWaking {
        comm: Some(name(facts, tid, at)),
        pid: Some(tid.0.cast_signed()),
        prio: Some(USUAL_PRIORITY),
        target_cpu: Some(on.0.cast_signed()),
    })
}

fn name(facts: &Facts<'_>, tid: Tid, at: BootNanos) -> String {
    if tid == Tid(0) {
        "swapper".to_owned()
    } else {
        (facts.name)(tid, at).unwrap_or_default()
    }
}

fn begin(interrupt: Interrupt) -> Ftrace {
    match interrupt {
        Interrupt::Hard(number) => Ftrace::IrqEntry(IrqEntry {
            irq: Some(number.cast_signed()),
            name: Some(format!("irq {number}")),
        }),
        Interrupt::Soft(vector) => Ftrace::SoftirqEntry(Softirq { vec: Some(vector) }),
        Interrupt::Tick => Ftrace::TimerEntry(LocalTimer {
            vector: Some(TIMER_VECTOR),
        }),
        Interrupt::Call => Ftrace::IpiEntry(call()),
    }
}

fn end(interrupt: Interrupt) -> Ftrace {
    match interrupt {
        Interrupt::Hard(number) => Ftrace::IrqExit(IrqExit {
            irq: Some(number.cast_signed()),
        }),
        Interrupt::Soft(vector) => Ftrace::SoftirqExit(Softirq { vec: Some(vector) }),
        Interrupt::Tick => Ftrace::TimerExit(LocalTimer {
            vector: Some(TIMER_VECTOR),
        }),
        Interrupt::Call => Ftrace::IpiExit(call()),
    }
}

/// Returns the event under arm64's name for it, from its own `ipi_entry`.
fn call() -> Ipi {
    Ipi {
        reason: Some("Function call interrupts".to_owned()),
    }
}
