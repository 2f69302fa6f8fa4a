//! Tests of both ways of resolving paths, and of things that are not files.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// Makes a root directory with a secret beside it.
fn root() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("usr/lib")).unwrap();
    fs::write(dir.path().join("secret"), "secret").unwrap();
    fs::write(root.join("usr/lib/real"), "inner").unwrap();
    fs::write(root.join("secret"), "bait").unwrap();
    symlink("/usr/lib", root.join("lib")).unwrap();
    symlink("../../../secret", root.join("usr/lib/up")).unwrap();
    symlink(dir.path().join("secret"), root.join("usr/lib/out")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    (dir, root)
}

fn text(opened: &OpenedFile) -> String {
    String::from_utf8(opened.text(100).unwrap()).unwrap()
}

/// Does the same as [`below`], on every kernel in the way of one without openat2.
fn walked(root: &Path, path: &str) -> io::Result<OpenedFile> {
    let root = hold_root(root)?;
    let held = walk::walk(&root, Path::new(path), walk::Links::Follow)?;
    let real = path_within(&root, &held).unwrap();
    open(&held, real)
}

#[test]
fn no_link_leads_out_of_the_root() {
    let (_dir, root) = root();
    let both = |path: &str| {
        let (one, other) = (below(&root, Path::new(path)), walked(&root, path));
        [one, other].map(|found| {
            found
                .map(|it| (it.real.clone(), text(&it)))
                .map_err(|error| error.raw_os_error())
        })
    };
    let inner = Ok((PathBuf::from("/usr/lib/real"), "inner".to_owned()));
    let bait = Ok((PathBuf::from("/secret"), "bait".to_owned()));
    for (path, expected) in [
        ("/usr/lib/real", &inner),
        ("/lib/real", &inner),
        ("lib/../lib/real", &inner),
        ("/../../lib/real", &inner),
        ("/usr/lib/up", &bait),
        ("/../secret", &bait),
        ("/usr/lib/out", &Err(Some(Errno::NOENT.raw_os_error()))),
        ("/loop", &Err(Some(Errno::LOOP.raw_os_error()))),
        (
            "/usr/lib/real/more",
            &Err(Some(Errno::NOTDIR.raw_os_error())),
        ),
    ] {
        assert_eq!(&both(path), &[expected.clone(), expected.clone()], "{path}");
    }
}

#[test]
fn a_reported_path_has_no_links() {
    let (dir, root) = root();
    let place = |path: &str| root.canonicalize().unwrap().join(path);
    assert_eq!(text(&reported(&place("usr/lib/real")).unwrap()), "inner");
    assert_eq!(
        reported(&place("lib/real")).unwrap_err().raw_os_error(),
        Some(Errno::LOOP.raw_os_error())
    );
    let held = hold_root(dir.path()).unwrap();
    let refused = walk::walk(&held, Path::new("root/lib/real"), walk::Links::Refuse).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(Errno::LOOP.raw_os_error()));
}

#[test]
fn special_files_are_not_opened() {
    let (dir, root) = root();
    let pipe = dir.path().join("pipe");
    rustix::fs::mkfifoat(CWD, &pipe, Mode::RUSR).unwrap();
    symlink(&pipe, root.join("pipe")).unwrap();
    for path in [pipe.as_path(), dir.path(), Path::new("/dev/zero")] {
        assert!(is_no_file(&named(path).unwrap_err()), "{path:?}");
    }
    for path in [
        "/proc/self/status",
        "/proc/version",
        "/sys/kernel/uevent_seqnum",
    ] {
        let error = named(Path::new(path)).unwrap_err().to_string();
        assert!(
            error.contains("the kernel's own file system"),
            "{path}: {error}"
        );
    }
    assert!(named(Path::new("/proc/self/exe")).is_ok());
}

#[test]
fn a_length_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sparse");
    fs::write(&path, [1; 8192]).unwrap();
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let opened = named(&path).unwrap();
    assert_eq!(opened.length, 1 << 40);
    assert!(opened.may_read(1 << 20).is_ok());
    assert!(
        opened.may_read(1 << 40).is_err()
            && opened.checksum().is_err()
            && opened.text(1 << 20).is_err()
    );
    fs::write(&path, "123456789").unwrap();
    // The CRC catalogue's check value of CRC-32/ISO-HDLC.
    assert_eq!(named(&path).unwrap().checksum().unwrap(), 0xcbf4_3926);
}
