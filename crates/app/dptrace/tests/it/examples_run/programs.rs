//! Programs that the examples trace: a target, a database with two clients, a service with a
//! neighbour.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::common::kernel::{Process, needs};
use crate::examples_run::extract::Example;

const POSTGRES: &str = "/usr/lib/postgresql/15/bin";
/// Timeout for anything that is sure to come.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Running command of an example, with all the processes that it starts.
pub(crate) struct Background(Child);

impl Background {
    pub(crate) fn start(mut command: Command) -> Self {
        command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self(command.spawn().expect("it starts"))
    }

    /// Starts an example's command in a shell, which execs it if it is a single command.
    pub(crate) fn spawn(
        example: &Example,
        folder: &Path,
        environment: &[(String, String)],
    ) -> Self {
        let typed = example.command.trim_end_matches(['&', ' ']);
        let is_one = !typed.starts_with("while ") && !typed.contains(" | ");
        let mut command = testkit::command("sh");
        command
            .arg("-c")
            .arg(format!("{}{typed}", if is_one { "exec " } else { "" }));
        command
            .current_dir(folder)
            .envs(environment.iter().cloned());
        Self::start(command)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            // It may have ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

/// Private PostgreSQL server, with a row that one client changes and another locks.
pub(crate) struct Database {
    /// Process id of the connection that the example is about.
    pub(crate) backend: u32,
    _clients: Vec<Background>,
    _server: Process,
    _dir: TempDir,
}

/// Returns the command for a program of PostgreSQL, run as its user.
fn postgres(program: &str) -> Command {
    let mut command = testkit::command("setpriv");
    command.args([
        "--reuid",
        "postgres",
        "--regid",
        "postgres",
        "--init-groups",
        "env",
        "-i",
        "LC_ALL=C.UTF-8",
    ]);
    command.arg(Path::new(POSTGRES).join(program));
    command
}

/// Returns the variables that lead `psql` to the server's socket.
pub(crate) fn environment(socket: &Path) -> Vec<(String, String)> {
    let variables = [
        ("PGHOST", socket.display().to_string()),
        ("PGUSER", "postgres".to_owned()),
    ];
    variables
        .map(|(name, value)| (name.to_owned(), value))
        .into()
}

/// Creates the files of a database in a folder. Returns their folder.
fn database_files(dir: &Path) -> PathBuf {
    let owned = testkit::command("chown")
        .arg("postgres:")
        .arg(dir)
        .status()
        .expect("chown runs");
    assert!(owned.success(), "there is a user postgres");
    let data = dir.join("data");
    let made = postgres("initdb")
        .args(["--no-sync", "--auth=trust", "-D"])
        .arg(&data)
        .output()
        .expect("it runs");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    data
}

impl Database {
    /// Starts the server, and runs the setup of the tutorial's section. `None` without PostgreSQL.
    pub(crate) fn start(story: &[&Example], folder: &Path) -> Option<(Self, PathBuf)> {
        if !needs(&format!("{POSTGRES}/postgres")) || !needs("psql") {
            return None;
        }
        let dir = tempfile::tempdir().expect("a directory");
        let data = database_files(dir.path());
        let mut server = postgres("postgres");
        // Its shared memory is in files of its folder: files in /dev/shm would remain when it is
        // killed.
        let in_folder = ["-c", "dynamic_shared_memory_type=mmap"];
        server
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(dir.path())
            .args(["-h", "", "-F"])
            .args(in_folder)
            .stdout(Stdio::null());
        let mut server = Process::start(&mut server);
        server.wait_for("database system is ready to accept connections");
        let variables = environment(dir.path());
        let mut clients = Vec::new();
        let mut backend = None;
        for example in story {
            if example.is_background() {
                clients.push(Background::spawn(example, folder, &variables));
            } else if example.command.starts_with("psql -c 'CREATE ") {
                let made = sh(&example.command, &variables).output().expect("it runs");
                assert!(
                    made.status.success(),
                    "{}",
                    String::from_utf8_lossy(&made.stderr)
                );
            } else if example.command.starts_with("psql -Atc ") {
                backend = Some(wait_for_number(&example.command, &variables));
            }
        }
        let socket = dir.path().to_owned();
        let backend = backend.expect("an example prints the connection's process");
        Some((
            Self {
                backend,
                _clients: clients,
                _server: server,
                _dir: dir,
            },
            socket,
        ))
    }
}

fn sh(command: &str, environment: &[(String, String)]) -> Command {
    let mut shell = testkit::command("sh");
    shell
        .args(["-c", command])
        .envs(environment.iter().cloned())
        .stdin(Stdio::null());
    shell
}

/// Repeats a command until it prints a number; returns that.
fn wait_for_number(command: &str, environment: &[(String, String)]) -> u32 {
    let until = Instant::now() + TIMEOUT;
    loop {
        let output = sh(command, environment).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if let Ok(number) = text.trim().parse() {
            return number;
        }
        assert!(
            Instant::now() < until,
            "{command}: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}
