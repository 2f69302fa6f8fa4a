//! All exposed data, behind one lock that nobody holds for long.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kernel_delay::Advance;
use observer::Observer;

use super::LOST;
use super::groups::Groups;
use super::intrusions::Intrusions;
use super::limits::{Limits, PROCESSES};
use super::minute::{End, Minute, MinuteBuilder};
use super::parquet::RowCounts;
use super::threads::Threads;

/// Counters of the processes of one name.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) records: u64,
    /// Requests of admin queues, and those that nobody answered.
    pub(crate) excluded: u64,
    /// Losses by their place in [`LOST`].
    pub(crate) lost: [u64; LOST.len()],
}

/// All exposed data.
#[derive(Debug)]
pub(crate) struct Store {
    /// Version and commit of the program.
    pub(crate) build: (&'static str, &'static str),
    pub(crate) limits: Limits,
    pub(crate) groups: Groups,
    pub(crate) threads: Threads,
    pub(crate) intrusions: Intrusions,
    pub(crate) processes: BTreeMap<String, Counts>,
    /// Number of processes that would be followed, and have no place.
    pub(crate) targets_left_out: u64,
    minute: MinuteBuilder,
    /// Numbers of rows written as tables, if tables are asked for.
    pub(crate) written: Option<RowCounts>,
}

/// Store that several threads share.
pub(crate) struct Shared {
    store: Mutex<Store>,
    pub(crate) observer: Observer,
}

impl Shared {
    /// Creates an empty store, at that time in nanoseconds since 1970. Minutes are kept if they are
    /// to be written.
    pub(crate) fn new(
        limits: Limits,
        utc: u64,
        keeps_minutes: bool,
        build: (&'static str, &'static str),
        observer: Observer,
    ) -> Self {
        let minute = MinuteBuilder::new(utc, keeps_minutes);
        let mut groups = Groups::new(limits);
        groups.slowest = minute.slowest();
        let store = Store {
            build,
            limits,
            groups,
            threads: Threads::new(limits),
            intrusions: Intrusions::new(limits),
            processes: BTreeMap::new(),
            targets_left_out: 0,
            minute,
            written: keeps_minutes.then(RowCounts::default),
        };
        Self {
            store: Mutex::new(store),
            observer,
        }
    }

    /// Locks the store, for a moment.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Store> {
        // Counters are as right after a panic of another thread as before it.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// Returns the name under which a process is counted.
    pub(crate) fn process(&mut self, name: &str) -> String {
        let is_known = self.processes.contains_key(name) || self.processes.len() < PROCESSES;
        let name = if is_known { name } else { "other" };
        self.processes.entry(name.to_owned()).or_default();
        name.to_owned()
    }

    /// Returns the counters of the processes of that name.
    pub(crate) fn counts(&mut self, process: &str) -> &mut Counts {
        self.processes.entry(process.to_owned()).or_default()
    }

    /// Adds the time that threads of a process of that name spent.
    pub(crate) fn account(&mut self, process: &str, advances: &[Advance]) {
        for advance in advances {
            self.threads.add(process, advance);
        }
        self.minute.add(advances);
    }

    /// Returns true if a turn, and with it perhaps a minute, ends with the second at that time.
    pub(crate) fn ends_turn(&self, utc: u64) -> bool {
        self.minute.ends_turn(utc)
    }

    /// Ends a second, at that time in nanoseconds since 1970. Returns a minute that is over and is
    /// to be written.
    pub(crate) fn second(&mut self, utc: u64) -> Option<Minute> {
        self.groups.second();
        self.threads.second();
        self.intrusions.second();
        let end = self.minute.end(utc);
        let minute = if let End::Minute(turns) = end {
            Some(self.take(utc, turns))
        } else {
            None
        };
        if end != End::Second {
            self.groups.turn();
        }
        minute
    }

    /// Returns the present minute so far.
    pub(crate) fn last(&mut self, utc: u64) -> Minute {
        self.groups.second();
        let turns = self.minute.turns() + 1;
        self.take(utc, turns)
    }

    fn take(&mut self, utc: u64, turns: usize) -> Minute {
        let mut minute = self.minute.take(utc, &mut self.groups.slowest);
        minute.times = self.groups.newest(turns);
        minute.stages = self.groups.stage_names().to_vec();
        minute
    }
}
