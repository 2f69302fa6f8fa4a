//! Tracepoint descriptors: the meaning of a record's fields and arguments.

use text::printable;

use crate::source::Fields;
use crate::text::until_nul;

/// Bytes of the fields before the arguments (`struct spdk_trace_tpoint`, include/spdk/trace.h, every version):
/// `name[24]`, `u16 tpoint_id`, `u8 owner_type`, `u8 object_type`, `u8 new_object`, `u8 num_args`.
const FIXED_SIZE: usize = 30;
/// Bytes of one argument descriptor: `name[14]`, `u8 type`, `u8 size`.
const ARG_SIZE: usize = 16;
/// Relations a descriptor has room for, from v21.10 on, of two bytes each.
const MAX_RELATIONS: usize = 16;

/// Argument bytes that lie in the record itself; the rest is in continuation slots.
pub(crate) const INLINE_ARG_BYTES: usize = 8;
/// Argument bytes in a continuation slot.
pub(crate) const CONTINUATION_BYTES: usize = 22;

/// How an argument is to be read and shown.
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
    /// From the number that files and JSON documents hold.
    pub const fn from_number(number: u64) -> Option<Self> {
        match number {
            0 => Some(Self::Int),
            1 => Some(Self::Pointer),
            2 => Some(Self::String),
            _ => None,
        }
    }

    /// The number that files and JSON documents hold.
    pub const fn number(self) -> u8 {
        match self {
            Self::Int => 0,
            Self::Pointer => 1,
            Self::String => 2,
        }
    }
}

/// One argument's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgSpec {
    /// Its name, at most 14 bytes in a file.
    pub name: String,
    /// How it is read.
    pub kind: ArgKind,
    /// Bytes it takes in the record.
    pub size: u8,
}

/// "The argument `arg` points to an object of type `object_type`."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relation {
    /// The object's type.
    pub object_type: u8,
    /// Index of the argument.
    pub arg: u8,
}

/// One tracepoint's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tpoint {
    /// `group * 64 + index`.
    pub id: u16,
    /// Its name, at most 24 bytes in a file.
    pub name: String,
    /// The type of owner that its records name; 0 is none.
    pub owner_type: u8,
    /// The prefix registered for that owner type.
    pub owner_prefix: Option<char>,
    /// The type of object that its records are about; 0 is none.
    pub object_type: u8,
    /// The prefix registered for that object type.
    pub object_prefix: Option<char>,
    /// Its records begin an object's life, if it has an object type; SPDK sets this on some that have none.
    pub new_object: bool,
    /// Its arguments, in the order in which they lie in the record.
    pub args: Vec<ArgSpec>,
    /// Arguments that name another object; the first that is known is shown.
    pub relations: Vec<Relation>,
}

impl Tpoint {
    /// Bytes that the arguments take together.
    pub fn packed_size(&self) -> usize {
        self.args.iter().map(|a| usize::from(a.size)).sum()
    }

    /// Continuation slots that a record of this tracepoint has.
    pub fn continuations(&self) -> usize {
        self.packed_size().saturating_sub(INLINE_ARG_BYTES).div_ceil(CONTINUATION_BYTES)
    }

    /// The tracepoint group (`TRACE_GROUP_*`, include/spdk_internal/trace_defs.h).
    pub fn group(&self) -> u16 {
        self.id / 64
    }
}

/// How the descriptors of an era are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TpointLayout {
    /// Arguments that a descriptor has room for.
    pub(crate) max_args: usize,
    /// Whether relations follow the arguments.
    pub(crate) relations: bool,
}

/// The prefixes registered for owner and object types, by type.
pub(crate) struct Prefixes {
    pub(crate) owner: [Option<char>; 256],
    pub(crate) object: [Option<char>; 256],
}

impl TpointLayout {
    /// Bytes of a descriptor.
    pub(crate) const fn size(self) -> usize {
        FIXED_SIZE + self.max_args * ARG_SIZE + if self.relations { MAX_RELATIONS * 2 } else { 0 }
    }

    /// The descriptor's name bytes and id, which distinguish the eras.
    pub(crate) fn name_and_id(bytes: &[u8]) -> Option<(&[u8], u16)> {
        let fields = Fields(bytes);
        Some((until_nul(fields.bytes(0, 24)?), fields.u16(24)?))
    }

    /// Reads the descriptor at index `id`; `None` where it is unused. The second value says what had to be left out.
    pub(crate) fn parse(self, bytes: &[u8], id: u16, prefixes: &Prefixes) -> Option<(Tpoint, Option<&'static str>)> {
        let fields = Fields(bytes);
        let (name, said_id) = Self::name_and_id(bytes)?;
        if name.is_empty() {
            return None;
        }
        let mut left_out = (said_id != id).then_some("a descriptor's id is not its place in the table");
        let num_args = usize::from(fields.u8(29)?);
        if num_args > self.max_args {
            left_out = Some("a descriptor claims more arguments than it has room for");
        }
        let mut args = Vec::new();
        for i in 0..num_args.min(self.max_args) {
            let bytes = fields.bytes(FIXED_SIZE + i * ARG_SIZE, ARG_SIZE)?;
            if num_args > self.max_args && bytes[0] == 0 {
                // Every argument has a name: the ones that were claimed end here.
                break;
            }
            let Some(arg) = parse_arg(bytes) else {
                // What an unknown argument takes is not known either, so the ones behind it can't be found.
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
                Some(Relation { object_type, arg: fields.u8(start + 2 * i + 1)? })
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

/// Reads an array of {`u8 type`, `char id_prefix`}; types that are not registered have no prefix.
pub(crate) fn parse_prefixes(bytes: &[u8]) -> [Option<char>; 256] {
    let mut prefixes = [None; 256];
    for pair in bytes.chunks_exact(2) {
        if pair[1].is_ascii_graphic() {
            prefixes[usize::from(pair[0])] = Some(char::from(pair[1]));
        }
    }
    prefixes
}

/// Some of a trace's tracepoints, by id: asked of every record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TpointSet(Vec<bool>);

impl TpointSet {
    /// Adds one.
    pub fn insert(&mut self, id: u16) {
        let at = usize::from(id);
        if self.0.len() <= at {
            self.0.resize(at + 1, false);
        }
        self.0[at] = true;
    }

    /// Whether this one is in it.
    #[inline]
    pub fn contains(&self, id: u16) -> bool {
        self.0.get(usize::from(id)) == Some(&true)
    }

    /// Whether none is in it.
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

    /// The sizes of the descriptor in v21.07, v21.10 to v22.05, and from v22.09 on.
    #[test]
    fn descriptor_sizes() {
        let size = |max_args, relations| TpointLayout { max_args, relations }.size();
        assert_eq!((size(5, false), size(5, true), size(8, true)), (110, 142, 190));
    }
}
