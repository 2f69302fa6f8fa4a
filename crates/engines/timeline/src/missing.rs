//! Notes on missing data.

use observer::Observer;
use requests::Excluded;
use scene::OmittedCounts;
use screen::{counted, plural, time};

use super::first::FirstPass;
use super::pass::PassStats;
use super::source::Source;

/// Reports the gaps of a pass.
pub fn report(source: &Source, passed: &PassStats, observer: &Observer) {
    for missing in notes(source, passed) {
        observer.note(&missing);
    }
}

/// Returns notes on the gaps of a pass.
pub fn notes(source: &Source, passed: &PassStats) -> Vec<String> {
    let mut notes = Vec::new();
    if passed.unseen > 0 {
        let are = if passed.unseen == 1 { "is" } else { "are" };
        let records = counted(passed.unseen, "record");
        notes.push(format!(
            "{records} of objects created before the trace begins {are} not counted"
        ));
    }
    notes.extend(object_notes(passed.left_out, 4_096));
    if passed.lost > 0 {
        let events = counted(passed.lost, "event");
        notes.push(format!(
            "{events} of the kernel {} lost: these times are unknown and blamed on nobody",
            plural(passed.lost, "was", "were")
        ));
    }
    let late = source
        .kernel
        .as_ref()
        .map_or(0, |kernel| kernel.events.late());
    if late > 0 {
        let events = counted(late, "event");
        notes.push(format!(
            "{events} of the kernel {} written out of order, and {} sorted",
            plural(late, "was", "were"),
            plural(late, "is", "are")
        ));
    }
    if let Some(cut) = &passed.cut {
        notes.push(format!("the kernel's events end early: {cut}"));
    }
    if source.kernel.is_none() {
        return notes;
    }
    if passed.events == 0 {
        notes.push(
            "the kernel reported nothing about these threads: what they did is unknown".to_owned(),
        );
    } else if let Some(end) = passed.events_end {
        let known = time(passed.after_begin(end));
        notes.push(format!(
            "the kernel's events end {known} after the beginning: later times are unknown and \
             blamed on nobody"
        ));
    }
    notes
}

/// Returns notes on objects that are left out; `most` is the limit on the records kept of one
/// object.
pub fn object_notes(left_out: OmittedCounts, most: usize) -> Vec<String> {
    let OmittedCounts {
        endless,
        forgotten,
        torn,
    } = left_out;
    let left = |count: u64, which: &str, why: &str| {
        let (objects, are) = (
            counted(count, "object"),
            if count == 1 { "is" } else { "are" },
        );
        (count > 0).then(|| format!("{objects} {which} {are} left out: {why}"))
    };
    let notes = [
        left(
            torn,
            "during which records were lost",
            "the end of one and the beginning of the next may be missing",
        ),
        left(
            endless,
            &format!("with more than {most} records"),
            "requests have fewer",
        ),
        left(
            forgotten,
            "without an end",
            "more were open at once than dptrace keeps",
        ),
    ];
    notes.into_iter().flatten().collect()
}

/// Returns notes on requests that are left out: from before the kernel's events, waiting by design,
/// or of groups for which there is no room.
pub fn request_notes(source: &Source, passed: &PassStats, first: &FirstPass<'_>) -> Vec<String> {
    let whole = first.times.iter().filter(|(subject, _)| !subject.is_part);
    let counted = whole.map(|(_, times)| times.whole.count()).sum::<u64>();
    let all = counted + first.early + first.excluded + first.left_out;
    let begin = source
        .kernel
        .as_ref()
        .map(|kernel| time(passed.after_begin(kernel.start)));
    let before = begin.map(|begin| {
        format!(" from before the kernel's events begin, {begin} after the first record,")
    });
    let excluded = format!(
        "left out: {}, or without an answer; dptrace latency --summary has them",
        Excluded::Admin.in_title()
    );
    let notes = [
        before.and_then(|before| left(first.early, all, &before, "left out")),
        left(first.excluded, all, "", &excluded),
        left(first.left_out, all, "", TOO_MANY_GROUPS),
    ];
    notes.into_iter().flatten().collect()
}

/// Returns a note on the number of requests that are in no table.
pub fn group_note(left_out: u64) -> Option<String> {
    left(left_out, 0, "", TOO_MANY_GROUPS)
}

/// Reason that requests are in no table.
const TOO_MANY_GROUPS: &str = "in no table, because there are too many groups: use --by with a field that \
                       has fewer values";

/// Returns a note that requests are left out, with their share if it is at least a hundredth. `all`
/// is 0 if the total is unknown.
fn left(count: u64, all: u64, which: &str, what: &str) -> Option<String> {
    let are = if count == 1 { "is" } else { "are" };
    let requests = if all > 0 && count.saturating_mul(100) >= all {
        let share = screen::percent(screen::share(count, all), 0);
        format!("{count} of {} ({share})", counted(all, "request"))
    } else {
        counted(count, "request")
    };
    (count > 0).then(|| format!("{requests}{which} {are} {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_and_verbs_agree() {
        let said = |count, all| left(count, all, "", "left out");
        assert_eq!(
            said(20, 59).as_deref(),
            Some("20 of 59 requests (34%) are left out")
        );
        assert_eq!(
            said(1, 1_000).as_deref(),
            Some("1 request is left out"),
            "a small share is not shown"
        );
        assert_eq!(
            said(999, 1_000).as_deref(),
            Some("999 of 1000 requests (>99%) are left out")
        );
        assert_eq!(said(0, 59), None);
    }
}
