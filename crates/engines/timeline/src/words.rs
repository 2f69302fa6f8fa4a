//! Activities of threads, in words.

use ordering::Order as _;
use requests::sockets::OPERATION_FIELD;
use scene::{Activity, ActivitySum, BootNanos, Cpu, Interrupt, Tid};
use screen::{shorten, time};

use super::source::Source;
use super::wakers::{self, Wakers};

/// Width limit of a group's name in a sentence, in columns.
const NAME: usize = 40;
/// Limit on the activities of a stage that are named.
const MAX_NAMED_ACTIVITIES: usize = 6;
/// Idle task of each CPU.
const IDLE: Tid = Tid(0);

/// Formats an interrupt.
pub fn interrupt(interrupt: Interrupt) -> String {
    match interrupt {
        Interrupt::Hard(number) => format!("irq {number}"),
        Interrupt::Soft(vector) => format!("softirq {}", kernel_delay::soft_name(vector)),
        Interrupt::Tick => "timer tick".to_owned(),
        Interrupt::Call => "call by another CPU".to_owned(),
    }
}

/// Names the taker of a thread's time, as the subject of a sentence.
pub fn culprit(source: &Source, activity: Activity, cpu: Option<Cpu>, at: BootNanos) -> String {
    let on = cpu.map_or_else(String::new, |cpu| format!(" on CPU {}", cpu.0));
    match activity {
        Activity::Waits(by) => format!("{}{on}", source.taker(by, at)),
        Activity::Woken(IDLE) => format!("the CPU's exit from idle{on}"),
        Activity::Woken(by) => format!(
            "{}{on}, for which the woken thread waited",
            source.taker(by, at)
        ),
        Activity::Interrupted(what) => format!("{}{on}", interrupt(what)),
        Activity::Stopped(None) => STOPPED.to_owned(),
        Activity::Stopped(Some(by)) => format!("{STOPPED} by {}", source.sender(by, at)),
        Activity::Calls(number) => format!("its own call {}", source.call(number)),
        Activity::Blocked {
            call: Some(number), ..
        } => format!("its own call {}, which blocked", source.call(number)),
        Activity::Blocked { call: None, .. } => "blocking outside of a call".to_owned(),
        Activity::Runs => "its own code".to_owned(),
        Activity::Ended => "having ended".to_owned(),
        Activity::Unknown => "nobody knows".to_owned(),
    }
}

/// Describes an activity of a thread.
pub fn did(source: &Source, activity: Activity, at: BootNanos) -> String {
    match activity {
        Activity::Runs => "ran".to_owned(),
        Activity::Calls(number) => format!("in {}", source.call(number)),
        Activity::Interrupted(what) => interrupt(what),
        Activity::Waits(by) => format!("preempted by {}", source.taker(by, at)),
        Activity::Woken(IDLE) => "woken, the CPU left idle".to_owned(),
        Activity::Woken(by) => format!("woken, waited for {}", source.taker(by, at)),
        Activity::Blocked { call, .. } => {
            let place =
                call.map_or_else(String::new, |number| format!(" in {}", source.call(number)));
            let until = wakers::until(source, activity, at);
            let until = until.map_or_else(String::new, |until| format!(" {until}"));
            format!("blocked{place}{until}")
        }
        Activity::Stopped(None) => "stopped".to_owned(),
        Activity::Stopped(Some(by)) => format!("stopped by {}", source.sender(by, at)),
        Activity::Ended => "ended".to_owned(),
        Activity::Unknown => "unknown".to_owned(),
    }
}

