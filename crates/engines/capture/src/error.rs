//! Errors of captures that can't be read.

use scene::ClockError;

use crate::meta::{FORMAT, MAX_META};

/// Reason why a capture or a part of it can't be read. A part that is cut or damaged after its
/// beginning is no error: it is read as far as it goes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// Unreadable `meta.json`.
    #[error("reading meta.json failed")]
    ReadMeta {
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// `meta.json` above the size limit.
    #[error("meta.json has {len} bytes, but a capture's has at most {MAX_META}")]
    LargeMeta {
        /// Size in bytes.
        len: u64,
    },
    /// Malformed `meta.json`.
    #[error("meta.json does not belong to a capture")]
    Meta(#[from] serde_json::Error),
    /// Later format.
    #[error(
        "the capture has format {format}, but this dptrace reads formats up to {FORMAT}: use a \
         newer dptrace"
    )]
    Format {
        /// Format stated in the file.
        format: u32,
    },
    /// Unusable part.
    #[error("{file} can't be read: {why}")]
    Part {
        /// File of the part.
        file: &'static str,
        /// Description of the problem, with its place.
        why: String,
    },
    /// Missing part.
    #[error("the capture has no {file}{}", why.as_deref().map(|why| format!(": {why}")).unwrap_or_default())]
    NoPart {
        /// Name of the missing file.
        file: &'static str,
        /// Reason why it was not captured, if known.
        why: Option<String>,
    },
    /// Malformed header of the trace file.
    #[error("trace.rings has no trace")]
    Trace(#[from] spdk_trace::Error),
    /// Readings of ticks and nanoseconds that make no clock.
    #[error("the clock readings in trace.rings do not define a clock")]
    Clock(#[from] ClockError),
}
