//! Usual lengths, learnt while nothing is slow: samples of the past are read as captures are, in
//! memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use capture::{CaptureSummary, EventsWriter, Meta, Reader, RingSlice, RingsWriter};
use scene::BootNanos;
use trace_source::FileSource;

use super::kernel::EventSlice;

/// Time between the first two samples; it doubles each time, up to [`MAX_INTERVAL`].
const INITIAL_INTERVAL: Duration = Duration::from_millis(250);
/// Longest time between two samples.
const MAX_INTERVAL: Duration = Duration::from_secs(8);
/// Bytes of slots that a sample should have: some thousand requests.
const SAMPLE_BYTES: u64 = 512 << 10;
/// Maximum length of a sample, in nanoseconds.
const MAX_SAMPLE_NS: u64 = 2_000_000_000;
/// Minimum length of a sample, in nanoseconds: a shorter one would have no complete request.
const MIN_SAMPLE_NS: u64 = 5_000_000;

/// Schedule of the samples.
pub(crate) struct Sampling {
    last: Instant,
    pause: Duration,
}

/// Sample of the past.
pub(crate) struct Sample {
    pub(crate) rings: RingSlice,
    pub(crate) events: EventSlice,
    pub(crate) meta: Meta,
    pub(crate) from: BootNanos,
    /// Time up to which all of both has come.
    pub(crate) until: BootNanos,
}

impl Sampling {
    pub(crate) fn new() -> Self {
        Self {
            last: Instant::now(),
            pause: INITIAL_INTERVAL,
        }
    }

    /// Returns true if it is time for a sample, and schedules the next one.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_due = self.last.elapsed() >= self.pause;
        if is_due {
            (self.last, self.pause) = (Instant::now(), (2 * self.pause).min(MAX_INTERVAL));
        }
        is_due
    }

    /// Returns the begin of a sample up to `until`, if the past since `since` has that number of
    /// bytes.
    pub(crate) fn from(until: BootNanos, since: BootNanos, bytes: u64) -> BootNanos {
        let covered = until.0.saturating_sub(since.0);
        let wanted = u128::from(covered) * u128::from(SAMPLE_BYTES) / u128::from(bytes.max(1));
        let span = u64::try_from(wanted)
            .unwrap_or(u64::MAX)
            .clamp(MIN_SAMPLE_NS, MAX_SAMPLE_NS);
        BootNanos(until.0.saturating_sub(span)).max(since)
    }
}

impl Sample {
    /// Reads the sample as the capture that it would be on a disk.
    pub(crate) fn read(self, source: &FileSource) -> anyhow::Result<Reader> {
        let Self {
            rings,
            events,
            mut meta,
            from,
            until,
        } = self;
        let mut stream = RingsWriter::begin(Vec::new())?;
        rings.write(source, &mut stream)?;
        let rings = stream.finish()?;
        let mut stream = EventsWriter::begin(Vec::new())?;
        let written = events.write(from, &mut stream)?;
        let at = capture::Timestamp {
            boot_nanos: until.0,
            ..capture::Timestamp::default()
        };
        meta.end = Some(CaptureSummary {
            at,
            events: written.events,
            events_until_boot_nanos: Some(until.0),
            ..CaptureSummary::default()
        });
        let meta = meta.to_json()?.into_bytes();
        Ok(Reader::open(
            &meta,
            Some(Arc::new(rings)),
            Some(Arc::new(stream.finish()?)),
        )?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_enough_and_is_no_longer_than_the_past() {
        let ms = |ms: u64| BootNanos(ms * 1_000_000);
        // 8 MiB in 250 ms: 512 KiB are a sixteenth of that.
        assert_eq!(
            Sampling::from(ms(1_000), ms(750), 8 << 20),
            BootNanos(1_000_000_000 - 250_000_000 / 16)
        );
        assert_eq!(Sampling::from(ms(1_000), ms(999), 8 << 20), ms(999));
        assert_eq!(Sampling::from(ms(10_000), ms(1), 1_000), ms(8_000));
        assert_eq!(Sampling::from(ms(1_000), ms(0), 0), ms(0));
    }
}
