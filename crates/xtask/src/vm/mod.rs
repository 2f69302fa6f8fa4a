//! `cargo xtask vm`: the static program in virtual machines with Debian's kernels, and on this machine's own.

mod build;
mod checks;
mod hardware;
mod initramfs;
mod kernels;
mod machine;
mod own;
mod table;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use clap::Args;
use xtask::{GuestAnswer, GuestCommand, GuestPlan, MODULES, PLAN};

use build::Built;
use checks::Check;
use hardware::Architecture;
use initramfs::Archive;
use kernels::Kernel;
use own::OWN;
use table::Column;

/// Where the page about kernels is, from the workspace's root.
const PAGE: &str = "docs/kernels.md";
/// How many guests run at a time: each has two processors, which its commands rarely both use.
const AT_A_TIME: usize = 2;

/// `cargo xtask vm`, as typed.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VmArgs {
    /// The kernels, by the beginning of their release; `own` is this machine's, without a virtual machine [default: all]
    #[arg(value_name = "KERNEL")]
    kernels: Vec<String>,

    /// The same
    #[arg(long, value_name = "RELEASE", value_delimiter = ',', conflicts_with = "kernels")]
    kernel: Vec<String>,

    /// What the virtual machines are
    #[arg(long, value_enum, default_value_t, conflicts_with = "write_docs")]
    machine: Architecture,

    /// A statically linked dptrace, in place of one that is built for this
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,

    /// Only the checks that have this in their names, or in those of their groups
    #[arg(long, value_name = "TEXT", conflicts_with = "write_docs")]
    only: Option<String>,

    /// Write docs/kernels.md
    #[arg(long, conflicts_with_all = ["kernels", "kernel", "command"])]
    write_docs: bool,

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
and for aarch64: rustup target add aarch64-unknown-linux-gnu
  apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-system-arm qemu-user-static

Examples:
  cargo xtask vm                                 the checks, on each kernel and this machine's own
  cargo xtask vm own                             only here
  cargo xtask vm 5.10 -- dptrace doctor          a command, on one
  cargo xtask vm --machine aarch64 6.12          the checks, on another machine";

/// What all kernels have in common.
struct Task<'a> {
    built: &'a Built,
    commands: Vec<GuestCommand>,
    initrd: PathBuf,
    work: PathBuf,
}

