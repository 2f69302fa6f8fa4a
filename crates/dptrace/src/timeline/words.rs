//! What threads do, in words.

use screen::{shorten, time};
use timeline::{Activity, BootNanos, Cpu, Interrupt, Interval, Tid};

use super::source::Source;

/// Columns of a group's name in a sentence.
const NAME: usize = 40;
/// Things that a thread did in a stage, named at most.
const MOST_DONE: usize = 6;
/// The idle task of each CPU.
const IDLE: Tid = Tid(0);

/// An interrupt.
pub(super) fn interrupt(interrupt: Interrupt) -> String {
    match interrupt {
        Interrupt::Hard(number) => format!("irq {number}"),
        Interrupt::Soft(vector) => format!("softirq {}", kernel_delay::soft_name(vector)),
        Interrupt::Tick => "timer tick".to_owned(),
        Interrupt::Call => "call by another CPU".to_owned(),
    }
}

/// Who or what takes time of a thread, as the subject of a sentence.
pub(super) fn culprit(source: &Source, activity: Activity, cpu: Option<Cpu>, at: BootNanos) -> String {
    let on = cpu.map_or_else(String::new, |cpu| format!(" on CPU {}", cpu.0));
    match activity {
        Activity::Waits(by) => format!("{}{on}", source.thread(by, at)),
        Activity::Woken(IDLE) => format!("the way of the CPU out of idling{on}"),
        Activity::Woken(by) => format!("{}{on}, for which the woken thread waited", source.thread(by, at)),
        Activity::Interrupted(what) => format!("{}{on}", interrupt(what)),
        Activity::Stopped => "being stopped".to_owned(),
        Activity::Calls(number) => format!("its own call {}", source.call(number)),
        Activity::Blocked(Some(number)) => format!("its own call {}, which blocked", source.call(number)),
        Activity::Blocked(None) => "blocking outside of a call".to_owned(),
        Activity::Runs => "its own code".to_owned(),
        Activity::Ended => "having ended".to_owned(),
        Activity::Unknown => "nobody knows".to_owned(),
    }
}

/// What a thread did.
pub(super) fn did(source: &Source, activity: Activity, at: BootNanos) -> String {
    match activity {
        Activity::Runs => "ran".to_owned(),
        Activity::Calls(number) => format!("in {}", source.call(number)),
        Activity::Interrupted(what) => interrupt(what),
        Activity::Waits(by) => format!("preempted by {}", source.thread(by, at)),
        Activity::Woken(IDLE) => "woken, the CPU left idling".to_owned(),
        Activity::Woken(by) => format!("woken, waited for {}", source.thread(by, at)),
        Activity::Blocked(Some(number)) => format!("blocked in {}", source.call(number)),
        Activity::Blocked(None) => "blocked".to_owned(),
        Activity::Stopped => "stopped".to_owned(),
        Activity::Ended => "ended".to_owned(),
        Activity::Unknown => "unknown".to_owned(),
    }
}

/// The activities of intervals with how often and for how long together, the longest first.
pub(super) fn sums(intervals: &[Interval]) -> Vec<(Activity, u64, u64)> {
    let mut sums: Vec<(Activity, u64, u64)> = Vec::new();
    for interval in intervals {
        let length = interval.to.0 - interval.from.0;
        match sums.iter_mut().find(|(activity, ..)| *activity == interval.activity) {
            Some((_, count, sum)) => (*count, *sum) = (*count + 1, *sum + length),
            None => sums.push((interval.activity, 1, length)),
        }
    }
    sums.sort_by_key(|(_, _, sum)| std::cmp::Reverse(*sum));
    sums
}

/// What was done in intervals, in words: what has one name is one thing, and of many things only the longest are named.
pub(super) fn all_done(source: &Source, intervals: &[Interval], at: BootNanos) -> String {
    let mut named: Vec<(String, u64, u64)> = Vec::new();
    for (activity, count, sum) in sums(intervals) {
        let name = did(source, activity, at);
        match named.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, all, length)) => (*all, *length) = (*all + count, *length + sum),
            None => named.push((name, count, sum)),
        }
    }
    named.sort_by_key(|(_, _, sum)| std::cmp::Reverse(*sum));
    let rest = named.split_off(named.len().min(MOST_DONE));
    let part = |(name, count, sum): &(String, u64, u64)| {
        let times = if *count > 1 { format!(" ({count} times)") } else { String::new() };
        format!("{name} {}{times}", time(*sum))
    };
    let mut parts: Vec<String> = named.iter().map(part).collect();
    if !rest.is_empty() {
        let sum = rest.iter().map(|(_, _, sum)| sum).sum();
        parts.push(format!("{} others {}", rest.len(), time(sum)));
    }
    parts.join(", ")
}

/// Bounds, as one number if they are hardly apart.
pub(super) fn bounds(at_least: u64, at_most: u64) -> String {
    let (least, most) = (time(at_least), time(at_most));
    match at_least {
        _ if least == most => least,
        0 => format!("at most {most}"),
        _ => format!("at least {least}, at most {most}"),
    }
}

/// A group's values, shortened to what distinguishes them in a sentence: of a subsystem's name what follows the last colon.
pub(super) fn group(values: &[Option<Box<str>>]) -> String {
    let short = |value: &Option<Box<str>>| match value.as_deref() {
        Some(nqn) if nqn.starts_with("nqn.") => shorten(nqn.rsplit(':').next().unwrap_or(nqn), NAME).into_owned(),
        Some(value) => shorten(value, NAME).into_owned(),
        None => "no name".to_owned(),
    };
    values.iter().map(short).collect::<Vec<_>>().join(", ")
}
