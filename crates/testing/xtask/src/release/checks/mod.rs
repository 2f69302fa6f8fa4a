//! Conditions of a release: what git and the changelog must say about it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::dist::output;

/// Checks that a folder's checkout may be released as a version.
///
/// # Errors
/// If it may not, with the reason and with what to do about it.
pub(super) fn check(root: &Path, version: &str, is_rehearsal: bool) -> anyhow::Result<()> {
    let ours = env!("CARGO_PKG_VERSION");
    ensure!(
        version == ours,
        "the workspace has version {ours}, not {version}: \
         change it in Cargo.toml, also in [workspace.dependencies], and commit it with Cargo.lock"
    );
    let changes = git(root, &["status", "--porcelain"])?;
    ensure!(
        changes.is_empty(),
        "the tree has changes: commit or remove them\n{changes}"
    );
    if is_rehearsal {
        return Ok(());
    }
    notes(root, version)?;
    check_tag(root, &format!("v{version}"))
}

/// Returns the section of a version in the changelog, without its heading.
pub(super) fn notes(root: &Path, version: &str) -> anyhow::Result<String> {
    let path = root.join("CHANGELOG.md");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    section(&text, version)
        .with_context(|| format!("CHANGELOG.md has no section `## {version}`, or it is empty"))
}

/// Returns the text below `## VERSION` or `## [VERSION]`, if there is some.
fn section(text: &str, version: &str) -> Option<String> {
    let is_heading = |line: &&str| {
        let rest = line.strip_prefix("## ").unwrap_or_default();
        let name = rest.split([' ', ',']).next().unwrap_or_default();
        name.trim_matches(['[', ']']) == version
    };
    let lines = text.lines().skip_while(|line| !is_heading(line)).skip(1);
    let lines: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
    let text = lines.join("\n").trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Checks that a tag names HEAD, and that its signature is one that git trusts.
fn check_tag(root: &Path, tag: &str) -> anyhow::Result<()> {
    let tagged = git(
        root,
        &[
            "rev-parse",
            "--verify",
            "--quiet",
            &format!("{tag}^{{commit}}"),
        ],
    )
    .with_context(|| {
        format!("there is no tag {tag}: git tag --sign {tag}, or rehearse with --rehearsal")
    })?;
    ensure!(
        tagged == git(root, &["rev-parse", "HEAD"])?,
        "the tag {tag} names another commit: git checkout {tag}"
    );
    git(root, &["verify-tag", tag])
        .with_context(|| format!("the tag {tag} has no signature that git trusts"))?;
    Ok(())
}

fn git(root: &Path, args: &[&str]) -> anyhow::Result<String> {
    let text = output(Command::new("git").args(args).current_dir(root))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests;