/// Describes what a thread did: activities with the same name are merged, and only the longest are
/// named.
pub fn all_done(source: &Source, sums: &[ActivitySum], at: BootNanos) -> String {
    let mut named: Vec<(String, Wakers, u64, u64)> = Vec::new();
    for &ActivitySum {
        activity,
        count,
        nanos: sum,
    } in sums
    {
        let name = did(source, activity.without_waker(), at);
        let known = named.iter().position(|(known, ..)| *known == name);
        let place = known.unwrap_or_else(|| {
            named.push((name, Wakers::default(), 0, 0));
            named.len() - 1
        });
        let (_, wakers, all, length) = &mut named[place];
        wakers.add(activity, at, sum);
        (*all, *length) = (*all + count, length.saturating_add(sum));
    }
    named.order_by_key(|(.., sum)| std::cmp::Reverse(*sum));
    let rest = named.split_off(named.len().min(MAX_NAMED_ACTIVITIES));
    let part = |(name, wakers, count, sum): &(String, Wakers, u64, u64)| {
        let times = (*count > 1).then(|| format!("{count} times"));
        let until = wakers.until(source).trim_start().to_owned();
        let until = (!until.is_empty()).then_some(until);
        let how: Vec<String> = times.into_iter().chain(until).collect();
        let how = match how.join(", ") {
            none if none.is_empty() => none,
            how => format!(" ({how})"),
        };
        format!("{name} {}{how}", time(*sum))
    };
    let mut parts: Vec<String> = named.iter().map(part).collect();
    if !rest.is_empty() {
        let sum = rest
            .iter()
            .fold(0, |all: u64, (.., sum)| all.saturating_add(*sum));
        parts.push(format!(
            "{} {}",
            screen::counted(rest.len() as u64, "other"),
            time(sum)
        ));
    }
    parts.join(", ")
}

/// Formats bounds, as one number if they look the same.
pub fn bounds(at_least: u64, at_most: u64) -> String {
    let (least, most) = (time(at_least), time(at_most));
    match at_least {
        _ if least == most => least,
        0 => format!("at most {most}"),
        _ => format!("at least {least}, at most {most}"),
    }
}

/// Name of a stop by a signal, as the taker of a thread's time.
pub const STOPPED: &str = "being stopped";

/// Returns the end of a sentence about the stop that [`culprit`] names, `stopped by NAME`; `None` if
/// the name is not that of a stop.
pub fn stop(name: &str) -> Option<&str> {
    let by = name.strip_prefix(STOPPED)?;
    (by.is_empty() || by.starts_with(" by ")).then(|| name.strip_prefix("being "))?
}

