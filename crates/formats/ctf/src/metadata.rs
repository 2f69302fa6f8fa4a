//! Contents of a folder's `metadata`.

use std::collections::HashMap;
use std::fmt;

use text::printable;

use crate::layout::Layout;
use crate::parser::Parser;

/// The description of a trace.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    /// Properties of the writer: `dpdk_version`, `tracer_name`.
    pub env: Vec<(String, String)>,
    /// Clock of the events.
    pub clock: Clock,
    pub(crate) is_big_endian: bool,
    pub(crate) uuid: Option<[u8; 16]>,
    /// Layout of the start of a stream: the magic number, and the trace's UUID.
    pub(crate) packet_header: Layout,
    /// Layout after that: the CPU and the thread.
    pub(crate) packet_context: Layout,
    /// Layout before each event: its time and kind.
    pub(crate) event_header: Layout,
    pub(crate) kinds: HashMap<u64, EventKind>,
}

/// A kind of event: a tracepoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventKind {
    /// Name such as `lib.ethdev.rx.burst`.
    pub name: String,
    /// Layout of its fields.
    pub fields: Layout,
}

/// Conversion of ticks to times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Ticks per second; never 0 in a parsed description.
    pub rate: u64,
    /// Time at tick 0: whole seconds since 1970 (UTC).
    pub offset_seconds: i64,
    /// Time at tick 0 beyond these seconds, in ticks.
    pub offset_ticks: i64,
}

impl Clock {
    /// Converts ticks to nanoseconds since 1970 (UTC). The offset and the ticks are each rounded
    /// down, in floating point, as in babeltrace2: a listing agrees with its own to the nanosecond,
    /// and is off by one at most.
    pub fn nanos(self, ticks: u64) -> i64 {
        const SECOND: i64 = 1_000_000_000;
        let rate = self.rate.max(1);
        let nanos = |ticks: u64| {
            if rate == SECOND as u64 {
                ticks
            } else {
                (1e9 * ticks as f64 / rate as f64) as u64
            }
        };
        let whole = i128::from(self.offset_ticks).div_euclid(rate.into());
        let part = i128::from(self.offset_ticks).rem_euclid(rate.into());
        let seconds = i128::from(self.offset_seconds) + whole;
        // SANITY: the part is below the rate.
        let sum = seconds * i128::from(SECOND)
            + i128::from(nanos(part as u64))
            + i128::from(nanos(ticks));
        i64::try_from(sum).unwrap_or(if sum < 0 { i64::MIN } else { i64::MAX })
    }
}

impl Metadata {
    /// Parses a description. An error has the first line that DPDK would not write.
    pub fn parse(bytes: &[u8]) -> Result<Self, MetadataError> {
        if bytes.starts_with(&[0x75, 0xd1, 0x1d, 0x57])
            || bytes.starts_with(&[0x57, 0x1d, 0xd1, 0x75])
        {
            // The magic number of a description in packets (CTF 1.8.3, section 7.1).
            return Err(MetadataError::new(
                1,
                "a description in packets, as LTTng writes it; this reads what DPDK writes",
            ));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = bytes[..error.valid_up_to()]
                .split(|byte| *byte == b'\n')
                .count();
            MetadataError::new(line, "that part is not text")
        })?;
        let metadata = Parser::new(text)?.metadata()?;
        metadata
            .check()
            .map_err(|what| MetadataError::new(text.lines().count(), what))?;
        Ok(metadata)
    }

    /// Checks that the description has everything that events need.
    fn check(&self) -> Result<(), &'static str> {
        if self.clock.rate == 0 {
            return Err("up to there it has no clock with a rate (freq)");
        }
        if self.packet_header.integer("magic").is_none() {
            return Err("up to there it has no packet.header with a magic number");
        }
        if self.event_header.integer("id").is_none() || self.event_header.clock().is_none() {
            return Err("up to there it has no event.header with an id and a time of the clock");
        }
        Ok(())
    }

    /// Returns the described kinds of events, by name.
    pub fn kinds(&self) -> Vec<&EventKind> {
        let mut kinds: Vec<&EventKind> = self.kinds.values().collect();
        kinds.sort_by(|a, b| a.name.cmp(&b.name));
        kinds
    }
}

/// Reason for which a text is not a valid description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataError {
    line: usize,
    what: String,
}

impl MetadataError {
    pub(crate) fn new(line: usize, what: impl Into<String>) -> Self {
        Self {
            line,
            what: what.into(),
        }
    }

    /// Returns the line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }
}

impl fmt::Display for MetadataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}: {}",
            self.line,
            printable::text(self.what.as_bytes())
        )
    }
}

impl std::error::Error for MetadataError {}
