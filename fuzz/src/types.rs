//! Everything that can be asked of a source of types.

use typeinfo::{NameKind, SourceId, TypeRef, TypeStore};

/// More names are not asked about: what is slow for one is the fault to find.
const MAX_ASKED: usize = 64;

/// Asks, and checks that the answers hold together.
pub fn ask(types: &TypeStore<'_>, source: SourceId) {
    let mut all: Vec<TypeRef> = Vec::new();
    for kind in NameKind::ALL {
        let mut first = None;
        let _ = types.each_name(source, kind, &mut |name, ty| {
            first.get_or_insert((name, ty));
            all.push(ty);
            all.len() < MAX_ASKED
        });
        if let Some((name, ty)) = first {
            // Whatever is listed is found.
            assert!(
                types
                    .find_in(source, kind, name)
                    .is_ok_and(|found| found.is_some()),
                "{kind:?} {name} {ty:?}"
            );
            let _ = types.nearest(kind, name);
        }
    }
    for ty in all {
        let _ = (
            types.get(ty),
            types.strip(ty),
            types.size_of(ty),
            types.align_of(ty),
            types.display(ty),
        );
        let _ = (
            types.enumerators(ty),
            types.params(ty),
            types.definition(ty, true),
            types.member(ty, "nosuch"),
        );
        for member in types.members(ty).unwrap_or_default() {
            let _ = (
                types.size_of(member.ty),
                types.path(ty, member.name.unwrap_or("a.b[1]")),
            );
        }
        let _ = types.each_member(ty, &mut |_, field| {
            if let Some(access) = field.bit_access() {
                assert!(
                    access.shift + access.bits <= access.load_size * 8,
                    "{field:?} {access:?}"
                );
            }
            true
        });
    }
    let _ = (types.find_enumerator("X"), types.raw_tracepoint("x"));
}
