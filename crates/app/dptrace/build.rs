//! Sets the build facts that `dptrace --version` prints (commit, target, kind of build), and how
//! the static program is linked.
//!
//! The commit is looked up only for release builds, so that a new commit alone never rebuilds a
//! working tree. Without git, and in a tree without `.git` (an archive, a vendored copy), the
//! commit is unknown, and the build succeeds. Packagers name the commit with `DPTRACE_COMMIT`
//! instead.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Parts of the repository that are in the program: if one has changes, the commit alone does not
/// identify the build.
const SOURCES: [&str; 6] = [
    "crates",
    "objects",
    "scripts",
    "Cargo.toml",
    "Cargo.lock",
    ".cargo",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=DPTRACE_COMMIT");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let is_release = variable("PROFILE") == "release";
    let named = env::var("DPTRACE_COMMIT")
        .ok()
        .filter(|commit| is_plain(commit));
    let Commit { name, date } = match named {
        Some(name) => Commit {
            name,
            date: String::new(),
        },
        None if is_release => commit().unwrap_or_else(|| Commit::unknown("unknown")),
        None => Commit::unknown("not recorded in a debug build"),
    };
    let is_static = variable("CARGO_CFG_TARGET_FEATURE")
        .split(',')
        .any(|feature| feature == "crt-static");
    if is_static && variable("CARGO_CFG_TARGET_ENV") == "gnu" && packs_relocations() {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    let linked = if is_static { "static" } else { "dynamic" };
    let optimized = if variable("OPT_LEVEL") == "0" {
        "not optimized"
    } else {
        "optimized"
    };
    let shown = if date.is_empty() {
        name
    } else {
        format!("{name} ({date})")
    };
    println!("cargo::rustc-env=DPTRACE_COMMIT={shown}");
    println!("cargo::rustc-env=DPTRACE_DATE={date}");
    println!("cargo::rustc-env=DPTRACE_TARGET={}", variable("TARGET"));
    println!("cargo::rustc-env=DPTRACE_BUILD={linked}, {optimized}");
}

/// Returns whether the linked C library relocates itself by a packed table (`DT_RELR`), which is
/// 230 KB smaller. glibc does since 2.36 (its NEWS); an older one would not start. The version
/// comes from the compiler's headers, which also holds for a cross compiler. A program that is not
/// static gets no such table: it would need that glibc on each machine that it runs on.
fn packs_relocations() -> bool {
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    let compiler = env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let asked = Command::new(compiler)
        .args([
            "-E",
            "-dM",
            "-include",
            "features.h",
            "-x",
            "c",
            "/dev/null",
        ])
        .output();
    let Some(asked) = asked.ok().filter(|asked| asked.status.success()) else {
        return false;
    };
    let text = String::from_utf8_lossy(&asked.stdout).into_owned();
    let number = |name: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("#define {name} ")))?;
        line.trim().parse::<u32>().ok()
    };
    (number("__GLIBC__"), number("__GLIBC_MINOR__")) >= (Some(2), Some(36))
}

/// Name of the sources.
struct Commit {
    name: String,
    /// Date of the commit, for man pages; empty if it is unknown.
    date: String,
}

impl Commit {
    fn unknown(why: &str) -> Self {
        Self {
            name: why.to_owned(),
            date: String::new(),
        }
    }
}

/// Returns the commit of this tree, and whether the tree has changes. `None` if the tree is not a
/// checkout of its own.
fn commit() -> Option<Commit> {
    let root = Path::new(&env::var_os("CARGO_MANIFEST_DIR")?)
        .join("../../..")
        .canonicalize()
        .ok()?;
    // A tree that was unpacked inside another repository would get that repository's commits.
    let top = PathBuf::from(git(&root, &["rev-parse", "--show-toplevel"])?)
        .canonicalize()
        .ok()?;
    if top != root {
        return None;
    }
    // `logs/HEAD` is written at each commit. Cargo treats a missing file as changed.
    for name in ["HEAD", "logs/HEAD"] {
        watch(&root.join(git(&root, &["rev-parse", "--git-path", name])?));
    }
    for name in SOURCES {
        watch(&root.join(name));
    }
    let name = git(&root, &["rev-parse", "--short=12", "HEAD"]).filter(|name| is_plain(name))?;
    let date = git(&root, &["log", "-1", "--format=%cs"]).filter(|date| is_plain(date))?;
    let changes = git(
        &root,
        &[
            &["status", "--porcelain", "--untracked-files=no", "--"],
            &SOURCES[..],
        ]
        .concat(),
    )?;
    Some(Commit {
        name: if changes.is_empty() {
            name
        } else {
            format!("{name}, changed")
        },
        date,
    })
}

fn watch(path: &Path) {
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// Returns git's output. `None` if there is no git, or it fails on the tree.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command
        .arg("-C")
        .arg(root)
        .args(arguments)
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE");
    let done = command.output().ok().filter(|done| done.status.success())?;
    Some(String::from_utf8(done.stdout).ok()?.trim().to_owned())
}

/// Returns whether the text is safe in a line of output to Cargo, which ends at a line end.
fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() || byte == b' ')
}
