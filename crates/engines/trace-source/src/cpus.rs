//! Placement of the reader of a live trace: off the CPUs that the traced application's threads have
//! for themselves.
//!
//! A reactor of SPDK's polls without end on a CPU of its own. The kernel would give half of that
//! CPU to any other thread there, even one with very little to do.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use host::Pid;
use host::proc::{self, Stat};
use observer::Observer;

/// Interval between checks for the end.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Time for which threads are watched to find the busy ones.
const SAMPLING_TIME: Duration = Duration::from_millis(20);

/// Age up to which a thread may turn out busy, though it has hardly run yet.
const YOUNG_THREAD_AGE: Duration = Duration::from_millis(500);

/// Thread of the application.
#[derive(Clone, Debug)]
struct Thread {
    /// CPUs on which it may run.
    allowed: BTreeSet<usize>,
    /// CPU on which it ran last, if it was busy all the time.
    busy_on: Option<usize>,
    /// True if it may run on one CPU only, and hardly ever does.
    is_idle: bool,
}

/// Best placement.
#[derive(Debug, PartialEq, Eq)]
enum Choice {
    /// Any CPU that the kernel chooses.
    Anywhere,
    /// The first set of CPUs, off those of the second.
    Only(BTreeSet<usize>, BTreeSet<usize>),
    /// No CPU but those of the application, which are these.
    Behind(BTreeSet<usize>),
}

/// Placement of the reading threads.
pub struct Placement {
    /// CPUs of the application, if there are no others.
    behind: Option<BTreeSet<usize>>,
    /// True if the calling thread had the default priority.
    is_usual: bool,
    /// CPUs on which the calling thread could run before.
    allowed: Vec<usize>,
    /// True once the work is over.
    is_over: Arc<AtomicBool>,
    observer: Observer,
}

/// Keeps the calling thread, and those that it starts from now on, off the CPUs that the threads of
/// these processes are pinned to or occupy, if there are others. Reports that in one line.
pub fn keep_off(pids: impl Iterator<Item = u32>, observer: &Observer) -> Placement {
    let allowed = sys::sched::allowed_cpus();
    let place = |behind| Placement {
        behind,
        is_usual: nice() == Some(0),
        allowed: allowed.as_ref().map_or_else(|_| Vec::new(), Vec::clone),
        is_over: Arc::default(),
        observer: observer.clone(),
    };
    let Ok(ours) = &allowed else {
        return place(Some(BTreeSet::new()));
    };
    let pids: BTreeSet<u32> = pids.collect();
    match choose(&ours.iter().copied().collect(), &threads(&pids)) {
        Choice::Anywhere => place(None),
        Choice::Only(ours, theirs) => {
            let cpus: Vec<usize> = ours.iter().copied().collect();
            if sys::sched::run_on(&cpus).is_ok() {
                observer.note(&format!(
                    "reading on CPU {}: the application's threads use CPU {}",
                    list(&ours),
                    list(&theirs)
                ));
            }
            place(None)
        }
        Choice::Behind(theirs) => place(Some(theirs)),
    }
}

impl Placement {
    /// Returns true if the reader may be prompt.
    pub fn has_room(&self) -> bool {
        self.behind.is_none()
    }

    /// Lowers the priority of the calling thread, and of those that it starts from now on, if there
    /// is no CPU but the application's. Reports that in one line. Preparations must be done before:
    /// behind pollers they would take a hundred times as long.
    pub fn give_way(&self) {
        let theirs = self.behind.iter().filter(|theirs| !theirs.is_empty());
        for theirs in theirs.filter(|_| sys::sched::lowest_priority().is_ok()) {
            self.observer.note(&format!(
                "the application's threads use all CPUs that dptrace may run on ({}): reading with \
                 the lowest priority (nice 19), which costs them little time but may lose more of \
                 the trace",
                list(theirs)
            ));
        }
    }

    /// Gives way ([`Self::give_way`]) until the time is up or a signal arrives. Then all threads
    /// that gave way get the usual priority back, if that is permitted: with the lowest one, a
    /// thread may not even notice its end in time.
    pub fn give_way_for(&self, after: Option<Duration>) {
        if self
            .behind
            .as_ref()
            .is_some_and(|theirs| !theirs.is_empty())
            && self.is_usual
        {
            let (observer, is_over) = (self.observer.clone(), Arc::clone(&self.is_over));
            // It starts with the usual priority, and has it when the time comes. Without it
            // everything ends later.
            let _ = std::thread::Builder::new()
                .name("deadline".to_owned())
                .spawn(move || raise_at_end(after, &is_over, &observer));
        }
        self.give_way();
    }

