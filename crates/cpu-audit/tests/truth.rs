//! What an audit counts, against what the kernel itself counts: inside of the window at most as many, around it at least.
#![expect(clippy::unwrap_used, reason = "a test says what it saw by panicking")]

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::time::Duration;

use cpu_audit::layout::{State, kind};
use cpu_audit::{Audit, Facts, Options, Sums};
use host::KernelSymbols;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use testkit::kernel;

/// The CPU that is audited.
const CPU: u32 = 0;
/// How many timers are set, one after the other.
const TIMERS: u64 = 100;

fn started(each: Option<u64>) -> Audit {
    Audit::start(&Facts::read().unwrap(), &Options { cpus: vec![CPU], each })
        .unwrap_or_else(|error| panic!("{error:?}"))
}

fn stay_on(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).unwrap();
}

/// The numbers of [`CPU`] in `/proc/interrupts` or `/proc/softirqs`, by what stands at the line's beginning.
fn counted(path: &str) -> HashMap<String, u64> {
    let text = std::fs::read_to_string(path).unwrap();
    let number = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.strip_suffix(':')?.to_owned();
        Some((name, words.next()?.parse().ok()?))
    };
    text.lines().filter_map(number).collect()
}

/// Sets timers that expire one after the other, and sleeps until each has.
fn sleep_by_timers() {
    stay_on(CPU as usize);
    let timer: OwnedFd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).unwrap();
    for _ in 0..TIMERS {
        let once = Timespec { tv_sec: 0, tv_nsec: 300_000 };
        let spec = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: once };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &spec).unwrap();
        rustix::io::read(&timer, &mut [0; 8]).unwrap();
    }
}

fn sum(state: &State) -> u64 {
    state.totals.iter().map(|total| total.total).sum()
}

fn counts(sums: &Sums, kinds: &[u32]) -> u64 {
    kinds.iter().map(|&kind| sums.cpus[0].state.totals[kind as usize].count).sum()
}

#[test]
fn a_budget_adds_up_and_the_counts_are_those_of_the_kernel() {
    let Some(_turn) = kernel::may_run("an audit of a CPU") else { return };
    let read = || (counted("/proc/interrupts"), counted("/proc/softirqs"));
    let around = read();
    let audit = started(None);
    let inside = read();
    std::thread::spawn(sleep_by_timers).join().unwrap();
    let inside_end = read();
    let sums = audit.stop().unwrap();
    let around_end = read();

    let state = &sums.cpus[0].state;
    assert_eq!(sum(state), state.stop - state.start, "{state:?}");
    assert_eq!((state.lost, state.too_deep, sums.skipped), (0, 0, 0));
    let between = |from: &HashMap<String, u64>, to: &HashMap<String, u64>, name: &str| {
        Some(to.get(name)?.checked_sub(*from.get(name)?).unwrap_or_else(|| panic!("{name} has become less")))
    };
    // The lines that x86-64 has.
    let lines =
        [("LOC", &[kind::TIMER_INTERRUPT][..]), ("CAL", &[kind::CALL, kind::CALLS]), ("RES", &[kind::RESCHEDULE])];
    for (name, kinds) in lines {
        let Some(least) = between(&inside.0, &inside_end.0, name) else { continue };
        let most = between(&around.0, &around_end.0, name).unwrap();
        // The kernel counts some interrupts that pass no tracepoint: two or three of hundreds, on a loaded virtual machine.
        let (found, least) = (counts(&sums, kinds), least.saturating_sub(10 + least / 20));
        assert!((least..=most).contains(&found), "{name}: {found} are not between {least} and {most}");
    }
    for (vector, name) in [(1, "TIMER"), (3, "NET_RX"), (7, "SCHED"), (9, "RCU")] {
        let least = between(&inside.1, &inside_end.1, name).unwrap();
        let most = between(&around.1, &around_end.1, name).unwrap();
        let mine = sums.tallies.iter().filter(|(key, _)| (key.kind, key.id) == (kind::SOFT, vector));
        let found: u64 = mine.map(|(_, tally)| tally.count).sum();
        assert!((least..=most).contains(&found), "{name}: {found} are not between {least} and {most}");
    }
    assert!(audit.close(Duration::from_mins(1)), "the programs are not detached");
}

