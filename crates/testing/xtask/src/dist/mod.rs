//! `cargo xtask dist`: builds the release folder.

mod build;
mod licences;
mod package;
mod packages;
mod sbom;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::suite;
use crate::vm::{Architecture, Hardware};

pub(crate) use package::{PACKAGE_TOOLS, checksums};

/// Shells that `dptrace completions` knows, each with the name of the file that it looks for.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "dptrace"),
    ("zsh", "_dptrace"),
    ("fish", "dptrace.fish"),
];

/// Files of the repository that are handed out, by their folder in the release folder. Of a folder,
/// its files are meant, without those of folders in it.
const FILES: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "LICENSE",
            "README.md",
            "CHANGELOG.md",
            "packaging/Containerfile",
        ],
    ),
    (
        "systemd",
        &[
            "packaging/dptrace-record@.service",
            "packaging/dptrace-serve.service",
        ],
    ),
    ("docs", &["docs"]),
    ("share/grafana", &["packaging/grafana/dptrace.json"]),
    ("share/kubernetes", &["packaging/kubernetes"]),
    ("share/prometheus", &["packaging/prometheus"]),
    ("share/queries", &["queries"]),
    ("share/scripts", &["scripts"]),
];

/// `cargo xtask dist`, as typed.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DistArgs {
    /// Leave out the packages for Debian and for RPM
    #[arg(long)]
    no_packages: bool,

    /// Architecture of the program
    #[arg(long, value_enum, default_value_t)]
    machine: Architecture,
}

const EXAMPLES: &str = "\
It goes into the folder dist beside the program that cargo built, and names that folder.
There are then:
  dptrace                          the program: stripped, needs no library
  dptrace.debug                    its symbols, for a debugger
  man/, completions/               for bash, zsh, fish
  docs/, share/, systemd/          documentation, rules and dashboards, scripts and queries, units
  THIRD-PARTY.md                   the licences of what is linked in
  Containerfile                    an image of nothing but the program
  dptrace-VERSION-ARCH.tar.gz      all of that but dptrace.debug
  dptrace-VERSION-ARCH.cdx.json    what is linked in, for machines: CycloneDX
  dptrace_VERSION-1_ARCH.deb       a package for Debian; needs: cargo install --locked cargo-deb
  dptrace-VERSION-1.ARCH.rpm       one for Fedora and SUSE; needs cargo-generate-rpm, likewise
  SHA256SUMS
The same commit gives the same bytes, in any folder.
`--machine aarch64` needs what docs/aarch64.md names.";

/// Runs the task.
pub(crate) fn run(args: &DistArgs) -> anyhow::Result<()> {
    let out = make(args.machine.hardware(), !args.no_packages)?;
    checksums(&out)?;
    let size = fs::metadata(out.join("dptrace"))
        .context("looking at the program's size")?
        .len();
    println!(
        "{}: dptrace has {:.1} MiB",
        out.display(),
        size as f64 / f64::from(1 << 20)
    );
    Ok(())
}

/// Builds the release folder of an architecture, but for its checksums; returns the folder.
pub(crate) fn make(hardware: &Hardware, with_packages: bool) -> anyhow::Result<PathBuf> {
    // Checked before the steps that take minutes.
    if with_packages {
        package::look_for_tools()?;
    }
    let built = build::build(hardware)?;
    // cargo-deb and cargo-generate-rpm find the files that the manifest of dptrace lists here, in
    // any target directory.
    let out = built.with_file_name("dist");
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| format!("removing {}", out.display()))?;
    }
    create(&out)?;
    let program = out.join("dptrace");
    build::strip(hardware, &built, &program, &out.join("dptrace.debug"))?;
    build::check(&program)?;
    manual(hardware, &program, &out)?;
    let linked = packages::linked_packages(hardware.target)?;
    write(
        &out.join("THIRD-PARTY.md"),
        licences::list_licences(&linked)?.as_bytes(),
    )?;
    for (folder, sources) in FILES {
        create(&out.join(folder))?;
        for source in *sources {
            copy_files(&suite::root().join(source), &out.join(folder))?;
        }
    }
    let moment = commit_time()?;
    package::tar(&out, hardware, moment)?;
    let bill = sbom::describe(&linked, hardware, &program, moment)?;
    write(
        &out.join(format!("{}.cdx.json", package::base_name(hardware))),
        bill.as_bytes(),
    )?;
    if with_packages {
        package::deb(&out, hardware, moment)?;
        package::rpm(&out, hardware, moment)?;
    }
    Ok(out)
}

/// Returns the folder of the release for an architecture.
///
/// # Errors
/// If there is no target directory.
pub(crate) fn folder(hardware: &Hardware) -> anyhow::Result<PathBuf> {
    Ok(crate::target_dir()?.join(hardware.target).join("dist/dist"))
}

/// Returns the time that everything handed out has, in seconds since 1970: that of the commit, or
/// `SOURCE_DATE_EPOCH`, or 0 without either.
fn commit_time() -> anyhow::Result<u64> {
    if let Some(given) = std::env::var_os("SOURCE_DATE_EPOCH") {
        let given = given.to_string_lossy();
        return given
            .parse()
            .with_context(|| format!("SOURCE_DATE_EPOCH is {given}, not a number of seconds"));
    }
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"])
        .current_dir(suite::root());
    Ok(output(&mut git)
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0))
}

/// Writes the man pages and the shells' completions, by the program itself.
fn manual(hardware: &Hardware, program: &Path, out: &Path) -> anyhow::Result<()> {
    let run = || match hardware.runner {
        None => Command::new(program),
        Some(runner) => {
            let mut emulated = Command::new(runner);
            emulated.arg(program);
            emulated
        }
    };
    let pages = out.join("man");
    create(&pages)?;
    run_command(run().arg("man").arg(&pages))?;
    for (shell, file) in COMPLETIONS {
        let folder = out.join("completions").join(shell);
        create(&folder)?;
        let text = output(run().args(["completions", shell]))?;
        write(&folder.join(file), text.as_bytes())?;
    }
    Ok(())
}

/// Runs a command; returns an error if it fails.
pub(crate) fn run_command(command: &mut Command) -> anyhow::Result<()> {
    let name = name_of(command);
    let status = command
        .status()
        .with_context(|| format!("running {name}"))?;
    ensure!(status.success(), "{name} failed: {status}");
    Ok(())
}

/// Runs a command and returns its standard output; an error if it fails.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let name = name_of(command);
    let done = command
        .output()
        .with_context(|| format!("running {name}"))?;
    ensure!(
        done.status.success(),
        "{name} failed: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).with_context(|| format!("reading what {name} says"))
}

fn name_of(command: &Command) -> String {
    let argument = command
        .get_args()
        .next()
        .map(OsStr::to_string_lossy)
        .unwrap_or_default();
    format!("{} {argument}", command.get_program().to_string_lossy())
}

fn write(to: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(to, bytes).with_context(|| format!("writing {}", to.display()))
}

fn create(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))
}

/// Copies a file, or the files of a folder, into a folder.
fn copy_files(from: &Path, to: &Path) -> anyhow::Result<()> {
    if !from.is_dir() {
        return copy(from, to);
    }
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let path = entry
            .with_context(|| format!("reading {}", from.display()))?
            .path();
        if path.is_file() {
            copy(&path, to)?;
        }
    }
    Ok(())
}

/// Copies a file into a folder.
pub(crate) fn copy(from: &Path, folder: &Path) -> anyhow::Result<()> {
    let to = folder.join(from.file_name().context("a file without a name")?);
    fs::copy(from, &to)
        .with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    Ok(())
}
