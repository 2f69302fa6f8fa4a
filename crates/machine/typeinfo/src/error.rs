//! Errors in the bytes, names and definitions that this crate is given.

use thiserror::Error;

/// Reason why a query about types failed. The caller prefixes the file or script that it asked
/// about.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TypeError {
    /// Bytes that do not begin as BTF does.
    #[error("not BTF: it starts with {found}, expected 9f eb (little-endian BTF)")]
    NotBtf {
        /// The first bytes in hex, or the words "no bytes".
        found: String,
    },
    /// Member offset that an instruction cannot hold.
    #[error("{path} is too far from its structure's beginning")]
    TooFar {
        /// Path of the member.
        path: String,
    },
    /// BTF that contradicts the format.
    #[error("malformed BTF at {offset:#x}: expected {expected}")]
    Btf {
        /// Byte offset from the beginning.
        offset: usize,
        /// Description of the expected content.
        expected: &'static str,
    },
    /// Reference to a missing BTF type.
    #[error("malformed BTF: no type has the id {id}, the last id is {last}")]
    BtfId {
        /// The id referred to.
        id: u32,
        /// Last valid id.
        last: u32,
    },
    /// DWARF that contradicts the format.
    #[error("malformed DWARF in {section} at {offset:#x}: {detail}")]
    Dwarf {
        /// Section name.
        section: &'static str,
        /// Byte offset in the section.
        offset: usize,
        /// Description of the content that was found or expected.
        detail: String,
    },
    /// A file without debug information, or without a kind that we read.
    #[error("no usable debug information: {detail}")]
    NoDwarf {
        /// Missing part, or reason why the file cannot be read.
        detail: String,
    },
    /// A section that must be inflated first.
    #[error("the section {section} is compressed ({format}, {size:#x} bytes when inflated)")]
    Compressed {
        /// Section name.
        section: &'static str,
        /// Compression format: `zlib` or `zstd`.
        format: &'static str,
        /// Inflated size in bytes, as its header states.
        size: u64,
    },
    /// A section whose header states a length that no compiler's output has.
    #[error(
        "the section {section} states that its {compressed:#x} bytes become {size:#x} when inflated, expected at most \
         {limit:#x}"
    )]
    InflatesTooMuch {
        /// Section name.
        section: &'static str,
        /// Inflated size in bytes, as its header states.
        size: u64,
        /// Size in the file, in bytes.
        compressed: u64,
        /// Limit on the inflated size, in bytes.
        limit: u64,
    },
    /// A section that does not inflate to the size in its header.
    #[error(
        "the section {section} does not inflate to {size:#x} bytes as its header states: {detail}"
    )]
    Inflate {
        /// Section name.
        section: &'static str,
        /// Inflated size in bytes, as its header states.
        size: u64,
        /// Description of the problem.
        detail: String,
    },
    /// A type that contains itself without a pointer between, or that is nested too deeply.
    #[error("the type {name} is nested too deeply (limit {limit})")]
    TooDeep {
        /// Name of the queried type.
        name: String,
        /// The exceeded limit.
        limit: usize,
    },
    /// A query that only applies to a type of another kind.
    #[error("{name} is not {expected}")]
    WrongKind {
        /// The queried type, as C writes it.
        name: String,
        /// Description of the expected kind.
        expected: &'static str,
    },
    /// A type of unknown size, because it is only declared.
    #[error("{name} is declared but not defined")]
    Incomplete {
        /// The type, as C writes it.
        name: String,
    },
    /// A struct or union that does not have this member.
    #[error("{name} has no member {member}{}", crate::error::hint(nearest))]
    NoMember {
        /// The struct or union, as C writes it.
        name: String,
        /// The member looked for.
        member: String,
        /// The members with the nearest names, nearest first.
        nearest: Vec<String>,
    },
    /// A name that no source has.
    #[error("there is no {kind} {name}{}", crate::error::hint(nearest))]
    NoName {
        /// Kind of the name, such as "struct".
        kind: &'static str,
        /// The unknown name.
        name: String,
        /// The nearest names of this kind, nearest first.
        nearest: Vec<String>,
    },
    /// A malformed member path, such as `a..b` or `a[x]`.
    #[error("the member path {path} is malformed at column {column}: expected {expected}")]
    Path {
        /// The path.
        path: String,
        /// Column, counted from 1.
        column: usize,
        /// Description of the expected text.
        expected: &'static str,
    },
    /// A definition in a script that C does not allow.
    #[error("{name}: {problem}")]
    Definition {
        /// The defined type, as C writes it.
        name: String,
        /// Reason why C does not allow it.
        problem: String,
    },
    /// More types, sections or sources than the limit allows.
    #[error("too many {what}: the limit is {limit}")]
    TooMany {
        /// The limited items, as a plural noun.
        what: &'static str,
        /// Limit on their number.
        limit: u64,
    },
}

/// Reason why an entry of an unwind table is not followed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameFault {
    /// An expression that may never end.
    #[error("an expression at {offset:#x} of .eh_frame jumps, so it may never end")]
    Jump {
        /// Byte offset of the expression in `.eh_frame`.
        offset: usize,
    },
    /// An index entry that points outside `.eh_frame`.
    #[error("the index .eh_frame_hdr has an entry for {address:#x} that is not in .eh_frame")]
    Index {
        /// The looked-up address.
        address: u64,
    },
    /// An entry that no compiler writes.
    #[error("the entry at {offset:#x} of .eh_frame is too long to follow ({length:#x} bytes)")]
    Long {
        /// Byte offset of the entry in `.eh_frame`.
        offset: usize,
        /// Length of the entry in bytes.
        length: u32,
    },
}

/// Formats the end of a message about an unknown name.
pub(crate) fn hint(nearest: &[String]) -> String {
    text::patterns::did_you_mean(nearest).map_or_else(String::new, |hint| format!(": {hint}"))
}
