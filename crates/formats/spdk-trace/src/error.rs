//! Fatal errors: nothing can be read. Lesser damage is a [`crate::Problem`].

use crate::units::FileOffset;

/// Reason for which a trace can't be read at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system reported an error.
    #[error("reading {what} at {at} failed")]
    Read {
        /// The part being read.
        what: &'static str,
        /// Offset in the file.
        at: FileOffset,
        /// The operating system's reason.
        source: std::io::Error,
    },

    /// The file is empty.
    #[error("the file is empty")]
    Empty,

    /// The bytes fit no era's layout.
    #[error("not an SPDK trace: {saw}")]
    UnknownLayout {
        /// Description of the start of the file.
        saw: String,
    },

    /// The era is known, but the file ends before its tables do.
    #[error(
        "the file ends at {len} bytes, inside its {era} header of {need} bytes: it has no records"
    )]
    HeaderCut {
        /// Versions of the era.
        era: &'static str,
        /// Length of the file in bytes.
        len: u64,
        /// Size of the header in bytes.
        need: u64,
    },

    /// A section of the header lies outside the file.
    #[error("the header places the {section} section at {at}, outside the file of {len} bytes")]
    SectionOutside {
        /// Name of the section.
        section: &'static str,
        /// Offset of the section, as stated in the header.
        at: FileOffset,
        /// Length of the file in bytes.
        len: u64,
    },

    /// The text contains no JSON document of `spdk_trace -j`.
    #[error(
        "neither a trace file, nor the folder of a capture, nor a JSON document of spdk_trace: {saw}"
    )]
    NoDocument {
        /// Description of the text, and advice.
        saw: String,
    },

    /// The JSON document ends or is malformed before its first record.
    #[error("the JSON document is malformed at {at}, before its first record: {expected}")]
    BrokenDocument {
        /// Offset of the error.
        at: FileOffset,
        /// The token expected there.
        expected: &'static str,
    },
}
