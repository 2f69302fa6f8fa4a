//! Names for windows that follow one another: few are cached, and few are looked up per window.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use host::KernelSymbols;

use super::names::thread_facts;
use super::{Names, ThreadFacts};

/// Limit on cached function names, and on those looked up at once.
const FUNCTIONS: usize = 4096;
/// Limit on cached threads; the cache is cleared when it is full.
const THREADS: usize = 512;
/// Limit on threads looked up per window; each takes some files of `/proc`.
const MAX_LOOKUPS: u32 = 16;
/// Initial interval between two reads of the kernel's symbols, which take a tenth of a second; it
/// doubles up to [`MAX_READ_INTERVAL`].
const MIN_READ_INTERVAL: Duration = Duration::from_secs(5);
/// Longest interval between two reads of the kernel's symbols.
const MAX_READ_INTERVAL: Duration = Duration::from_mins(5);

/// Cache of names, with the addresses still to look up.
pub(super) struct NameCache {
    functions: RefCell<HashMap<u64, String>>,
    unknown: RefCell<BTreeSet<u64>>,
    threads: RefCell<HashMap<u32, Option<ThreadFacts>>>,
    may_ask: Cell<u32>,
    /// Earliest time of the next read of the kernel's symbols.
    next: Option<Instant>,
    /// Interval until the read after that.
    pause: Duration,
}

impl Default for NameCache {
    fn default() -> Self {
        Self {
            functions: RefCell::default(),
            unknown: RefCell::default(),
            threads: RefCell::default(),
            may_ask: Cell::new(MAX_LOOKUPS),
            next: None,
            pause: MIN_READ_INTERVAL,
        }
    }
}

impl NameCache {
    /// Begins a new window, with its own limit on lookups.
    pub(super) fn begin_window(&self) {
        self.may_ask.set(MAX_LOOKUPS);
    }

    /// Looks up the unknown functions if it is time to; returns whether there are new names.
    pub(super) fn learn(&mut self) -> bool {
        let unknown = self.unknown.get_mut();
        let now = Instant::now();
        if unknown.is_empty() || self.next.is_some_and(|next| now < next) {
            return false;
        }
        self.next = Some(now + self.pause);
        self.pause = (self.pause * 2).min(MAX_READ_INTERVAL);
        let unknown = std::mem::take(unknown);
        let mut found = KernelSymbols::code_of(&unknown).unwrap_or_default();
        let functions = self.functions.get_mut();
        if functions.len() >= FUNCTIONS {
            functions.clear();
        }
        // An address outside any function keeps its number, and is not looked up again.
        let named = unknown.into_iter().map(|address| {
            (
                address,
                found.remove(&address).unwrap_or_else(|| hex(address)),
            )
        });
        functions.extend(named);
        true
    }
}

fn hex(address: u64) -> String {
    format!("{address:#x}")
}

impl Names for NameCache {
    fn function(&self, address: u64) -> String {
        if let Some(name) = self.functions.borrow().get(&address) {
            return name.clone();
        }
        let mut unknown = self.unknown.borrow_mut();
        if unknown.len() < FUNCTIONS {
            unknown.insert(address);
        }
        hex(address)
    }

    fn affinity(&self, _interrupt: u64) -> Option<String> {
        None
    }

    fn thread(&self, tid: u32) -> Option<ThreadFacts> {
        let mut threads = self.threads.borrow_mut();
        if let Some(known) = threads.get(&tid) {
            return known.clone();
        }
        let left = self.may_ask.get().checked_sub(1)?;
        self.may_ask.set(left);
        if threads.len() >= THREADS {
            threads.clear();
        }
        let facts = thread_facts(tid);
        threads.insert(tid, facts.clone());
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_get_their_names_a_moment_later() {
        let mut names = NameCache::default();
        assert!(!names.learn(), "nothing was asked for");
        assert_eq!(names.function(0x10), "0x10");
        assert!(names.learn() && !names.learn());
        assert_eq!(names.function(0x10), "0x10", "there is no function");
        assert!(names.unknown.borrow().is_empty());
    }

    #[test]
    fn few_threads_are_asked_for_at_a_time() {
        let names = NameCache::default();
        let own = std::process::id();
        assert_eq!(names.thread(own).map(|facts| facts.process.0), Some(own));
        (0..MAX_LOOKUPS).for_each(|n| drop(names.thread(u32::MAX - n)));
        assert_eq!(names.may_ask.get(), 0);
        assert!(names.thread(own).is_some(), "it is known");
        names.threads.borrow_mut().clear();
        assert!(names.thread(own).is_none());
        names.begin_window();
        assert!(names.thread(own).is_some());
    }
}
