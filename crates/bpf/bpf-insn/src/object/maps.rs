//! Map definitions, and their form in `.maps` and `.BTF`.

use uapi::bpf::MapKind;

use crate::btf::{Btf, Linkage, Member, SectionVar, TypeId};

/// Definition of a map. Zeros are left out of the object, as kinds without keys or values require.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapDef {
    /// Name: a C identifier. The kernel shows the first 15 characters.
    pub name: String,
    /// Kind.
    pub kind: MapKind,
    /// Size of a key, in bytes.
    pub key_size: u32,
    /// Size of a value, in bytes.
    pub value_size: u32,
    /// Limit on the entries; for a ring buffer its size in bytes, a power of two and a multiple of
    /// the page size.
    pub max_entries: u32,
    /// `BPF_F_*` flags of map creation.
    pub flags: u32,
}

impl MapDef {
    /// Creates a map with keys and values.
    pub fn new(
        name: &str,
        kind: MapKind,
        key_size: u32,
        value_size: u32,
        max_entries: u32,
    ) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            key_size,
            value_size,
            max_entries,
            flags: 0,
        }
    }

    /// Creates a ring buffer of this number of bytes.
    pub fn ring_buffer(name: &str, bytes: u32) -> Self {
        Self::new(name, MapKind::RingBuf, 0, 0, bytes)
    }

    /// Returns the same map with these flags.
    #[must_use]
    pub fn with_flags(self, flags: u32) -> Self {
        Self { flags, ..self }
    }

    /// Returns the non-zero fields, in the order of the structure's members (libbpf's `BTF-defined
    /// maps`).
    fn fields(&self) -> Vec<(&'static str, u32)> {
        let fields = [
            ("type", self.kind as u32),
            ("key_size", self.key_size),
            ("value_size", self.value_size),
            ("max_entries", self.max_entries),
            ("map_flags", self.flags),
        ];
        fields
            .into_iter()
            .filter(|(_, value)| *value != 0)
            .collect()
    }
}

/// Place of a map's variable in `.maps`.
pub(super) struct MapPlace {
    pub(super) offset: u32,
    pub(super) bytes: u32,
}

/// Size of a pointer, in bytes: all members of a map's variable are pointers.
const POINTER_BYTES: u32 = 8;

/// Enters the maps' types in `btf`, and returns the place of each map's variable.
///
/// Each map is a variable of a structure whose members are pointers to arrays: an array's length is
/// the member's value.
pub(super) fn describe(maps: &[MapDef], btf: &mut Btf) -> Vec<MapPlace> {
    if maps.is_empty() {
        return Vec::new();
    }
    let index = btf.int("unsigned int", 4, false);
    // The elements are bytes, since the kernel refuses an array of 4 GiB or more and lengths go up
    // to 2^32 - 1.
    let element = btf.int("unsigned char", 1, false);
    let mut places = Vec::new();
    let mut variables = Vec::new();
    let mut end = 0;
    for map in maps {
        let (structure, bytes) = structure(map, btf, element, index);
        let variable = btf.variable(&map.name, structure, Linkage::Global);
        variables.push(SectionVar {
            ty: variable,
            offset: end,
            bytes,
        });
        places.push(MapPlace { offset: end, bytes });
        end += bytes;
    }
    btf.section(super::MAPS, end, &variables);
    places
}

fn structure(map: &MapDef, btf: &mut Btf, element: TypeId, index: TypeId) -> (TypeId, u32) {
    let mut members = Vec::new();
    let mut byte_offset = 0;
    for (name, value) in map.fields() {
        let array = btf.array(element, index, value);
        members.push(Member {
            name,
            ty: btf.pointer(array),
            byte_offset,
        });
        byte_offset += POINTER_BYTES;
    }
    (btf.structure("", byte_offset, &members), byte_offset)
}
