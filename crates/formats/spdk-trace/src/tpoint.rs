//! Tracepoint descriptors: the meaning of a record's fields and arguments.

use text::printable;

use crate::source::Fields;
use crate::text::until_nul;

/// Bytes of the fields before the arguments (`struct spdk_trace_tpoint`, include/spdk/trace.h, every version):
/// `name[24]`, `u16 tpoint_id`, `u8 owner_type`, `u8 object_type`, `u8 new_object`, `u8 num_args`.
const FIXED_SIZE: usize = 30;
/// Bytes of one argument descriptor: `name[14]`, `u8 type`, `u8 size`.
const ARG_SIZE: usize = 16;
/// Number of relations in a descriptor, two bytes each, from v21.10 on.
const MAX_RELATIONS: usize = 16;

/// Number of argument bytes in the record itself; the rest is in continuation slots.
pub(crate) const INLINE_ARG_BYTES: usize = 8;
/// Number of argument bytes in a continuation slot.
pub(crate) const CONTINUATION_BYTES: usize = 22;

/// Type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    /// `SPDK_TRACE_ARG_TYPE_INT`: a 4- or 8-byte number.
    Int,
    /// `SPDK_TRACE_ARG_TYPE_PTR`: a pointer.
    Pointer,
    /// `SPDK_TRACE_ARG_TYPE_STR`: a NUL-terminated string of at most `size` bytes.
    String,
}

impl ArgKind {
    /// Converts the number used in files and JSON documents.
    pub const fn from_number(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::Int),
            1 => Some(Self::Pointer),
            2 => Some(Self::String),
            _ => None,
        }
    }

    /// Returns the number used in files and JSON documents.
    pub const fn number(self) -> u8 {
        match self {
            Self::Int => 0,
            Self::Pointer => 1,
            Self::String => 2,
        }
    }
}

/// Description of one argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgSpec {
    /// Name, at most 14 bytes in a file.
    pub name: String,
    /// Type of the argument.
    pub kind: ArgKind,
    /// Size in the record, in bytes.
    pub size: u8,
}

/// "The argument `arg` points to an object of type `object_type`."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relation {
    /// Type of the object.
    pub object_type: u8,
    /// Index of the argument.
    pub arg: u8,
}

/// Description of one tracepoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tpoint {
    /// `group * 64 + index`.
    pub id: u16,
    /// Name, at most 24 bytes in a file.
    pub name: String,
    /// Type of owner of its records; 0 if they have none.
    pub owner_type: u8,
    /// Prefix registered for that owner type.
    pub owner_prefix: Option<char>,
    /// Type of object of its records; 0 if they have none.
    pub object_type: u8,
    /// Prefix registered for that object type.
    pub object_prefix: Option<char>,
    /// True if its records begin an object's life. SPDK also sets this on some tracepoints without
    /// an object type.
    pub new_object: bool,
    /// Arguments, in the order in which they lie in the record.
    pub args: Vec<ArgSpec>,
    /// Arguments that refer to another object; the first known one is shown.
    pub relations: Vec<Relation>,
}

impl Tpoint {
    /// Returns the total size of the arguments, in bytes.
    pub fn packed_size(&self) -> usize {
        self.args.iter().map(|a| usize::from(a.size)).sum()
    }

    /// Returns the number of continuation slots of a record.
    pub fn continuations(&self) -> usize {
        self.packed_size()
            .saturating_sub(INLINE_ARG_BYTES)
            .div_ceil(CONTINUATION_BYTES)
    }

    /// Returns the tracepoint group (`TRACE_GROUP_*`, include/spdk_internal/trace_defs.h).
    pub fn group(&self) -> u16 {
        self.id / 64
    }
}

/// Layout of the descriptors of an era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TpointLayout {
    /// Number of arguments in a descriptor.
    pub(crate) max_args: usize,
    /// True if relations follow the arguments.
    pub(crate) relations: bool,
}

/// Prefixes registered for owner and object types, indexed by type.
pub(crate) struct Prefixes {
    pub(crate) owner: [Option<char>; 256],
    pub(crate) object: [Option<char>; 256],
}

impl TpointLayout {
    /// Returns the size of a descriptor, in bytes.
    pub(crate) const fn size(self) -> usize {
        FIXED_SIZE + self.max_args * ARG_SIZE + if self.relations { MAX_RELATIONS * 2 } else { 0 }
    }

    /// Returns the name bytes and the id of a descriptor, which distinguish the eras.
    pub(crate) fn name_and_id(bytes: &[u8]) -> Option<(&[u8], u16)> {
        let fields = Fields(bytes);
        Some((until_nul(fields.bytes(0, 24)?), fields.u16(24)?))
    }

