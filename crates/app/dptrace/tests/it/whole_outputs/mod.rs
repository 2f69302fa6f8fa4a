//! Output files are complete or absent: a command that fails or is killed leaves an old file as it
//! was, and nothing beside it.

mod places;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use capture::Timestamp;

use crate::common::kernel::{PROGRAM, kernel};
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
fn files_made_from_a_capture_are_private() {
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
