//! A record, the same for raw files and JSON.

use std::ops::ControlFlow;

use crate::text::until_nul;
use crate::tpoint::{ArgKind, ArgSpec, CONTINUATION_BYTES, Tpoint};
use crate::units::{Lcore, Ticks};

/// Who gets the records. The loops that make them take it as an object: what is generic would be compiled once for each of its
/// users, and as these are compiled, for size.
pub(crate) type Each<'e> = dyn FnMut(&Record<'_>) -> ControlFlow<()> + 'e;

/// The name of an object: its type's prefix and its running number, as in `r10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// The prefix of its type.
    pub prefix: char,
    /// Its running number within the type, from 0.
    pub number: u64,
}

impl std::fmt::Display for ObjectName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.prefix, self.number)
    }
}

impl std::str::FromStr for ObjectName {
    type Err = NoObjectName;

    fn from_str(text: &str) -> Result<Self, NoObjectName> {
        let mut chars = text.chars();
        let prefix = chars.next().filter(|c| !c.is_control()).ok_or(NoObjectName)?;
        let digits = chars.as_str();
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(NoObjectName);
        }
        digits.parse().map(|number| Self { prefix, number }).map_err(|_| NoObjectName)
    }
}

/// The text is not a prefix and a number.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an object's name is a prefix and a number, such as r10")]
pub struct NoObjectName;

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// Nothing.
    None,
    /// Something of no type, known by its id alone (usually a pointer).
    Untyped(u64),
    /// An object whose creation was not seen.
    Unseen(u64),
    /// Something of which a JSON document holds only the id: one of the two above.
    ValueOnly(u64),
    /// An object of a type without a prefix in a JSON document: its name is empty there.
    Nameless {
        /// Its id (usually a pointer).
        id: u64,
        /// As [`Object::Known`] has it.
        age: Option<Ticks>,
    },
    /// An object whose creation was seen.
    Known {
        /// Its name.
        name: ObjectName,
        /// Its id (usually a pointer).
        id: u64,
        /// Time since its creation. A JSON document leaves it out of the record that creates the object.
        age: Option<Ticks>,
    },
}

impl Object {
    /// The object's name, if its creation was seen.
    pub fn name(self) -> Option<ObjectName> {
        match self {
            Self::Known { name, .. } => Some(name),
            _ => None,
        }
    }

    /// The object's id, if the record has one.
    pub fn id(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Untyped(id)
            | Self::Unseen(id)
            | Self::ValueOnly(id)
            | Self::Nameless { id, .. }
            | Self::Known { id, .. } => Some(id),
        }
    }
}

/// Another object that a record names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Related {
    /// Its name.
    pub name: ObjectName,
    /// The argument that points to it, where that is known.
    pub arg: Option<u8>,
}

/// A poller, or an owner given by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poller<'a> {
    /// Prefix and number, shown with two digits at least.
    Id(char, u16),
    /// As a JSON document has it.
    Text(&'a str),
}

/// What the owner column of a listing shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerLabel<'a> {
    /// Nothing.
    None,
    /// The owner's description.
    Description(&'a str),
    /// The poller.
    Poller(Poller<'a>),
}

/// One record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Who wrote it.
    pub lcore: Lcore,
    /// Name of the thread that wrote it; empty where the file has none.
    pub thread_name: &'a str,
    /// When.
    pub tsc: Ticks,
    /// Which tracepoint.
    pub tpoint: &'a Tpoint,
    /// Its `size` field, in the unit that the tracepoint means.
    pub size: u32,
    /// The poller, or the owner by its number.
    pub poller: Option<Poller<'a>>,
    /// The owner's description, where one was valid at that time.
    pub owner: Option<&'a str>,
    /// That owner's id, and when it was registered: an id is used again. Not known of a JSON document's.
    pub owner_since: Option<(u16, Ticks)>,
    /// What the owner column shows.
    pub label: OwnerLabel<'a>,
    /// What it is about.
    pub object: Object,
    /// Another object that it names.
    pub related: Option<Related>,
    /// Its arguments.
    pub args: Args<'a>,
    /// Annotations that a JSON document carries, as JSON text.
    pub annotations: Option<&'a str>,
    /// Time of the newest record that its ring had before slots of it were lost for the last time: overwritten before or while they
    /// were copied. `None` if none were lost, or if somebody else copied them. An object that began at that time or before may lack
    /// records.
    pub lost_since: Option<Ticks>,
}