    /// Parses the descriptor at index `id`; `None` if it is unused. The second value describes a
    /// part that had to be left out.
    pub(crate) fn parse(
        self,
        bytes: &[u8],
        id: u16,
        prefixes: &Prefixes,
    ) -> Option<(Tpoint, Option<&'static str>)> {
        let fields = Fields(bytes);
        let (name, said_id) = Self::name_and_id(bytes)?;
        if name.is_empty() {
            return None;
        }
        let mut left_out =
            (said_id != id).then_some("a descriptor's id is not its place in the table");
        let num_args = usize::from(fields.u8(29)?);
        if num_args > self.max_args {
            left_out = Some("a descriptor claims more arguments than it has room for");
        }
        let mut args = Vec::new();
        for i in 0..num_args.min(self.max_args) {
            let bytes = fields.bytes(FIXED_SIZE + i * ARG_SIZE, ARG_SIZE)?;
            if num_args > self.max_args && bytes[0] == 0 {
                // Every argument has a name, so the claimed ones end here.
                break;
            }
            let Some(arg) = parse_arg(bytes) else {
                // The size of an unknown argument is unknown too, so the following ones can't be
                // found.
                left_out = Some("a descriptor has an argument of unknown type");
                break;
            };
            args.push(arg);
        }
        let (owner_type, object_type) = (fields.u8(26)?, fields.u8(27)?);
        let tpoint = Tpoint {
            id,
            name: printable::text(name).into_owned(),
            owner_type,
            owner_prefix: prefixes.owner[usize::from(owner_type)],
            object_type,
            object_prefix: prefixes.object[usize::from(object_type)],
            new_object: fields.u8(28)? != 0,
            relations: self.parse_relations(fields, args.len()),
            args,
        };
        Some((tpoint, left_out))
    }

    fn parse_relations(self, fields: Fields<'_>, num_args: usize) -> Vec<Relation> {
        if !self.relations {
            return Vec::new();
        }
        let start = FIXED_SIZE + self.max_args * ARG_SIZE;
        (0..MAX_RELATIONS)
            .map_while(|i| {
                let object_type = fields.u8(start + 2 * i).filter(|&t| t != 0)?;
                Some(Relation {
                    object_type,
                    arg: fields.u8(start + 2 * i + 1)?,
                })
            })
            .filter(|r| usize::from(r.arg) < num_args)
            .collect()
    }
}

fn parse_arg(bytes: &[u8]) -> Option<ArgSpec> {
    let fields = Fields(bytes);
    Some(ArgSpec {
        name: printable::text(until_nul(fields.bytes(0, 14)?)).into_owned(),
        kind: ArgKind::from_number(u64::from(fields.u8(14)?))?,
        size: fields.u8(15)?,
    })
}

/// Parses an array of {`u8 type`, `char id_prefix`}; types that are not registered have no prefix.
pub(crate) fn parse_prefixes(bytes: &[u8]) -> [Option<char>; 256] {
    let mut prefixes = [None; 256];
    for pair in bytes.chunks_exact(2) {
        if pair[1].is_ascii_graphic() {
            prefixes[usize::from(pair[0])] = Some(char::from(pair[1]));
        }
    }
    prefixes
}

/// A set of tracepoint ids with fast lookup, used for every record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TpointSet(Vec<bool>);

impl TpointSet {
    /// Adds an id.
    pub fn insert(&mut self, id: u16) {
        let at = usize::from(id);
        if self.0.len() <= at {
            self.0.resize(at + 1, false);
        }
        self.0[at] = true;
    }

    /// Returns whether the id is in the set.
    #[inline]
    pub fn contains(&self, id: u16) -> bool {
        self.0.get(usize::from(id)) == Some(&true)
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'t> FromIterator<&'t Tpoint> for TpointSet {
    fn from_iter<I: IntoIterator<Item = &'t Tpoint>>(tpoints: I) -> Self {
        let mut set = Self::default();
        tpoints.into_iter().for_each(|tpoint| set.insert(tpoint.id));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the size of a descriptor in v21.07, in v21.10 to v22.05, and from v22.09 on.
    #[test]
    fn descriptor_sizes() {
        let size = |max_args, relations| {
            TpointLayout {
                max_args,
                relations,
            }
            .size()
        };
        assert_eq!(
            (size(5, false), size(5, true), size(8, true)),
            (110, 142, 190)
        );
    }
}
