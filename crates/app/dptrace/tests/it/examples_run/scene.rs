//! The scene of the examples: a folder with the files that they name, and the processes that stand
//! for `PID`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::common::kernel::{PROGRAM, Process};
use crate::examples_run::extract::Example;
use crate::examples_run::programs::{self, Background, Database};

/// Section of the tutorial whose first commands keep running.
const SLOW_QUERY: &str = "A slow query";
/// Section of the tutorial whose first commands keep running.
const NEIGHBOUR: &str = "A neighbour takes the CPU";

/// Folders that examples name.
const FOLDERS: [&str; 6] = [
    "bin",
    "build/bin",
    "DIR",
    ".local/share/bash-completion/completions",
    ".config/fish/completions",
    ".zfunc",
];

/// Programs that examples name, which only have to run.
const NAMED: [&str; 2] = ["nginx", "redis-server"];

/// Folder and environment in which a shell runs examples.
pub(crate) struct Stage {
    folder: PathBuf,
    pub(crate) environment: Vec<(String, String)>,
}

impl Stage {
    /// Makes a folder for one example, so that none reads a file that another is writing.
    pub(crate) fn folder(&self) -> TempDir {
        let own = tempfile::tempdir().expect("a directory");
        for entry in fs::read_dir(&self.folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry"))
        {
            let to = own.path().join(entry.file_name());
            if entry
                .metadata()
                .is_ok_and(|data| data.is_file() && data.len() < 1 << 20)
            {
                fs::copy(entry.path(), to).expect("a copy");
            } else {
                symlink(entry.path(), to).expect("a link");
            }
        }
        own
    }
}

/// The whole scene, removed when the test ends.
pub(crate) struct Scene {
    folder: TempDir,
    environment: Vec<(String, String)>,
    target: Process,
    _named: Vec<Background>,
    database: Option<Database>,
    /// Processes of the service section: first the service, then the one that disturbs it.
    services: Vec<Background>,
}

/// Returns whether an example is about the PostgreSQL server that the tutorial starts.
pub(crate) fn uses_database(example: &Example) -> bool {
    let asks = ["psql ", "pg-queries ", "pg-waits ", "-s 100ms"];
    asks.iter().any(|part| example.command.contains(part))
}

/// Returns whether an example is part of the scene: its command makes a file, or keeps running
/// while others trace it.
pub(crate) fn is_set(example: &Example) -> bool {
    makes_a_file(example)
        || example.section == NEIGHBOUR && example.is_background()
        || example.section == SLOW_QUERY
            && (example.is_background() || example.command.contains("CREATE TABLE"))
}

fn makes_a_file(example: &Example) -> bool {
    let text = example.command.as_str();
    !example.is_background()
        && (text.starts_with("echo ") && text.contains(" > ") || text.starts_with("head -c "))
}

/// Returns whether an example traces the tutorial's service, which takes a CPU.
pub(crate) fn uses_service(example: &Example) -> bool {
    ["kernel-delay -p PID --for 2s", "--functions", "tail -n "]
        .iter()
        .any(|part| example.command.contains(part))
}

impl Drop for Scene {
    fn drop(&mut self) {
        // On SIGTERM it removes its trace file; a killed process does not.
        self.target.signal("TERM");
        let _ = self.target.child.wait();
    }
}

impl Scene {
    pub(crate) fn set(examples: &[Example]) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let target = files(folder.path());
        let story = |section: &str| -> Vec<&Example> {
            let all = examples
                .iter()
                .filter(|example| example.section == section)
                .collect::<Vec<_>>();
            assert!(
                all.iter().any(|example| example.is_background()),
                "the tutorial has no section {section:?}"
            );
            all
        };
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", folder.path().join("bin").display());
        let home = folder.path().display().to_string();
        let mut environment: Vec<(String, String)> = [("PATH", path), ("HOME", home)]
            .map(|(name, value)| (name.to_owned(), value))
            .into();
        for example in examples.iter().filter(|example| makes_a_file(example)) {
            let made = testkit::command("sh")
                .args(["-c", &example.command])
                .current_dir(folder.path())
                .status();
            assert!(made.expect("it runs").success(), "{example}");
        }
        let database = Database::start(&story(SLOW_QUERY), folder.path());
        let database = database.map(|(database, socket)| {
            environment.extend(programs::environment(&socket));
            database
        });
        let services = story(NEIGHBOUR)
            .into_iter()
            .filter(|example| example.is_background());
        let services = services
            .map(|example| Background::spawn(example, folder.path(), &environment))
            .collect();
        wait_for_text(&folder.path().join("times"));
        let named = NAMED
            .iter()
            .map(|name| named(folder.path(), name))
            .collect();
        Self {
            folder,
            environment,
            target,
            _named: named,
            database,
            services,
        }
    }

    pub(crate) fn has_database(&self) -> bool {
        self.database.is_some()
    }

    /// Returns the process id of the target.
    pub(crate) fn target(&self) -> u32 {
        self.target.pid()
    }

    /// Ends the service and the process that takes its CPU.
    pub(crate) fn end_services(&mut self) {
        self.services.clear();
    }

    pub(crate) fn stage(&self) -> Stage {
        Stage {
            folder: self.folder.path().to_owned(),
            environment: self.environment.clone(),
        }
    }

