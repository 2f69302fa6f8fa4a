//! `cargo xtask release`: makes the files of a release, from a signed tag.

mod checks;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use crate::dist;
use crate::suite;
use crate::vm::Architecture;

/// Architectures of a release.
const MACHINES: [Architecture; 2] = [Architecture::X86_64, Architecture::Aarch64];

/// Endings of the files that a release takes from the folder of an architecture.
const ENDINGS: [&str; 4] = [".tar.gz", ".cdx.json", ".deb", ".rpm"];

/// `cargo xtask release`, as typed.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReleaseArgs {
    /// Version to release, such as 0.1.0: that of the workspace, of the changelog and of the tag
    version: String,

    /// Ask for no tag and no section of the changelog. Do not hand out the result
    #[arg(long)]
    rehearsal: bool,

    /// Only this architecture; may be given often [default: all]
    #[arg(long, value_enum)]
    machine: Vec<Architecture>,
}

const EXAMPLES: &str = "\
It checks that the tree has no changes, that CHANGELOG.md has a section of the version, and that
the tag vVERSION is signed and names this commit. Then it makes target/releases/VERSION, with an
archive, packages and a bill of materials for each architecture, install.sh and SHA256SUMS, and
beside it VERSION.md with the section of the changelog. docs/dev/release.md explains it.

Examples:
  git tag --sign v0.1.0 && cargo xtask release 0.1.0
  cargo xtask release 0.1.0 --rehearsal --machine x86-64";

/// Runs the task.
pub(crate) fn run(args: &ReleaseArgs) -> anyhow::Result<()> {
    let root = suite::root();
    checks::check(root, &args.version, args.rehearsal)?;
    let out = folder(&args.version)?;
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| format!("removing {}", out.display()))?;
    }
    fs::create_dir_all(&out).with_context(|| format!("creating {}", out.display()))?;
    let machines = if args.machine.is_empty() {
        &MACHINES[..]
    } else {
        &args.machine
    };
    for machine in machines {
        let made = dist::make(machine.hardware(), true)?;
        take(&made, &out)?;
    }
    dist::copy(&root.join("packaging/install.sh"), &out)?;
    dist::checksums(&out)?;
    if !args.rehearsal {
        let notes = out.with_file_name(format!("{}.md", args.version));
        fs::write(&notes, checks::notes(root, &args.version)?)
            .with_context(|| format!("writing {}", notes.display()))?;
    }
    println!("{}", out.display());
    Ok(())
}

/// Returns the folder of a release.
///
/// # Errors
/// If there is no target directory.
fn folder(version: &str) -> anyhow::Result<PathBuf> {
    Ok(crate::target_dir()?.join("releases").join(version))
}

/// Copies the files to hand out from the folder of an architecture.
fn take(made: &Path, out: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(made).with_context(|| format!("reading {}", made.display()))? {
        let entry = entry.with_context(|| format!("reading {}", made.display()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if ENDINGS.iter().any(|ending| name.ends_with(ending)) {
            dist::copy(&entry.path(), out)?;
        }
    }
    Ok(())
}
