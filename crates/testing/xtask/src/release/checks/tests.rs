//! Conditions of a release, on repositories that the tests make.

use std::fs;
use std::path::Path;
use tempfile::TempDir;
use testkit::kernel::skip_if_permitted;

use super::{check, check_tag, section};

/// Version of the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs a command in a folder, which must succeed.
fn run(folder: &Path, words: &[&str]) {
    let done = testkit::command(words[0])
        .args(&words[1..])
        .current_dir(folder)
        .output()
        .expect("it runs");
    let messages = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{words:?}: {messages}");
}

/// Returns whether keys can be made here; reports the skipped test if not.
fn has_keys() -> bool {
    let found = testkit::command("ssh-keygen").arg("-?").output();
    if let Err(error) = &found {
        skip_if_permitted("ssh-keygen", &error.to_string());
    }
    found.is_ok()
}

/// Makes a repository of one commit, with a changelog and a key that its git signs with and trusts.
fn repository(changelog: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path();
    run(path, &["git", "init", "--quiet"]);
    run(
        path,
        &[
            "ssh-keygen",
            "-q",
            "-t",
            "ed25519",
            "-N",
            "",
            "-f",
            ".git/key",
        ],
    );
    let public = fs::read_to_string(path.join(".git/key.pub")).expect("a key");
    fs::write(path.join(".git/signers"), format!("a@example.org {public}")).expect("written");
    let key = path.join(".git/key").display().to_string();
    let signers = path.join(".git/signers").display().to_string();
    for (name, value) in [
        ("user.name", "A"),
        ("user.email", "a@example.org"),
        ("gpg.format", "ssh"),
        ("user.signingkey", &key),
        ("gpg.ssh.allowedSignersFile", &signers),
    ] {
        run(path, &["git", "config", name, value]);
    }
    fs::write(path.join("CHANGELOG.md"), changelog).expect("written");
    run(path, &["git", "add", "CHANGELOG.md"]);
    run(
        path,
        &["git", "commit", "--quiet", "--no-gpg-sign", "-m", "one"],
    );
    dir
}

/// Returns the reason for which a version is not released.
fn refusal(dir: &TempDir, version: &str, is_rehearsal: bool) -> String {
    let error = check(dir.path(), version, is_rehearsal).expect_err("it is refused");
    format!("{error:#}")
}

#[test]
fn a_section_of_the_changelog_ends_at_the_next_version() {
    let text = "# Changelog\n\n## Unreleased\n\n## [0.2.0] - 2026-12-01\n\n### Fixed\n- b\n\n\
                ## 0.1.0\n- a\n";
    assert_eq!(section(text, "0.2.0").as_deref(), Some("### Fixed\n- b"));
    assert_eq!(section(text, "0.1.0").as_deref(), Some("- a"));
    assert_eq!(section(text, "Unreleased"), None);
    assert_eq!(section(text, "0.2"), None);
}

#[test]
fn a_signed_tag_of_the_present_commit_is_released() {
    if !has_keys() {
        return;
    }
    let dir = repository(&format!("## {VERSION}\n- a\n"));
    assert!(refusal(&dir, VERSION, false).contains("there is no tag"));
    run(
        dir.path(),
        &["git", "tag", "--sign", "-m", "x", &format!("v{VERSION}")],
    );
    check(dir.path(), VERSION, false).expect("it is released");
    run(
        dir.path(),
        &[
            "git",
            "commit",
            "--quiet",
            "--no-gpg-sign",
            "--allow-empty",
            "-m",
            "two",
        ],
    );
    assert!(refusal(&dir, VERSION, false).contains("names another commit"));
}

#[test]
fn a_tag_without_a_trusted_signature_is_refused() {
    if !has_keys() {
        return;
    }
    let dir = repository("");
    run(dir.path(), &["git", "tag", "--no-sign", "plain"]);
    run(dir.path(), &["git", "tag", "--sign", "-m", "x", "signed"]);
    let refused = |tag| format!("{:#}", check_tag(dir.path(), tag).expect_err("refused"));
    assert!(refused("plain").contains("no signature that git trusts"));
    check_tag(dir.path(), "signed").expect("it is trusted");
    fs::write(dir.path().join(".git/signers"), "").expect("written");
    assert!(refused("signed").contains("no signature that git trusts"));
}

#[test]
fn changes_another_version_and_a_missing_section_are_refused() {
    if !has_keys() {
        return;
    }
    let dir = repository("## Unreleased\n- a\n");
    assert!(refusal(&dir, "99.0.0", true).contains("the workspace has version"));
    assert!(refusal(&dir, VERSION, false).contains("no section"));
    check(dir.path(), VERSION, true).expect("a rehearsal needs no tag");
    fs::write(dir.path().join("new"), "").expect("written");
    assert!(refusal(&dir, VERSION, true).contains("?? new"));
}
