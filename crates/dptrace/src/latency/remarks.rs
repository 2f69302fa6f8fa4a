//! What is to be said below a report: which requests wait by design, and how to do without them.

use screen::counted;

use super::apart::Apart;
use super::names::Names;
use super::reused;
use super::slowest::Show;
use super::stages::{Latencies, MOST_OF_OBJECT, Unanswered};
use crate::timeline::missing;

/// What the user asked for, and what can be known here.
pub(super) struct Asked {
    /// Who is slow: a summary, or the slowest requests.
    pub(super) who: bool,
    /// Records say of which queue they are.
    pub(super) knows_queues: bool,
}

/// The notes.
pub(super) fn remarks(latencies: &Latencies, names: &Names<'_>, asked: &Asked) -> Vec<String> {
    let mut remarks = missing::of_objects(latencies.left_out_objects, MOST_OF_OBJECT);
    remarks.extend(missing::of_groups(latencies.in_no_table));
    let Unanswered { all, of_io } = latencies.unanswered;
    if asked.who && of_io > 0 {
        remarks.push(format!(
            "{} of I/O queues went from EXECUTING to COMPLETED without an answer: given up, for example at the end of the \
             connection",
            counted(of_io, "request")
        ));
    }
    if !asked.who && all > 0 {
        remarks.push(format!("{} {}", unanswered(all), without_admin(asked.knows_queues)));
    }
    remarks.extend(left_out(latencies, names));
    remarks.extend(numbered(latencies));
    if let (Show::Live(_, path), false) = (&names.show, latencies.slowest.is_empty()) {
        let copy = path.file_name().unwrap_or_default();
        remarks.push(format!(
            "the trace is being written, and new records overwrite old ones: to keep these, copy it first (cp {} {}), and look \
             at the copy",
            crate::shell::word(path),
            crate::shell::word(&std::path::Path::new("/tmp").join(copy))
        ));
    }
    remarks
}

fn unanswered(count: u64) -> String {
    format!(
        "{} went from EXECUTING to COMPLETED without an answer: for asynchronous events, which wait by design on admin queues, or \
         given up. --summary and --slowest keep them apart.",
        counted(count, "request")
    )
}

fn without_admin(knows_queues: bool) -> &'static str {
    if knows_queues {
        "Without admin queues: --where 'qpair.qid>0'"
    } else {
        "Without admin queues, where a recording names the connections: -b RECORDING --where 'qpair.qid>0'"
    }
}

/// What a number behind an address is.
fn numbered(latencies: &Latencies) -> Option<String> {
    let groups = latencies.subjects.iter().flat_map(|(subject, _)| &subject.group).flatten();
    let owners = latencies.slowest.iter().filter_map(|life| Some(&life.owner.as_ref()?.1));
    let mut found = groups.chain(owners).filter(|text| reused::is_numbered(text));
    let first = found.next()?;
    Some(format!(
        "{first}: this address was of several connections, one after another; # says which one it was. With a recording they have \
         names: dptrace record -p PID while the trace is written, then -b RECORDING"
    ))
}

/// That the slowest of all is not among the slowest.
fn left_out(latencies: &Latencies, names: &Names<'_>) -> Option<String> {
    let (longest, count) = latencies.left_out.as_ref()?;
    let (first, last) = longest.span();
    let took = screen::time(names.nanos(first, last));
    let which = match longest.apart()? {
        Apart::Admin => "of admin queues, on which requests for async events wait by design,",
        Apart::Unanswered => "without an answer (async events of admin queues, which wait by design, or given up)",
    };
    let (requests, are) = (counted(*count, "request"), if *count == 1 { "is" } else { "are" });
    Some(format!(
        "{requests} {which} {are} not among the slowest; the longest took {took}: {}",
        names.show.command(longest)
    ))
}
