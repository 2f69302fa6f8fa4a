//! `cargo xtask vm`: the static program in virtual machines with Debian's kernels.

mod build;
mod checks;
mod initramfs;
mod kernels;
mod machine;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use clap::Args;
use xtask::{COMMANDS, GuestAnswer, GuestCommand};

use initramfs::Archive;

/// `cargo xtask vm`, as typed.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VmArgs {
    /// The kernels, by the beginning of their release
    #[arg(long, value_name = "RELEASE", value_delimiter = ',', default_values = kernels::RELEASES)]
    kernel: Vec<String>,

    /// A file to put into the guest's root directory, a statically linked test for example; may be given often
    #[arg(long, value_name = "FILE")]
    add: Vec<PathBuf>,

    /// Run the command as the user nobody
    #[arg(long, requires = "command")]
    nobody: bool,

    /// What to run instead of the checks; dptrace is in the guest's PATH
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

const EXAMPLES: &str = "\
Kernels are Debian's, from the mirror that this machine's apt uses; they are kept below the target directory.
It needs: apt-get install qemu-system-x86

Examples:
  cargo xtask vm                                    the checks, on each kernel
  cargo xtask vm --kernel 5.10 -- dptrace doctor    a command, on one";

/// Runs the task.
pub(crate) fn run(args: &VmArgs) -> anyhow::Result<()> {
    let built = build::static_programs()?;
    let work = built.target_dir.join("vm");
    std::fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
    let kernels = kernels::fetch(&work.join("kernels"), &args.kernel)?;
    let checks = checks::all();
    let own = GuestCommand { argv: args.command.clone(), as_nobody: args.nobody, file: None };
    let commands: Vec<GuestCommand> =
        if args.command.is_empty() { checks.iter().map(|check| check.command.clone()).collect() } else { vec![own] };
    let initrd = work.join("initrd");
    write_initrd(&initrd, &built, &args.add, &commands)?;
    let mut failed = Vec::new();
    for kernel in &kernels {
        println!("== Linux {} ({})", kernel.release, kernel.package);
        let since = Instant::now();
        let answers = machine::boot(&kernel.image, &initrd, &work)?;
        ensure!(answers.len() == commands.len(), "{} answers to {} commands", answers.len(), commands.len());
        if args.command.is_empty() {
            for (check, answer) in checks.iter().zip(&answers) {
                match (check.judge)(kernel, answer) {
                    Ok(saw) => println!("ok      {}: {saw}", check.name),
                    Err(why) => {
                        println!("FAILED  {}: {why:#}", check.name);
                        failed.push(format!("{} on {}", check.name, kernel.release));
                        show(answer);
                    }
                }
            }
        } else {
            answers.iter().for_each(show);
            failed.extend(answers.iter().filter(|it| it.status != Some(0)).map(|_| kernel.release.clone()));
        }
        println!("   {:.1} s", since.elapsed().as_secs_f64());
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

fn show(answer: &GuestAnswer) {
    print!("{}", answer.stdout);
    eprint!("{}", answer.stderr);
    println!("   exit status {}", answer.status.map_or("none".into(), |status| status.to_string()));
}

/// The guest's files: its first process, dptrace, what was added, and the commands.
fn write_initrd(to: &Path, built: &build::Built, added: &[PathBuf], commands: &[GuestCommand]) -> anyhow::Result<()> {
    let mut archive = Archive::default();
    for folder in ["dev", "proc", "sys", "tmp"] {
        archive.folder(folder);
    }
    archive.console();
    archive.program("init", &read(&built.init)?);
    archive.program("dptrace", &read(&built.dptrace)?);
    for path in added {
        let name = path.file_name().and_then(|name| name.to_str());
        archive.program(name.with_context(|| format!("{} has no name", path.display()))?, &read(path)?);
    }
    archive.file(COMMANDS.trim_start_matches('/'), &serde_json::to_vec(commands)?);
    std::fs::write(to, archive.finish()).with_context(|| format!("writing {}", to.display()))
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("reading {}", path.display()))
}
