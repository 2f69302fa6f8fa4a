//! Times in UTC, of a trace's or a capture's own.

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

/// What puts times on UTC.
pub(crate) struct Times {
    /// Nanoseconds between 1970 and the beginning of the times of the source.
    offset: i64,
    /// When the capture began, or the last record of a trace file was written.
    mark: i64,
}

impl Times {
    /// A capture has noted when it began. A trace file does not say when it was: `at` is when its last record was written, or
    /// else the time of the file's last change.
    pub(crate) fn of(source: &Source, path: &Path, at: Option<i64>, observer: &Observer) -> anyhow::Result<Self> {
        let is_measured = matches!(source.ticker, Ticker::Measured(_)) || source.trace.is_none();
        if let Some(meta) = source.meta.as_ref().filter(|_| is_measured && at.is_none()) {
            let begin = utc::read(&meta.begin.utc).map_err(usage).context("when the capture began")?;
            return Ok(Self { offset: begin.wrapping_sub(meta.begin.boot_nanos.cast_signed()), mark: begin });
        }
        let mark = match at {
            Some(at) => at,
            None => changed(source, path, observer)?,
        };
        let last = source.trace.as_ref().map_or(BootNanos(0), |trace| source.ticker.at(last(trace)));
        Ok(Self { offset: mark.wrapping_sub(last.0.cast_signed()), mark })
    }

    /// In nanoseconds since 1970.
    #[inline]
    pub(crate) fn utc(&self, at: BootNanos) -> i64 {
        self.offset.wrapping_add(at.0.cast_signed())
    }

    /// The name of a trace or capture among all that are ever exported of one host: that of its file with a time.
    pub(crate) fn name(&self, path: &Path) -> String {
        let name = path.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        let name = name.unwrap_or_else(|| "trace".to_owned());
        format!("{}-{}", printable::text(name.as_bytes()), utc::moment(self.mark.into()).strftime("%Y%m%dT%H%M%S.%6fZ"))
    }
}

/// When a trace file was last changed; of a capture whose clocks could not be put together, when it ended.
fn changed(source: &Source, path: &Path, observer: &Observer) -> anyhow::Result<i64> {
    if let Some(meta) = &source.meta {
        let end = meta.end.as_ref().map_or(&meta.begin, |end| &end.at);
        return utc::read(&end.utc).map_err(usage).context("when the capture ended");
    }
    let failed = || format!("when {} was last changed", printable(path));
    let changed = path.metadata().and_then(|about| about.modified()).with_context(failed)?;
    let nanos = changed.duration_since(UNIX_EPOCH).ok();
    let nanos = nanos.and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or_default();
    observer.note(&format!(
        "a trace file does not say when it was: its last record counts as written when the file was last changed, {}; \
         --at TIME names another time",
        utc::text(nanos.into())
    ));
    Ok(nanos)
}

/// The time of the last record.
fn last(trace: &Trace) -> Ticks {
    if let Trace::Raw(raw) = trace {
        return raw.rings().filter_map(|ring| ring.span).map(|(_, last)| last).max().unwrap_or_default();
    }
    let mut last = Ticks(0);
    trace.for_each(|record| {
        last = last.max(record.tsc);
        std::ops::ControlFlow::Continue(())
    });
    last
}
