//! Comparison of all types with the output of bpftool.

use std::collections::{HashMap, HashSet};

use typeinfo::{TypeKind, TypeRef, TypeStore};

use super::dump::Dumped;
use super::id;

/// Comparison of this kernel's types with the output of bpftool.
pub(super) struct Comparison<'s> {
    pub(super) types: &'s TypeStore<'s>,
    pub(super) dumped: &'s HashMap<u32, Dumped>,
    /// Types that are still to be compared.
    pub(super) queue: Vec<TypeRef>,
    pub(super) seen: HashSet<TypeRef>,
    /// Number of members that were compared.
    pub(super) members: usize,
}

impl Comparison<'_> {
    fn id(&self, ty: TypeRef) -> i64 {
        id(self.types, ty)
    }

    /// Compares all types in the queue, and those that they lead to.
    pub(super) fn run(&mut self) {
        while let Some(ty) = self.queue.pop() {
            if !ty.is_void() && self.seen.insert(ty) {
                self.compare(ty);
            }
        }
    }

    fn compare(&mut self, ty: TypeRef) {
        let number = self.id(ty);
        let theirs = &self.dumped[&(number as u32)];
        let ours = self.types.get(ty).unwrap();
        assert_eq!(ours.name.unwrap_or_default(), theirs.name, "{number}");
        let field = |name: &str| theirs.fields.get(name).copied();
        match ours.kind {
            TypeKind::Struct { size } | TypeKind::Union { size } => {
                assert_eq!(Some(size.cast_signed()), field("size"), "{number}");
                self.compare_members(ty, number, theirs);
            }
            TypeKind::Enum { size, signed } => {
                assert_eq!(Some(i64::from(size)), field("size"));
                let list = self.types.enumerators(ty).unwrap();
                let ours: Vec<_> = list.iter().map(|e| (e.name, e.value)).collect();
                let theirs: Vec<_> = theirs
                    .parts
                    .iter()
                    .map(|(name, f)| (name.as_str(), f["val"]))
                    .collect();
                assert_eq!(ours, theirs, "{number} signed {signed}");
            }
            TypeKind::Func { returns, variadic } => {
                let proto = if theirs.kind == "FUNC" {
                    &self.dumped[&(field("type_id").unwrap() as u32)]
                } else {
                    theirs
                };
                assert_eq!(self.id(returns), proto.fields["ret_type_id"]);
                self.compare_params(ty, variadic, proto);
            }
            TypeKind::Array { element, count } => {
                assert_eq!(count.unwrap_or(0).cast_signed(), theirs.fields["nr_elems"]);
                assert_eq!(self.id(element), theirs.fields["type_id"]);
                self.queue.push(element);
            }
            TypeKind::Pointer { target, .. }
            | TypeKind::Typedef { target }
            | TypeKind::Qualified { target, .. } => {
                assert_eq!(Some(self.id(target)), field("type_id"));
                self.queue.push(target);
            }
            TypeKind::Int { size, .. } | TypeKind::Float { size } => {
                assert_eq!(Some(i64::from(size)), field("size"));
            }
            TypeKind::Forward { .. } => assert!(theirs.kind == "FWD" || theirs.parts.is_empty()),
            TypeKind::Void => panic!("{number} is void"),
        }
    }

    /// Compares the members of a struct or union.
    fn compare_members(&mut self, ty: TypeRef, number: i64, theirs: &Dumped) {
        let list = self.types.members(ty).unwrap();
        assert_eq!(list.len(), theirs.parts.len());
        for (member, (name, fields)) in list.iter().zip(&theirs.parts) {
            assert_eq!(member.name.unwrap_or_default(), name);
            assert_eq!(
                member.bit_offset.cast_signed(),
                fields["bits_offset"],
                "{number} {name}"
            );
            assert_eq!(
                member.bit_size.map(i64::from),
                fields.get("bitfield_size").copied()
            );
            assert_eq!(self.id(member.ty), fields["type_id"]);
            self.queue.push(member.ty);
            self.members += 1;
        }
    }

    /// Compares the parameters of a function.
    fn compare_params(&mut self, ty: TypeRef, variadic: bool, proto: &Dumped) {
        let list = self.types.params(ty).unwrap();
        assert_eq!(list.len() + usize::from(variadic), proto.parts.len());
        for (param, (name, fields)) in list.iter().zip(&proto.parts) {
            assert_eq!(
                (param.name.unwrap_or_default(), self.id(param.ty)),
                (name.as_str(), fields["type_id"])
            );
            self.queue.push(param.ty);
        }
    }
}
