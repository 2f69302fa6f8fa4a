//! Iterators over the kernel's objects, and whole names of files.

use bpf_program::event::RING;
use bpf_session::features::trials;
use bpf_session::{Features, RingReader, Session, SessionError};
use bt_abi::Attach;

use compiler_testkit::{compile, decode};

use crate::scripts::allowed;
use crate::scripts::facts::live;

/// Returns the output of a script's iterators.
fn printed(source: &str) -> Option<Vec<String>> {
    let _alone = allowed()?;
    let script = compile(source, &live()).unwrap_or_else(|wrong| panic!("{source}\n{wrong}"));
    let session = match Session::load(&script.module, Features::detect().unwrap()) {
        Err(error @ (SessionError::TooOld { .. } | SessionError::UntrustedPointer { .. })) => {
            println!("REFUSED: {error}: {source}");
            return None;
        }
        loaded => loaded.unwrap_or_else(|error| panic!("{source}\n{error}")),
    };
    let reader = RingReader::start(&session, RING, |bytes| Some(bytes.to_vec())).unwrap();
    for probe in script
        .probes
        .iter()
        .filter(|probe| probe.attach == Attach::Iterator)
    {
        session.iterate(probe.program, &probe.name).unwrap();
    }
    let mut events = Vec::new();
    reader.finish(|batch| events.extend(batch.iter().map(|bytes| decode::event(&script, bytes))));
    Some(events)
}

/// Guard that removes a file.
struct Gone<'a>(&'a std::path::Path);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0);
    }
}

#[test]
fn files_of_this_process_by_their_whole_names() {
    let place = std::env::temp_dir()
        .canonicalize()
        .unwrap()
        .join(format!("{}: a file of this test", std::process::id()));
    let _open = std::fs::File::create(&place).unwrap();
    // Its name is the same as long as it is there.
    let _gone = Gone(&place);
    let own = "iter:task_file /ctx.task.tgid == curtask.tgid/";
    let text = place.to_str().unwrap();
    let Some(names) = printed(&format!("{own} {{ print(path(ctx.file.f_path)); }}")) else {
        return;
    };
    assert!(names.iter().any(|name| name == text), "{text}: {names:?}");
    // Of a longer name the end is kept. A length counts the terminating NUL, as for str().
    let ends = printed(&format!("{own} {{ print(path(ctx.file.f_path, 10)); }}")).unwrap();
    assert!(ends.iter().any(|name| name == "this test"), "{ends:?}");
    let programs = printed(
        "iter:task /ctx.task.pid == curtask.pid/ { print(path(curtask.mm.exe_file.f_path)); }",
    );
    let own = std::env::current_exe().unwrap().canonicalize().unwrap();
    // The same from the object, and in loops. Newer kernels refuse both, since the object may not
    // keep its memory.
    let source = "iter:task /ctx.task.pid == curtask.pid/ \
                  { for ($i : 0..2) { print(path(ctx.task.mm.exe_file.f_path)); } }";
    let looped = printed(source);
    for (shown, count) in [(programs, 1), (looped, 2)] {
        assert!(shown.is_none_or(|shown| shown == vec![own.to_str().unwrap(); count]));
    }
}

#[test]
fn the_end_of_an_iteration_is_no_object() {
    let Some(tasks) = printed("iter:task { print((ctx.task.pid, ctx.task.comm)); }") else {
        return;
    };
    assert!(tasks.len() > 1, "{tasks:?}");
    assert!(
        !tasks.iter().any(|task| task.starts_with("(0, ")),
        "{tasks:?}"
    );
    // Linux has it since 5.12.
    if compile("iter:task_vma {}", &live())
        .is_err_and(|wrong| wrong.contains("no iterator task_vma"))
    {
        return;
    }
    let maps = printed(
        "iter:task_vma /ctx.task.tgid == curtask.tgid/ { print(ctx.vma.vm_end > ctx.vma.vm_start); }",
    );
    assert!(
        maps.is_none_or(|maps| !maps.is_empty() && maps.iter().all(|is_range| is_range == "true"))
    );
}

#[test]
fn limits_of_iterators_and_paths_are_reported() {
    let wrong = |source: &str| compile(source, &live()).unwrap_err();
    assert!(wrong("iter:task:list {}").contains("can't be pinned"));
    assert!(wrong("iter:no_such {}").contains("no iterator no_such"));
    assert!(wrong("kprobe:f { path(arg0); }").contains("can't be used in a kprobe probe"));
    assert!(
        wrong("iter:task_file { $f = ctx.file; path($f.f_path); }")
            .contains("that the kernel itself has given")
    );
    assert!(
        wrong("iter:task_file { path(ctx.file); }").contains("a struct path or a pointer to one")
    );
    assert!(wrong("iter:task_file { path(ctx.file.f_path, ctx.fd); }").contains("literal length"));
}

#[test]
fn functions_in_which_the_kernel_allows_no_path_are_reported() {
    let Some(_alone) = allowed() else { return };
    if !trials::fentry().is_yes() {
        println!("REFUSED: this kernel has no fentry");
        return;
    }
    let script = compile(
        "fentry:vfs_read { print(path(args.file.f_path)); }",
        &live(),
    )
    .unwrap();
    let refused = Session::load(&script.module, Features::detect().unwrap())
        .err()
        .unwrap();
    assert!(
        matches!(&refused, SessionError::NotInThis { place, .. } if place == "vfs_read"),
        "{refused}"
    );
    assert!(
        refused.is_unsupported() && refused.to_string().contains("filp_close"),
        "{refused}"
    );
}
