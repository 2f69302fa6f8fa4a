//! Changes of HEAD since the last landing, by git.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

/// Variable that names the commit to compare with, if it is set.
const BASE_VARIABLE: &str = "DPTRACE_GATE_BASE";
/// Time span of the commits of one submission, in seconds: a session has three hours.
const SESSION_SECONDS: u64 = 4 * 3600;

/// Returns the commit to compare HEAD with: the one in the environment, or else the newest one
/// older than a session. `None` if there is none.
fn base(root: &Path) -> anyhow::Result<Option<String>> {
    if let Ok(named) = std::env::var(BASE_VARIABLE) {
        return Ok(Some(named));
    }
    let head: u64 = git(root, &["log", "-1", "--format=%ct"])?
        .trim()
        .parse()
        .context("reading the time of HEAD")?;
    let until = format!("--before={}", head.saturating_sub(SESSION_SECONDS));
    let found = git(
        root,
        &["log", "-1", "--first-parent", &until, "--format=%H"],
    )?;
    Ok(Some(found.trim().to_owned()).filter(|found| !found.is_empty()))
}

/// Returns the files that HEAD changed since the last landing, relative to `root`; all files if
/// there is no landing.
///
/// # Errors
/// If git fails, for example because the folder is no clone.
pub(crate) fn changed_files(root: &Path) -> anyhow::Result<Vec<String>> {
    let text = match base(root)? {
        Some(base) => git(root, &["diff", "--name-only", &base, "HEAD"])?,
        None => git(root, &["ls-files"])?,
    };
    Ok(text.lines().map(str::to_owned).collect())
}

/// Returns the package and function of each test that HEAD added or edited since the last landing;
/// empty if there is no landing.
///
/// # Errors
/// As [`changed_files`].
pub(crate) fn changed_tests(root: &Path) -> anyhow::Result<BTreeSet<(String, String)>> {
    let Some(base) = base(root)? else {
        return Ok(BTreeSet::new());
    };
    // Whole files around each change show in which test it lies. A moved file is compared with its
    // earlier self.
    let args = [
        "diff",
        "--find-renames=40%",
        "-l20000",
        "--unified=100000",
        &base,
        "HEAD",
        "--",
        "crates/*.rs",
    ];
    Ok(tests_in_diff(&git(root, &args)?))
}

/// Returns the tests with a changed line in a diff that has whole files.
fn tests_in_diff(diff: &str) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    let (mut package, mut is_test, mut function) = (None, false, None);
    // True if the test was ignored before: then it is new to the gate.
    let mut was_ignored = false;
    for line in diff.lines() {
        if let Some(path) = line.strip_prefix("+++ ") {
            package = path
                .strip_prefix("b/crates/")
                .and_then(|rest| rest.split('/').nth(1))
                .map(str::to_owned);
            (is_test, function) = (false, None);
            continue;
        }
        let (sign, code) = line.split_at_checked(1).unwrap_or(("", ""));
        let trimmed = code.trim();
        if sign == "@" || trimmed == "#[test]" {
            (is_test, function, was_ignored) = (trimmed == "#[test]", None, false);
        } else if sign == "-" && trimmed.starts_with("#[ignore") {
            was_ignored = true;
        } else if let Some(name) = trimmed
            .strip_prefix("fn ")
            .and_then(|rest| rest.split(['(', '<']).next())
        {
            function = is_test.then(|| name.to_owned());
            is_test = false;
        }
        // A removed line shows in the lines around it.
        let is_edited = sign == "+" || function.is_some() && std::mem::take(&mut was_ignored);
        if let (true, Some(package), Some(function)) = (is_edited, &package, &function) {
            found.insert((package.clone(), function.clone()));
        }
    }
    found
}

/// Runs git; returns its standard output.
///
/// # Errors
/// If git fails.
pub(super) fn git(root: &Path, args: &[&str]) -> anyhow::Result<String> {
    // A clone of another user, which CI's may be, must be readable, too.
    let done = Command::new("git")
        .args(["-c", "safe.directory=*", "-C"])
        .arg(root)
        .args(args)
        .output();
    let done = done.context("running git")?;
    ensure!(
        done.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&done.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_with_a_changed_line_is_changed() {
        let diff = "\
+++ b/crates/machine/elf/tests/it/files.rs
@@ -1,9 +1,9 @@
 fn helper() {
+    changed();
 }
 #[test]
 fn stays() {
     a();
 }
 #[test]
-#[ignore = \"deep truth: it judges time\"]
 fn comes_back() {
     a();
 }
 #[test]
 fn is_edited() {
-    b();
+    c();
 }
+#[test]
+fn is_new() {}
+++ b/README.md
+fn no_code() {}
";
        let found = tests_in_diff(diff);
        let expected = [
            ("elf", "comes_back"),
            ("elf", "is_edited"),
            ("elf", "is_new"),
        ]
        .map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(found, BTreeSet::from(expected));
    }
}
