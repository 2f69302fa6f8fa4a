//! A window's threads, from two looks at the maps.

use std::collections::HashMap;

use bpf_codegen::delay::layout::{
    SLOT_COMPAT, SLOT_OTHER, TIME_MASK, WINDOW_SHIFT, call, interrupt, rival, stat, state, value,
};

use crate::budget::Budget;
use crate::names::soft_name;
use crate::snapshot::{Snapshot, name};
use crate::upcalls::Upcalls;

/// When time counted, in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Window {
    /// From when on.
    pub start: u64,
    /// Until when.
    pub stop: u64,
    /// Its number, from 1.
    pub number: u16,
}

impl Window {
    /// How long it was.
    pub fn length(&self) -> u64 {
        self.stop.saturating_sub(self.start)
    }
}

/// What `/proc` says of a thread. It is only asked for what no event told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hint {
    /// The state's letter (proc_pid_stat(5), field 3).
    pub state: char,
    /// The call that it was blocked in (proc_pid_syscall(5)), as a slot.
    pub call: Option<u32>,
    /// How much longer it had run in user code at the window's end than at its begin, in ticks.
    pub user: u64,
    /// The same for system calls.
    pub system: u64,
    /// How much longer it had been on a CPU, in nanoseconds.
    pub ran: u64,
}

/// A thread's value at both looks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ThreadLook {
    /// Its number.
    pub tid: u32,
    /// Before the window; nothing where it was not there.
    pub before: Snapshot,
    /// After it.
    pub after: Snapshot,
    /// What `/proc` says of it.
    pub hint: Hint,
    /// Its name where no event told it.
    pub name: Option<String>,
}

/// What the maps had.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Look {
    /// The window.
    pub window: Window,
    /// The threads.
    pub threads: Vec<ThreadLook>,
    /// Keys and values of the rivals' map.
    pub rivals: Vec<(Vec<u8>, Vec<u8>)>,
    /// Keys and values of the interrupts' map.
    pub interrupts: Vec<(Vec<u8>, Vec<u8>)>,
    /// What hard interrupts are called.
    pub hard_names: HashMap<u32, String>,
    /// Open vSwitch's upcalls, where they are counted.
    pub upcalls: Option<Upcalls>,
}

/// Counted times, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stat {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub total: u64,
    /// The shortest, where that is kept.
    pub min: u64,
    /// The longest.
    pub max: u64,
}

/// A system call's completed calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallStat {
    /// Its number, or a slot that stands for others.
    pub slot: u32,
    /// The calls that began and ended in the window.
    pub stat: Stat,
}

/// An interrupt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interrupt {
    /// Its number.
    pub number: u32,
    /// What it is called.
    pub name: String,
    /// Its times.
    pub stat: Stat,
}

/// Who ran while a thread waited.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rival {
    /// The task's name.
    pub name: String,
    /// For how long.
    pub nanos: u64,
}

/// A thread in a window.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ThreadSample {
    /// Its number.
    pub tid: u32,
    /// Its name, as it was last seen.
    pub name: String,
    /// Where its time went.
    pub budget: Budget,
    /// Whether it was born in the window.
    pub born: bool,
    /// Whether it ended in the window.
    pub ended: bool,
    /// Completed calls, the one with the greatest sum first.
    pub calls: Vec<CallStat>,
    /// Times between two `poll` calls.
    pub polls: Stat,
    /// Runs.
    pub runs: Stat,
    /// Waits for a CPU.
    pub waits: Stat,
    /// Stops.
    pub stops: Stat,
    /// The longest wait for a CPU, also of those that the window cuts.
    pub longest_wait: u64,
    /// Hard interrupts, the greatest sum first.
    pub hard: Vec<Interrupt>,
    /// Soft interrupts, likewise.
    pub soft: Vec<Interrupt>,
    /// Who ran instead, the longest first.
    pub rivals: Vec<Rival>,
    /// Waits for a CPU by the logarithm to base 2 of their nanoseconds.
    pub wait_histogram: Vec<u32>,
    /// Times blocked, likewise.
    pub blocked_histogram: Vec<u32>,
}

/// A window's threads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sample {
    /// The window.
    pub window: Window,
    /// By name, then by number.
    pub threads: Vec<ThreadSample>,
    /// Open vSwitch's upcalls, where they are counted.
    pub upcalls: Option<Upcalls>,
}

impl Sample {
    /// Works out the looks. Threads that were gone before the window began are left out.
    pub fn of(look: &Look) -> Self {
        let window = look.window;
        let lived = |thread: &&ThreadLook| {
            let died = thread.after.wide(value::DIED);
            (died == 0 || died > window.start) && thread.after.wide(value::BORN) < window.stop
        };
        let mut threads: Vec<ThreadSample> =
            look.threads.iter().filter(lived).map(|thread| ThreadSample::of(thread, look)).collect();
        threads.sort_by(|a, b| (&a.name, a.tid).cmp(&(&b.name, b.tid)));
        Self { window, threads, upcalls: look.upcalls.clone() }
    }

    /// Whether no budget lacks a thousandth of its window.
    pub fn adds_up(&self) -> bool {
        let lacks = |budget: &Budget| budget.window.saturating_sub(budget.sum());
        self.threads.iter().all(|thread| lacks(&thread.budget) <= thread.budget.window / 1000)
    }
}

