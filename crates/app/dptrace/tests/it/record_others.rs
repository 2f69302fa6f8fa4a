//! `dptrace record` of other people's programs: probes with semaphores (PostgreSQL) and of a shared
//! library (libstdc++).
//!
//! Every probe of a spec begins with `tsc`. These probes have none: their first argument is not
//! taken for it, and the time comes from the kernel's clock.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::kernel::{Process, attached, kernel, needs, record, recorded, skip};
use tempfile::TempDir;

const POSTGRES: &str = "/usr/lib/postgresql/15/bin";

const QUERIES: &str = r#"
[[object]]
name = "query"
provider = "postgresql"
key = "other"
[[object.probe]]
name = "query__start"
role = "begin"
args = ["tsc", "other"]
[[object.probe]]
name = "query__done"
role = "end"
args = ["tsc", "other"]
"#;

const EXCEPTIONS: &str = r#"
[[object]]
name = "exception"
provider = "libstdcxx"
key = "type"
[[object.probe]]
name = "throw"
role = "begin"
args = ["tsc", "type"]
[[object.probe]]
name = "catch"
role = "end"
args = ["tsc", "type"]
"#;

const THROWING: &str = r#"
#include <cstdio>
#include <iostream>
#include <string>

int main()
{
    std::string line;
    unsigned long caught = 0;
    std::cerr << "ready" << std::endl;
    while (std::getline(std::cin, line)) {
        unsigned long count = std::stoul(line);
        for (unsigned long n = 0; n < count; n++) {
            try {
                throw n;
            } catch (unsigned long) {
                caught++;
            }
        }
        std::cerr << "caught " << caught << std::endl;
    }
}
"#;

/// Private PostgreSQL cluster that is removed afterwards.
struct Cluster {
    server: Process,
    dir: TempDir,
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

impl Cluster {
    fn start() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let owned = testkit::command("chown")
            .arg("postgres:")
            .arg(dir.path())
            .status()
            .expect("chown runs");
        assert!(owned.success(), "there is a user postgres");
        let data = dir.path().join("data");
        let mut initdb = postgres("initdb");
        let made = initdb
            .args(["--no-sync", "--auth=peer", "-D"])
            .arg(&data)
            .output()
            .expect("initdb runs");
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        let mut server = postgres("postgres");
        server
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(dir.path())
            .args(["-h", "", "-F"])
            .stdout(Stdio::null());
        let mut server = Process::start(&mut server);
        server.wait_for("database system is ready to accept connections");
        Self { server, dir }
    }

    /// Opens a connection: it runs the statements written to it, and prints the results as lines.
    fn connect(&self) -> Process {
        let mut psql = postgres("psql");
        psql.args(["-X", "-q", "-A", "-t", "-d", "postgres", "-h"])
            .arg(self.dir.path())
            .stdout(Stdio::null());
        Process::start(&mut psql)
    }

    /// Runs a statement, which prints `done` on standard error when it has ended.
    fn run(connection: &mut Process, statement: &str, done: &str) -> String {
        connection.say(&format!("{statement};\n\\warn {done}\n"));
        connection.wait_for(done)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // On this signal the server ends its own processes; a second signal would leave them
        // behind.
        self.server.signal("QUIT");
        let _ = self.server.child.wait();
    }
}

#[test]
fn queries_of_postgresql_are_counted() {
    let Some(_guard) = kernel() else { return };
    if !Path::new(POSTGRES).join("postgres").exists() {
        return skip("PostgreSQL", &format!("no {POSTGRES}/postgres here"));
    }
    let cluster = Cluster::start();
    let spec = cluster.dir.path().join("queries.toml");
    std::fs::write(&spec, QUERIES).expect("it is ours");
    let mut connection = cluster.connect();
    connection.say("select pg_backend_pid() as pid \\gset\n");
    connection.say("\\warn backend :pid\n");
    let line = connection.wait_for("backend ");
    let pid: u32 = line
        .rsplit(' ')
        .next()
        .expect("a word")
        .parse()
        .expect("a number");
    for round in 0..2 {
        let tracer = attached(pid, ["--objects".as_ref(), spec.as_os_str()]);
        for number in 0..100 {
            Cluster::run(
                &mut connection,
                &format!("select {number}"),
                &format!("done {round}.{number}."),
            );
        }
        tracer.signal("INT");
        let came = recorded(tracer);
        let counts = came.counts();
        assert_eq!(
            (counts["query__start"], counts["query__done"]),
            (100, 100),
            "{}",
            came.last
        );
        assert!(came.last.contains("stopped: 200 events"), "{}", came.last);
        // Nobody listens, and no event of it appears later.
        Cluster::run(
            &mut connection,
            "select 'unheard'",
            &format!("unheard {round}"),
        );
    }
    assert!(connection.end().0.success());
}

/// Builds the program, which throws as many exceptions as each line of its input says.
fn throwing() -> TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("throwing.cc"), THROWING).expect("it is ours");
    std::fs::write(dir.path().join("exceptions.toml"), EXCEPTIONS).expect("it is ours");
    let built = testkit::command("g++")
        .args(["-O1", "-o", "throwing", "throwing.cc"])
        .current_dir(&dir)
        .status();
    assert!(built.expect("g++ runs").success());
    dir
}

#[test]
fn exceptions_are_counted_in_a_shared_library() {
    let Some(_guard) = kernel() else { return };
    if !needs("g++") {
        return;
    }
    let dir = throwing();
    let spec = [
        "--objects".to_owned(),
        dir.path().join("exceptions.toml").display().to_string(),
    ];
    let mut process =
        Process::start(testkit::command(dir.path().join("throwing")).stdout(Stdio::null()));
    process.wait_for("ready");
    process.say("10\n");
    process.wait_for("caught 10");
    let mut tracer = Process::start(record(["-p", &process.pid().to_string()]).args(&spec));
    let messages = tracer.wait_for("attached to libstdcxx:catch");
    assert!(messages.contains("libstdc++.so.6"), "{messages}");
    process.say("500\n");
    process.wait_for("caught 510");
    // It ends while dptrace may still be printing its attached probes.
    process.end();
    let came = recorded(tracer);
    assert!(
        came.last.contains("has ended: 1000 events"),
        "{}",
        came.last
    );
    let counts = came.counts();
    assert_eq!(
        (counts["throw"], counts["catch"]),
        (500, 500),
        "{}",
        came.last
    );
}

/// The library is found before the command has loaded it.
#[test]
fn a_command_s_libraries_are_found_before_it_starts() {
    let Some(_guard) = kernel() else { return };
    if !needs("g++") {
        return;
    }
    let dir = throwing();
    let mut command = record([
        "--objects".as_ref(),
        dir.path().join("exceptions.toml").as_os_str(),
    ]);
    let mut tracer = Process::start(command.arg("--").arg(dir.path().join("throwing")));
    tracer.wait_for("ready");
    tracer.say("300\n");
    tracer.wait_for("caught 300");
    let came = recorded(tracer);
    assert_eq!(came.counts()["throw"], 300, "{}", came.last);
    assert!(came.last.contains("has ended: 600 events"), "{}", came.last);
}