    /// Ends the placement: threads that gave way get the usual priority back, if that is permitted,
    /// and the calling thread its CPUs. Call this before the other threads are joined: behind
    /// pollers their end would take a hundred times as long.
    pub fn finish(&self) {
        self.is_over.store(true, Ordering::Release);
        if self.behind.is_some() && self.is_usual {
            raise_all();
        }
        if !self.allowed.is_empty() {
            // SANITY: it may run on fewer CPUs than before if that is not permitted any more.
            let _ = sys::sched::run_on(&self.allowed);
        }
    }

    /// Restores the usual priority for the remaining work, if that is permitted: behind others it
    /// would take a hundred times as long.
    pub fn hurry(&self) {
        if self.behind.is_some() && self.is_usual {
            let _ = sys::sched::usual_priority();
        }
    }
}

/// Raises this process's threads when the time is up, a signal has arrived or the work is over.
fn raise_at_end(after: Option<Duration>, is_over: &AtomicBool, observer: &Observer) {
    let begun = Instant::now();
    let is_end = || observer.is_end_coming() || is_over.load(Ordering::Acquire);
    while !is_end() && after.is_none_or(|after| begun.elapsed() < after) {
        let left = after.map_or(POLL_INTERVAL, |after| after.saturating_sub(begun.elapsed()));
        std::thread::sleep(left.min(POLL_INTERVAL));
    }
    if is_over.load(Ordering::Acquire) {
        // The others have been raised; what gives way from now on does so for the next process.
        return;
    }
    // Twice: a thread that was just being started has the priority of its creator.
    for _ in 0..2 {
        raise_all();
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Gives all threads of this process that have the lowest priority the usual one.
fn raise_all() {
    for tid in proc::threads(Pid(std::process::id())) {
        // SANITY: without the rights everything ends as late as it would otherwise.
        let _ = sys::sched::raise_from_lowest(tid.0);
    }
}

fn choose(ours: &BTreeSet<usize>, threads: &[Thread]) -> Choice {
    // CPUs of running threads, and those to which idle ones are pinned.
    let (mut used, mut kept) = (BTreeSet::new(), BTreeSet::new());
    for thread in threads {
        if thread.allowed.len() == 1 {
            let cpus = if thread.is_idle { &mut kept } else { &mut used };
            cpus.extend(&thread.allowed);
        }
        used.extend(thread.busy_on);
    }
    let (used, kept) = (&used & ours, &kept & ours);
    // DPDK keeps threads that hardly ever run on the CPUs without a poller
    // (`compute_ctrl_threads_cpuset`, lib/eal/common/eal_common_options.c), and there may be only
    // one such CPU. Reading beside such a thread is better than behind a poller.
    let all = &used | &kept;
    let theirs = if all == *ours && !used.is_empty() {
        used
    } else {
        all
    };
    let rest: BTreeSet<usize> = ours.difference(&theirs).copied().collect();
    match (theirs.is_empty(), rest.is_empty()) {
        (true, _) => Choice::Anywhere,
        (false, false) => Choice::Only(rest, theirs),
        (false, true) => Choice::Behind(theirs),
    }
}

/// Returns the threads of these processes, except those that can't be inspected.
fn threads(pids: &BTreeSet<u32>) -> Vec<Thread> {
    let tasks = pids.iter().map(|&pid| Pid(pid)).flat_map(|pid| {
        proc::threads(pid)
            .into_iter()
            .map(move |tid| proc::task(pid, tid))
    });
    let mut threads: Vec<_> = tasks
        .filter_map(|task| {
            let allowed = host::cpus::allowed(&task)?;
            let is_idle = allowed.len() == 1 && is_idle(&task);
            Some((
                task,
                Thread {
                    allowed,
                    busy_on: None,
                    is_idle,
                },
            ))
        })
        .collect();
    // The CPU of a pinned thread that runs is known without that.
    let mut watched: Vec<_> = threads
        .iter_mut()
        .filter(|(_, thread)| thread.allowed.len() > 1 || thread.is_idle)
        .collect();
    if !watched.is_empty() {
        let before: Vec<_> = watched.iter().map(|(path, _)| proc::ran(path)).collect();
        std::thread::sleep(SAMPLING_TIME);
        for ((path, thread), before) in watched.iter_mut().zip(before) {
            let ran = proc::ran(path)
                .zip(before)
                .map_or(0, |(now, before)| now.saturating_sub(before));
            if u128::from(ran) > SAMPLING_TIME.as_nanos() / 2 {
                thread.busy_on = last_cpu(path);
            }
        }
    }
    threads.into_iter().map(|(_, thread)| thread).collect()
}

/// Returns true if a thread has run for less than a hundredth of its life. A thread that is unknown
/// or has just started may turn out busy.
fn is_idle(task: &Path) -> bool {
    let Some(started) = Stat::read(task).ok().and_then(|stat| stat.start()) else {
        return false;
    };
    let Some(ran) = proc::ran(task) else {
        return false;
    };
    let age = sys::clock::boot_nanos().saturating_sub(started.saturating_mul(proc::TICK_NANOS));
    Duration::from_nanos(age) > YOUNG_THREAD_AGE && ran.saturating_mul(100) < age
}

/// Returns the nice value of the calling process (proc_pid_stat(5), field 19); `None` if it is
/// negative.
fn nice() -> Option<u64> {
    Stat::read(&proc::task(
        Pid(std::process::id()),
        Pid(std::process::id()),
    ))
    .ok()?
    .number(19)
}

/// Returns the CPU on which a thread last ran (proc_pid_stat(5), field 39).
fn last_cpu(task: &Path) -> Option<usize> {
    usize::try_from(Stat::read(task).ok()?.number(39)?).ok()
}

/// Formats CPUs in the kernel's list format.
fn list(cpus: &BTreeSet<usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let texts = ranges.iter().map(|(a, b)| {
        if a == b {
            a.to_string()
        } else {
            format!("{a}-{b}")
        }
    });
    texts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(cpus: &[usize]) -> BTreeSet<usize> {
        cpus.iter().copied().collect()
    }

    fn thread(allowed: &[usize], busy_on: Option<usize>) -> Thread {
        Thread {
            allowed: set(allowed),
            busy_on,
            is_idle: busy_on.is_none(),
        }
    }

    #[test]
    fn the_reader_stays_off_the_cpus_of_reactors() {
        let ours = set(&[0, 1, 2, 3]);
        let only = |ours: &[usize], theirs: &[usize]| Choice::Only(set(ours), set(theirs));
        assert_eq!(choose(&ours, &[]), Choice::Anywhere);
        assert_eq!(
            choose(&ours, &[thread(&[0, 1, 2, 3], None)]),
            Choice::Anywhere
        );
        assert_eq!(
            choose(&ours, &[thread(&[7], None)]),
            Choice::Anywhere,
            "where we are not anyway"
        );
        assert_eq!(
            choose(&ours, &[thread(&[0], None), thread(&[2], None)]),
            only(&[1, 3], &[0, 2])
        );
        assert_eq!(
            choose(&ours, &[thread(&[0, 1, 2, 3], Some(1))]),
            only(&[0, 2, 3], &[1])
        );
        let all: Vec<_> = (0..4).map(|cpu| thread(&[cpu], None)).collect();
        assert_eq!(
            choose(&ours, &all),
            Choice::Behind(ours.clone()),
            "one of them may have much to do soon"
        );
        let pinned = |cpu, is_idle| Thread {
            is_idle,
            ..thread(&[cpu], None)
        };
        let busy: Vec<_> = (0..4).map(|cpu| pinned(cpu, false)).collect();
        assert_eq!(choose(&ours, &busy), Choice::Behind(ours.clone()));
        // A poller, and a thread that DPDK pins to the other CPU.
        let dpdk = [pinned(0, false), pinned(1, true)];
        assert_eq!(choose(&set(&[0, 1]), &dpdk), only(&[1], &[0]));
        assert_eq!(choose(&ours, &dpdk), only(&[2, 3], &[0, 1]));
    }

    #[test]
    fn a_thread_that_hardly_runs_is_idle() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let sleeper = std::thread::spawn(move || {
            sender.send(rustix::thread::gettid()).unwrap();
            std::thread::park();
        });
        let task_of = |tid: rustix::thread::Pid| {
            proc::task(
                Pid(std::process::id()),
                Pid(tid.as_raw_nonzero().get().cast_unsigned()),
            )
        };
        let (sleeps, us) = (
            task_of(receiver.recv().unwrap()),
            task_of(rustix::thread::gettid()),
        );
        std::thread::sleep(YOUNG_THREAD_AGE + Duration::from_millis(50));
        assert!(is_idle(&sleeps));
        let begun = Instant::now();
        while is_idle(&us) {
            assert!(begun.elapsed() < Duration::from_mins(1));
        }
        assert!(is_idle(&sleeps));
        sleeper.thread().unpark();
        sleeper.join().unwrap();
    }

    #[test]
    fn lists_of_cpus_are_written() {
        assert_eq!(
            (list(&set(&[0, 1, 2, 5])), list(&set(&[3]))),
            ("0-2,5".to_owned(), "3".to_owned())
        );
        let us = proc::task(Pid(std::process::id()), Pid(std::process::id()));
        assert!(last_cpu(&us).is_some() && proc::ran(&us).is_some());
        assert!(host::cpus::allowed(&us).is_some());
    }
}