impl ThreadSample {
    fn of(thread: &ThreadLook, look: &Look) -> Self {
        let ThreadLook { tid, before, after, hint, name } = thread;
        let window = &look.window;
        let pair = Pair { before, after, window };
        let died = after.wide(value::DIED);
        let comm = Some(after.comm()).filter(|comm| !comm.is_empty());
        let rivals = rivals(*tid, look);
        Self {
            tid: *tid,
            name: name.clone().or(comm).unwrap_or_else(|| "?".to_owned()),
            budget: Budget::of(before, after, hint, window),
            born: after.wide(value::BORN) > window.start,
            ended: died > window.start && died <= window.stop,
            calls: pair.calls(),
            polls: pair.stat(value::POLLS, true),
            runs: pair.stat(value::RUNS, true),
            waits: pair.stat(value::WAITED, false),
            stops: pair.stat(value::STOPS, false),
            longest_wait: tagged(after.wide(value::LONGEST), window.number).max(still_waits(after, hint, window)),
            hard: interrupts(*tid, look, false),
            soft: interrupts(*tid, look, true),
            rivals,
            wait_histogram: pair.histogram(value::READY_HISTOGRAM),
            blocked_histogram: pair.histogram(value::BLOCKED_HISTOGRAM),
        }
    }
}

/// Two looks at a thread.
struct Pair<'a> {
    before: &'a Snapshot,
    after: &'a Snapshot,
    window: &'a Window,
}

impl Pair<'_> {
    fn grown(&self, at: i16) -> u64 {
        self.after.wide(at).wrapping_sub(self.before.wide(at))
    }

    fn stat(&self, at: i16, with_shortest: bool) -> Stat {
        let number = self.window.number;
        let shortest = tagged(self.after.wide(at + stat::MIN), number);
        Stat {
            count: self.grown(at + stat::COUNT),
            total: self.grown(at + stat::TOTAL),
            min: if with_shortest && shortest != 0 { TIME_MASK - shortest } else { 0 },
            max: tagged(self.after.wide(at + stat::MAX), number),
        }
    }

    fn calls(&self) -> Vec<CallStat> {
        let grown = |slot, part| self.after.call(slot, part).wrapping_sub(self.before.call(slot, part));
        let stat = |slot| Stat {
            count: grown(slot, call::COUNT),
            total: grown(slot, call::TOTAL),
            min: 0,
            max: tagged(self.after.call(slot, call::MAX), self.window.number),
        };
        let all = (0..=SLOT_OTHER.max(SLOT_COMPAT)).map(|slot| CallStat { slot, stat: stat(slot) });
        let mut calls: Vec<CallStat> = all.filter(|call| call.stat.count > 0).collect();
        calls.sort_by_key(|call| (std::cmp::Reverse(call.stat.total), call.slot));
        calls
    }

    fn histogram(&self, at: i16) -> Vec<u32> {
        let (before, after) = (self.before.histogram(at), self.after.histogram(at));
        after.iter().zip(&before).map(|(after, before)| after.wrapping_sub(*before)).collect()
    }
}

/// How long a thread that waits for a CPU at the window's end has done so in it.
fn still_waits(after: &Snapshot, hint: &Hint, window: &Window) -> u64 {
    let waits = match after.narrow(value::STATE) {
        state::READY => true,
        // No event in the whole window: it ran all the time, or never.
        state::UNSURE => hint.state == 'R' && hint.ran < window.length() / 2,
        _ => false,
    };
    if waits { window.stop.saturating_sub(window.start.max(after.wide(value::SINCE))) } else { 0 }
}

/// A time that carries its window's number; 0 if it is another window's.
fn tagged(tagged: u64, number: u16) -> u64 {
    if tagged >> WINDOW_SHIFT == u64::from(number) { tagged & TIME_MASK } else { 0 }
}

pub(crate) fn number_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

pub(crate) fn wide_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn rivals(tid: u32, look: &Look) -> Vec<Rival> {
    let mut by_name: HashMap<String, u64> = HashMap::new();
    for (key, nanos) in look.rivals.iter().filter(|(key, _)| number_at(key, rival::WAITER as usize) == tid) {
        let name = name(key.get(rival::COMM as usize..).unwrap_or_default());
        // The kernel's name for a CPU with nothing to do: then the wait is the time that it takes to wake up.
        let name = if name.starts_with("swapper/") { "(idle CPU)".to_owned() } else { name };
        *by_name.entry(name).or_default() += wide_at(nanos, 0);
    }
    let mut rivals: Vec<Rival> = by_name.into_iter().map(|(name, nanos)| Rival { name, nanos }).collect();
    rivals.sort_by(|a, b| b.nanos.cmp(&a.nanos).then_with(|| a.name.cmp(&b.name)));
    rivals
}

fn interrupts(tid: u32, look: &Look, soft: bool) -> Vec<Interrupt> {
    let of = |(key, value): &(Vec<u8>, Vec<u8>)| {
        let (owner, marked) = (number_at(key, 0), number_at(key, 4));
        let number = marked & !interrupt::SOFT;
        let stat = Stat {
            count: wide_at(value, stat::COUNT as usize),
            total: wide_at(value, stat::TOTAL as usize),
            min: 0,
            max: tagged(wide_at(value, stat::MAX as usize), look.window.number),
        };
        let name = || if soft { soft_name(number) } else { hard_name(number, look) };
        let wanted = owner == tid && (marked != number) == soft && stat.count > 0;
        wanted.then(|| Interrupt { number, name: name(), stat })
    };
    let mut all: Vec<Interrupt> = look.interrupts.iter().filter_map(of).collect();
    all.sort_by_key(|interrupt| (std::cmp::Reverse(interrupt.stat.total), interrupt.number));
    all
}

fn hard_name(number: u32, look: &Look) -> String {
    look.hard_names.get(&number).cloned().unwrap_or_else(|| format!("irq:{number}"))
}
