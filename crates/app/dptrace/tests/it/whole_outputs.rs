//! Output files are complete or absent: a command that fails or is killed leaves an old file as it
//! was, and nothing beside it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use capture::Timestamp;
use rustix::fs::{CWD, Mode, mkfifoat};

use crate::common::kernel::{PROGRAM, kernel, until};
use crate::common::live::{Application, Follow};
use crate::common::scenes::{add_rings, sample, write_absences};

/// Contents of an old file.
const OLD: &str = "an old file\n";
/// User id other than root's.
const OTHER_USER: u32 = 65_534;
/// Mode of a new file under the umask of these tests.
const BY_UMASK: u32 = 0o640;

/// Commands that write one file, `OUT`, from the demo's trace or without input.
const COMMANDS: &[&[&str]] = &[
    &["trace", "-i", "demo.trace", "-o", "OUT"],
    &["trace", "-i", "demo.trace", "--format", "csv", "-o", "OUT"],
    &["trace", "-i", "demo.trace", "--info", "-o", "OUT"],
    &["trace", "-i", "demo.trace", "--list-tpoints", "-o", "OUT"],
    &["latency", "demo.trace", "-o", "OUT"],
    &["timeline", "demo.trace", "-o", "OUT"],
    &["timeline", "demo.trace", "--json", "-o", "OUT"],
    &["timeline", "demo.trace", "--perfetto", "OUT"],
    &["report", "demo.trace", "-o", "OUT"],
    &["report", "demo.trace", "--svg", "OUT"],
    &["report", "demo.trace", "--png", "OUT"],
    &["list", PROGRAM, "-o", "OUT"],
    &["generate", "-o", "OUT"],
    &["objects", "-o", "OUT"],
    &["objects", "--list", "-o", "OUT"],
    &["scripts", "-o", "OUT"],
    &["run", "--fmt", "-e", "begin { exit(); }", "-o", "OUT"],
    &[
        "run",
        "--dump",
        "ast",
        "-e",
        "begin { exit(); }",
        "-o",
        "OUT",
    ],
    &["run", "--emit-object", "OUT", "-e", "begin { exit(); }"],
];

/// Commands that write one file from a capture.
const OF_CAPTURES: &[&[&str]] = &[
    &["timeline", "x.capture", "-o", "OUT"],
    &["timeline", "x.capture", "--ndjson", "-o", "OUT"],
    &["timeline", "x.capture/kernel.events", "-o", "OUT"],
    &["timeline", "x.capture", "--perfetto", "OUT"],
    &["trace", "-i", "x.capture", "--info", "-o", "OUT"],
    &["report", "x.capture", "-o", "OUT"],
    &["report", "x.capture", "--png", "OUT"],
];

/// Commands that write several files into a folder, `OUT`, and the name of one of the files.
const FOLDERS: &[(&[&str], &str)] = &[
    (&["demo", "--write", "OUT"], "demo.trace"),
    (&["man", "OUT"], "dptrace.1"),
    (
        &[
            "export",
            "demo.trace",
            "--parquet",
            "OUT",
            "--host",
            "h",
            "--at",
            "2026-11-23T06:32:00Z",
        ],
        "*.parquet",
    ),
];

/// Commands that need the kernel.
const AS_ROOT: &[&[&str]] = &[
    &[
        "run",
        "-q",
        "-e",
        "begin { printf(\"new\\n\"); exit(); }",
        "-o",
        "OUT",
    ],
    &["run", "-l", "tracepoint:sched:*", "-o", "OUT"],
];

/// Two ends for a command that writes: a disk that accepts nothing, and a kill in the middle (the
/// signal SIGXFSZ lets it finish nothing).
const ENDS: [&str; 2] = ["trap '' XFSZ; ulimit -f 0", "ulimit -c 0; ulimit -f 0"];

