//! Records as rows.

use ::records::arg_object;
use observer::Observer;
use scene::BootNanos;
use spdk_trace::{ObjectName, Poller, RawTrace, Record, TickRate};
use tables::rows;

use super::files::{Destination, Files};
use super::times::Times;

/// Number of records between two checks for a signal.
const SIGNAL_CHECK_RECORDS: u32 = 4_096;

/// Writes records.
pub(crate) struct Records {
    pub(crate) files: Files,
    hostname: String,
    capture: String,
    pid: Option<i64>,
    args: Vec<u8>,
    /// Names of objects.
    names: String,
}

impl Records {
    pub(crate) fn new(files: Files, place: &Destination, pid: Option<i64>) -> Self {
        let (hostname, capture) = (place.host.clone(), place.capture.clone());
        Self {
            files,
            hostname,
            capture,
            pid,
            args: Vec::new(),
            names: String::new(),
        }
    }

    /// Writes all records of a trace, whose ticks have this rate.
    pub(crate) fn write_all(
        mut self,
        trace: &RawTrace,
        rate: TickRate,
        times: &Times,
        observer: &Observer,
    ) -> anyhow::Result<Self> {
        let (mut result, mut until_step) = (Ok(()), SIGNAL_CHECK_RECORDS);
        trace.for_each(|record| {
            until_step -= 1;
            if until_step == 0 {
                until_step = SIGNAL_CHECK_RECORDS;
                observer.step();
            }
            result = self.write(record, times.utc(BootNanos(rate.nanos(record.tsc).0)));
            if result.is_ok() {
                std::ops::ControlFlow::Continue(())
            } else {
                std::ops::ControlFlow::Break(())
            }
        });
        result.map(|()| self)
    }

    /// Writes a record at a time in nanoseconds since 1970.
    pub(crate) fn write(&mut self, record: &Record<'_>, time_ns: i64) -> anyhow::Result<()> {
        let (object, related) = (
            record.object.name(),
            record.related.map(|related| related.name),
        );
        let names = &mut self.names;
        names.clear();
        let mut add = |name: Option<ObjectName>| {
            use std::fmt::Write as _;
            let from = names.len();
            name.map(|name| {
                let _ = write!(names, "{name}");
                from..names.len()
            })
        };
        let (object, related) = (add(object), add(related));
        self.args.clear();
        if !record.tpoint.args.is_empty() {
            arg_object(&mut self.args, record);
        }
        let args = std::str::from_utf8(&self.args)
            .ok()
            .filter(|args| !args.is_empty());
        let poller = if record.owner.is_none() {
            record.poller.map(poller)
        } else {
            None
        };
        self.files.row(
            time_ns,
            &rows::TraceRecord {
                hostname: &self.hostname,
                capture: &self.capture,
                time_ns,
                ticks: record.tsc.0.cast_signed(),
                pid: self.pid,
                lcore: record.lcore.0.into(),
                thread: Some(record.thread_name).filter(|name| !name.is_empty()),
                tpoint: &record.tpoint.name,
                object: object.map(|range| &self.names[range]),
                object_id: record.object.id().map(u64::cast_signed),
                related: related.map(|range| &self.names[range]),
                size: record.size.into(),
                owner: record.owner.or(poller.as_deref()),
                args,
            },
        )
    }
}

fn poller(poller: Poller<'_>) -> String {
    match poller {
        Poller::Id(prefix, number) => format!("{prefix}{number:02}"),
        Poller::Text(text) => text.to_owned(),
    }
}
