//! Notes below a report: what was left out, and why.

use requests::Excluded;
use scene::Silence;
use screen::counted;
use text::printable;
use timeline::{missing, words};

use super::names::Names;
use super::next::NextStep;
use super::slowest::ListCommand;
use super::stages::{Latencies, MAX_RECORDS_PER_OBJECT};

/// Returns the notes.
pub fn remarks(latencies: &Latencies, names: &Names<'_>) -> Vec<String> {
    let mut remarks = missing::object_notes(latencies.left_out_objects, MAX_RECORDS_PER_OBJECT);
    remarks.extend(missing::group_note(latencies.in_no_table));
    let of_io = latencies.unanswered_on_io;
    if of_io > 0 {
        remarks.push(format!(
            "{} of I/O queues went from EXECUTING to COMPLETED without an answer: they were given \
             up, for example when the connection ended",
            counted(of_io, "request")
        ));
    }
    remarks.extend(left_out(latencies, names));
    remarks.extend(numbered(latencies));
    if let (ListCommand::Live(_, path), false) = (&names.show, latencies.slowest.is_empty()) {
        let copy = path.file_name().unwrap_or_default();
        remarks.push(format!(
            "the trace is being written, and new records overwrite old ones: to keep these, copy \
             it first (cp {} {}), and look at the copy",
            text::shell::word(path),
            text::shell::word(&std::path::Path::new("/tmp").join(copy))
        ));
    }
    remarks
}

/// Returns a note that a busy thread wrote nothing for a while: it may have been away.
pub fn silent(silence: &Silence, next: &NextStep) -> String {
    let Silence {
        lcore,
        thread,
        count,
        sum,
        longest,
        mean,
    } = silence;
    let who = if thread.is_empty() {
        format!("lcore {lcore}")
    } else {
        printable::text(thread.as_bytes()).into_owned()
    };
    let (lasted, mean) = (words::lasted(*count, *sum, *longest), screen::time(*mean));
    let shows = next
        .command()
        .map_or_else(String::new, |command| format!("; to find out: {command}"));
    format!(
        "{who} wrote no record {lasted}, but one every {mean} otherwise: if it was away, {}{shows}",
        words::UNREAD
    )
}

/// Returns a note on the number after an address, if there is one.
fn numbered(latencies: &Latencies) -> Option<String> {
    let groups = latencies
        .subjects
        .iter()
        .flat_map(|(subject, _)| &subject.group)
        .flatten();
    let owners = latencies
        .slowest
        .iter()
        .filter_map(|life| Some(&life.owner.as_ref()?.1));
    let mut found = groups
        .chain(owners)
        .filter(|text| requests::is_numbered(text));
    let first = found.next()?;
    Some(format!(
        "{first}: several connections had this address, one after another; the number after # \
         distinguishes them. A recording names them: run dptrace record -p PID while the trace is \
         written, then use -b RECORDING"
    ))
}

/// Returns a note that the slowest object of all is not among the slowest.
fn left_out(latencies: &Latencies, names: &Names<'_>) -> Option<String> {
    let (longest, count) = latencies.left_out.as_ref()?;
    let (first, last) = longest.span();
    let took = screen::time(names.nanos(first, last));
    let which = match longest.excluded? {
        Excluded::Admin => "of admin queues, on which requests for async events wait by design,",
        Excluded::Unanswered => {
            "without an answer (async events of admin queues, which wait by design, or given up)"
        }
    };
    let (requests, are) = (
        counted(*count, "request"),
        if *count == 1 { "is" } else { "are" },
    );
    Some(format!(
        "{requests} {which} {are} not among the slowest; the longest took {took}: {}",
        names.show.command(longest)
    ))
}
