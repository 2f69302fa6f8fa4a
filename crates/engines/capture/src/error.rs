//! Why a capture can't be read at all.

use scene::ClockError;

use crate::meta::{FORMAT, MAX_META};

/// Why a capture can't be read, or a part of it. What is cut short or damaged behind its beginning is no error: it is read as far
/// as it goes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// `meta.json` can't be read.
    #[error("reading meta.json failed")]
    ReadMeta {
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// `meta.json` is larger than any.
    #[error("meta.json has {len} bytes, and that of a capture has {MAX_META} at most")]
    LargeMeta {
        /// Its length.
        len: u64,
    },
    /// `meta.json` is not what it should be.
    #[error("meta.json is not that of a capture")]
    Meta(#[from] serde_json::Error),
    /// A later format.
    #[error("the capture has the format {format}, and this dptrace reads up to {FORMAT}: use a newer one")]
    Format {
        /// As it is stated.
        format: u32,
    },
    /// A part that is no such part.
    #[error("{file} can't be read: {why}")]
    Part {
        /// Its file.
        file: &'static str,
        /// What is wrong with it, and where.
        why: String,
    },
    /// The capture has no such part.
    #[error("the capture has no {file}{}", why.as_deref().map(|why| format!(": {why}")).unwrap_or_default())]
    NoPart {
        /// The file that is missing.
        file: &'static str,
        /// Why it was not captured, if that is known.
        why: Option<String>,
    },
    /// The header of the trace file is not what it should be.
    #[error("trace.rings has no trace")]
    Trace(#[from] spdk_trace::Error),
    /// Ticks and nanoseconds can't be compared.
    #[error("the readings of both clocks in trace.rings make no clock")]
    Clock(#[from] ClockError),
}
