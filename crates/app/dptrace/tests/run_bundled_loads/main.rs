//! The bundled scripts for any process, each under a load with known numbers.
#![expect(
    clippy::expect_used,
    reason = "a test that is not set up as it should be fails"
)]

#[path = "../it/common/kernel.rs"]
#[expect(
    dead_code,
    reason = "neither recordings nor the demo target are of interest here"
)]
mod kernel;
mod loads;
mod tables;
mod waits;

use std::process::Stdio;
use std::time::Duration;

use kernel::{PROGRAM, Process, kernel, needs};
use tables::has_time;

const LOAD: &str = "DPTRACE_TEST_LOAD";

#[test]
#[ignore = "it is the program that other tests look at"]
fn program() {
    let name = std::env::var(LOAD).expect("a load");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a line");
    loads::run(&name);
    eprintln!("{DONE}");
    // The functions of an ended process have no names.
    std::io::stdin().read_line(&mut line).expect("its end");
}

/// Line that the program writes when a load is over.
const DONE: &str = "the load is over";

/// End of a load, as a script sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Interrupted while the process is still there, so that its functions have names.
    Interrupt,
    /// The process ends.
    Process,
}

/// Time for dptrace to look up the function names of the process before it ends.
const NAMING: Duration = Duration::from_millis(500);

/// Returns what a script prints of a load whose process ends.
#[track_caller]
fn output_of(load: &str, script: &str, script_args: &[&str]) -> String {
    output_until(End::Process, load, script, script_args)
}

/// Returns what a script prints of a load that ends in the given way.
#[track_caller]
fn output_until(end: End, load: &str, script: &str, script_args: &[&str]) -> String {
    let own = std::env::current_exe().expect("this program");
    let mut command = testkit::command(own);
    command
        .args(["program", "--exact", "--ignored", "--nocapture"])
        .env(LOAD, load)
        .stdout(Stdio::null());
    let mut program = Process::start(&mut command);
    let pid = program.pid().to_string();
    let mut command = testkit::command(PROGRAM);
    command
        .args(["run", script])
        .args(script_args)
        .args(["-p", &pid])
        .env("NO_COLOR", "1")
        .stdout(Stdio::piped());
    let mut tracer = Process::start(&mut command);
    tracer.wait_for("Attached");
    program.say("go\n");
    program.wait_for(DONE);
    if end == End::Interrupt {
        tracer.signal("INT");
    } else {
        std::thread::sleep(NAMING);
        drop(program.child.stdin.take());
    }
    let (status, output, errors) = tracer.end();
    assert!(status.success(), "{script}: {status}: {errors:#?}");
    // This closes its input, too.
    let (status, _, errors) = program.end();
    assert!(status.success(), "{load}: {status}: {errors:#?}");
    output
}

#[track_caller]
fn assert_parts(load: &str, script: &str, script_args: &[&str], parts: &[&str]) {
    let output = output_of(load, script, script_args);
    for part in parts {
        assert!(
            output.contains(part),
            "{script} does not print {part:?}:\n{output}"
        );
    }
}

