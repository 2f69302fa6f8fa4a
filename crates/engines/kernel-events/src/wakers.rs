//! Causes of wake-ups, as the events have them.

use scene::{Cpu, Interrupt, Tid, Waker};
use sched_programs::SchedError;

use crate::layout::{OTHER_SHIFT, kind, other};

/// Idle task of each CPU.
const IDLE: u32 = 0;

/// Returns the CPU and the cause of a wake-up with this `detail`; an error for a kind that no
/// program sends.
pub(crate) fn read(detail: u64, other: u32) -> Result<(Cpu, Waker), SchedError> {
    let (on, kind) = (Cpu(detail as u32), (detail >> OTHER_SHIFT) as u32);
    let by = match (kind, other) {
        // An idle CPU wakes nobody: it was in an interrupt without a tracepoint.
        (other::UNKNOWN, _) | (other::THREAD, IDLE) => Waker::Unknown,
        (other::THREAD, other) => Waker::Thread(Tid(other)),
        (kind, number) => {
            Waker::Interrupt(interrupt(kind, number).ok_or(SchedError::Kind { kind })?)
        }
    };
    Ok((on, by))
}

/// Returns the CPU and the other thread of an event with this `detail`, if it has one; an error for a
/// kind that no program sends. The idle task is a thread here.
pub(crate) fn read_thread(detail: u64, other: u32) -> Result<(Cpu, Option<Tid>), SchedError> {
    let thread = match (detail >> OTHER_SHIFT) as u32 {
        other::UNKNOWN => None,
        other::THREAD => Some(Tid(other)),
        kind => return Err(SchedError::Kind { kind }),
    };
    Ok((Cpu(detail as u32), thread))
}

/// Returns the interrupt of this kind and number.
pub(crate) fn interrupt(kind: u32, number: u32) -> Option<Interrupt> {
    match kind {
        kind::HARD => Some(Interrupt::Hard(number)),
        kind::SOFT => Some(Interrupt::Soft(number)),
        kind::TICK => Some(Interrupt::Tick),
        kind::CALL => Some(Interrupt::Call),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes the detail of an event of CPU 5, whose other side is of this kind.
    fn detail(kind: u32) -> u64 {
        u64::from(kind) << OTHER_SHIFT | 5
    }

    #[test]
    fn a_waker_is_a_thread_or_an_interrupt() {
        let by = |kind, other| {
            let (on, by) = read(detail(kind), other).ok()?;
            assert_eq!(on, Cpu(5));
            Some(by)
        };
        let interrupt = |it| Some(Waker::Interrupt(it));
        assert_eq!(by(other::THREAD, 77), Some(Waker::Thread(Tid(77))));
        assert_eq!(by(other::THREAD, IDLE), Some(Waker::Unknown));
        assert_eq!(by(other::UNKNOWN, 0), Some(Waker::Unknown));
        assert_eq!(by(kind::HARD, 27), interrupt(Interrupt::Hard(27)));
        assert_eq!(by(kind::SOFT, 3), interrupt(Interrupt::Soft(3)));
        assert_eq!(by(kind::TICK, 0), interrupt(Interrupt::Tick));
        assert_eq!(by(kind::CALL, 0), interrupt(Interrupt::Call));
        // The end of an interrupt wakes nobody.
        assert_eq!(by(kind::SOFT + 1, 3), None);
    }

    #[test]
    fn only_a_thread_can_have_a_cpu() {
        let on = |kind, other| {
            let (to, thread) = read_thread(detail(kind), other).ok()?;
            assert_eq!(to, Cpu(5));
            Some(thread)
        };
        assert_eq!(on(other::THREAD, 77), Some(Some(Tid(77))));
        assert_eq!(on(other::THREAD, IDLE), Some(Some(Tid(IDLE))));
        assert_eq!(on(other::UNKNOWN, 0), Some(None));
        assert_eq!(on(kind::HARD, 27), None);
    }
}
