//! Errors in the bytes, names and definitions that this crate is given.

use thiserror::Error;

/// Why a question about types has no answer. The caller knows which file or script it asked about, and puts that in front.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TypeError {
    /// The bytes do not begin as BTF does.
    #[error("not BTF: it starts with {found}, expected 9f eb (little-endian BTF)")]
    NotBtf {
        /// The first bytes in hex, or the words "no bytes".
        found: String,
    },
    /// A member is further away than an instruction reaches.
    #[error("{path} is too far from its structure's beginning")]
    TooFar {
        /// The member, as C writes it.
        path: String,
    },
    /// Something in BTF that contradicts the format.
    #[error("malformed BTF at {offset:#x}: expected {expected}")]
    Btf {
        /// Where, in bytes from the beginning.
        offset: usize,
        /// What should stand there.
        expected: &'static str,
    },
    /// A reference to a BTF type that is not there.
    #[error("malformed BTF: no type has the id {id}, the last id is {last}")]
    BtfId {
        /// The id referred to.
        id: u32,
        /// The last id that there is.
        last: u32,
    },
    /// Something in DWARF that contradicts the format.
    #[error("malformed DWARF in {section} at {offset:#x}: {detail}")]
    Dwarf {
        /// The section's name.
        section: &'static str,
        /// Where, in bytes from the section's beginning.
        offset: usize,
        /// What was found or expected.
        detail: String,
    },
    /// A file that has no debug information, or none of a kind that we read.
    #[error("no usable debug information: {detail}")]
    NoDwarf {
        /// What is missing.
        detail: String,
    },
    /// A section that must be inflated first.
    #[error("the section {section} is compressed ({format}, {size:#x} bytes when inflated)")]
    Compressed {
        /// The section's name.
        section: &'static str,
        /// How it is compressed.
        format: &'static str,
        /// How long it is when inflated, as its header says.
        size: u64,
    },
    /// A section whose header states a length that no compiler's output has.
    #[error(
        "the section {section} states that its {compressed:#x} bytes become {size:#x} when inflated, expected at most \
         {limit:#x}"
    )]
    InflatesTooMuch {
        /// The section's name.
        section: &'static str,
        /// How long it is when inflated, as its header says.
        size: u64,
        /// How long it is in the file.
        compressed: u64,
        /// The most that is inflated of it.
        limit: u64,
    },
    /// A section that does not inflate to what its header states.
    #[error("the section {section} does not inflate to {size:#x} bytes as its header states: {detail}")]
    Inflate {
        /// The section's name.
        section: &'static str,
        /// How long it is when inflated, as its header says.
        size: u64,
        /// What is wrong.
        detail: String,
    },
    /// Types that lead to themselves without a pointer between, or that are nested deeper than anybody writes.
    #[error("the type {name} is nested too deeply (limit {limit})")]
    TooDeep {
        /// The type that was asked about.
        name: String,
        /// The limit that it broke.
        limit: usize,
    },
    /// A question that only a type of another kind can answer.
    #[error("{name} is not {expected}")]
    WrongKind {
        /// The type that was asked about, as C writes it.
        name: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A type whose size is not known, because only its name was declared.
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
        /// What was looked for, such as "struct".
        kind: &'static str,
        /// Its name.
        name: String,
        /// The nearest names of this kind, nearest first.
        nearest: Vec<String>,
    },
    /// A member path that can't be read, such as `a..b` or `a[x]`.
    #[error("the member path {path} is malformed at column {column}: expected {expected}")]
    Path {
        /// The path.
        path: String,
        /// Where, counted from 1.
        column: usize,
        /// What should stand there.
        expected: &'static str,
    },
    /// A definition in a script that C does not allow.
    #[error("{name}: {problem}")]
    Definition {
        /// What was to be defined, as C writes it.
        name: String,
        /// Why that can't be.
        problem: String,
    },
    /// More types, sections or sources than this room takes.
    #[error("too many {what}: the limit is {limit}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many there may be.
        limit: u64,
    },
}

/// Why an entry of an unwind table is not followed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameFault {
    /// An expression that may go on for ever.
    #[error("an expression at {offset:#x} of .eh_frame jumps, so it may never end")]
    Jump {
        /// Where it is, in bytes from the section's beginning.
        offset: usize,
    },
    /// An index that leads out of its table.
    #[error("the index .eh_frame_hdr has an entry for {address:#x} that is not in .eh_frame")]
    Index {
        /// The address.
        address: u64,
    },
    /// An entry that no compiler writes.
    #[error("the entry at {offset:#x} of .eh_frame is too long to follow ({length:#x} bytes)")]
    Long {
        /// Where it is, in bytes from the section's beginning.
        offset: usize,
        /// How long it is.
        length: u32,
    },
}

/// The end of a message about an unknown name.
pub(crate) fn hint(nearest: &[String]) -> String {
    if nearest.is_empty() { String::new() } else { format!(": did you mean {}?", nearest.join(" or ")) }
}
