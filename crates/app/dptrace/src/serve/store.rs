//! All that is exposed, behind one lock that nobody holds for long.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kernel_delay::Advance;

use super::LOST;
use super::groups::Groups;
use super::intrusions::Intrusions;
use super::limits::{Limits, PROCESSES};
use super::minute::{End, Keeper, Minute};
use super::parquet::Written;
use super::threads::Threads;

/// What is counted of the processes of one name.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) records: u64,
    /// Requests of admin queues, and those that nobody answered.
    pub(super) excluded: u64,
    /// By their place in [`LOST`].
    pub(super) lost: [u64; LOST.len()],
}

/// All that is exposed.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) limits: Limits,
    pub(super) groups: Groups,
    pub(super) threads: Threads,
    pub(super) intrusions: Intrusions,
    pub(super) processes: BTreeMap<String, Counts>,
    /// Processes that would be followed, and have no place.
    pub(super) targets_left_out: u64,
    minute: Keeper,
    /// What was written as tables, if that was asked for.
    pub(super) written: Option<Written>,
}

/// The same, for several threads.
pub(super) struct Shared(Mutex<Store>);

impl Shared {
    /// Empty, at that time in nanoseconds since 1970. Minutes are kept if they are to be written.
    pub(super) fn new(limits: Limits, utc: u64, keeps_minutes: bool) -> Self {
        let minute = Keeper::new(utc, keeps_minutes);
        let mut groups = Groups::new(limits);
        groups.slowest = minute.slowest();
        Self(Mutex::new(Store {
            limits,
            groups,
            threads: Threads::new(limits),
            intrusions: Intrusions::new(limits),
            processes: BTreeMap::new(),
            targets_left_out: 0,
            minute,
            written: keeps_minutes.then(Written::default),
        }))
    }

    /// The store, for a moment.
    pub(super) fn lock(&self) -> MutexGuard<'_, Store> {
        // Counters are as right after a panic of another thread as before it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// The name under which a process is counted.
    pub(super) fn process(&mut self, name: &str) -> String {
        let is_known = self.processes.contains_key(name) || self.processes.len() < PROCESSES;
        let name = if is_known { name } else { "other" };
        self.processes.entry(name.to_owned()).or_default();
        name.to_owned()
    }

    /// What is counted of the processes of that name.
    pub(super) fn counts(&mut self, process: &str) -> &mut Counts {
        self.processes.entry(process.to_owned()).or_default()
    }

    /// Adds the time that threads of a process of that name spent.
    pub(super) fn account(&mut self, process: &str, advances: &[Advance]) {
        for advance in advances {
            self.threads.add(process, advance);
        }
        self.minute.add(advances);
    }

    /// Whether a turn of what is recent, and with it perhaps a minute, ends with the second at that time.
    pub(super) fn ends_turn(&self, utc: u64) -> bool {
        self.minute.ends_turn(utc)
    }

    /// Ends a second, at that time in nanoseconds since 1970; a minute that is over and is to be written.
    pub(super) fn second(&mut self, utc: u64) -> Option<Minute> {
        self.groups.second();
        self.threads.second();
        self.intrusions.second();
        let end = self.minute.end(utc);
        let minute = if let End::Minute(turns) = end { Some(self.take(utc, turns)) } else { None };
        if end != End::Second {
            self.groups.turn();
        }
        minute
    }

    /// What there is of the present minute.
    pub(super) fn last(&mut self, utc: u64) -> Minute {
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
