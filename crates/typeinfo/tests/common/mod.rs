//! What several tests need.
#![allow(dead_code, clippy::allow_attributes, reason = "each test uses a part")]
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::process::Command;

use typeinfo::{NameKind, SourceId, TypeRef, TypeStore};

/// What GCC makes of a program; none, and a word about it, where there is no GCC.
pub(crate) fn gcc(source: &str, options: &[&str]) -> Option<Vec<u8>> {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("a.c"), dir.path().join("a.out"));
    std::fs::write(&input, source).unwrap();
    let run = Command::new("gcc").args(options).arg("-w").arg("-o").arg(&output).arg(&input).output();
    let Ok(run) = run else {
        eprintln!("SKIPPED: no gcc on this machine");
        return None;
    };
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    Some(std::fs::read(&output).unwrap())
}

/// Asks all that can be asked of a source's named types; only panics and hangs count.
pub(crate) fn ask_everything(types: &TypeStore<'_>, source: SourceId) {
    let mut all: Vec<TypeRef> = Vec::new();
    for kind in NameKind::ALL {
        let _ = types.each_name(source, kind, &mut |_, ty| {
            all.push(ty);
            all.len() < 64
        });
        let _ = types.nearest(kind, "fo");
        let _ = types.find_in(source, kind, "foo");
    }
    for ty in all {
        let _ = (types.get(ty), types.strip(ty), types.size_of(ty), types.align_of(ty), types.display(ty));
        let _ = (types.enumerators(ty), types.params(ty), types.definition(ty, true), types.member(ty, "nosuch"));
        for member in types.members(ty).unwrap_or_default() {
            let _ = (types.size_of(member.ty), types.path(ty, member.name.unwrap_or("a.b[1]")));
        }
    }
    let _ = types.variables(source, "x");
    let _ = (types.find_enumerator("X"), types.function(source, "fn"), types.raw_tracepoint("x"));
}
