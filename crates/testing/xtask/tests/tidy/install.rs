//! `packaging/install.sh`, with a folder in the place of a release's address.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;

use tempfile::TempDir;
use testkit::kernel::skip_if_permitted;

use super::root;

/// Release of a program that only prints its version, and a folder to install into.
struct Release {
    dir: TempDir,
}

impl Release {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("machine")).unwrap();
        fs::create_dir(dir.path().join("release")).unwrap();
        let release = Self { dir };
        release.publish("0.1.0", "x86_64");
        release.publish("0.1.0", "aarch64");
        release.list();
        release.pretend("x86_64");
        release
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Folder that is installed into. It does not exist yet.
    fn prefix(&self) -> PathBuf {
        self.path("prefix")
    }

    /// Adds the archive of a version, with the files that `cargo xtask dist` packs.
    fn publish(&self, version: &str, arch: &str) {
        let name = format!("dptrace-{version}-{arch}");
        let folder = self.path("release").join(&name);
        for file in [
            "man/dptrace.1",
            "man/dptrace-trace.1",
            "completions/bash/dptrace",
            "completions/zsh/_dptrace",
            "completions/fish/dptrace.fish",
            "docs/trace.md",
            "share/scripts/runqlat.bt",
            "share/prometheus/dptrace-rules.yaml",
            "LICENSE",
            "README.md",
            "CHANGELOG.md",
            "THIRD-PARTY.md",
        ] {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        fs::create_dir(folder.join("systemd")).unwrap();
        let unit = "systemd/dptrace-serve.service";
        fs::copy(
            root().join("packaging/dptrace-serve.service"),
            folder.join(unit),
        )
        .unwrap();
        write_program(
            &folder.join("dptrace"),
            &format!("echo dptrace {version} {arch}"),
        );
        let archive = format!("{name}.tar.gz");
        self.in_release("tar", &["-czf", &archive, &name]);
        fs::remove_dir_all(folder).unwrap();
    }

    /// Writes SHA256SUMS of the archives.
    fn list(&self) {
        self.in_release("sh", &["-c", "sha256sum *.tar.gz > SHA256SUMS"]);
    }

    fn in_release(&self, program: &str, args: &[&str]) {
        let folder = self.path("release");
        let done = testkit::command(program)
            .args(args)
            .current_dir(folder)
            .status();
        assert!(done.unwrap().success(), "{program} {args:?}");
    }

    /// Lets the script see another processor.
    fn pretend(&self, machine: &str) {
        let text = format!("case $1 in -m) echo {machine} ;; *) echo Linux ;; esac");
        write_program(&self.path("machine/uname"), &text);
    }

    fn run(&self, args: &[&str]) -> Output {
        let path = std::env::var_os("PATH").unwrap();
        let mut folders = vec![self.path("machine")];
        folders.extend(std::env::split_paths(&path));
        testkit::command("sh")
            .arg(root().join("packaging/install.sh"))
            .args(args)
            .env("PATH", std::env::join_paths(folders).unwrap())
            .env("PREFIX", self.prefix())
            .env(
                "DPTRACE_URL",
                format!("file://{}", self.path("release").display()),
            )
            .env("TMPDIR", self.dir.path())
            .output()
            .unwrap()
    }

    /// Runs the script, which must succeed; returns what it prints.
    fn succeed(&self, args: &[&str]) -> String {
        let done = self.run(args);
        assert!(done.status.success(), "{done:?}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Runs the script, which must fail before it has written anything; returns its message.
    fn fail(&self, args: &[&str]) -> String {
        let done = self.run(args);
        assert_eq!(done.status.code(), Some(1), "{done:?}");
        assert!(!self.prefix().exists(), "it has written something");
        String::from_utf8_lossy(&done.stderr).into_owned()
    }

    /// Returns whether only the folders of the test are left, and none of the script's own.
    fn has_no_leftovers(&self) -> bool {
        let entries = fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<_> = entries.map(|it| it.unwrap().file_name()).collect();
        names.retain(|name| name != OsStr::new("prefix"));
        names.sort();
        names == ["machine", "release"]
    }
}

fn write_program(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns whether the script can download from a folder here: wget cannot.
fn has_curl() -> bool {
    let found = testkit::command("curl").arg("--version").output();
    if let Err(error) = &found {
        skip_if_permitted("curl", &error.to_string());
    }
    found.is_ok()
}

#[test]
fn an_archive_with_the_right_checksum_is_installed() {
    if !has_curl() {
        return;
    }
    for machine in ["x86_64", "aarch64"] {
        let release = Release::new();
        release.pretend(machine);
        let printed = release.succeed(&[]);
        assert!(
            printed.contains(&format!("dptrace 0.1.0 {machine} is installed")),
            "{printed}"
        );
        let to = release.prefix();
        for file in [
            "share/man/man1/dptrace-trace.1",
            "share/bash-completion/completions/dptrace",
            "share/zsh/site-functions/_dptrace",
            "share/fish/vendor_completions.d/dptrace.fish",
            "share/dptrace/scripts/runqlat.bt",
            "share/doc/dptrace/LICENSE",
        ] {
            assert!(to.join(file).is_file(), "{file}");
        }
        let unit = fs::read_to_string(to.join("lib/systemd/system/dptrace-serve.service")).unwrap();
        assert!(
            unit.contains(&format!("ExecStart={}/bin/dptrace serve", to.display())),
            "{unit}"
        );
        assert!(release.has_no_leftovers());
    }
}

#[test]
fn an_archive_with_another_checksum_is_refused() {
    if !has_curl() {
        return;
    }
    let release = Release::new();
    release.publish("0.1.0", "aarch64");
    let archive = release.path("release/dptrace-0.1.0-x86_64.tar.gz");
    let mut bytes = fs::read(&archive).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&archive, bytes).unwrap();
    let message = release.fail(&[]);
    assert!(
        message.contains("is not the file that SHA256SUMS names"),
        "{message}"
    );
    assert!(release.has_no_leftovers());
}

#[test]
fn a_release_without_this_machines_archive_is_refused() {
    if !has_curl() {
        return;
    }
    let release = Release::new();
    release.pretend("riscv64");
    assert!(
        release
            .fail(&[])
            .contains("there is no release for riscv64")
    );
    release.pretend("aarch64");
    fs::remove_file(release.path("release/dptrace-0.1.0-aarch64.tar.gz")).unwrap();
    assert!(release.fail(&[]).contains("cannot download"));
    release.list();
    assert!(release.fail(&[]).contains("names no archive for aarch64"));
    release.publish("0.1.0", "aarch64");
    release.publish("0.2.0", "aarch64");
    release.list();
    assert!(release.fail(&[]).contains("names two archives"));
}

#[test]
fn uninstall_removes_what_was_installed_and_nothing_else() {
    if !has_curl() {
        return;
    }
    let release = Release::new();
    assert!(
        release
            .fail(&["--uninstall"])
            .contains("nothing of this script is in")
    );
    release.succeed(&[]);
    release.succeed(&["--uninstall"]);
    assert!(!release.prefix().exists());
    release.succeed(&[]);
    let others = release.prefix().join("share/man/man1/other.1");
    fs::write(&others, "").unwrap();
    release.succeed(&["--uninstall"]);
    assert!(others.exists());
    assert!(!release.prefix().join("bin").exists());
    assert!(!release.prefix().join("share/dptrace").exists());
}

#[test]
fn a_newer_release_takes_the_place_of_the_older() {
    if !has_curl() {
        return;
    }
    let release = Release::new();
    release.succeed(&[]);
    fs::remove_file(release.path("release/dptrace-0.1.0-x86_64.tar.gz")).unwrap();
    release.publish("0.2.0", "x86_64");
    release.list();
    assert!(
        release
            .succeed(&[])
            .contains("dptrace 0.2.0 x86_64 is installed")
    );
    release.succeed(&["--uninstall"]);
    assert!(!release.prefix().exists());
}

#[test]
fn a_program_from_elsewhere_is_not_replaced() {
    if !has_curl() {
        return;
    }
    let release = Release::new();
    let own = release.prefix().join("bin/dptrace");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, "mine").unwrap();
    let done = release.run(&[]);
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&done.stderr).contains("is not from this script"));
    assert_eq!(fs::read_to_string(own).unwrap(), "mine");
}

#[test]
fn the_script_has_no_mistake_that_shellcheck_knows() {
    let script = root().join("packaging/install.sh");
    match testkit::command("shellcheck").arg(script).output() {
        Ok(done) => {
            let text = String::from_utf8_lossy(&done.stdout);
            assert!(done.status.success(), "{text}");
        }
        Err(error) => skip_if_permitted("shellcheck", &error.to_string()),
    }
}
