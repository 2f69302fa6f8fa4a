//! State of a thread, and its intervals.

use super::doubts::HiddenEntry;
use crate::kernel::{Cpu, Interrupt, LeaveReason, Tid};
use crate::{Activity, BootNanos, Interval};

#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) since: BootNanos,
    pub(super) state: State,
    /// CPU that it has, or whose queue it waits in.
    pub(super) cpu: Option<Cpu>,
    /// Time since which it has waited for that CPU while nobody knew who had it.
    pub(super) unseen_since: Option<BootNanos>,
    pub(super) call: Option<u32>,
    /// Time since which it can have left the call without an event: the call's begin, or the
    /// thread's last sleep in it.
    pub(super) call_since: BootNanos,
    /// Call that it may be in beside that.
    pub(super) hidden_call: HiddenEntry,
    /// Interrupts that it is in, with their begin, the innermost last.
    pub(super) interrupts: Vec<(Interrupt, BootNanos)>,
    /// Interrupt that it may be in beside these.
    pub(super) hidden_interrupt: HiddenEntry,
    /// Time since which nothing is known of it, if nothing is.
    pub(super) unknown_since: BootNanos,
    /// Sender of the signal that stops it, or has stopped it, if that was seen.
    pub(super) stopper: Option<Tid>,
    /// Time of that signal.
    pub(super) signalled: BootNanos,
    pub(super) done: Vec<Interval>,
    /// Number of `done` intervals that were handed out.
    pub(super) given: usize,
}

/// State of a thread, interrupts and calls aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Unknown,
    OnCpu,
    Ready,
    Woken,
    Blocked,
    Stopped,
    Ended,
}

impl From<LeaveReason> for State {
    fn from(leaves: LeaveReason) -> Self {
        match leaves {
            LeaveReason::Preempted => Self::Ready,
            LeaveReason::Blocked => Self::Blocked,
            LeaveReason::Stopped => Self::Stopped,
            LeaveReason::Ended => Self::Ended,
        }
    }
}

impl State {
    /// Returns why a thread in this state left its CPU; `None` if it did not.
    pub(super) fn leaves(self) -> Option<LeaveReason> {
        match self {
            Self::Unknown | Self::OnCpu => None,
            Self::Ready | Self::Woken => Some(LeaveReason::Preempted),
            Self::Blocked => Some(LeaveReason::Blocked),
            Self::Stopped => Some(LeaveReason::Stopped),
            Self::Ended => Some(LeaveReason::Ended),
        }
    }
}

impl Thread {
    pub(super) fn new(start: BootNanos) -> Self {
        Self {
            since: start,
            state: State::Unknown,
            cpu: None,
            unseen_since: None,
            call: None,
            call_since: start,
            hidden_call: HiddenEntry::since(start),
            interrupts: Vec::new(),
            hidden_interrupt: HiddenEntry::since(start),
            unknown_since: start,
            stopper: None,
            signalled: start,
            done: Vec::new(),
            given: 0,
        }
    }

    /// Returns true if it waits for its CPU.
    pub(super) fn waits(&self) -> bool {
        matches!(self.state, State::Ready | State::Woken)
    }

    /// Returns its activity while the thread `preemptor` has its CPU.
    fn activity(&self, preemptor: Option<Tid>) -> Activity {
        match self.state {
            State::Unknown => Activity::Unknown,
            State::Ready => preemptor.map_or(Activity::Unknown, Activity::Waits),
            State::Woken => preemptor.map_or(Activity::Unknown, Activity::Woken),
            State::Blocked => Activity::blocked(self.call),
            State::Stopped => Activity::Stopped(self.stopper),
            State::Ended => Activity::Ended,
            State::OnCpu => match (self.interrupts.last(), self.call) {
                (Some((interrupt, _)), _) => Activity::Interrupted(*interrupt),
                _ if self.hidden_interrupt.is_inside => Activity::Unknown,
                (None, Some(number)) => Activity::Calls(number),
                _ if self.hidden_call.is_inside => Activity::Unknown,
                (None, None) => Activity::Runs,
            },
        }
    }

    /// Ends the present interval at `to`.
    pub(super) fn close(&mut self, to: BootNanos, preemptor: Option<Tid>) {
        let activity = self.activity(preemptor);
        self.mind_unseen(preemptor);
        if to > self.since {
            self.add(Interval {
                from: self.since,
                to,
                activity,
            });
            self.since = to;
        }
    }

    /// Takes back what was not known of its wait if it is known now who has its CPU: that one has had
    /// it since before the wait, since events show the switches of a CPU for which a thread waits.
    fn mind_unseen(&mut self, preemptor: Option<Tid>) {
        if !self.waits() {
            return;
        }
        if preemptor.is_none() {
            self.unseen_since.get_or_insert(self.since);
        } else if let Some(since) = self.unseen_since.take()
            && since < self.since
            && let Some(last) = self.done.pop_if(|last| last.activity == Activity::Unknown)
        {
            // It was unknown already before it waited.
            self.add(Interval { to: since, ..last });
            self.since = since;
        }
    }

    /// Adds an interval; joins equal neighbours.
    pub(super) fn add(&mut self, interval: Interval) {
        match self.done.last_mut() {
            _ if interval.from >= interval.to => {}
            Some(before) if before.activity == interval.activity => before.to = interval.to,
            _ => self.done.push(interval),
        }
    }

    /// Makes its time since `since` unknown, and its state too, until events show it.
    pub(super) fn forget(&mut self, since: BootNanos, now: BootNanos, preemptor: Option<Tid>) {
        self.close(now, preemptor);
        self.forget_since(since, now);
        (self.state, self.cpu, self.unseen_since) = (State::Unknown, None, None);
        self.unknown_since = now;
        (self.call, self.stopper) = (None, None);
        self.interrupts.clear();
        (self.hidden_call, self.hidden_interrupt) =
            (HiddenEntry::since(now), HiddenEntry::since(now));
    }

    /// Makes its time from `since` to `to` unknown.
    fn forget_since(&mut self, since: BootNanos, to: BootNanos) {
        let known = self.done.partition_point(|interval| interval.to <= since);
        let from = self
            .done
            .get(known)
            .map_or(to, |interval| interval.from.max(since));
        let cut = self
            .done
            .get(known)
            .filter(|interval| interval.from < since)
            .copied();
        self.done.truncate(known);
        self.given = self.given.min(known);
        self.done.extend(cut.map(|interval| Interval {
            to: since,
            ..interval
        }));
        if from < to {
            self.done.push(Interval {
                from,
                to,
                activity: Activity::Unknown,
            });
        }
    }
}
