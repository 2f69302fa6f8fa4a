//! Notes on missing data.

use observer::Observer;
use requests::Excluded;
use scene::OmittedCounts;
use screen::{counted, time};

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
            "{events} of the kernel were lost: these times are unknown and blamed on nobody"
        ));
    }
    let late = source
        .kernel
        .as_ref()
        .map_or(0, |kernel| kernel.events.late());
    if late > 0 {
        let events = counted(late, "event");
        notes.push(format!(
            "{events} of the kernel were written out of order, and are sorted"
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
        let known = time(passed.after_start(end));
        notes.push(format!(
            "the kernel's events end {known} after the start: later times are unknown and \
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

/// Returns notes on requests that are in no figure: from before the recording, waiting by design, or
/// of groups for which there is no room. They open with that, since nothing is lost.
pub fn request_notes(passed: &PassStats, first: &FirstPass<'_>) -> Vec<String> {
    let whole = first.times.iter().filter(|(subject, _)| !subject.is_part);
    let measured = whole.map(|(_, times)| times.whole.count()).sum::<u64>();
    let all = measured + first.excluded + first.left_out;
    let older = time(passed.start.0.saturating_sub(passed.begin.0));
    let early = (first.early > 0).then(|| {
        format!(
            "not in this report: {} from before the recording began, which the trace's rings still \
             had; the oldest record is {older} older",
            counted(first.early, "request")
        )
    });
    let excluded = format!(
        "{}, or without an answer; dptrace latency --summary of the same file has them",
        Excluded::Admin.in_title()
    );
    let excluded =
        of_all(first.excluded, all).map(|them| format!("not in this report: {them} {excluded}"));
    let notes = [early, excluded, without_group(first.left_out, all)];
    notes.into_iter().flatten().collect()
}

/// Returns a note on the number of requests that are in no table.
pub fn group_note(left_out: u64) -> Option<String> {
    without_group(left_out, 0)
}

/// Returns a note on the number of requests for whose group there is no room.
fn without_group(count: u64, all: u64) -> Option<String> {
    let are = if count == 1 { "is" } else { "are" };
    of_all(count, all).map(|requests| {
        format!(
            "{requests} {are} in no table, because there are too many groups: use --by with a field \
             that has fewer values"
        )
    })
}

/// Formats a number of requests, with their share if it is at least a hundredth. `all` is 0 if the
/// total is unknown. `None` if there are none.
fn of_all(count: u64, all: u64) -> Option<String> {
    let requests = if all > 0 && count.saturating_mul(100) >= all {
        let share = screen::percent(screen::share(count, all), 0);
        format!("{count} of {} ({share})", counted(all, "request"))
    } else {
        counted(count, "request")
    };
    (count > 0).then_some(requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded() {
        let text = |count, all| of_all(count, all);
        assert_eq!(text(20, 59).as_deref(), Some("20 of 59 requests (34%)"));
        assert_eq!(
            text(1, 1_000).as_deref(),
            Some("1 request"),
            "a small share is not shown"
        );
        assert_eq!(
            text(999, 1_000).as_deref(),
            Some("999 of 1000 requests (>99%)")
        );
        assert_eq!(text(0, 59), None);
    }
}
