//! `cargo xtask vm`: runs the static program in virtual machines with Debian's kernels, and on the
//! kernel of this machine.

mod boots;
mod build;
mod checks;
mod hardware;
mod initramfs;
mod kernels;
mod machine;
mod own;
mod table;

use std::borrow::Borrow;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::Args;
use xtask::{GuestAnswer, GuestCommand};

use boots::{Boot, Task, all_answers, answers};
use checks::Check;
use kernels::Kernel;
use own::OWN;
use table::Column;

pub(crate) use hardware::{Architecture, Hardware};
pub(crate) use kernels::mirror;

/// Path of the page about kernels, from the workspace's root.
const PAGE: &str = "docs/kernels.md";
/// `cargo xtask vm`, as typed.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VmArgs {
    /// The kernels, by the beginning of their release; `own` is this machine's, without a virtual machine [default: all]
    #[arg(value_name = "KERNEL")]
    kernels: Vec<String>,

    /// Same as the arguments KERNEL
    #[arg(
        long,
        value_name = "RELEASE",
        value_delimiter = ',',
        conflicts_with = "kernels"
    )]
    kernel: Vec<String>,

    /// Architecture of the virtual machines
    #[arg(long, value_enum, default_value_t, conflicts_with = "write_docs")]
    machine: Architecture,

    /// A statically linked dptrace to use instead of building one
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,

    /// Only the checks that have this in their names, or in those of their groups
    #[arg(long, value_name = "TEXT", conflicts_with = "write_docs")]
    only: Option<String>,

    /// Also starve a processor, and check the reported victims: an emulated one then takes minutes,
    /// or does not come back
    #[arg(long)]
    starve: bool,

    /// Write docs/kernels.md
    #[arg(long, conflicts_with_all = ["kernels", "kernel", "command"])]
    write_docs: bool,

    /// A file to put into the guest's root directory, a statically linked test for example; may be given often
    #[arg(long, value_name = "FILE")]
    add: Vec<PathBuf>,

    /// Run the command as the user nobody
    #[arg(long, requires = "command")]
    nobody: bool,

    /// Command to run instead of the checks; dptrace is in the guest's PATH
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

const EXAMPLES: &str = "\
Kernels are Debian's, from the mirror that this machine's apt uses; they are kept below the target directory.
It needs: apt-get install qemu-system-x86
and for aarch64: rustup target add aarch64-unknown-linux-gnu
  apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-system-arm qemu-user-static

Examples:
  cargo xtask vm                                 the checks, on each kernel and this machine's own
  cargo xtask vm own                             only here
  cargo xtask vm 6.12 --starve --only cpus       who waits behind a SCHED_FIFO thread
  cargo xtask vm 5.10 -- dptrace doctor          a command, on one
  cargo xtask vm --machine aarch64 6.12          the checks, on another machine";

/// Place where commands run.
enum Place {
    Guest(Kernel),
    Own,
}

impl Place {
    fn name(&self) -> &str {
        match self {
            Self::Guest(kernel) => &kernel.release,
            Self::Own => OWN,
        }
    }
}