/// Runs a command in that folder after some lines of shell.
fn run(dir: &Path, first: &str, words: &[&str], out: &str) -> Output {
    let words: Vec<&str> = words
        .iter()
        .map(|word| if *word == "OUT" { out } else { word })
        .collect();
    let mut command = testkit::command("sh");
    command
        .args([
            "-c",
            &format!("umask 027; {first}; exec \"$@\""),
            "sh",
            PROGRAM,
        ])
        .args(words);
    command
        .current_dir(dir)
        .stdin(Stdio::null())
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

/// Returns all files below a folder, including hidden ones, with their contents.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

/// Checks a command that writes one file: when it fails, when it is killed, and when it succeeds;
/// also the mode of a new file.
#[track_caller]
fn check(dir: &Path, words: &[&str], new_mode: u32) {
    let out = dir.join("out");
    for has_old in [true, false] {
        let _ = fs::remove_file(&out);
        if has_old {
            fs::write(&out, OLD).unwrap();
            fs::set_permissions(&out, fs::Permissions::from_mode(0o604)).unwrap();
        }
        let before = files(dir);
        for end in ENDS {
            let failed = run(dir, end, words, "out");
            assert!(!failed.status.success(), "{words:?} {end}: {failed:?}");
            assert!(
                files(dir) == before,
                "{words:?} {end} changed: {:?}",
                files(dir).keys()
            );
        }
        let done = run(dir, "true", words, "out");
        assert!(done.status.success(), "{words:?}: {done:?}");
        assert_eq!(
            mode(&out),
            if has_old { 0o604 } else { new_mode },
            "{words:?}"
        );
        let mut after = files(dir);
        let written = after.remove(&out).unwrap();
        assert!(
            written != OLD.as_bytes() && !written.is_empty(),
            "{words:?}"
        );
        assert!(
            after.keys().eq(before.keys().filter(|path| **path != out)),
            "{words:?}: {:?}",
            after.keys()
        );
    }
}

#[test]
fn a_command_that_fails_leaves_an_old_file_and_nothing_beside_it() {
    let dir = sample();
    for words in COMMANDS {
        check(dir.path(), words, BY_UMASK);
    }
}

#[test]
fn what_is_made_of_a_capture_is_for_its_user_alone() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("x.capture");
    fs::create_dir(&folder).unwrap();
    let begin = Timestamp {
        utc: "2026-11-23T06:32:00Z".to_owned(),
        boot_nanos: 1_000_000,
    };
    write_absences(&folder, begin, b"other");
    for words in OF_CAPTURES {
        check(dir.path(), words, 0o600);
    }
    add_rings(&folder);
    for words in [
        &["trace", "-i", "x.capture", "-o", "OUT"],
        &["latency", "-i", "x.capture", "-o", "OUT"],
    ] {
        let done = run(dir.path(), "true", words, "of_trace");
        assert!(done.status.success(), "{words:?}: {done:?}");
        let out = dir.path().join("of_trace");
        assert_eq!(mode(&out), 0o600, "{words:?}");
        fs::remove_file(out).unwrap();
    }
    let done = run(
        dir.path(),
        "true",
        &["export", "x.capture", "--parquet", "OUT"],
        "tables",
    );
    assert!(done.status.success(), "{done:?}");
    let tables = files(&dir.path().join("tables"));
    assert!(
        !tables.is_empty() && tables.keys().all(|path| mode(path) == 0o600),
        "{tables:?}"
    );
}

#[test]
fn commands_that_need_the_kernel_leave_an_old_file() {
    let Some(_turn) = kernel() else { return };
    let dir = tempfile::tempdir().unwrap();
    for words in AS_ROOT {
        check(dir.path(), words, BY_UMASK);
    }
}

#[test]
fn files_that_belong_together_appear_together() {
    let dir = sample();
    for (words, name) in FOLDERS {
        let out = dir.path().join("folder");
        fs::create_dir(&out).unwrap();
        for end in ENDS {
            let failed = run(dir.path(), end, words, "folder");
            assert!(!failed.status.success(), "{words:?}: {failed:?}");
            assert!(
                files(&out).is_empty(),
                "{words:?} {end}: {:?}",
                files(&out).keys()
            );
        }
        let done = run(dir.path(), "true", words, "folder");
        assert!(done.status.success(), "{words:?}: {done:?}");
        let new = files(&out);
        let end = name.trim_start_matches('*');
        assert!(
            new.len() > 1 && new.keys().any(|path| path.to_str().unwrap().ends_with(end)),
            "{:?}",
            new.keys()
        );
        for path in new.keys() {
            assert_eq!(mode(path), BY_UMASK);
            fs::write(path, OLD).unwrap();
        }
        for end in ENDS {
            run(dir.path(), end, words, "folder");
            let is_old = |bytes: &Vec<u8>| bytes == OLD.as_bytes();
            assert!(
                files(&out).values().all(is_old) && files(&out).len() == new.len(),
                "{words:?} {end}"
            );
        }
        assert!(run(dir.path(), "true", words, "folder").status.success());
        assert!(
            files(&out).keys().eq(new.keys()),
            "{words:?}: {:?}",
            files(&out).keys()
        );
        fs::remove_dir_all(out).unwrap();
    }
}

