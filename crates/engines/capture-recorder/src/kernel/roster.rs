//! Threads of the captured processes, by name: those that `/proc` lists now and then, and those
//! that the events show, however short their lives.

use std::collections::HashMap;

use capture::NamedThread;
use kernel_events::RecordedEvent;
use scene::Tid;

/// Number of lists for which a thread is remembered after the last one that had it: events may come
/// late, and those of a thread that is forgotten would enter it again.
const REMEMBERED_LISTS: u64 = 2;

/// Threads that are in the file's list of threads.
#[derive(Default)]
pub(crate) struct Roster {
    threads: HashMap<Tid, ListedThread>,
    /// Number of lists so far.
    lists: u64,
    /// Thread of the last event: most events have the thread of the one before.
    last: Option<Tid>,
}

struct ListedThread {
    name: [u8; 16],
    /// Number of the last list that had it, or that came before its first event.
    list: u64,
}

impl Roster {
    /// Takes a list of all threads; returns those that are new, or that have new names. Forgets
    /// threads that ended long ago: a server may start and end any number.
    pub(crate) fn list(&mut self, mut threads: Vec<NamedThread>) -> Vec<NamedThread> {
        self.lists += 1;
        let list = self.lists;
        threads.retain(|&NamedThread { tid, name, .. }| {
            let before = self.threads.insert(tid, ListedThread { name, list });
            before.is_none_or(|before| before.name != name)
        });
        self.threads
            .retain(|_, thread| thread.list + REMEMBERED_LISTS > list);
        self.last = None;
        threads
    }

    /// Returns the thread of an event if it is one of the processes' threads that must be entered:
    /// it begins, or is not known.
    pub(crate) fn unlisted(&mut self, recorded: &RecordedEvent) -> Option<Tid> {
        let tid = recorded.own_thread()?;
        if recorded.starts {
            return Some(tid);
        }
        if self.last == Some(tid) {
            return None;
        }
        if self.threads.contains_key(&tid) {
            self.last = Some(tid);
            return None;
        }
        Some(tid)
    }

    /// Enters the thread of an event; returns it for the file. A thread that begins has the name of
    /// its starter, which the event has; of another one, `known` may be the name.
    pub(crate) fn enter(
        &mut self,
        recorded: &RecordedEvent,
        tid: Tid,
        known: Option<[u8; 16]>,
    ) -> NamedThread {
        let started = recorded.name.filter(|_| recorded.starts);
        let name = started.map(|(_, name)| name).or(known).unwrap_or_default();
        let list = self.lists;
        self.threads.insert(tid, ListedThread { name, list });
        NamedThread {
            since: recorded.event.at,
            tid,
            name,
        }
    }
}

#[cfg(test)]
mod tests {
    use scene::{BootNanos, Cpu, EventKind, KernelEvent};

    use super::*;

    const SHELL: [u8; 16] = *b"sh\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    const SLEEP: [u8; 16] = *b"sleep\0\0\0\0\0\0\0\0\0\0\0";

    fn recorded(kind: EventKind, starts: bool) -> RecordedEvent {
        RecordedEvent {
            event: KernelEvent {
                at: BootNanos(5),
                cpu: Cpu(0),
                kind,
            },
            name: starts.then_some((Tid(1), SHELL)),
            starts,
        }
    }

    fn named(tid: u32, name: [u8; 16]) -> NamedThread {
        NamedThread {
            since: BootNanos(5),
            tid: Tid(tid),
            name,
        }
    }

    /// Enters the event's thread if it is new.
    fn meet(roster: &mut Roster, recorded: &RecordedEvent) -> Option<NamedThread> {
        let tid = roster.unlisted(recorded)?;
        Some(roster.enter(recorded, tid, Some(SLEEP)))
    }

    #[test]
    fn threads_of_events_are_entered_once() {
        let mut roster = Roster::default();
        assert_eq!(roster.list(vec![named(1, SHELL)]), [named(1, SHELL)]);
        let wake = |tid, starts| {
            let (tid, on) = (Tid(tid), Cpu(1));
            recorded(EventKind::Wake { tid, on }, starts)
        };
        assert_eq!(meet(&mut roster, &wake(1, false)), None);
        assert_eq!(meet(&mut roster, &wake(2, true)), Some(named(2, SHELL)));
        let exit = recorded(EventKind::CallExit { tid: Tid(2) }, false);
        assert_eq!(meet(&mut roster, &exit), None);
        // Its beginning was lost.
        let exit = recorded(EventKind::CallExit { tid: Tid(3) }, false);
        assert_eq!(meet(&mut roster, &exit), Some(named(3, SLEEP)));
        assert_eq!(meet(&mut roster, &exit), None);
        // The number is given again.
        assert_eq!(meet(&mut roster, &wake(2, true)), Some(named(2, SHELL)));
        // Threads of other processes.
        let lost = EventKind::Lost {
            since: BootNanos(1),
            count: 4,
        };
        assert_eq!(meet(&mut roster, &recorded(lost, false)), None);
        assert_eq!(
            roster.list(vec![named(1, SHELL), named(2, SLEEP)]),
            [named(2, SLEEP)]
        );
    }

    #[test]
    fn threads_that_ended_long_ago_are_forgotten() {
        let mut roster = Roster::default();
        let wake = |tid| {
            let (tid, on) = (Tid(tid), Cpu(1));
            recorded(EventKind::Wake { tid, on }, true)
        };
        for tid in 1..1_000 {
            meet(&mut roster, &wake(tid));
            roster.list(Vec::new());
            assert!(roster.threads.len() <= REMEMBERED_LISTS as usize);
            // A late event does not enter it again.
            let exit = recorded(EventKind::CallExit { tid: Tid(tid) }, false);
            assert_eq!(meet(&mut roster, &exit), None);
        }
    }
}