/// Runs the task.
pub(crate) fn run(args: &VmArgs) -> anyhow::Result<()> {
    let has_checks = args.command.is_empty();
    let hardware = args.machine.hardware();
    let built = build::static_programs(hardware, args.binary.as_deref(), has_checks, args.starve)?;
    let work = built.target_dir.join(hardware.folder);
    std::fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
    let places = places(args, &work)?;
    let own = GuestCommand {
        as_nobody: args.nobody,
        ..GuestCommand::new(&[])
    };
    let own = GuestCommand {
        argv: args.command.clone(),
        ..own
    };
    let checks = if has_checks {
        wanted(checks::all(&built.tests, args.starve), args.only.as_deref())
    } else {
        Vec::new()
    };
    let commands: Vec<GuestCommand> = if has_checks {
        checks.iter().map(|check| check.command.clone()).collect()
    } else {
        vec![own]
    };
    let task = Task {
        built: &built,
        added: &args.add,
        commands,
        work,
    };
    let mut failed = Vec::new();
    let mut columns = Vec::new();
    for (place, answers) in places.iter().zip(all_answers(&task, &places)) {
        if !has_checks {
            failed.extend(shown(place, &answers?)?);
            continue;
        }
        let (column, mut failures) = judged(&checks, place, &answers?)?;
        // An emulated processor can stand still for half a second, even in the middle of a program.
        if !failures.is_empty() && matches!(place, Place::Guest(_)) {
            failures = again(&task, place, &checks, &failures)?;
        }
        failed.extend(
            failures
                .iter()
                .map(|&check| format!("{} on {}", checks[check].name, column.title)),
        );
        columns.push(column);
    }
    if args.write_docs {
        std::fs::write(PAGE, table::page(&checks, &columns))
            .with_context(|| format!("writing {PAGE}"))?;
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Table's column of a place, and the indices of the checks that failed there.
type Judged = (Column, Vec<usize>);

/// Runs the checks that failed once more, together with the first one, in a separate guest; returns
/// those that failed again.
fn again(
    task: &Task<'_>,
    place: &Place,
    checks: &[Check],
    failures: &[usize],
) -> anyhow::Result<Vec<usize>> {
    let names: Vec<&str> = failures
        .iter()
        .map(|&check| checks[check].name.as_str())
        .collect();
    println!(
        "{}: once more, since these failed: {}",
        place.name(),
        names.join(", ")
    );
    let commands: Vec<usize> = std::iter::once(0)
        .chain(failures.iter().copied().filter(|&check| check != 0))
        .collect();
    let repeated: Vec<&Check> = commands.iter().map(|&check| &checks[check]).collect();
    let boot = Boot {
        place: 0,
        name: "again".to_owned(),
        commands: commands.clone(),
    };
    let (_, failed) = judged(&repeated, place, &answers(task, place, &boot)?)?;
    Ok(failed.into_iter().map(|at| commands[at]).collect())
}

/// Returns the selected checks and the first one, against which the others are compared.
fn wanted(checks: Vec<Check>, only: Option<&str>) -> Vec<Check> {
    let Some(part) = only else { return checks };
    let fits = |(index, check): &(usize, Check)| {
        *index == 0 || check.name.contains(part) || check.group.contains(part)
    };
    checks
        .into_iter()
        .enumerate()
        .filter(fits)
        .map(|(_, check)| check)
        .collect()
}

fn places(args: &VmArgs, work: &Path) -> anyhow::Result<Vec<Place>> {
    let mut named: Vec<String> = args.kernels.iter().chain(&args.kernel).cloned().collect();
    if named.is_empty() {
        named = kernels::RELEASES.iter().map(ToString::to_string).collect();
        if args.command.is_empty() && args.machine == Architecture::default() {
            named.push(OWN.to_owned());
        }
    }
    let is_foreign = args.machine != Architecture::default();
    ensure!(
        !is_foreign || named.iter().all(|name| name != OWN),
        "this machine's own kernel is not for {:?}",
        args.machine
    );
    let releases: Vec<String> = named.iter().filter(|name| *name != OWN).cloned().collect();
    let mut places: Vec<Place> =
        kernels::fetch(args.machine.hardware(), &work.join("kernels"), &releases)?
            .into_iter()
            .map(Place::Guest)
            .collect();
    if named.iter().any(|name| name == OWN) {
        places.push(Place::Own);
    }
    Ok(places)
}

/// Judges the answers of a place by the checks.
fn judged<C: Borrow<Check>>(
    checks: &[C],
    place: &Place,
    answers: &[GuestAnswer],
) -> anyhow::Result<Judged> {
    let (title, package, debians) = match place {
        Place::Guest(kernel) => (
            kernel.release.clone(),
            kernel.package.as_str(),
            Some(kernel.hardware.architecture),
        ),
        Place::Own => (own::release()?, "this machine's", None),
    };
    let numbers = title.split_once('.').context("a release has two numbers")?;
    let known = checks::known((numbers.0.parse()?, numbers.1.parse()?), debians, answers)?;
    let mut text = format!("== Linux {title} ({package})\n");
    let (mut verdicts, mut failed) = (Vec::new(), Vec::new());
    for (at, (check, answer)) in checks.iter().map(Borrow::borrow).zip(answers).enumerate() {
        let verdict = check.judge(&known, answer);
        let line = match &verdict {
            Ok(checks::Verdict::Works) => format!("ok       {}: {}", check.group, check.name),
            Ok(checks::Verdict::Refused(said)) => {
                format!("refused  {}: {}: {said}", check.group, check.name)
            }
            Err(why) => {
                failed.push(at);
                format!(
                    "FAILED   {}: {}: {why:#}\n{}",
                    check.group,
                    check.name,
                    in_full(answer)
                )
            }
        };
        let _ = writeln!(text, "{line}");
        verdicts.push(verdict.ok());
    }
    print!("{text}");
    Ok((
        Column {
            title,
            known,
            verdicts,
        },
        failed,
    ))
}

/// Prints the answers to a command; returns the place's name for each that failed.
fn shown(place: &Place, answers: &[GuestAnswer]) -> anyhow::Result<Vec<String>> {
    let title = match place {
        Place::Guest(kernel) => kernel.release.clone(),
        Place::Own => own::release()?,
    };
    println!("== Linux {title}");
    for answer in answers {
        print!("{}", in_full(answer));
    }
    Ok(answers
        .iter()
        .filter(|answer| answer.status != Some(0))
        .map(|_| title.clone())
        .collect())
}

fn in_full(answer: &GuestAnswer) -> String {
    let status = answer
        .status
        .map_or("none".into(), |status| status.to_string());
    format!(
        "{}{}   exit status {status}\n",
        answer.stdout, answer.stderr
    )
}
