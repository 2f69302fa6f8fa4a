//! Entries of a stream for the kernel's events and the names of threads.

use crate::NamedThread;
use crate::events::event;
use crate::layout::{self};
use scene::{
    BootNanos, Cpu, EventKind, Interrupt, KernelContext, KernelEvent, LeaveReason, Tid, Waker,
};
use zerocopy::little_endian::U32;

pub(super) fn encode(event: &KernelEvent) -> layout::Event {
    let KernelEvent { at, cpu, kind } = *event;
    let (kind, detail, tid, other) = match kind {
        EventKind::Switch { prev, leaves, next } => {
            (event::SWITCH, leaves_number(Some(leaves)), prev.0, next.0)
        }
        EventKind::Wake { tid, on, by } => {
            let (class, number) = waker_number(by);
            (event::WAKE, class | u64::from(on.0), tid.0, number)
        }
        EventKind::Migrate {
            tid,
            to,
            from_behind,
        } => {
            let by = from_behind.map_or(Waker::Unknown, Waker::Thread);
            let (class, number) = waker_number(by);
            (event::MIGRATE, class | u64::from(to.0), tid.0, number)
        }
        EventKind::Found { tid, off_cpu } => (event::FOUND, leaves_number(off_cpu), tid.0, 0),
        EventKind::Begin { tid, interrupt } => {
            (event::BEGIN, interrupt_number(interrupt), tid.0, 0)
        }
        EventKind::End { tid, interrupt } => (event::END, interrupt_number(interrupt), tid.0, 0),
        EventKind::CallEnter { tid, number } => (event::CALL_ENTER, number.into(), tid.0, 0),
        EventKind::CallExit { tid } => (event::CALL_EXIT, 0, tid.0, 0),
        EventKind::StopSignal { tid, number, by } => {
            (event::STOP_SIGNAL, number.into(), tid.0, by.0)
        }
        // A 64-bit count takes the place of both thread ids.
        EventKind::Lost { since, count } => {
            (event::LOST, since.0, count as u32, (count >> 32) as u32)
        }
        EventKind::Unseen { tid, since } => (event::UNSEEN, since.0, tid.0, 0),
        EventKind::Inside {
            tid,
            what: KernelContext::Call,
        } => (event::INSIDE, event::IN_CALL, tid.0, 0),
        EventKind::Inside {
            tid,
            what: KernelContext::Interrupt,
        } => (event::INSIDE, event::IN_INTERRUPT, tid.0, 0),
    };
    layout::Event {
        at: at.0.into(),
        detail: detail.into(),
        cpu: cpu.0.into(),
        kind: kind.into(),
        tid: tid.into(),
        other: other.into(),
    }
}

pub(super) fn decode(event: &layout::Event) -> Option<KernelEvent> {
    let (at, detail) = (BootNanos(event.at.get()), event.detail.get());
    let [cpu, kind, tid, other] = [event.cpu, event.kind, event.tid, event.other].map(U32::get);
    let (cpu, tid, number) = (Cpu(cpu), Tid(tid), u32::try_from(detail).ok());
    let kind = match kind {
        event::SWITCH => EventKind::Switch {
            prev: tid,
            leaves: leaves(detail)??,
            next: Tid(other),
        },
        event::WAKE => EventKind::Wake {
            tid,
            on: Cpu(detail as u32),
            by: waker(class_of(detail), other)?,
        },
        event::MIGRATE => migration(tid, detail, other)?,
        event::UNSEEN => EventKind::Unseen {
            tid,
            since: BootNanos(detail),
        },
        event::INSIDE => EventKind::Inside {
            tid,
            what: inside(detail)?,
        },
        event::FOUND => EventKind::Found {
            tid,
            off_cpu: leaves(detail)?,
        },
        event::BEGIN => EventKind::Begin {
            tid,
            interrupt: interrupt(detail)?,
        },
        event::END => EventKind::End {
            tid,
            interrupt: interrupt(detail)?,
        },
        event::CALL_ENTER => EventKind::CallEnter {
            tid,
            number: number?,
        },
        event::CALL_EXIT => EventKind::CallExit { tid },
        event::STOP_SIGNAL => EventKind::StopSignal {
            tid,
            number: number?,
            by: Tid(other),
        },
        event::LOST => {
            let count = u64::from(other) << 32 | u64::from(tid.0);
            EventKind::Lost {
                since: BootNanos(detail),
                count,
            }
        }
        _ => return None,
    };
    Some(KernelEvent { at, cpu, kind })
}

