//! Boots of the guests: the commands of each, its files, and the merged answers.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use xtask::{GuestAnswer, GuestCommand, GuestPlan, MODULES, PLAN};

use super::build::Built;
use super::initramfs::Archive;
use super::kernels::Kernel;
use super::{Place, machine, own};

/// Number of guests at a time: each has two processors, which its commands rarely both use.
const CONCURRENT_GUESTS: usize = 2;
/// Number of boots over which a guest's checks are spread, so that no processor of ours waits for
/// the last guest.
const BOOTS: usize = 2;
/// Limit on the listed slowest commands of a place.
const MAX_SLOW_COMMANDS: usize = 3;

/// Data that all boots share.
pub(super) struct Task<'a> {
    pub(super) built: &'a Built,
    /// Files for the guest's root directory.
    pub(super) added: &'a [PathBuf],
    pub(super) commands: Vec<GuestCommand>,
    pub(super) work: PathBuf,
}

/// Commands of a [`Task`] that one boot of a guest runs, by their indices; or all, on this machine.
pub(super) struct Boot {
    /// Index of the place.
    pub(super) place: usize,
    /// Name of the boot's files.
    pub(super) name: String,
    pub(super) commands: Vec<usize>,
}

/// Returns the boots of a guest: each starts with the first command, against which the others are
/// compared.
fn boots(place: usize, commands: usize) -> impl Iterator<Item = Boot> {
    let boots = if commands > 2 * BOOTS { BOOTS } else { 1 };
    (0..boots).map(move |part| {
        let own = (1..commands).filter(|command| command % boots == part);
        Boot {
            place,
            name: part.to_string(),
            commands: std::iter::once(0).chain(own).collect(),
        }
    })
}

/// Returns the answers of each place, in the order of the commands: some guests at a time, then
/// this machine, which must not be busy with guests.
pub(super) fn all_answers(
    task: &Task<'_>,
    places: &[Place],
) -> Vec<anyhow::Result<Vec<GuestAnswer>>> {
    let guests = (0..places.len()).filter(|&at| matches!(places[at], Place::Guest(_)));
    let boots: Vec<Boot> = guests
        .flat_map(|place| boots(place, task.commands.len()))
        .collect();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(boot) = boots.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = answers(task, &places[boot.place], boot);
            if let Ok(mut done) = done.lock() {
                done.push((boot, result));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..CONCURRENT_GUESTS {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    let own = Boot {
        place: 0,
        name: String::new(),
        commands: (0..task.commands.len()).collect(),
    };
    let of_place = |(at, place): (usize, &Place)| match place {
        Place::Own => answers(task, place, &own),
        Place::Guest(_) => in_order(task, done.extract_if(.., |(boot, _)| boot.place == at)),
    };
    places.iter().enumerate().map(of_place).collect()
}

/// Puts the answers of a guest's boots into the order of the commands.
fn in_order<'b>(
    task: &Task<'_>,
    boots: impl Iterator<Item = (&'b Boot, anyhow::Result<Vec<GuestAnswer>>)>,
) -> anyhow::Result<Vec<GuestAnswer>> {
    let mut known: BTreeMap<usize, GuestAnswer> = BTreeMap::new();
    for (boot, answers) in boots {
        known.extend(boot.commands.iter().copied().zip(answers?));
    }
    ensure!(
        known.len() == task.commands.len(),
        "{} answers to {} commands",
        known.len(),
        task.commands.len()
    );
    Ok(known.into_values().collect())
}

/// Returns the answers to the commands of a boot.
pub(super) fn answers(
    task: &Task<'_>,
    place: &Place,
    boot: &Boot,
) -> anyhow::Result<Vec<GuestAnswer>> {
    let since = Instant::now();
    let commands: Vec<GuestCommand> = boot
        .commands
        .iter()
        .map(|&command| task.commands[command].clone())
        .collect();
    let answers = match place {
        Place::Own => own::run(task.built, &commands)?,
        Place::Guest(kernel) => {
            let folder = task.work.join(&kernel.release).join(&boot.name);
            std::fs::create_dir_all(&folder)
                .with_context(|| format!("creating {}", folder.display()))?;
            let initrd = folder.join("initrd");
            write_initrd(&initrd, task.built, task.added, &commands)?;
            add_modules(&initrd, kernel)?;
            machine::boot(kernel, &initrd, &folder)
                .with_context(|| format!("the guest with Linux {}", kernel.release))?
        }
    };
    println!(
        "   {} {}: {:.0} s",
        place.name(),
        boot.name,
        since.elapsed().as_secs_f64()
    );
    ensure!(
        answers.len() == commands.len(),
        "{} answers to {} commands",
        answers.len(),
        commands.len()
    );
    list_slowest(&commands, &answers);
    Ok(answers)
}

/// Prints the slowest commands of a place, to help speed up the matrix.
fn list_slowest(commands: &[GuestCommand], answers: &[GuestAnswer]) {
    let mut slowest: Vec<(&GuestCommand, &GuestAnswer)> = commands.iter().zip(answers).collect();
    slowest.sort_by(|(_, one), (_, other)| other.seconds.total_cmp(&one.seconds));
    for (command, answer) in slowest.iter().take(MAX_SLOW_COMMANDS) {
        println!("      {:.0} s: {}", answer.seconds, command.argv.join(" "));
    }
}

/// Writes the guest's files: its first process, dptrace, the tests, the added files, and its plan.
fn write_initrd(
    to: &Path,
    built: &Built,
    added: &[PathBuf],
    commands: &[GuestCommand],
) -> anyhow::Result<()> {
    let mut archive = Archive::default();
    for folder in ["dev", "proc", "sys", "tmp"] {
        archive.folder(folder);
    }
    archive.console();
    archive.program("init", &read(&built.init)?);
    archive.program("dptrace", &read(&built.dptrace)?);
    for test in &built.tests {
        archive.program(test.name, &read(&test.path)?);
    }
    for path in added {
        let name = path.file_name().and_then(|name| name.to_str());
        archive.program(
            name.with_context(|| format!("{} has no name", path.display()))?,
            &read(path)?,
        );
    }
    let link = |at: &Path, to: &str| (at.display().to_string(), to.to_owned());
    let links = vec![
        link(&built.known_as, "/dptrace"),
        link(Path::new("/sleep"), "/init"),
        link(Path::new("/bin/sleep"), "/init"),
        link(Path::new("/datapath"), "/init"),
        link(Path::new("/starve"), "/init"),
    ];
    let plan = GuestPlan {
        links,
        commands: commands.to_vec(),
    };
    archive.file(PLAN.trim_start_matches('/'), &serde_json::to_vec(&plan)?);
    std::fs::write(to, archive.finish()).with_context(|| format!("writing {}", to.display()))
}

/// Appends the modules of the guest's kernel to its files: the kernel unpacks one archive after the
/// other.
fn add_modules(initrd: &Path, kernel: &Kernel) -> anyhow::Result<()> {
    let folder = Path::new(MODULES.trim_start_matches('/'));
    let mut archive = Archive::default();
    archive.folder(&folder.to_string_lossy());
    for (number, path) in kernel.modules.iter().enumerate() {
        let name = path
            .file_name()
            .context("a module without a name")?
            .to_string_lossy();
        archive.file(
            &folder.join(format!("{number:02}-{name}")).to_string_lossy(),
            &read(path)?,
        );
    }
    let mut file = OpenOptions::new()
        .append(true)
        .open(initrd)
        .with_context(|| format!("opening {}", initrd.display()))?;
    file.write_all(&archive.finish())
        .with_context(|| format!("writing {}", initrd.display()))
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("reading {}", path.display()))
}
