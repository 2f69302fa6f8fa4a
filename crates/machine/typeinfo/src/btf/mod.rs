//! BTF, the kernel's own description of its types.
//!
//! Format from `Documentation/bpf/btf.rst` and `include/uapi/linux/btf.h` of Linux 6.18. Kernel BTF is in
//! `/sys/kernel/btf/vmlinux`; a module's beside it holds only what the module adds ("split").

mod decode;
mod header;
mod index;
mod parts;

use std::sync::OnceLock;

use crate::error::TypeError;
use crate::model::{Enumerator, Member, NameKind, Param, SourceId, Type, TypeRef};
use crate::source::{Source, Visit};
use index::NameIndex;

/// BTF with its records located; their contents are decoded on demand.
#[derive(Debug)]
pub struct Btf<'data> {
    data: &'data [u8],
    /// Offset of each type's record in `data`; the first is that of `first_id`.
    offsets: Vec<u32>,
    first_id: u32,
    strings: &'data [u8],
    /// Offset of the strings in `data`.
    strings_at: usize,
    /// Strings of the base, whose offsets come first; empty without a base.
    base_strings: &'data [u8],
    names: OnceLock<NameIndex>,
    here: SourceId,
    base: SourceId,
}

impl<'data> Btf<'data> {
    /// Finds the records of self-contained BTF, in one pass.
    pub fn parse(data: &'data [u8]) -> Result<Self, TypeError> {
        Self::parse_at(data, 1, &[])
    }

    /// Finds the records of BTF that continues another: a module's and the kernel's. It goes into the store with
    /// [`TypeStore::add_split_btf`](crate::TypeStore::add_split_btf).
    pub fn parse_split(data: &'data [u8], base: &Self) -> Result<Self, TypeError> {
        Self::parse_at(data, base.next_id(), base.strings)
    }

    fn parse_at(
        data: &'data [u8],
        first_id: u32,
        base_strings: &'data [u8],
    ) -> Result<Self, TypeError> {
        let header = header::read(data)?;
        let offsets = index::find_records(data, header.types.clone())?;
        Ok(Self {
            data,
            offsets,
            first_id,
            strings: data.get(header.strings.clone()).unwrap_or_default(),
            strings_at: header.strings.start,
            base_strings,
            names: OnceLock::new(),
            here: SourceId::OWN,
            base: SourceId::OWN,
        })
    }

    /// Returns the number of types, without those of the base and without `void`.
    pub fn type_count(&self) -> usize {
        self.offsets.len()
    }

    /// Returns the id that follows the last type's.
    fn next_id(&self) -> u32 {
        self.first_id + self.offsets.len() as u32
    }

    pub(crate) fn placed(mut self, here: SourceId, base: SourceId) -> Self {
        (self.here, self.base) = (here, base);
        self
    }

    /// Returns the type of this id in this BTF or its base.
    fn reference(&self, id: u32) -> TypeRef {
        match id {
            0 => TypeRef::VOID,
            id if id < self.first_id => TypeRef::new(self.base, id),
            id => TypeRef::new(self.here, id),
        }
    }

    /// Returns the name index, built on first use: kernel BTF has a hundred thousand names, and not
    /// every run needs them.
    fn names(&self) -> &NameIndex {
        self.names.get_or_init(|| NameIndex::new(self))
    }
}

impl Source for Btf<'_> {
    fn get(&self, ty: TypeRef) -> Result<Type<'_>, TypeError> {
        self.record(ty.id)?.get()
    }

    fn members(&self, ty: TypeRef) -> Result<Vec<Member<'_>>, TypeError> {
        self.record(ty.id)?.members()
    }

    fn enumerators(&self, ty: TypeRef) -> Result<Vec<Enumerator<'_>>, TypeError> {
        self.record(ty.id)?.enumerators()
    }

    fn params(&self, ty: TypeRef) -> Result<Vec<Param<'_>>, TypeError> {
        self.record(ty.id)?.params()
    }

    fn find(&self, kind: NameKind, name: &str) -> Result<Option<TypeRef>, TypeError> {
        Ok(self
            .names()
            .find(self, kind, name)
            .map(|id| self.reference(id)))
    }

    fn visit<'s>(&'s self, kind: NameKind, visit: Visit<'_, 's>) -> Result<(), TypeError> {
        for (id, record) in self.records() {
            if record.space() == Some(kind)
                && let Some(name) = record.name()?
                && !visit(name, self.reference(id))
            {
                break;
            }
        }
        Ok(())
    }

    fn find_enumerator(&self, name: &str) -> Result<Option<(TypeRef, i64)>, TypeError> {
        for (id, record) in self.records() {
            if let Some(value) = record.enumerator(name)? {
                return Ok(Some((self.reference(id), value)));
            }
        }
        Ok(None)
    }

    fn btf_id(&self, ty: TypeRef) -> Option<(SourceId, u32)> {
        self.record(ty.id).ok().map(|_| (self.here, ty.id))
    }
}
