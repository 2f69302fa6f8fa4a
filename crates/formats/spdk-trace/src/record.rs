//! A record, the same for raw files and JSON.

use std::ops::ControlFlow;

use crate::text::until_nul;
use crate::tpoint::{ArgKind, ArgSpec, CONTINUATION_BYTES, Tpoint};
use crate::units::{Lcore, Ticks};

/// Receiver of records. It is a trait object, so that the loops that call it are compiled once
/// rather than for each of its users.
pub(crate) type RecordSink<'e> = dyn FnMut(&Record<'_>) -> ControlFlow<()> + 'e;

/// Name of an object: the prefix of its type and its running number, as in `r10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Prefix of the object's type.
    pub prefix: char,
    /// Running number within the type, from 0.
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
        let prefix = chars
            .next()
            .filter(|c| !c.is_control())
            .ok_or(NoObjectName)?;
        let digits = chars.as_str();
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(NoObjectName);
        }
        digits
            .parse()
            .map(|number| Self { prefix, number })
            .map_err(|_| NoObjectName)
    }
}

/// The text is not a prefix and a number.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an object's name is a prefix and a number, such as r10")]
pub struct NoObjectName;

/// The object that a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// No object.
    None,
    /// An object without a type, known by its id alone (usually a pointer).
    Untyped(u64),
    /// An object whose creation was not recorded.
    Unseen(u64),
    /// An object of which a JSON document has only the id: one of the two above.
    ValueOnly(u64),
    /// An object of a type without a prefix in a JSON document, where its name is empty.
    Nameless {
        /// Id (usually a pointer).
        id: u64,
        /// Age, as in [`Object::Known`].
        age: Option<Ticks>,
    },
    /// An object whose creation was recorded.
    Known {
        /// Name of the object.
        name: ObjectName,
        /// Id (usually a pointer).
        id: u64,
        /// Time since creation. A JSON document omits it in the record that creates the object.
        age: Option<Ticks>,
    },
}

impl Object {
    /// Returns the object's name, if its creation was recorded.
    pub fn name(self) -> Option<ObjectName> {
        match self {
            Self::Known { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Returns the object's id, if the record has one.
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

/// Another object that a record refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelatedObject {
    /// Name of the object.
    pub name: ObjectName,
    /// Index of the argument that points to it, if known.
    pub arg: Option<u8>,
}

/// A poller, or an owner given by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poller<'a> {
    /// Prefix and number, shown with at least two digits.
    Id(char, u16),
    /// Text from a JSON document.
    Text(&'a str),
}

/// Text of the owner column in a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerLabel<'a> {
    /// No text.
    None,
    /// Description of the owner.
    Description(&'a str),
    /// The poller.
    Poller(Poller<'a>),
}

/// One record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The lcore that wrote the record.
    pub lcore: Lcore,
    /// Name of the thread that wrote the record; empty if the file has none.
    pub thread_name: &'a str,
    /// Time of the record.
    pub tsc: Ticks,
    /// The tracepoint.
    pub tpoint: &'a Tpoint,
    /// The `size` field, in the unit of the tracepoint.
    pub size: u32,
    /// The poller, or the owner by its number.
    pub poller: Option<Poller<'a>>,
    /// Description of the owner, if one was valid at that time.
    pub owner: Option<&'a str>,
    /// Id of that owner and its time of registration, since ids are reused. `None` for a JSON
    /// document.
    pub owner_since: Option<(u16, Ticks)>,
    /// Text of the owner column.
    pub label: OwnerLabel<'a>,
    /// The object that the record is about.
    pub object: Object,
    /// Another object that the record refers to.
    pub related: Option<RelatedObject>,
    /// The arguments.
    pub args: Args<'a>,
    /// Annotations from a JSON document, as JSON text.
    pub annotations: Option<&'a str>,
    /// Time of the newest record of the ring before its last loss of slots, overwritten before or
    /// during copying. `None` if none were lost, or if another program copied them. An object that
    /// began at or before that time may lack records.
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

/// The arguments of a record. Those whose bytes were overwritten are missing from the end.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    pub(crate) specs: &'a [ArgSpec],
    pub(crate) data: ArgData<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ArgData<'a> {
    /// Bytes back to back, as in the ring.
    Packed(&'a [u8]),
    /// Values from a JSON document; `text` holds the strings' bytes.
    Parsed {
        values: &'a [ParsedArg],
        text: &'a [u8],
        scratch: &'a [u8],
    },
}

/// An argument from a JSON document.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ParsedArg {
    Number(u64),
    /// A range of the document.
    Text(usize, usize),
    /// A range of the scratch buffer, for a string with escapes.
    Unescaped(usize, usize),
}

impl<'a> Args<'a> {
    /// Returns empty arguments.
    pub const fn none() -> Self {
        Self {
            specs: &[],
            data: ArgData::Packed(&[]),
        }
    }

    /// Iterates over the description and value of each complete argument.
    #[inline]
    pub fn iter(self) -> ArgIter<'a> {
        ArgIter {
            args: self,
            index: 0,
            offset: 0,
        }
    }

    /// Returns the value of the argument with this name.
    pub fn by_name(self, name: &str) -> Option<ArgValue<'a>> {
        self.iter()
            .find(|(spec, _)| spec.name == name)
            .map(|(_, value)| value)
    }
}

/// Iterator over a record's arguments.
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
            ArgData::Parsed {
                values,
                text,
                scratch,
            } => match *values.get(self.index)? {
                ParsedArg::Number(n) if spec.kind == ArgKind::Pointer => ArgValue::Pointer(n),
                ParsedArg::Number(n) => ArgValue::Int(n),
                ParsedArg::Text(start, end) => {
                    ArgValue::Str(text.get(start..end).unwrap_or_default())
                }
                ParsedArg::Unescaped(start, end) => {
                    ArgValue::Str(scratch.get(start..end).unwrap_or_default())
                }
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

/// Maximum size of a record's arguments, rounded up to whole continuations.
pub(crate) const MAX_PACKED: usize = 8 * 255 + CONTINUATION_BYTES;
