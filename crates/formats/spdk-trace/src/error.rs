//! Errors after which nothing can be read. Lesser damage is a [`crate::Problem`].

use crate::units::FileOffset;

/// Why a trace can't be read at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("reading {what} at {at} failed")]
    Read {
        /// What was being read.
        what: &'static str,
        /// Where.
        at: FileOffset,
        /// The operating system's reason.
        source: std::io::Error,
    },

    /// The file is empty.
    #[error("the file is empty")]
    Empty,

    /// The bytes fit no era's layout.
    #[error(
        "not a trace file of a known SPDK version: {saw}; known eras: {known}",
        known = crate::era::known_eras()
    )]
    UnknownLayout {
        /// What stands at the beginning of the file.
        saw: String,
    },

    /// The era is known, but the file ends before its tables do.
    #[error("the file ends at {len} bytes, inside its {era} header of {need} bytes: it has no records")]
    HeaderCut {
        /// The era, as it is shown.
        era: &'static str,
        /// The file's length in bytes.
        len: u64,
        /// Bytes that the header takes.
        need: u64,
    },

    /// A section of the header lies outside the file.
    #[error("the header places the {section} section at {at}, outside the file of {len} bytes")]
    SectionOutside {
        /// The section's name.
        section: &'static str,
        /// Where the header says that it is.
        at: FileOffset,
        /// The file's length in bytes.
        len: u64,
    },

    /// Text, but no JSON document of `spdk_trace -j` in it.
    #[error("no JSON document of spdk_trace: {saw}")]
    NoDocument {
        /// What is there instead, and what to do.
        saw: String,
    },

    /// The JSON document ends, or breaks, before its first record.
    #[error("the JSON document is malformed at {at}, before its first record: {expected}")]
    BrokenDocument {
        /// Where.
        at: FileOffset,
        /// What should stand there.
        expected: &'static str,
    },
}