/// Returns all names in the list of scripts.
fn names() -> Vec<String> {
    let list = testkit::command(PROGRAM)
        .arg("scripts")
        .output()
        .expect("it runs")
        .stdout;
    let list = String::from_utf8(list).expect("it is UTF-8");
    let names = list
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '));
    names
        .map(|line| line.split(' ').next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn the_list_fits_a_terminal() {
    let list = testkit::command(PROGRAM)
        .arg("scripts")
        .output()
        .expect("it runs")
        .stdout;
    let list = String::from_utf8(list).expect("it is UTF-8");
    assert!(list.lines().all(|line| line.len() <= 80), "{list}");
    assert!(list.starts_with("CPU and threads\n  runqlat"), "{list}");
    assert!(names().len() >= 30, "{list}");
}

/// A script may need something that this machine lacks (status 3), but none has a mistake.
#[test]
fn every_script_compiles() {
    let Some(_alone) = kernel() else { return };
    for name in names() {
        let check = testkit::command(PROGRAM)
            .args(["run", "--check", &name])
            .args((name == "libcalls").then_some("libgcc_s"))
            .args(["-c", "/bin/true"])
            .output()
            .expect("it runs");
        let errors = String::from_utf8_lossy(&check.stderr);
        let can_not_run =
            check.status.code() == Some(3) && errors.contains(&format!("{name} can't run here"));
        assert!(
            check.status.success() || can_not_run,
            "{name}: {}: {errors}",
            check.status
        );
    }
}

#[test]
#[ignore = "deep truth: a fast query and a fast wait must end within 100 ms"]
fn fast_queries_and_waits_are_not_listed() {
    let Some(_alone) = kernel() else { return };
    for (load, script) in [("queries", "pg-queries"), ("waits", "pg-waits")] {
        let listed = output_of(load, script, &["100"]);
        assert!(!listed.contains("fast"), "{listed}");
    }
}

#[test]
fn applications() {
    let Some(_alone) = kernel() else { return };
    let queries = output_of("queries", "pg-queries", &["100"]);
    assert!(
        queries.contains(" ms  SELECT slow FROM load\n") && queries.contains("@milliseconds:"),
        "{queries}"
    );
    assert!(
        queries.starts_with("DONE AT   SERVER     PID           TOOK       IN LOCKS  QUERY\n"),
        "{queries}"
    );
    assert!(!queries.contains("running"), "{queries}");
    assert!(
        queries.contains(" ms  SELECT long, xxxx") && queries.contains("xxx...\n"),
        "{queries}"
    );
    assert!(
        queries.contains(" ms  cut off, its process ended: SELECT last FROM load\n"),
        "{queries}"
    );
    assert!(
        queries.contains(" ms  parallel worker of 4711: SELECT part FROM load\n"),
        "{queries}"
    );
    let handshakes = output_of("handshakes", "tls-handshakes", &[]);
    // A bucket is `[8, 16)`, or `[1]` for a handshake of one microsecond.
    let counted = handshakes.lines().filter_map(|line| {
        line.split_once([')', ']'])?
            .1
            .split_once('|')?
            .0
            .trim()
            .parse::<u64>()
            .ok()
    });
    assert_eq!(counted.sum::<u64>(), 2, "{handshakes}");
    assert!(
        handshakes.contains("@not_completed[program]: 1\n"),
        "{handshakes}"
    );
    assert_parts("names", "dns", &[], &[" found  localhost\n", "@us:"]);
}

#[test]
fn waits_of_queries() {
    let Some(_alone) = kernel() else { return };
    let waits = output_of("waits", "pg-waits", &["100"]);
    assert!(
        waits.starts_with(
            "OVER AT   SERVER     PID         WAITED  HELD BY  LOCK ON         NUMBER  MODE                  QUERY\n"
        ),
        "{waits}"
    );
    for row in [
        " ms     4710  relation         16384  AccessExclusive       SELECT granted FROM load\n                                             4710  statement not seen\n",
        " ms     4711  relation         16384  Share                 SELECT shared FROM load\n                                             4711  statement not seen\n",
        " ms        -  relation         16384  RowShare              SELECT queued FROM load\n",
        " ms        -  transaction        741  Share                 deadlock: SELECT crossed FROM load\n",
        " ms        -  advisory            77  Exclusive             given up: SELECT cancelled FROM load\n",
        " ms        -  tuple            16385  Exclusive             process ended: SELECT last FROM load\n",
    ] {
        assert!(waits.contains(row), "no {row:?} in:\n{waits}");
    }
    assert!(waits.contains("@milliseconds:"), "{waits}");
}

#[test]
fn files_and_errors() {
    let Some(_alone) = kernel() else { return };
    let written = "@written[program, load.dat]: { .count = 5, .average = 1000, .total = 5000 }\n";
    assert_parts("files", "file-calls", &[], &[written]);
    let syncs = output_of("files", "fsync-files", &["0"]);
    assert_eq!(syncs.matches(" ms  load.dat\n").count(), 2, "{syncs}");
    assert!(syncs.contains("@us[program]:\n"), "{syncs}");
    let opens = output_of("files", "failed-opens", &[]);
    assert_eq!(
        opens
            .matches(" /no-such-directory/load: No such file or directory\n")
            .count(),
        3,
        "{opens}"
    );
    let failed = " No such file or directory   /no-such-directory/load\n";
    let opens = output_of("files", "opensnoop", &[]);
    assert_eq!(opens.matches(failed).count(), 3, "{opens}");
    let opened = |line: &&str| line.contains(" program         ok ") && line.ends_with("/load.dat");
    assert_eq!(opens.lines().filter(opened).count(), 1, "{opens}");
    let opens = output_of("files", "files-opened", &[]);
    assert!(
        opens.contains("@failed[program, /no-such-directory/load, No such file or directory]: 3\n"),
        "{opens}"
    );
    assert!(
        opens.lines().any(|line| line.ends_with("/load.dat]: 1")),
        "{opens}"
    );
    assert_parts(
        "files",
        "syscall-errors",
        &[],
        &["@failed[program, read, Bad file descriptor]: 4\n"],
    );
    // Requests of in-memory file systems reach no disk.
    output_of("files", "disk-latency", &[]);
}

#[test]
fn network() {
    let Some(_alone) = kernel() else { return };
    let peers = output_of("connections", "peer-calls", &[]);
    for call in ["sendto", "recvfrom"] {
        let found = peers
            .lines()
            .filter(|line| line.starts_with(&format!("@calls[program, {call}, 127.0.0.1, ")));
        assert!(
            found.clone().count() == 1 && found.clone().all(|line| line.ends_with("]: 6")),
            "{call}: {peers}"
        );
    }
    assert_parts(
        "connections",
        "tcp-connects",
        &[],
        &["@us[127.0.0.1, ", "@failed[127.0.0.1, 1]: "],
    );
    assert_parts(
        "connections",
        "tcp-resets",
        &[],
        &[" <- 127.0.0.1:1\n", "@resets[127.0.0.1, 1]: "],
    );
}

/// A server that accepts no connection: from the second on, the kernel does not answer, and the
/// client retransmits after a second.
#[test]
#[ignore = "deep truth: the kernel must retransmit within the 3 s that the load waits"]
fn retransmits() {
    let Some(_alone) = kernel() else { return };
    if !needs("perl") {
        return;
    }
    let load = "use Socket; socket(S,2,1,0); bind(S,sockaddr_in(0,inet_aton('127.0.0.1'))); listen(S,0); sleep 1; \
                for (1..3) { socket(my $c,2,1|2048,0); connect($c,getsockname(S)); push @c,$c } sleep 3";
    let dir = tempfile::tempdir().expect("a directory");
    let script = dir.path().join("load.pl");
    std::fs::write(&script, load).expect("there is space");
    let mut command = testkit::command(PROGRAM);
    command
        .args([
            "run",
            "tcp-retransmits",
            "-c",
            &format!("perl {}", script.display()),
        ])
        .stdout(Stdio::piped());
    let (status, output, errors) = Process::start(&mut command).end();
    assert!(status.success(), "{status}: {errors:#?}");
    assert!(
        output
            .lines()
            .any(|line| has_time(line) && line.contains(" 127.0.0.1:"))
            && output.contains("@segments[127.0.0.1, "),
        "{output}"
    );
}

#[test]
fn processes() {
    let Some(_alone) = kernel() else { return };
    // Sent to itself, received from another process, and what happened to children.
    let signals = output_of("signals", "signals", &[]);
    let head =
        "TIME             PID SENDER          SIGNAL                    ->     PID RECEIVER\n";
    assert!(signals.starts_with(head), "{signals}");
    for row in [
        " program         SIGURG                    -> ",
        " sh              SIGURG                    -> ",
        " sh              Child exited: 3           -> ",
        " sh              Child killed by SIGKILL   -> ",
    ] {
        let row = signals.lines().find(|line| line.contains(row));
        assert!(row.is_some_and(has_time), "{signals}");
    }
    for count in [
        "@signals[SIGURG, program, run_bundled_loa]: 1\n",
        "@signals[SIGURG, sh, run_bundled_loa]: 1\n",
        "@signals[SIGCHLD, sh, run_bundled_loa]: 2\n",
    ] {
        assert!(signals.contains(count), "{signals}");
    }
    let mut command = testkit::command(PROGRAM);
    let (status, output, errors) = Process::start(
        command
            .args(["run", "execs", "-c", "/bin/true"])
            .stdout(Stdio::piped()),
    )
    .end();
    assert!(
        status.success()
            && output
                .lines()
                .any(|line| line.ends_with("/bin/true") && has_time(line)),
        "{status}: {output}{errors:#?}"
    );
}

/// The map that counts followed processes takes no number from the script's maps.
#[test]
fn maps_keep_their_numbers_with_forks() {
    let Some(_alone) = kernel() else { return };
    let script = "begin { @a = 1; @b = 2; clear(@a); print(@b); }";
    let mut command = testkit::command(PROGRAM);
    command
        .args([
            "run",
            "-q",
            "--follow-forks",
            "-e",
            script,
            "-c",
            "/bin/true",
        ])
        .stdout(Stdio::piped());
    let (status, output, errors) = Process::start(&mut command).end();
    assert!(status.success(), "{status}: {errors:#?}");
    let lines: Vec<&str> = output.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines, ["@b: 2", "@b: 2"], "{output}");
}
