//! Helpers of the audit's tests: the CPU, threads on it, and the kernel's own counts.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cpus::audit::layout::{Episode, Key, Tally};
use cpus::audit::{Audit, Facts, Options, Sums};
use testkit::kernel;

/// Longest time that a poller keeps the CPU busy on the host.
const MAX_POLL_TIME: Duration = Duration::from_secs(2);
/// Longest time that a poller of the real-time class keeps the CPU busy in a guest.
const MAX_GUEST_POLL_TIME: Duration = Duration::from_mins(1);
/// Plan of a guest of `cargo xtask vm`; the file exists in guests only.
const GUEST_PLAN: &str = "/plan";

/// Returns the audited CPU: the last one, since CPU 0 has the machine's own work.
pub(crate) fn cpu() -> u32 {
    // Determined before a test leaves the CPU.
    static LAST: LazyLock<u32> = LazyLock::new(|| testkit::last_cpu() as u32);
    *LAST
}

/// Starts an audit of [`cpu`].
pub(crate) fn started(each: Option<u64>) -> Audit {
    Audit::start(
        &Facts::read().unwrap(),
        &Options {
            cpus: vec![cpu()],
            each,
        },
    )
    .unwrap_or_else(|error| panic!("{error:?}"))
}

/// Puts the calling thread on [`cpu`].
pub(crate) fn stay_on_it() {
    sys::sched::run_on(&[cpu() as usize]).unwrap();
}

/// Moves the calling thread to all CPUs but [`cpu`]; returns false if there is no other.
pub(crate) fn keep_off(what: &str) -> bool {
    let mut others = sys::sched::allowed_cpus().unwrap();
    others.retain(|other| *other != cpu() as usize);
    if others.is_empty() {
        kernel::skip(what, "there is only one CPU");
        return false;
    }
    sys::sched::run_on(&others).unwrap();
    true
}

/// Returns the numbers of [`cpu`] in `/proc/interrupts` or `/proc/softirqs`, by the start of the
/// line.
pub(crate) fn counted(path: &str) -> HashMap<String, u64> {
    let text = std::fs::read_to_string(path).unwrap();
    let number = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.strip_suffix(':')?.to_owned();
        Some((name, words.nth(cpu() as usize)?.parse().ok()?))
    };
    text.lines().filter_map(number).collect()
}

/// Returns all tallies whose key fits.
pub(crate) fn tallies(sums: &Sums, fits: impl Fn(&Key) -> bool) -> Vec<(&Key, &Tally)> {
    sums.tallies.iter().filter(|(key, _)| fits(key)).collect()
}

/// Returns the number of episodes whose key fits.
pub(crate) fn count(sums: &Sums, fits: impl Fn(&Key) -> bool) -> u64 {
    tallies(sums, fits)
        .iter()
        .map(|(_, tally)| tally.count)
        .sum()
}

/// Ends the windows; returns the sums and all individual intrusions.
pub(crate) fn stopped(audit: &mut Audit) -> (Sums, Vec<Episode>) {
    let sums = audit.stop().unwrap();
    (sums, audit.rest_of_each().unwrap())
}

/// Detaches the programs, and checks that they are detached.
pub(crate) fn close(audit: Audit) {
    assert!(
        audit.close(Duration::from_mins(1)),
        "the programs are not detached"
    );
}

/// Guard that sets its flag when dropped, also if the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Class of the thread that occupies the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Poller {
    /// Ordinary thread among others, for two seconds at most.
    Ordinary,
    /// Thread with `SCHED_FIFO`, which runs before all ordinary threads. In a guest only:
    /// everything bound to the CPU stands still meanwhile.
    First,
}

impl Poller {
    /// Takes the CPU with the calling thread, and returns the time for which it may keep it.
    ///
    /// # Panics
    /// If this is not a guest, and the poller is to run before all others.
    fn take_the_cpu(self) -> Duration {
        stay_on_it();
        match self {
            Self::Ordinary => MAX_POLL_TIME,
            Self::First => {
                assert!(
                    std::path::Path::new(GUEST_PLAN).exists(),
                    "real-time classes are for guests of `cargo xtask vm`"
                );
                sys::sched::run_first().unwrap();
                MAX_GUEST_POLL_TIME
            }
        }
    }
}

/// Runs `task` while a thread of this process occupies [`cpu`], which is then hardly ever idle.
///
/// The kernel does not pass all events of an idle CPU through its tracepoints. On Linux 6.18 in a
/// virtual machine, `rps_trigger_softirq` was called 1,000 times on a CPU that was idle in between,
/// and 993 of these passed `csd_function_entry`, for any program; all of 1,004 did while a thread
/// polled.
pub(crate) fn beside_a_poller<T>(poller: Poller, task: impl FnOnce() -> T) -> T {
    let (polls, over) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let longest = poller.take_the_cpu();
            let began = Instant::now();
            polls.store(true, Ordering::Release);
            // It also ends if the task takes too long, since others may need the CPU for that.
            while !over.load(Ordering::Relaxed) && began.elapsed() < longest {
                std::hint::spin_loop();
            }
        });
        let _over = Over(&over);
        while !polls.load(Ordering::Acquire) && !thread.is_finished() {
            std::thread::yield_now();
        }
        task()
    })
}
