//! Helpers for several tests.

use typeinfo::{NameKind, SourceId, TypeRef, TypeStore};

/// Compiles a program with GCC; prints a note and returns `None` without GCC.
pub(crate) fn gcc(source: &str, options: &[&str]) -> Option<Vec<u8>> {
    gcc_of_files(&[source.to_owned()], options)
}

/// Compiles a program of several files.
pub(crate) fn gcc_of_files(sources: &[String], options: &[&str]) -> Option<Vec<u8>> {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("a.out");
    let mut command = testkit::command("gcc");
    command.args(options).arg("-w").arg("-o").arg(&output);
    for (number, source) in sources.iter().enumerate() {
        let name = if number == 0 {
            "a.c".to_owned()
        } else {
            format!("a{number}.c")
        };
        let input = dir.path().join(name);
        std::fs::write(&input, source).unwrap();
        command.arg(input);
    }
    let Ok(run) = command.output() else {
        testkit::kernel::skip_if_permitted("gcc", "no gcc on this machine");
        return None;
    };
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    Some(std::fs::read(&output).unwrap())
}

/// Runs all queries on a source's named types; only panics and hangs count.
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
    }
    let _ = types.variables(source, "x");
    let _ = (
        types.find_enumerator("X"),
        types.function(source, "fn"),
        types.raw_tracepoint("x"),
    );
}