/// Windows that follow one another: each adds up, and none begins elsewhere than the last one ended.
#[test]
fn windows_follow_one_another_without_a_gap() {
    let Some(_turn) = kernel::may_run("windows of a CPU that follow one another") else { return };
    let mut audit = started(None);
    let mut end = 0;
    for _ in 0..5 {
        let thread = std::thread::Builder::new().name("audited".into()).spawn(sleep_by_timers).unwrap();
        thread.join().unwrap();
        let sums = audit.turn().unwrap();
        let state = &sums.cpus[0].state;
        assert!(end == 0 || state.start == end, "{} is not {end}", state.start);
        end = state.stop;
        assert!(state.start < state.stop);
        assert_eq!(sum(state), state.stop - state.start, "{state:?}");
        assert_eq!((state.lost, state.too_deep, sums.skipped), (0, 0, 0));
        let named = sums
            .tallies
            .iter()
            .filter(|(key, tally)| key.kind == kind::THREAD && key.cpu == CPU && tally.name.starts_with(b"audited\0"));
        // One thread in each window, which was there until it had slept a hundred times.
        let counts: Vec<u64> = named.map(|(_, tally)| tally.count).collect();
        assert!(counts.len() == 1 && counts[0] >= TIMERS / 2, "{counts:?}");
        let threads: u64 = sums.tallies.iter().filter(|(key, _)| key.kind == kind::THREAD).map(|it| it.1.total).sum();
        let total = state.totals[kind::THREAD as usize].total;
        // What comes after the turn, and before the tallies are read, is in the next window's sums.
        assert!(threads.abs_diff(total) < total / 2, "{threads} of {total}");
    }
    // A CPU that goes, and comes again, has a new window.
    audit.remove_cpu(CPU).unwrap();
    assert!(audit.turn().unwrap().cpus.is_empty());
    audit.add_cpu(CPU).unwrap();
    let sums = audit.turn().unwrap();
    let state = &sums.cpus[0].state;
    assert!(state.start > end && sum(state) == state.stop - state.start, "{state:?}");
    assert!(audit.close(Duration::from_mins(1)), "the programs are not detached");
}

#[test]
fn the_function_of_each_timer_is_counted_and_each_one_is_sent() {
    let Some(_turn) = kernel::may_run("an audit of a CPU, with single ones") else { return };
    let symbols = KernelSymbols::read().unwrap();
    let function = symbols.address("timerfd_tmrproc");
    let audit = started(Some(0));
    let thread = std::thread::Builder::new().name("audited".into()).spawn(sleep_by_timers).unwrap();
    thread.join().unwrap();
    let sums = audit.stop().unwrap();
    let mut each = Vec::new();
    loop {
        let more = audit.each(Duration::from_millis(200)).unwrap();
        if more.is_empty() {
            break;
        }
        each.extend(more);
    }
    let Some(function) = function else {
        kernel::skip("names of timers", "/proc/kallsyms has no timerfd_tmrproc");
        return;
    };
    let of_timer = |kind: u32, id: u64| (kind, id) == (kind::HRTIMER, function);
    let found: u64 =
        sums.tallies.iter().filter(|(key, _)| of_timer(key.kind, key.id)).map(|(_, tally)| tally.count).sum();
    assert!(found >= TIMERS, "{found} of {TIMERS} timers");
    let named =
        sums.tallies.iter().find(|(key, tally)| key.kind == kind::THREAD && tally.name.starts_with(b"audited\0"));
    assert!(named.is_some_and(|(_, tally)| tally.count > 0), "the thread is not there");
    let sent = each.iter().filter(|one| of_timer(one.key.kind, one.key.id)).count() as u64;
    assert!(sent + sums.cpus[0].state.unsent >= TIMERS, "{sent} of {TIMERS} timers were sent");
    assert!(audit.close(Duration::from_mins(1)), "the programs are not detached");
}

#[test]
fn who_waits_for_the_cpu_is_known() {
    let Some(_turn) = kernel::may_run("who waits for an audited CPU") else { return };
    let mut all = sched_getaffinity(None).unwrap();
    all.unset(CPU as usize);
    if all.count() == 0 {
        kernel::skip("who waits for an audited CPU", "there is only one CPU");
        return;
    }
    sched_setaffinity(None, &all).unwrap();
    let audit = started(None);
    // Two threads that want the same CPU for themselves: one of both waits.
    let spin = || {
        stay_on(CPU as usize);
        let begin = std::time::Instant::now();
        while begin.elapsed() < Duration::from_millis(400) {
            std::hint::spin_loop();
        }
    };
    let spinners = ["first", "second"].map(|name| std::thread::Builder::new().name(name.into()).spawn(spin).unwrap());
    for spinner in spinners {
        spinner.join().unwrap();
    }
    let sums = audit.stop().unwrap();
    for name in [&b"first\0"[..], b"second\0"] {
        let waited = sums
            .tallies
            .iter()
            .filter(|(key, tally)| key.kind == kind::THREAD | kind::WAITED && tally.name.starts_with(name));
        let total: u64 = waited.map(|(_, tally)| tally.total).sum();
        assert!(total > 0, "{} did not wait", String::from_utf8_lossy(name));
    }
    assert!(audit.close(Duration::from_mins(1)), "the programs are not detached");
}
