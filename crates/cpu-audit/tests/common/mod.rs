//! What the tests of an audit share: the CPU, threads on it, and what the kernel itself counts.
#![expect(clippy::unwrap_used, reason = "a test says what it saw by panicking")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cpu_audit::layout::{Episode, Key, Tally};
use cpu_audit::{Audit, Facts, Options, Sums};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use testkit::kernel;

/// The CPU that is audited.
pub(crate) const CPU: u32 = 0;

/// An audit of [`CPU`].
pub(crate) fn started(each: Option<u64>) -> Audit {
    Audit::start(&Facts::read().unwrap(), &Options { cpus: vec![CPU], each })
        .unwrap_or_else(|error| panic!("{error:?}"))
}

/// Puts the calling thread on a CPU.
pub(crate) fn stay_on(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).unwrap();
}

/// Puts the calling thread on all CPUs but [`CPU`]. False if there is no other.
pub(crate) fn keep_off(what: &str) -> bool {
    let mut others = sched_getaffinity(None).unwrap();
    others.unset(CPU as usize);
    if others.count() == 0 {
        kernel::skip(what, "there is only one CPU");
        return false;
    }
    sched_setaffinity(None, &others).unwrap();
    true
}

/// The numbers of [`CPU`] in `/proc/interrupts` or `/proc/softirqs`, by what stands at the line's beginning.
pub(crate) fn counted(path: &str) -> HashMap<String, u64> {
    let text = std::fs::read_to_string(path).unwrap();
    let number = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.strip_suffix(':')?.to_owned();
        Some((name, words.next()?.parse().ok()?))
    };
    text.lines().filter_map(number).collect()
}

/// All tallies with such a key.
pub(crate) fn tallies(sums: &Sums, fits: impl Fn(&Key) -> bool) -> Vec<(&Key, &Tally)> {
    sums.tallies.iter().filter(|(key, _)| fits(key)).collect()
}

/// How many there were with such a key.
pub(crate) fn count(sums: &Sums, fits: impl Fn(&Key) -> bool) -> u64 {
    tallies(sums, fits).iter().map(|(_, tally)| tally.count).sum()
}

/// Ends the windows, and gives the sums and all single ones.
pub(crate) fn stopped(audit: &mut Audit) -> (Sums, Vec<Episode>) {
    let sums = audit.stop().unwrap();
    (sums, audit.rest_of_each().unwrap())
}

/// The programs are detached.
pub(crate) fn close(audit: Audit) {
    assert!(audit.close(Duration::from_mins(1)), "the programs are not detached");
}

/// Ends what it stands for, also if the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `task` while a thread of this process occupies [`CPU`], which so is never idle: before all ordinary threads, or as one of them.
///
/// Of what comes to an idle CPU, the kernel itself does not pass all by its tracepoints: on Linux 6.18, in a virtual machine, `rps_trigger_softirq`
/// was called 1,000 times on a CPU that was idle in between, and 993 of these came by `csd_function_entry`, to any program; all of 1,004
/// did while a thread polled.
pub(crate) fn beside_a_poller<T>(is_first: bool, task: impl FnOnce() -> T) -> T {
    let (polls, over) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            stay_on(CPU as usize);
            if is_first {
                sys::sched::run_first().unwrap();
            }
            let began = Instant::now();
            polls.store(true, Ordering::Release);
            // It ends also if the task takes too long, since others may need the CPU for that.
            while !over.load(Ordering::Relaxed) && began.elapsed() < Duration::from_mins(1) {
                std::hint::spin_loop();
            }
        });
        let _over = Over(&over);
        while !polls.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        task()
    })
}