    /// Returns the command with process ids in place of `PID`, and otherwise as written.
    pub(crate) fn command(&self, example: &Example) -> String {
        let backend = self
            .database
            .as_ref()
            .filter(|_| uses_database(example))
            .map(|database| database.backend);
        let service = self.services.first().filter(|_| uses_service(example));
        let pid = backend
            .or(service.map(Background::pid))
            .unwrap_or(self.target.pid());
        let mut command = String::new();
        let named = alone(&example.command, self.target.pid());
        let mut rest = named.as_str();
        while let Some((before, behind)) = rest.split_once("PID") {
            let is_in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            let whole =
                !is_in_word(before.chars().next_back()) && !is_in_word(behind.chars().next());
            command.push_str(before);
            command.push_str(&if whole {
                pid.to_string()
            } else {
                "PID".to_owned()
            });
            rest = behind;
        }
        command + rest
    }
}

/// Waits until the file is no longer empty.
fn wait_for_text(path: &Path) {
    let until = Instant::now() + Duration::from_mins(1);
    while fs::metadata(path).is_ok_and(|data| data.len() == 0) {
        assert!(Instant::now() < until, "{} stays empty", path.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts a sleeping process of this name.
fn named(folder: &Path, name: &str) -> Background {
    let program = folder.join("bin").join(name);
    symlink("/bin/sleep", &program).expect("a link");
    let mut command = testkit::command(program);
    command.arg("600");
    Background::start(command)
}

/// Returns the command with our target's number if other processes have its name too, as in another
/// run of this test.
fn alone(command: &str, target: u32) -> String {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let names =
        processes.filter_map(|process| fs::read_to_string(process.path().join("comm")).ok());
    let is_alone = names.filter(|name| name.trim() == "nvmf_tgt").count() == 1;
    let command = command.replace("-p NAME", "-p nvmf_tgt");
    if is_alone {
        command
    } else {
        by_number(&command, target)
    }
}

/// Returns the command with our target's number in place of its name.
pub(crate) fn by_number(command: &str, target: u32) -> String {
    let number = format!("-p {target}");
    command
        .replace("-p nvmf_tgt", &number)
        .replace("-p redis-server", &number)
}

/// Creates the files that examples name, and starts the target whose process stands for `PID`.
fn files(folder: &Path) -> Process {
    for name in FOLDERS {
        fs::create_dir_all(folder.join(name)).expect("a folder");
    }
    let bin = folder.join("bin");
    symlink(PROGRAM, bin.join("dptrace")).expect("a link");
    // A program as installed: without debug information, which takes long to read in a test build.
    let stripped = testkit::command("strip")
        .arg("-o")
        .arg(bin.join("nvmf_tgt"))
        .arg(PROGRAM)
        .status();
    assert!(stripped.expect("strip runs").success());
    symlink(PROGRAM, folder.join("PATH")).expect("a link");
    symlink("/bin/true", folder.join("build/bin/app")).expect("a link");
    write_samples(folder);
    let mut target = testkit::command(bin.join("nvmf_tgt"));
    target
        .args([
            "demo-target",
            "--for",
            "10m",
            "--app",
            "nvmf",
            "--slots",
            "2048",
        ])
        .current_dir(folder);
    let mut target = Process::start(&mut target);
    target.wait_for("demo-target: pid");
    let pid = target.pid().to_string();
    let watch = ["--for", "500ms", "--slow", "1us", "-o", "nvmf_tgt.watch"];
    for options in [&["--for", "200ms", "-o", "CAPTURE"][..], &watch] {
        let capture = [&["capture", "-p", &pid][..], options].concat();
        run_in(folder, &capture);
    }
    // Programs that this machine lacks, or that would find other processes than ours.
    script(&bin.join("pidof"), &format!("echo {}", target.pid()));
    script(&bin.join("sudo"), "exec \"$@\"");
    script(
        &bin.join("spdk_trace"),
        "exec dptrace trace demo.trace --format json",
    );
    script(&bin.join("jq"), "exec cat");
    script(&bin.join("man"), "exec cat \"$1\"");
    target
}

/// Runs dptrace in the folder, and asserts that it succeeds.
#[track_caller]
fn run_in(folder: &Path, args: &[&str]) {
    let done = testkit::command(PROGRAM)
        .args(args)
        .current_dir(folder)
        .output()
        .expect("it runs");
    assert!(
        done.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// Writes the samples of traces, recordings, scripts and specs.
fn write_samples(folder: &Path) {
    run_in(folder, &["demo", "--write", "."]);
    for (name, from) in [
        ("FILE", "demo.trace"),
        ("RECORDING", "demo.recording"),
        ("qpairs.txt", "demo.recording"),
    ] {
        fs::copy(folder.join(from), folder.join(name)).expect("a copy");
    }
    fs::write(
        folder.join("own.bt"),
        "begin { printf(\"%d\\n\", $1); exit(); }\n",
    )
    .expect("written");
    let own = testkit::command(PROGRAM)
        .args(["objects", "qpair"])
        .output()
        .expect("it runs");
    fs::write(folder.join("own.toml"), own.stdout).expect("written");
}

fn script(path: &PathBuf, text: &str) {
    testkit::write_program(path, format!("#!/bin/sh\n{text}\n").as_bytes());
}