/// The value of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgValue<'a> {
    /// A number; a 4-byte one is not sign-extended, as in SPDK's own tools.
    Int(u64),
    /// A pointer.
    Pointer(u64),
    /// A string's bytes, without the NUL.
    Str(&'a [u8]),
}

/// A record's arguments. Those whose bytes were overwritten are missing from the end.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    pub(crate) specs: &'a [ArgSpec],
    pub(crate) data: ArgData<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ArgData<'a> {
    /// Back to back, as they lie in the ring.
    Packed(&'a [u8]),
    /// From a JSON document; `text` holds the strings' bytes.
    Parsed { values: &'a [ParsedArg], text: &'a [u8], scratch: &'a [u8] },
}

/// An argument from a JSON document.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ParsedArg {
    Number(u64),
    /// A range of the document.
    Text(usize, usize),
    /// A range of the scratch buffer, where the string had escapes.
    Unescaped(usize, usize),
}

impl<'a> Args<'a> {
    /// No arguments.
    pub const fn none() -> Self {
        Self { specs: &[], data: ArgData::Packed(&[]) }
    }

    /// Description and value of each argument that is whole.
    #[inline]
    pub fn iter(self) -> ArgIter<'a> {
        ArgIter { args: self, index: 0, offset: 0 }
    }

    /// The value of the argument of that name.
    pub fn by_name(self, name: &str) -> Option<ArgValue<'a>> {
        self.iter().find(|(spec, _)| spec.name == name).map(|(_, value)| value)
    }
}

/// Iterates over a record's arguments.
#[derive(Clone, Debug)]
pub struct ArgIter<'a> {
    args: Args<'a>,
    index: usize,
    offset: usize,
}

impl<'a> Iterator for ArgIter<'a> {
    type Item = (&'a ArgSpec, ArgValue<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let spec = self.args.specs.get(self.index)?;
        let value = match self.args.data {
            ArgData::Packed(bytes) => {
                let end = self.offset + usize::from(spec.size);
                let value = packed_value(spec, bytes.get(self.offset..end)?);
                self.offset = end;
                value
            }
            ArgData::Parsed { values, text, scratch } => match *values.get(self.index)? {
                ParsedArg::Number(n) if spec.kind == ArgKind::Pointer => ArgValue::Pointer(n),
                ParsedArg::Number(n) => ArgValue::Int(n),
                ParsedArg::Text(start, end) => ArgValue::Str(text.get(start..end).unwrap_or_default()),
                ParsedArg::Unescaped(start, end) => ArgValue::Str(scratch.get(start..end).unwrap_or_default()),
            },
        };
        self.index += 1;
        Some((spec, value))
    }
}

#[inline]
fn packed_value<'a>(spec: &ArgSpec, bytes: &'a [u8]) -> ArgValue<'a> {
    let number = || match bytes.first_chunk::<8>() {
        Some(whole) => u64::from_le_bytes(*whole),
        None => bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)),
    };
    match spec.kind {
        ArgKind::Int => ArgValue::Int(number()),
        ArgKind::Pointer => ArgValue::Pointer(number()),
        ArgKind::String => ArgValue::Str(until_nul(bytes)),
    }
}

/// Bytes that the longest arguments take, rounded up to whole continuations.
pub(crate) const MAX_PACKED: usize = 8 * 255 + CONTINUATION_BYTES;