/// If one of several files can't be replaced, the error names the others that are new.
#[test]
fn an_error_says_which_files_were_replaced() {
    let Some(_turn) = kernel() else { return };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("folder");
    fs::create_dir_all(&out).unwrap();
    for name in ["demo.trace", "demo.recording"] {
        fs::write(out.join(name), OLD).unwrap();
    }
    // In a folder with the sticky bit, another user's file may be written, but not replaced
    // (unlink(2)).
    fs::set_permissions(&out, fs::Permissions::from_mode(0o1777)).unwrap();
    fs::set_permissions(
        out.join("demo.recording"),
        fs::Permissions::from_mode(0o666),
    )
    .unwrap();
    for path in [out.clone(), out.join("demo.recording")] {
        chown(path, Some(OTHER_USER), None).unwrap();
    }
    let mut command = testkit::command("setpriv");
    command
        .args([
            "--bounding-set=-fowner",
            PROGRAM,
            "demo",
            "--write",
            "folder",
        ])
        .current_dir(dir.path());
    let done = command.output().unwrap();
    let messages = String::from_utf8(done.stderr).unwrap();
    assert!(
        !done.status.success() && messages.contains("already written: folder/demo.trace"),
        "{messages}"
    );
    let is_old = files(&out)
        .into_values()
        .map(|bytes| bytes == OLD.as_bytes())
        .collect::<Vec<_>>();
    assert_eq!(is_old, [true, false]);
}

#[test]
fn a_folder_in_the_place_of_a_file_is_seen_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("folder");
    fs::create_dir_all(out.join("demo.recording")).unwrap();
    let done = run(dir.path(), "true", &["demo", "--write", "OUT"], "folder");
    assert!(!done.status.success() && files(&out).is_empty(), "{done:?}");
}

#[test]
fn links_are_followed_and_what_is_no_file_is_written_directly() {
    let dir = sample();
    let (real, link) = (dir.path().join("real"), dir.path().join("link"));
    let words: &[&str] = &["objects", "--list", "-o", "OUT"];
    for there in [true, false] {
        if there {
            fs::write(&real, OLD).unwrap();
        }
        symlink("real", &link).unwrap();
        assert!(run(dir.path(), "true", words, "link").status.success());
        assert!(
            link.symlink_metadata().unwrap().is_symlink()
                && fs::read_to_string(&real).unwrap() != OLD
        );
        fs::remove_file(&link).unwrap();
        fs::remove_file(&real).unwrap();
    }
    let expected = run(dir.path(), "true", words, "-").stdout;
    for out in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        assert_eq!(
            run(dir.path(), "true", words, out).stdout,
            expected,
            "{out}"
        );
        // A descriptor is a file that the shell has opened: it is not replaced.
        run(dir.path(), "exec > real; ln real twin", words, out);
        assert!(
            fs::read(dir.path().join("twin")).unwrap() == expected
                && fs::read(&real).unwrap() == expected,
            "{out}"
        );
        fs::remove_file(dir.path().join("twin")).unwrap();
    }
    assert!(run(dir.path(), "true", words, "/dev/null").status.success());
    mkfifoat(CWD, dir.path().join("fifo"), Mode::from_raw_mode(0o600)).unwrap();
    assert_eq!(
        run(dir.path(), "cat fifo & true", words, "fifo").stdout,
        expected
    );
}

