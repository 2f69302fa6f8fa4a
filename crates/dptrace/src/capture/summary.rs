//! What came of a capture, in some lines on standard error.

use ::capture::{End, Meta};
use screen::counted;

use super::folder::Folder;
use super::life::size;
use crate::failure::note;
use crate::target::printable;
use crate::trace::reader::Pressure;

/// What came of it.
pub(super) struct Result {
    pub(super) end: End,
    pub(super) pressure: Pressure,
}

/// Reports it.
pub(super) fn report(why: &str, meta: &Meta, pressure: &Pressure, folder: &Folder) {
    let Some(end) = &meta.end else { return };
    let mut parts = Vec::new();
    if meta.captured.trace {
        let lost = if end.slots_lost == 0 { "none".to_owned() } else { counted(end.slots_lost, "slot") };
        parts.push(format!("{}, {lost} lost", counted(end.records, "record")));
    }
    if meta.captured.kernel {
        let lost = if end.events_lost == 0 { "none".to_owned() } else { end.events_lost.to_string() };
        parts.push(format!("{} of the kernel, {lost} lost", counted(end.events, "event")));
    }
    if meta.captured.objects {
        parts.push(counted(end.object_lines, "line") + " about objects");
    }
    note(&format!("{why}: {}; {} in {}", parts.join("; "), size(end.bytes), printable(folder.path())));
    if let Some(join) = &end.join {
        note(&format!(
            "the clocks of trace and kernel are {} ns apart at p50, {} ns at p99, {} ns at most, at {} of probes",
            join.p50,
            join.p99,
            join.max,
            counted(join.hits, "hit")
        ));
    }
    if end.slots_lost > 0 {
        note(&losses(end, pressure));
    }
    if end.events_until_boot_nanos.is_some() {
        note("there was no room for the last events of the kernel: what threads did then is unknown");
    }
    if end.events_lost > 0 {
        note("events of the kernel were lost because the ring buffer was full: --buffer makes it larger");
    }
}

fn losses(end: &End, pressure: &Pressure) -> String {
    if pressure.lost_to_output * 2 > end.slots_lost {
        return "slots were lost because the disk is slower than the trace: write to another one with -o, or to /dev/shm".to_owned();
    }
    format!(
        "slots were lost because dptrace read the rings too late, after {:.1} ms at most: use larger rings (start the application \
         with a larger --num-trace-entries), or keep a CPU free for dptrace",
        pressure.longest.as_secs_f64() * 1e3
    )
}
