//! Conversion of a trace's or a capture's own times to UTC.

use std::path::Path;
use std::time::UNIX_EPOCH;

use anyhow::Context as _;
use errors::usage;
use observer::Observer;
use scene::BootNanos;
use spdk_trace::{Ticks, Trace};
use text::printable::{self, path as printable};
use text::utc;
use timeline::source::{Source, Ticker};

/// Converts times to UTC.
pub(crate) struct Times {
    /// Nanoseconds from 1970 to the origin of the source's times.
    offset: i64,
    /// Start of a capture, or time of the last record of a trace file, in nanoseconds since 1970.
    mark: i64,
}

impl Times {
    /// Finds the offset of a source. A capture has noted its start. A trace file has no such note:
    /// its last record counts as written at `at`, or else at the file's last change.
    pub(crate) fn for_source(
        source: &Source,
        path: &Path,
        at: Option<i64>,
        observer: &Observer,
    ) -> anyhow::Result<Self> {
        let is_measured = matches!(source.ticker, Ticker::Measured(_)) || source.trace.is_none();
        if let Some(meta) = source.meta.as_ref().filter(|_| is_measured && at.is_none()) {
            let begin = utc::read(&meta.begin.utc)
                .map_err(usage)
                .context("when the capture began")?;
            return Ok(Self {
                offset: begin.wrapping_sub(meta.begin.boot_nanos.cast_signed()),
                mark: begin,
            });
        }
        let mark = match at {
            Some(at) => at,
            None => changed(source, path, observer)?,
        };
        let last = source
            .trace
            .as_ref()
            .map_or(BootNanos(0), |trace| source.ticker.at(last(trace)));
        Ok(Self {
            offset: mark.wrapping_sub(last.0.cast_signed()),
            mark,
        })
    }

    /// Returns a time in nanoseconds since 1970.
    #[inline]
    pub(crate) fn utc(&self, at: BootNanos) -> i64 {
        self.offset.wrapping_add(at.0.cast_signed())
    }

    /// Returns a name of a trace or capture that is unique among all exports of one host: its file
    /// name with a time.
    pub(crate) fn name(&self, path: &Path) -> String {
        let name = path
            .canonicalize()
            .ok()
            .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        let name = name.unwrap_or_else(|| "trace".to_owned());
        format!(
            "{}-{}",
            printable::text(name.as_bytes()),
            utc::moment(self.mark.into()).strftime("%Y%m%dT%H%M%S.%6fZ")
        )
    }
}

/// Returns the time of a trace file's last change; for a capture without a joint clock, the time of
/// its end.
fn changed(source: &Source, path: &Path, observer: &Observer) -> anyhow::Result<i64> {
    if let Some(meta) = &source.meta {
        let end = meta.end.as_ref().map_or(&meta.begin, |end| &end.at);
        return utc::read(&end.utc)
            .map_err(usage)
            .context("when the capture ended");
    }
    let failed = || format!("when {} was last changed", printable(path));
    let changed = path
        .metadata()
        .and_then(|about| about.modified())
        .with_context(failed)?;
    let nanos = changed.duration_since(UNIX_EPOCH).ok();
    let nanos = nanos
        .and_then(|since| i64::try_from(since.as_nanos()).ok())
        .unwrap_or_default();
    observer.note(&format!(
        "a trace file has no date: its last record is taken to be from when the file was last \
         changed, {}; --at TIME sets another time",
        utc::text(nanos.into())
    ));
    Ok(nanos)
}

/// Returns the time of the last record.
fn last(trace: &Trace) -> Ticks {
    if let Trace::Raw(raw) = trace {
        return raw
            .rings()
            .filter_map(|ring| ring.span)
            .map(|(_, last)| last)
            .max()
            .unwrap_or_default();
    }
    let mut last = Ticks(0);
    trace.for_each(|record| {
        last = last.max(record.tsc);
        std::ops::ControlFlow::Continue(())
    });
    last
}