/// Without /proc, and on some file systems, an unnamed file can't be given a name. The file then
/// has a hidden name from the start, and is removed after a failure too.
#[test]
fn without_files_that_have_no_name_nothing_hidden_is_left_either() {
    let Some(_turn) = kernel() else { return };
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    fs::write(&out, OLD).unwrap();
    let without_proc = |first: &str| {
        let script = format!("umount -l /proc || exit 77; {first}; exec \"$@\"");
        let mut command = testkit::command("unshare");
        command
            .args([
                "--mount", "sh", "-c", &script, "sh", PROGRAM, "objects", "-o",
            ])
            .arg(&out);
        command.stdin(Stdio::null()).output().unwrap()
    };
    let failed = without_proc(ENDS[0]);
    if failed.status.code() == Some(77) {
        return crate::common::kernel::skip("mount", "nothing can be unmounted here");
    }
    assert!(
        !failed.status.success() && fs::read_to_string(&out).unwrap() == OLD,
        "{failed:?}"
    );
    let done = without_proc("true");
    assert!(
        done.status.success() && fs::read_to_string(&out).unwrap() != OLD,
        "{done:?}"
    );
    // Leftovers of a kill do not disturb a later run.
    let killed = without_proc(ENDS[1]);
    let left = fs::read_dir(dir.path()).unwrap().count();
    assert!(!killed.status.success() && left == 2, "{killed:?}: {left}");
    assert!(
        without_proc("true").status.success() && fs::read_dir(dir.path()).unwrap().count() == 2
    );
}

/// A file that may not be written is not replaced either.
#[test]
fn a_file_that_may_not_be_written_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    fs::write(&out, OLD).unwrap();
    fs::set_permissions(&out, fs::Permissions::from_mode(0o400)).unwrap();
    // Root may write every file, but not without its capabilities.
    let mut command = testkit::command("sh");
    let script =
        "test $(id -u) != 0 || set -- setpriv --bounding-set=-dac_override \"$@\"; exec \"$@\"";
    let done = command
        .args(["-c", script, "sh", PROGRAM, "objects", "-o"])
        .arg(&out)
        .output()
        .unwrap();
    assert!(
        !done.status.success() && fs::read_to_string(&out).unwrap() == OLD,
        "{done:?}"
    );
}

/// A file that is a mount point (`docker run -v FILE:FILE`) is refused before the work: renaming
/// over it failed only afterwards.
#[test]
fn a_file_that_is_a_mount_is_refused_at_once() {
    let Some(_alone) = kernel() else { return };
    let dir = sample();
    let dir = dir.path();
    fs::write(dir.join("out"), OLD).unwrap();
    let script = "mount --bind out out && exec \"$0\" latency demo.trace -o out";
    let mut command = testkit::command("unshare");
    command
        .args(["--mount", "sh", "-c", script, PROGRAM])
        .current_dir(dir)
        .stdin(Stdio::null());
    let done = command.output().unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(
        errors.contains("out: it is a mount point, so it can't be replaced"),
        "{errors}"
    );
    assert_eq!(
        (
            done.status.code(),
            fs::read_to_string(dir.join("out")).unwrap().as_str()
        ),
        (Some(1), OLD)
    );
}

/// A stream replaces an old file with its first bytes, and can be read from then on, even if the
/// command is killed.
#[test]
fn a_stream_replaces_an_old_file_once_it_has_begun() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    fs::write(&out, OLD).unwrap();
    let mut application = Application::start("follow::application");
    let path = application.path.to_str().unwrap().to_owned();
    for wrong in [
        &["trace", "--follow", "-i", "nowhere", "-o", "OUT"][..],
        &[
            "trace",
            "--follow",
            "-i",
            &path,
            "--where",
            "nonsense=1",
            "-o",
            "OUT",
        ],
    ] {
        let failed = run(dir.path(), "true", wrong, "out");
        assert!(
            !failed.status.success() && fs::read_to_string(&out).unwrap() == OLD,
            "{wrong:?}: {failed:?}"
        );
    }
    let mut follow = Follow::start(&application.path, &["-o", out.to_str().unwrap()]);
    application.record(10);
    until(
        || fs::read_to_string(&out).unwrap(),
        |text| text.lines().count() >= 10,
    );
    follow.kill();
    assert!(fs::read_to_string(&out).unwrap().lines().count() >= 10);
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        1,
        "something hidden is left"
    );
    application.end();
}