/// Where commands run.
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
    let built = build::static_programs(hardware, args.binary.as_deref(), has_checks)?;
    let work = built.target_dir.join(hardware.folder);
    std::fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
    let places = places(args, &work)?;
    let own = GuestCommand { as_nobody: args.nobody, ..GuestCommand::new(&[]) };
    let own = GuestCommand { argv: args.command.clone(), ..own };
    let checks = if has_checks { wanted(checks::all(&built.tests), args.only.as_deref()) } else { Vec::new() };
    let commands: Vec<GuestCommand> =
        if has_checks { checks.iter().map(|check| check.command.clone()).collect() } else { vec![own] };
    let initrd = work.join("initrd");
    write_initrd(&initrd, &built, &args.add, &commands)?;
    let task = Task { built: &built, commands, initrd, work };
    let results =
        all_places(
            &task,
            &places,
            |place, answers| {
                if has_checks { judged(&checks, place, &answers) } else { shown(place, &answers) }
            },
        );
    let mut failed = Vec::new();
    let mut columns = Vec::new();
    for (place, result) in places.iter().zip(results) {
        let (column, mut failures) = result?;
        // An emulated processor can stand still for half a second, in the middle of a program, too.
        if has_checks && !failures.is_empty() && matches!(place, Place::Guest(_)) {
            println!("{}: once more, since these failed: {}", place.name(), failures.join(", "));
            let (_, again) = judged(&checks, place, &answers(&task, place)?)?;
            failures.retain(|failure| again.contains(failure));
        }
        failed.extend(failures);
        columns.extend(column);
    }
    if args.write_docs {
        std::fs::write(PAGE, table::page(&checks, &columns)).with_context(|| format!("writing {PAGE}"))?;
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// What came of a place: the table's column, if there are checks, and what failed.
type Judged = (Option<Column>, Vec<String>);

/// The first check is what the others are held against.
fn wanted(checks: Vec<Check>, only: Option<&str>) -> Vec<Check> {
    let Some(part) = only else { return checks };
    let fits = |(index, check): &(usize, Check)| *index == 0 || check.name.contains(part) || check.group.contains(part);
    checks.into_iter().enumerate().filter(fits).map(|(_, check)| check).collect()
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
    let mut places: Vec<Place> = kernels::fetch(args.machine.hardware(), &work.join("kernels"), &releases)?
        .into_iter()
        .map(Place::Guest)
        .collect();
    if named.iter().any(|name| name == OWN) {
        places.push(Place::Own);
    }
    Ok(places)
}

/// Some guests at a time, then this machine, which is not to be busy with them.
fn all_places<T: Send>(
    task: &Task<'_>,
    places: &[Place],
    look: impl Fn(&Place, Vec<GuestAnswer>) -> anyhow::Result<T> + Sync,
) -> Vec<anyhow::Result<T>> {
    let guests: Vec<usize> = (0..places.len()).filter(|&at| matches!(places[at], Place::Guest(_))).collect();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(&at) = guests.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = answers(task, &places[at]).and_then(|answers| look(&places[at], answers));
            if let Ok(mut done) = done.lock() {
                done.push((at, result));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    for (at, place) in places.iter().enumerate().filter(|(_, place)| matches!(place, Place::Own)) {
        done.push((at, answers(task, place).and_then(|answers| look(place, answers))));
    }
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// What the commands answer there.
fn answers(task: &Task<'_>, place: &Place) -> anyhow::Result<Vec<GuestAnswer>> {
    let since = Instant::now();
    let answers = match place {
        Place::Own => own::run(task.built, &task.commands)?,
        Place::Guest(kernel) => {
            let folder = task.work.join(&kernel.release);
            std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
            let initrd = folder.join("initrd");
            add_modules(&initrd, &task.initrd, kernel)?;
            machine::boot(kernel, &initrd, &folder)
                .with_context(|| format!("the guest with Linux {}", kernel.release))?
        }
    };
    println!("   {}: {:.0} s", place.name(), since.elapsed().as_secs_f64());
    ensure!(answers.len() == task.commands.len(), "{} answers to {} commands", answers.len(), task.commands.len());
    Ok(answers)
}

/// What the checks think of the answers.
fn judged(checks: &[Check], place: &Place, answers: &[GuestAnswer]) -> anyhow::Result<Judged> {
    let (title, package, debians) = match place {
        Place::Guest(kernel) => (kernel.release.clone(), kernel.package.as_str(), Some(kernel.hardware.architecture)),
        Place::Own => (own::release()?, "this machine's", None),
    };
    let numbers = title.split_once('.').context("a release has two numbers")?;
    let known = checks::known((numbers.0.parse()?, numbers.1.parse()?), debians, answers)?;
    let mut text = format!("== Linux {title} ({package})\n");
    let (mut verdicts, mut failed) = (Vec::new(), Vec::new());
    for (check, answer) in checks.iter().zip(answers) {
        let verdict = check.judge(&known, answer);
        let told = match &verdict {
            Ok(checks::Verdict::Works) => format!("ok       {}: {}", check.group, check.name),
            Ok(checks::Verdict::Refused(said)) => format!("refused  {}: {}: {said}", check.group, check.name),
            Err(why) => {
                failed.push(format!("{} on {title}", check.name));
                format!("FAILED   {}: {}: {why:#}\n{}", check.group, check.name, in_full(answer))
            }
        };
        let _ = writeln!(text, "{told}");
        verdicts.push(verdict.ok());
    }
    print!("{text}");
    Ok((Some(Column { title, known, verdicts }), failed))
}

/// Shows what a command answered.
fn shown(place: &Place, answers: &[GuestAnswer]) -> anyhow::Result<Judged> {
    let title = match place {
        Place::Guest(kernel) => kernel.release.clone(),
        Place::Own => own::release()?,
    };
    println!("== Linux {title}");
    for answer in answers {
        print!("{}", in_full(answer));
    }
    Ok((None, answers.iter().filter(|answer| answer.status != Some(0)).map(|_| title.clone()).collect()))
}

fn in_full(answer: &GuestAnswer) -> String {
    let status = answer.status.map_or("none".into(), |status| status.to_string());
    format!("{}{}   exit status {status}\n", answer.stdout, answer.stderr)
}

/// The guest's files: its first process, dptrace, the tests, what was added, and what to do.
fn write_initrd(to: &Path, built: &Built, added: &[PathBuf], commands: &[GuestCommand]) -> anyhow::Result<()> {
    let mut archive = Archive::default();
    for folder in ["dev", "proc", "sys", "tmp"] {
        archive.folder(folder);
    }
    archive.console();
    archive.program("init", &read(&built.init)?);
    archive.program("dptrace", &read(&built.dptrace)?);
    for test in &built.tests {
        archive.program(&test.name, &read(&test.path)?);
    }
    for path in added {
        let name = path.file_name().and_then(|name| name.to_str());
        archive.program(name.with_context(|| format!("{} has no name", path.display()))?, &read(path)?);
    }
    let link = |at: &Path, to: &str| (at.display().to_string(), to.to_owned());
    let links = vec![
        link(&built.known_as, "/dptrace"),
        link(Path::new("/sleep"), "/init"),
        link(Path::new("/bin/sleep"), "/init"),
        link(Path::new("/datapath"), "/init"),
    ];
    let plan = GuestPlan { links, commands: commands.to_vec() };
    archive.file(PLAN.trim_start_matches('/'), &serde_json::to_vec(&plan)?);
    std::fs::write(to, archive.finish()).with_context(|| format!("writing {}", to.display()))
}

/// The guest's files, with the modules of its kernel behind them: the kernel unpacks one archive after the other.
fn add_modules(to: &Path, files: &Path, kernel: &Kernel) -> anyhow::Result<()> {
    let folder = Path::new(MODULES.trim_start_matches('/'));
    let mut archive = Archive::default();
    archive.folder(&folder.to_string_lossy());
    for (number, path) in kernel.modules.iter().enumerate() {
        let name = path.file_name().context("a module without a name")?.to_string_lossy();
        archive.file(&folder.join(format!("{number:02}-{name}")).to_string_lossy(), &read(path)?);
    }
    let mut bytes = read(files)?;
    bytes.extend(archive.finish());
    std::fs::write(to, bytes).with_context(|| format!("writing {}", to.display()))
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("reading {}", path.display()))
}