/// Formats the range that one time of several is in, as one number if its ends look the same.
pub fn range(least: u64, most: u64) -> String {
    let (low, high) = (time(least), time(most));
    match least {
        _ if low == high => low,
        0 => format!("up to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// Returns whether the largest taker took more than half of a whole: sentences without numbers call
/// that `mainly`, and less `the largest part`.
pub fn is_most(part: u64, whole: u64) -> bool {
    u128::from(part) * 2 > u128::from(whole)
}

/// Time of the largest taker and of all others, as all sentences, tables and pages state it: a number
/// beside a name is what that one took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Nanoseconds that the largest taker took, at least and at most.
    pub own: (u64, u64),
    /// Nanoseconds that the others took, at least and at most, if that is more than a tenth of all.
    pub others: Option<(u64, u64)>,
}

impl Taken {
    /// Compares the time of the largest taker with all that was taken, both at least and at most. A
    /// part that was not taken by others stands alone.
    pub fn new(is_taken: bool, own: (u64, u64), all: (u64, u64)) -> Self {
        let others = (all.0.saturating_sub(own.0), all.1.saturating_sub(own.1));
        let is_considerable = is_taken && u128::from(others.1) * 10 > u128::from(all.1);
        Self {
            own,
            others: is_considerable.then_some(others),
        }
    }

    /// Formats the others' time after the taker's own; empty if it is not considerable.
    pub fn others(self) -> String {
        self.others.map_or_else(String::new, |(least, most)| {
            format!("; others, {}", bounds(least, most))
        })
    }
}

/// Returns whether the taken time explains a time: less than a 20th explains nothing.
pub fn explains(at_most: u64, time: u64) -> bool {
    at_most.saturating_mul(20) >= time
}

/// Words on the requests that no record shows while a thread was away.
pub const UNREAD: &str =
    "requests that arrived meanwhile waited unread for up to that long, which no record shows";

/// Formats the number of times of 10 ms or longer, with their sum and the longest, in nanoseconds.
pub fn lasted(count: u64, all: u64, longest: u64) -> String {
    match count {
        1 => format!("once for {}", time(longest)),
        count => format!(
            "{count} times for 10 ms or longer ({} in all, the longest {})",
            time(all),
            time(longest)
        ),
    }
}

/// Returns the kind of an object: the name of the tracepoint that creates it without its last part,
/// `TCP_REQ` of `TCP_REQ_NEW`.
pub fn kind(first: &str) -> &str {
    first.rsplit_once('_').map_or(first, |(kind, _)| kind)
}

/// Describes a group by its fields and values, for a sentence; empty without fields. A subsystem's
/// name is reduced to the part after the last colon.
pub fn group(by: &[String], values: &[Option<Box<str>>]) -> String {
    let one = |(field, value): (&String, &Option<Box<str>>)| {
        let what = if is_subsystem(field) {
            "subsystem"
        } else {
            field
        };
        value.as_deref().map_or_else(
            || format!("no {what}"),
            |value| format!("{what} {}", short(value)),
        )
    };
    by.iter()
        .zip(values)
        .map(one)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Names the requests of a group, for a sentence.
pub fn requests(by: &[String], values: &[Option<Box<str>>], first: &str) -> String {
    let kind = kind(first);
    match (by, values) {
        ([], _) | (_, []) => kind.to_owned(),
        ([field], [Some(value)]) if is_subsystem(field) => format!("{} ({kind})", short(value)),
        ([field], [None]) if is_subsystem(field) => {
            format!("requests without a subsystem ({kind})")
        }
        ([field], [Some(operation)]) if field == OPERATION_FIELD && !operation.is_empty() => {
            format!("{} ({kind})", shorten(operation, NAME))
        }
        ([field], [_]) if field == OPERATION_FIELD => kind.to_owned(),
        _ => format!("{kind} of {}", group(by, values)),
    }
}

/// Returns whether a field is the name of a subsystem.
fn is_subsystem(field: &str) -> bool {
    matches!(field, "owner.subnqn" | "qpair.subnqn")
}

/// Shortens a subsystem's name to the part that distinguishes it.
pub fn short(value: &str) -> String {
    let name = if value.starts_with("nqn.") {
        value.rsplit(':').next().unwrap_or(value)
    } else {
        value
    };
    shorten(name, NAME).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_beside_a_name_is_what_that_one_took() {
        let taken = |own| Taken::new(true, (0, own), (1, 1_000));
        assert_eq!(taken(900).others, None);
        assert_eq!(taken(899).own, (0, 899));
        assert_eq!(taken(899).others, Some((1, 101)));
        assert_eq!(
            taken(899).others(),
            "; others, at least 1 ns, at most 101 ns"
        );
        assert_eq!(taken(1_000).others(), "");
        // The thread's own call is no time that others took.
        assert_eq!(Taken::new(false, (7, 7), (0, 0)).others, None);
    }

    #[test]
    fn a_sentence_names_its_requests() {
        let named = |by: &[&str], values: &[Option<&str>]| {
            let by: Vec<String> = by.iter().map(|field| (*field).to_owned()).collect();
            let values: Vec<Option<Box<str>>> =
                values.iter().map(|value| value.map(Box::from)).collect();
            requests(&by, &values, "RDMA_REQ_NEW")
        };
        assert_eq!(named(&[], &[]), "RDMA_REQ");
        assert_eq!(
            named(&["owner.subnqn"], &[Some("nqn.2016-06.io.spdk:cnode1")]),
            "cnode1 (RDMA_REQ)"
        );
        assert_eq!(
            named(&["owner.subnqn"], &[None]),
            "requests without a subsystem (RDMA_REQ)"
        );
        assert_eq!(named(&["lcore"], &[Some("1")]), "RDMA_REQ of lcore 1");
        assert_eq!(
            named(&["lcore", "owner.subnqn"], &[Some("1"), None]),
            "RDMA_REQ of lcore 1, no subsystem"
        );
        assert_eq!((kind("START"), kind("BDEV_IO_START")), ("START", "BDEV_IO"));
    }
}
