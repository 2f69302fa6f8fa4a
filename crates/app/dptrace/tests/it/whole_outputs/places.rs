//! Places of outputs: links, mounts, and folders without nameless files.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;

use rustix::fs::{CWD, Mode, mkfifoat};

use super::{ENDS, OLD, files, run};
use crate::common::kernel::{PROGRAM, kernel, until};
use crate::common::live::{Application, Follow};
use crate::common::scenes::sample;

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
