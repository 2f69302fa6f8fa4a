//! All slow stretches of a thread in one sentence.

use ordering::Order as _;
use scene::{Interrupt, Tid};
use screen::counted;

use crate::cause::{Cause, ExplainedStretch, Reason};

/// Limit on the culprits named for one reason.
const MAX_NAMED_CULPRITS: usize = 4;

/// Names for numbers; the sentence uses them verbatim.
pub trait Names {
    /// Returns the name of a thread.
    fn thread(&self, tid: Tid) -> String;
    /// Returns the name of a system call.
    fn call(&self, number: u32) -> String;
    /// Returns the name of an interrupt.
    fn interrupt(&self, interrupt: Interrupt) -> String;
}

/// Formats the sentence, such as `pmd-c01: 34 slow milliseconds: 31 waited for the CPU (bash 28,
/// ksoftirqd/1 3), 2 stopped, 1 its own work (212 upcalls)`.
pub fn sentence(thread: &str, slow: &[ExplainedStretch], names: &impl Names) -> String {
    if slow.is_empty() {
        return format!("{thread}: no slow milliseconds");
    }
    let mut reasons: Vec<(Reason, usize)> = Vec::new();
    for explained in slow {
        let reason = explained.cause.reason();
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => reasons.push((reason, 1)),
        }
    }
    reasons.order_by_key(|&(reason, count)| (std::cmp::Reverse(count), reason));
    let describe = |&(reason, count): &(Reason, usize)| {
        let of: Vec<&ExplainedStretch> = slow
            .iter()
            .filter(|explained| explained.cause.reason() == reason)
            .collect();
        format!("{count} {}", described(reason, &of, names))
    };
    let parts: Vec<String> = reasons.iter().map(describe).collect();
    format!(
        "{thread}: {}: {}",
        counted(slow.len() as u64, "slow millisecond"),
        parts.join(", ")
    )
}

/// Returns the number of stretches that each thread, call or interrupt caused, by name, largest
/// first.
pub fn shares_of<'a>(
    slow: impl Iterator<Item = &'a ExplainedStretch>,
    names: &impl Names,
) -> Vec<(String, usize)> {
    let mut all: Vec<(String, usize)> = Vec::new();
    for explained in slow {
        let name = match explained.cause {
            Cause::Waited(tid) => names.thread(tid),
            Cause::Interrupted(interrupt) => names.interrupt(interrupt),
            Cause::Blocked(Some(number)) | Cause::InCall(number) => names.call(number),
            Cause::Blocked(None) => "outside of system calls".to_owned(),
            Cause::Stopped | Cause::Unknown | Cause::OwnWork => continue,
        };
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => all.push((name, 1)),
        }
    }
    all.order_by_key(|(_, count)| std::cmp::Reverse(*count));
    all
}

fn described(reason: Reason, of: &[&ExplainedStretch], names: &impl Names) -> String {
    let word = match reason {
        Reason::Waited => "waited for the CPU",
        Reason::Stopped => return "stopped".to_owned(),
        Reason::Interrupted => "interrupted",
        Reason::Blocked => "blocked",
        Reason::InCall => "in system calls",
        Reason::Unknown => return "unknown (events of the kernel are missing)".to_owned(),
        Reason::OwnWork => return format!("its own work ({})", own_work(of)),
    };
    let culprits = shares_of(of.iter().copied(), names);
    let mut shown: Vec<String> = culprits
        .iter()
        .take(MAX_NAMED_CULPRITS)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let others: usize = culprits
        .iter()
        .skip(MAX_NAMED_CULPRITS)
        .map(|(_, count)| count)
        .sum();
    if others > 0 {
        shown.push(format!("others {others}"));
    }
    format!("{word} ({})", shown.join(", "))
}

/// Describes the thread's own work by Open vSwitch's counters.
fn own_work(of: &[&ExplainedStretch]) -> String {
    let upcalls: u64 = of
        .iter()
        .map(|explained| explained.stretch.row.upcalls)
        .fold(0, u64::saturating_add);
    if upcalls > 0 {
        return counted(upcalls, "upcall");
    }
    let queue = of
        .iter()
        .map(|explained| explained.stretch.row.vhost_queue)
        .max()
        .unwrap_or(0);
    if queue > 0 {
        return format!("vhost queue up to {queue}");
    }
    let packets: u64 = of
        .iter()
        .map(|explained| explained.stretch.row.packets)
        .fold(0, u64::saturating_add);
    format!("{}, no upcalls", counted(packets, "packet"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Stretch;
    use crate::text::Millisecond;

    struct Numbers;

    impl Names for Numbers {
        fn thread(&self, tid: Tid) -> String {
            format!("t{}", tid.0)
        }
        fn call(&self, number: u32) -> String {
            format!("c{number}")
        }
        fn interrupt(&self, _: Interrupt) -> String {
            "tick".to_owned()
        }
    }

    fn explained_stretch(cause: Cause, upcalls: u64) -> ExplainedStretch {
        let row = Millisecond {
            upcalls,
            packets: 32,
            ..Millisecond::default()
        };
        ExplainedStretch {
            stretch: Stretch {
                row,
                ..Stretch::default()
            },
            cause,
            shares: Vec::new(),
        }
    }

    #[test]
    fn reasons_are_counted_and_named() {
        let mut slow = vec![
            explained_stretch(Cause::OwnWork, 200),
            explained_stretch(Cause::OwnWork, 12),
            explained_stretch(Cause::Stopped, 0),
        ];
        slow.extend((0..3).map(|_| explained_stretch(Cause::Waited(Tid(7)), 0)));
        slow.push(explained_stretch(Cause::Waited(Tid(8)), 0));
        assert_eq!(
            sentence("pmd-c01", &slow, &Numbers),
            "pmd-c01: 7 slow milliseconds: 4 waited for the CPU (t7 3, t8 1), 2 its own work (212 upcalls), 1 stopped"
        );
        assert_eq!(
            sentence("pmd-c01", &[], &Numbers),
            "pmd-c01: no slow milliseconds"
        );
        let one = sentence("p", &[explained_stretch(Cause::OwnWork, 0)], &Numbers);
        assert_eq!(
            one,
            "p: 1 slow millisecond: 1 its own work (32 packets, no upcalls)"
        );
    }

    #[test]
    fn only_some_of_many_culprits_are_named() {
        let slow: Vec<ExplainedStretch> = (0..6)
            .map(|tid| explained_stretch(Cause::Waited(Tid(tid)), 0))
            .collect();
        let sentence = sentence("p", &slow, &Numbers);
        assert!(
            sentence.ends_with("(t0 1, t1 1, t2 1, t3 1, others 2)"),
            "{sentence}"
        );
    }
}