fn inside(number: u64) -> Option<KernelContext> {
    match number {
        event::IN_CALL => Some(KernelContext::Call),
        event::IN_INTERRUPT => Some(KernelContext::Interrupt),
        _ => None,
    }
}

/// Encodes the reason; 0 for a thread that runs.
fn leaves_number(leaves: Option<LeaveReason>) -> u64 {
    match leaves {
        None => 0,
        Some(LeaveReason::Preempted) => event::PREEMPTED,
        Some(LeaveReason::Blocked) => event::BLOCKED,
        Some(LeaveReason::Stopped) => event::STOPPED,
        Some(LeaveReason::Ended) => event::ENDED,
    }
}

#[expect(
    clippy::option_option,
    reason = "an unknown number is another thing than a thread that runs"
)]
fn leaves(number: u64) -> Option<Option<LeaveReason>> {
    Some(match number {
        0 => None,
        event::PREEMPTED => Some(LeaveReason::Preempted),
        event::BLOCKED => Some(LeaveReason::Blocked),
        event::STOPPED => Some(LeaveReason::Stopped),
        event::ENDED => Some(LeaveReason::Ended),
        _ => return None,
    })
}

fn interrupt_number(interrupt: Interrupt) -> u64 {
    match interrupt {
        Interrupt::Hard(number) => event::HARD | u64::from(number),
        Interrupt::Soft(vector) => event::SOFT | u64::from(vector),
        Interrupt::Tick => event::TICK,
        Interrupt::Call => event::CALL,
    }
}

fn interrupt(detail: u64) -> Option<Interrupt> {
    let (class, number) = (class_of(detail), detail as u32);
    match (class, number) {
        (event::HARD, _) => Some(Interrupt::Hard(number)),
        (event::SOFT, _) => Some(Interrupt::Soft(number)),
        (event::TICK, 0) => Some(Interrupt::Tick),
        (event::CALL, 0) => Some(Interrupt::Call),
        _ => None,
    }
}

/// Returns the upper half of a detail.
fn class_of(detail: u64) -> u64 {
    detail & !u64::from(u32::MAX)
}

/// Returns the class of the cause of a wake-up, and its number.
fn waker_number(by: Waker) -> (u64, u32) {
    match by {
        Waker::Unknown => (event::UNKNOWN_WAKER, 0),
        Waker::Thread(tid) => (event::THREAD, tid.0),
        Waker::Interrupt(interrupt) => {
            let detail = interrupt_number(interrupt);
            (class_of(detail), detail as u32)
        }
    }
}

fn waker(class: u64, number: u32) -> Option<Waker> {
    match class {
        // Formats 1 and 2 have this class alone.
        event::UNKNOWN_WAKER => Some(Waker::Unknown),
        event::THREAD => Some(Waker::Thread(Tid(number))),
        _ => interrupt(class | u64::from(number)).map(Waker::Interrupt),
    }
}

/// Returns the migration of a thread; `None` if the class of the other one is none of a thread.
fn migration(tid: Tid, detail: u64, other: u32) -> Option<EventKind> {
    let from_behind = match waker(class_of(detail), other)? {
        Waker::Thread(tid) => Some(tid),
        Waker::Unknown => None,
        Waker::Interrupt(_) => return None,
    };
    Some(EventKind::Migrate {
        tid,
        to: Cpu(detail as u32),
        from_behind,
    })
}

pub(super) fn encode_name(thread: &NamedThread) -> layout::ThreadName {
    let NamedThread { since, tid, name } = *thread;
    layout::ThreadName {
        since: since.0.into(),
        tid: tid.0.into(),
        unused: 0.into(),
        name,
    }
}

pub(super) fn decode_name(entry: &layout::ThreadName) -> NamedThread {
    NamedThread {
        since: BootNanos(entry.since.get()),
        tid: Tid(entry.tid.get()),
        name: entry.name,
    }
}
