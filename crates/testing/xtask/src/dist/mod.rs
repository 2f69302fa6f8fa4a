//! `cargo xtask dist`: builds the release folder.

mod licences;
mod package;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use clap::Args;

/// Limit on the size of the program's file, which is copied over slow lines onto foreign machines.
const MAX_PROGRAM_BYTES: u64 = 12 << 20;

/// Folder of the workspace.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");

/// Shells that `dptrace completions` knows, each with the name of the file that it looks for.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "dptrace"),
    ("zsh", "_dptrace"),
    ("fish", "dptrace.fish"),
];

/// `cargo xtask dist`, as typed.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DistArgs {
    /// Leave out the Debian package
    #[arg(long)]
    no_deb: bool,
}

const EXAMPLES: &str = "\
It goes into the folder dist beside the program that cargo built, and names that folder. There are then:
  dptrace                          the program: stripped, needs no library
  dptrace.debug                    its symbols, for a debugger
  man/, completions/               for bash, zsh, fish
  THIRD-PARTY.md                   the licences of what is linked in
  dptrace-VERSION-ARCH.tar.gz      all of that but dptrace.debug
  dptrace_VERSION-1_ARCH.deb       the same as a package; needs: cargo install --locked cargo-deb
  Containerfile                    an image of nothing but the program
  dptrace-record@.service          a systemd unit that records a process
  dptrace-serve.service            a systemd unit for Prometheus, on each machine
  SHA256SUMS";

/// Runs the task.
pub(crate) fn run(args: &DistArgs) -> anyhow::Result<()> {
    // Checked before the steps that take minutes.
    if !args.no_deb {
        package::look_for_cargo_deb()?;
    }
    let (built, target) = build()?;
    // cargo-deb finds the files of the package's manifest here, in any target directory.
    let out = &built.with_file_name("dist");
    if out.exists() {
        fs::remove_dir_all(out).with_context(|| format!("removing {}", out.display()))?;
    }
    fs::create_dir_all(out).with_context(|| format!("creating {}", out.display()))?;
    let program = out.join("dptrace");
    strip(&built, &program, &out.join("dptrace.debug"))?;
    check(&program)?;
    manual(&program, out)?;
    write(
        &out.join("THIRD-PARTY.md"),
        licences::list_licences(target)?.as_bytes(),
    )?;
    for file in [
        "LICENSE",
        "README.md",
        "packaging/Containerfile",
        "packaging/dptrace-record@.service",
        "packaging/dptrace-serve.service",
    ] {
        let from = Path::new(ROOT).join(file);
        copy(
            &from,
            &out.join(from.file_name().context("a file without a name")?),
        )?;
    }
    package::tar(out, target)?;
    if !args.no_deb {
        package::deb(out, target)?;
    }
    package::checksums(out)?;
    let size = fs::metadata(&program)
        .context("looking at the program's size")?
        .len();
    println!(
        "{}: dptrace has {:.1} MiB",
        out.display(),
        size as f64 / f64::from(1 << 20)
    );
    Ok(())
}

/// Builds the program as for a release; returns its path and the target's name.
fn build() -> anyhow::Result<(PathBuf, &'static str)> {
    run_command(crate::cargo().args(["static", "--quiet", "-p", "dptrace"]))?;
    // The alias `static` builds for this target; another machine needs such an alias first.
    let target = "x86_64-unknown-linux-gnu";
    Ok((
        crate::target_dir()?.join(target).join("dist/dptrace"),
        target,
    ))
}

/// Returns the folder of the release.
///
/// # Errors
/// If there is no target directory.
pub(crate) fn folder() -> anyhow::Result<PathBuf> {
    Ok(crate::target_dir()?.join("x86_64-unknown-linux-gnu/dist/dist"))
}

/// Functions of the demo target that its page recommends for uprobes.
const KEPT_FUNCTIONS: [&str; 2] = [
    "--keep-symbol=demo_request_start",
    "--keep-symbol=demo_request_complete",
];

/// Strips the program of its symbols, which go into a separate file that debuggers find by the
/// build id.
fn strip(built: &Path, program: &Path, debug: &Path) -> anyhow::Result<()> {
    run_command(
        Command::new("objcopy")
            .arg("--only-keep-debug")
            .arg(built)
            .arg(debug),
    )?;
    run_command(
        Command::new("objcopy")
            .arg("--strip-all")
            .args(KEPT_FUNCTIONS)
            .arg(built)
            .arg(program),
    )
}

/// Rejects a program that can't be copied onto any machine and started there.
fn check(program: &Path) -> anyhow::Result<()> {
    let size = fs::metadata(program)
        .context("looking at the program's size")?
        .len();
    ensure!(
        size <= MAX_PROGRAM_BYTES,
        "the program has {size} bytes: the most is {MAX_PROGRAM_BYTES}; cargo bloat says what takes the room"
    );
    let dynamic = output(
        Command::new("readelf")
            .args(["--wide", "--dynamic", "--program-headers"])
            .arg(program),
    )?;
    let needs: Vec<&str> = dynamic
        .lines()
        .filter(|line| line.contains("(NEEDED)") || line.contains("interpreter:"))
        .collect();
    ensure!(
        needs.is_empty(),
        "the program needs what a machine may not have: {}",
        needs.join("; ")
    );
    Ok(())
}

/// Writes the man pages and the shells' completions, by the program itself.
fn manual(program: &Path, out: &Path) -> anyhow::Result<()> {
    let pages = out.join("man");
    fs::create_dir(&pages).context("creating the folder of the man pages")?;
    run_command(Command::new(program).arg("man").arg(&pages))?;
    for (shell, file) in COMPLETIONS {
        let folder = out.join("completions").join(shell);
        fs::create_dir_all(&folder).context("creating the folder of the completions")?;
        write(
            &folder.join(file),
            output(Command::new(program).args(["completions", shell]))?.as_bytes(),
        )?;
    }
    Ok(())
}

/// Runs a command; returns an error if it fails.
fn run_command(command: &mut Command) -> anyhow::Result<()> {
    let name = name_of(command);
    let status = command
        .status()
        .with_context(|| format!("running {name}"))?;
    ensure!(status.success(), "{name} failed: {status}");
    Ok(())
}

/// Runs a command and returns its standard output; an error if it fails.
fn output(command: &mut Command) -> anyhow::Result<String> {
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

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::copy(from, to)
        .with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    Ok(())
}
