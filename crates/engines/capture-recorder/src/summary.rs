//! The result of a capture, in some lines on standard error.

use capture::{CaptureSummary, Meta, SocketSummary, clock, join};
use observer::Observer;
use screen::{counted, size};
use socket_requests::Totals;
use text::printable::path as printable;
use trace_source::Pressure;

use super::facts;
use super::folder::Folder;
use super::stored::Marks;

/// Result of a capture.
pub(crate) struct Result {
    pub(crate) end: CaptureSummary,
    pub(crate) pressure: Pressure,
    /// Part of the trace that has reached its file.
    pub(crate) marks: Marks,
}

/// Reports the result.
pub(crate) fn report(
    why: &str,
    meta: &Meta,
    pressure: &Pressure,
    folder: &Folder,
    observer: &Observer,
) {
    let Some(end) = &meta.end else { return };
    observer.note(&format!(
        "{why}: {}; {} in {}",
        parts(meta, end).join("; "),
        size(end.bytes),
        printable(folder.path())
    ));
    if let Some(seen) = &end.sockets {
        report_unseen(seen, observer);
    } else if let Some(clock) = clock(end) {
        observer.note(&format!(
            "trace and kernel timestamps agree {clock}; the order of closer events is unknown"
        ));
    }
    report_missing(end, pressure, observer);
}

/// Counts the parts of the capture.
fn parts(meta: &Meta, end: &CaptureSummary) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(seen) = &end.sockets {
        parts.push(format!(
            "{} on {}",
            counted(seen.requests, "request"),
            counted(seen.connections, "connection")
        ));
    } else if meta.captured.trace {
        parts.push(records(end.records, end.slots_lost));
    }
    if meta.captured.kernel {
        let lost = if end.events_lost == 0 {
            "none".to_owned()
        } else {
            end.events_lost.to_string()
        };
        parts.push(format!(
            "{} of the kernel, {lost} lost",
            counted(end.events, "event")
        ));
    }
    if meta.captured.objects {
        parts.push(counted(end.object_lines, "line") + " about objects");
    }
    parts
}

/// Reports what is missing or uncertain.
fn report_missing(end: &CaptureSummary, pressure: &Pressure, observer: &Observer) {
    if let Some(join) = join(end) {
        observer.note(&format!(
            "at probes, the kernel's timestamp is later than the probe's: {join}"
        ));
    }
    if end.slots_lost > 0 {
        observer.note(&losses(end, pressure));
    }
    if end.events_until_boot_nanos.is_some() {
        observer.note(
            "there was no room for the kernel's last events: what threads did then is unknown",
        );
    }
    if end.events_late > 0 {
        let events = counted(end.events_late, "event");
        observer.note(&format!(
            "{events} of the kernel arrived out of order: readers sort by time"
        ));
    }
    if end.events_lost > 0 {
        observer.note(
            "kernel events were lost because the ring buffer was full: --buffer makes it larger",
        );
    }
}

/// Reports what is missing of the requests that a recording of sockets has seen.
pub fn report_sockets(seen: Totals, observer: &Observer) {
    report_unseen(&facts::socket_totals(seen), observer);
}

fn report_unseen(seen: &SocketSummary, observer: &Observer) {
    if seen.requests == 0 {
        let outgoing = match seen.connections_outgoing {
            0 => String::new(),
            count => format!(", but it is a client on {}", counted(count, "connection")),
        };
        observer.note(&format!(
            "the process received no request at TCP or Unix sockets{outgoing}: a request that \
             another process receives is seen there"
        ));
    }
    if seen.events_lost > 0 {
        let events = counted(seen.events_lost, "event");
        observer.note(&format!(
            "{events} of sockets were lost because the ring buffer was full: requests are missing, \
             or seem to end early"
        ));
    }
    if seen.connections_forgotten > 0 {
        let connections = counted(seen.connections_forgotten, "connection");
        observer.note(&format!(
            "{connections} gave way to others, since only 8191 are followed at a time: their last \
             requests may be cut"
        ));
    }
}

/// Formats counts, such as `936121 records, none lost`.
pub(crate) fn records(records: u64, slots_lost: u64) -> String {
    let lost = if slots_lost == 0 {
        "none".to_owned()
    } else {
        counted(slots_lost, "slot")
    };
    format!("{}, {lost} lost", counted(records, "record"))
}

fn losses(end: &CaptureSummary, pressure: &Pressure) -> String {
    if pressure.lost_to_output * 2 > end.slots_lost {
        return "slots were lost because the disk is slower than the trace: write to a faster one \
                with -o, or to /dev/shm"
            .to_owned();
    }
    format!(
        "slots were lost because dptrace read the rings too late, up to {:.1} ms apart: use larger \
         rings (start the application with a larger --num-trace-entries), or keep a CPU free for \
         dptrace",
        pressure.longest.as_secs_f64() * 1e3
    )
}
