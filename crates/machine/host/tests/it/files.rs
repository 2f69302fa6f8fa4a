//! Real files and processes of this machine.

use std::path::Path;
use std::process::Stdio;

use elf::ElfError;
use elf::symbols::Functions;
use host::{FilePlace, HostError, Pid, Process};

fn own() -> Process {
    Process::open(Pid(std::process::id())).unwrap()
}

#[test]
fn our_own_program_and_its_libraries() {
    let process = own();
    let program = process.program();
    assert_eq!(program.path(), std::env::current_exe().unwrap());
    assert!(!program.is_deleted());
    program.load().unwrap().image().unwrap();
    let libraries = process.libraries();
    let libc = libraries
        .iter()
        .find(|place| place.path().to_string_lossy().contains("libc.so"))
        .unwrap();
    let (read, file) = (libc.load().unwrap(), std::fs::read(libc.path()).unwrap());
    let image = read.image().unwrap();
    assert_eq!(image.data().len(), file.len());
    let code = image
        .address_map()
        .segments()
        .iter()
        .find(|segment| segment.executable)
        .unwrap();
    let code = code.offset.0 as usize..(code.offset.0 + code.file_size) as usize;
    assert_eq!(image.data()[code.clone()], file[code]);
    let whole = elf::ElfImage::parse(&file).unwrap();
    assert_eq!(Functions::read(&image, None), Functions::read(&whole, None));
    let symbols = libc.load_symbols().unwrap();
    assert_eq!(
        Functions::read(&symbols.image().unwrap(), None),
        Functions::read(&whole, None)
    );
    assert!(libraries.iter().all(|place| place.path() != program.path()));
}

#[test]
fn a_deleted_program_is_still_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sleeper");
    testkit::copy_program("/bin/sleep", &path);
    let mut child = testkit::command(&path).arg("60").spawn().unwrap();
    std::fs::remove_file(&path).unwrap();
    let process = Process::open(Pid(child.id())).unwrap();
    let program = process.program();
    let loaded = program
        .load()
        .map(|file| file.image().unwrap().data().len() as u64);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(program.is_deleted());
    assert_eq!(program.path(), path.canonicalize().unwrap_or(path));
    assert_eq!(
        loaded.unwrap(),
        std::fs::metadata("/bin/sleep").unwrap().len()
    );
}

#[test]
fn an_ended_process_is_reported() {
    assert!(matches!(
        Process::open(Pid(0)),
        Err(HostError::NoProcess { .. })
    ));
    assert!(matches!(
        Process::open(Pid(u32::MAX)),
        Err(HostError::NoProcess { .. })
    ));
    let mut child = testkit::command("true").spawn().unwrap();
    let pid = Pid(child.id());
    while std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.contains(") Z"))
    {
        std::thread::yield_now();
    }
    assert!(
        matches!(Process::open(pid), Err(HostError::Ended { .. })),
        "{:?}",
        Process::open(pid)
    );
    child.wait().unwrap();
    assert!(matches!(
        Process::open(pid),
        Err(HostError::NoProcess { .. })
    ));
}

#[test]
fn a_file_that_is_not_elf_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let load = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        FilePlace::at(&path)
            .load()
            .and_then(|file| file.image().map(|_| ()))
            .unwrap_err()
    };
    let script = load("script", b"#!/bin/sh\nexit\n");
    assert!(
        matches!(
            &script,
            HostError::Elf {
                source: ElfError::Script { .. },
                ..
            }
        ),
        "{script}"
    );
    let text = load("text", b"hello");
    assert!(
        matches!(
            &text,
            HostError::Elf {
                source: ElfError::NotElf { .. },
                ..
            }
        ),
        "{text}"
    );
    let mut narrow = [0; 64];
    narrow[..5].copy_from_slice(b"\x7fELF\x01");
    narrow[18] = 3;
    let narrow = load("narrow", &narrow);
    assert!(
        matches!(
            &narrow,
            HostError::Elf {
                source: ElfError::Class32 { .. },
                ..
            }
        ),
        "{narrow}"
    );
    assert!(matches!(
        FilePlace::at(dir.path()).load(),
        Err(HostError::NotAFile { .. })
    ));
    assert!(matches!(
        FilePlace::at(Path::new("/no/such")).load(),
        Err(HostError::Read { .. })
    ));
}

/// Runs a tool of binutils; returns false and reports it if there is none.
fn ran(tool: &str, args: &[&str], dir: &Path) -> bool {
    match testkit::command(tool)
        .args(args)
        .current_dir(dir)
        .stderr(Stdio::inherit())
        .status()
    {
        Ok(status) => {
            assert!(status.success(), "{tool} {args:?}");
            true
        }
        Err(error) => {
            testkit::kernel::skip_if_permitted("tools", &format!("no {tool} here: {error}"));
            false
        }
    }
}

/// A stripped copy of this test's own program finds its functions beside it, and not in a file of another build.
#[test]
fn a_debug_file_is_found_by_its_link() {
    let dir = tempfile::tempdir().unwrap();
    let own = std::env::current_exe().unwrap();
    let own = own.to_str().unwrap();
    if !ran(
        "objcopy",
        &["--only-keep-debug", own, "x.debug"],
        dir.path(),
    ) {
        return;
    }
    let strip = [
        "--strip-all",
        "--remove-section=.note.gnu.build-id",
        "--add-gnu-debuglink=x.debug",
        own,
        "x",
    ];
    ran("objcopy", &strip, dir.path());
    let file = FilePlace::at(&dir.path().join("x")).load().unwrap();
    let count = |debug: Option<&host::ElfFile>| {
        let debug = debug.map(|file| file.image().unwrap());
        Functions::read(&file.image().unwrap(), debug.as_ref())
            .all()
            .len()
    };
    let without = count(None);
    let beside = file.debug_file().unwrap();
    assert!(count(Some(&beside)) > without + 100);

    std::fs::create_dir(dir.path().join(".debug")).unwrap();
    std::fs::rename(
        dir.path().join("x.debug"),
        dir.path().join(".debug/x.debug"),
    )
    .unwrap();
    assert!(
        file.debug_file()
            .unwrap()
            .opened()
            .ends_with(".debug/x.debug")
    );

    std::fs::write(dir.path().join(".debug/x.debug"), "another").unwrap();
    assert!(file.debug_file().is_none());
}

/// Debian's `libc6-dbg` puts libc's debug file under its build-id.
#[test]
fn a_debug_file_is_found_by_its_build_id() {
    let process = own();
    let libraries = process.libraries();
    let libc = libraries
        .iter()
        .find(|place| place.path().to_string_lossy().contains("libc.so"))
        .unwrap()
        .load()
        .unwrap();
    let id = libc.image().unwrap().build_id().unwrap().to_string();
    let expected = format!("/usr/lib/debug/.build-id/{}/{}.debug", &id[..2], &id[2..]);
    if !Path::new(&expected).exists() {
        testkit::kernel::skip_if_permitted(
            "libc6-dbg",
            &format!("{expected} is not there (Debian: libc6-dbg)"),
        );
        return;
    }
    assert!(
        libc.debug_file()
            .unwrap()
            .opened()
            .ends_with(expected.trim_start_matches('/'))
    );
}
