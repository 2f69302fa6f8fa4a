//! `-p` and bare process arguments on every command: pids, lists of them, names, and arguments that
//! match no process.
#![expect(
    clippy::expect_used,
    reason = "a test that is not set up as it should be fails"
)]

#[path = "it/common/program.rs"]
mod program;

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};

use program::{dptrace, printed};
use tempfile::TempDir;

/// Environment variable that makes the test program wait for its standard input to end.
const WAITS: &str = "DPTRACE_TEST_WAITS";

/// Processes under a name that nothing else on this machine has; dropped, it ends them.
struct Named {
    name: String,
    children: Vec<Child>,
    _folder: TempDir,
}

impl Named {
    #[track_caller]
    fn start(letter: char, count: usize) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        // The kernel keeps 15 bytes of a name.
        let name = format!("dpt{letter}{}", std::process::id());
        let program = folder.path().join(&name);
        testkit::copy_program(std::env::current_exe().expect("this program"), &program);
        let start = |_| {
            let mut command = testkit::command(&program);
            // A word that occurs in its command line only.
            command
                .args(["--exact", "waiting", "--ignored", "--test-threads=1"])
                .arg(format!("/no/word-of-{name}.py"));
            command
                .arg0(&name)
                .env(WAITS, "1")
                .stdin(Stdio::piped())
                .stdout(Stdio::null());
            command.spawn().expect("it starts")
        };
        Self {
            children: (0..count).map(start).collect(),
            name,
            _folder: folder,
        }
    }

    fn pids(&self) -> Vec<String> {
        self.children
            .iter()
            .map(|child| child.id().to_string())
            .collect()
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        for child in &mut self.children {
            // It has ended already if the test failed.
            testkit::end(child);
        }
    }
}

/// Not a test: the body of the processes.
#[test]
#[ignore = "the process that other tests look at"]
fn waiting() {
    if std::env::var_os(WAITS).is_some() {
        let _ = std::io::stdin().lines().next();
    }
}

/// Runs dptrace; returns its status, standard output and standard error.
#[track_caller]
fn run(words: &[&str]) -> (i32, String, String) {
    let output = dptrace().args(words).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().expect("it ends by itself"),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// Commands that take one process, up to the word before it.
const OF_ONE: [&[&str]; 7] = [
    &["record", "-p"],
    &["record"],
    &["trace", "-p"],
    &["latency", "-p"],
    &["objects", "-p"],
    &["inspect", "1", "-p"],
    &["run", "-e", "begin {}", "-p"],
];

#[test]
fn several_are_too_many_for_commands_of_one() {
    let named = Named::start('a', 2);
    let pids = named.pids();
    let several = [
        &[named.name.as_str()][..],
        &[&pids.join(",")],
        &[&pids.join(" ")],
        &[&pids[0], &pids[1]],
    ];
    for command in OF_ONE.into_iter().filter(|command| command[0] != "run") {
        for typed in several {
            let words = [command, typed].concat();
            let (status, _, messages) = run(&words);
            assert_eq!(status, 2, "{words:?}: {messages}");
            assert!(
                messages.contains(&format!("{} takes one process", command[0])),
                "{words:?}: {messages}"
            );
            let lists = |pid: &String| messages.contains(&format!("{pid}  {} --exact", named.name));
            assert!(pids.iter().all(lists), "{words:?}: {messages}");
        }
    }
}

#[test]
fn run_takes_several() {
    let named = Named::start('g', 2);
    let pids = named.pids();
    for typed in [
        &[named.name.as_str()][..],
        &[&pids.join(",")],
        &[&pids.join(" ")],
        &[&pids[0], &pids[1]],
    ] {
        let (status, output, messages) =
            run(&[&["run", "--check", "-e", "begin {}", "-p"], typed].concat());
        if messages.contains("first PID namespace") {
            continue;
        }
        assert_eq!((status, output.as_str()), (0, ""), "{typed:?}: {messages}");
        let noted = format!(
            "2 processes are called {}, and all are traced (-p PID takes one)\n",
            named.name
        );
        assert_eq!(
            messages.contains(&noted),
            typed == [named.name.as_str()],
            "{typed:?}: {messages}"
        );
    }
    let all = pids.join(",");
    for (script, expected) in [
        (
            "tracepoint:sched:sched_switch { print(__PID__); }",
            "needs a single process (__PID__), but these are 2",
        ),
        (
            "watchpoint:0x10000000:8:w { }",
            "a watchpoint is for one process",
        ),
    ] {
        let (code, _, messages) = run(&["run", "--check", "-e", script, "-p", &all]);
        if code != 3 {
            assert!(
                code == 2 && messages.contains(expected),
                "{script}: {messages}"
            );
        }
    }
}

#[test]
fn run_leaves_out_processes_that_are_gone() {
    let named = Named::start('e', 1);
    let gone = format!("{},999999999", named.pids()[0]);
    for (words, status, expected) in [
        (
            &["-p", gone.as_str()][..],
            0,
            "note: no process has the pid 999999999: left out\n",
        ),
        (
            &["-p", "999999999"],
            1,
            "error: no process has the pid 999999999\n",
        ),
        (
            &["--children"],
            2,
            "--children needs a process: give -p PID",
        ),
    ] {
        let (code, _, messages) = run(&[&["run", "--check", "-e", "begin {}"], words].concat());
        assert_eq!(code, status, "{words:?}: {messages}");
        assert!(messages.contains(expected), "{words:?}: {messages}");
    }
}

#[test]
fn a_slip_in_a_name_has_near_names() {
    let named = Named::start('b', 1);
    // The name with two letters swapped, or a name that is only a word of the command line.
    let mut slip: Vec<char> = named.name.chars().collect();
    slip.swap(2, 3);
    let slip: String = slip.into_iter().collect();
    let word = format!("word-of-{}", named.name);
    for command in OF_ONE.into_iter().chain([
        &["kernel-delay"][..],
        &["kernel-delay", "-p"],
        &["list", "-p"],
        &["list"],
    ]) {
        for typed in [slip.as_str(), &word] {
            let (status, output, messages) = run(&[command, &[typed]].concat());
            if messages.contains("namespace of process numbers") {
                continue;
            }
            assert_eq!(
                (status, output.as_str()),
                (1, ""),
                "{command:?} {typed}: {messages}"
            );
            let expected = format!("no process is called {typed}; did you mean one of these?");
            assert!(
                messages.contains(&expected),
                "{command:?} {typed}: {messages}"
            );
            assert!(
                messages.contains(&format!("{}  {}", named.pids()[0], named.name)),
                "{command:?}: {messages}"
            );
        }
    }
}

#[test]
fn a_program_that_does_not_run_can_be_started() {
    let folder = tempfile::tempdir().expect("a directory");
    let name = format!("dptnone{}", std::process::id());
    let program = folder.path().join(&name);
    std::os::unix::fs::symlink("/bin/true", &program).expect("linked");
    for (words, hint) in [
        (
            &["record", &name, "a b"][..],
            format!("dptrace record -- {name} 'a b'"),
        ),
        (
            &["kernel-delay", "-p", &name],
            format!("dptrace kernel-delay -- {name}"),
        ),
        (
            &["record", "/bin/true"],
            "dptrace record -- /bin/true".into(),
        ),
        (
            &["list", &name],
            format!("dptrace list {}", program.display()),
        ),
    ] {
        let output = dptrace()
            .args(words)
            .env("PATH", folder.path())
            .output()
            .expect("it runs");
        let messages = String::from_utf8_lossy(&output.stderr);
        if messages.contains("namespace of process numbers") {
            continue;
        }
        assert_eq!(output.status.code(), Some(1), "{messages}");
        assert!(messages.contains("no process is called "), "{messages}");
        assert!(messages.trim_end().ends_with(&hint), "{messages}");
    }
}

#[test]
fn list_takes_a_process_in_place_of_a_file() {
    let named = Named::start('c', 2);
    let pids = named.pids();
    let [first, second] = [pids[0].as_str(), &pids[1]];
    let pattern = "*list_takes_a_process*";
    let expected = printed(["list", "-p", first, "--functions", pattern]);
    assert!(expected.contains(&named.name), "{expected}");
    for words in [
        &["-p", &named.name][..],
        &[&named.name],
        &[first],
        &["-p", first, second],
        &["-p", &pids.join(",")],
    ] {
        let (status, output, messages) =
            run(&[&["list", "--functions"], words, &[pattern]].concat());
        assert_eq!((status, &output), (0, &expected), "{words:?}: {messages}");
        assert_eq!(
            messages.contains("processes run this program"),
            words != [first],
            "{words:?}: {messages}"
        );
    }
    // A file of that name takes precedence over the process.
    let folder = tempfile::tempdir().expect("a directory");
    std::fs::write(folder.path().join(&named.name), "no program").expect("written");
    dptrace()
        .current_dir(folder.path())
        .args(["list", &named.name])
        .assert()
        .code(1);
}

#[test]
fn words_that_are_no_process() {
    for (words, expected) in [
        (&["list", "-p", ""][..], "-p names no process"),
        (&["record", "-p", ","], "-p names no process"),
        (
            &["list", "query__*"],
            "is a pattern, but there is nothing to search",
        ),
        (&["record"], "give -p PID, -p NAME, or -- COMMAND"),
    ] {
        let (status, _, messages) = run(words);
        assert_eq!(status, 2, "{words:?}: {messages}");
        assert!(messages.contains(expected), "{words:?}: {messages}");
    }
    for words in [
        &["list", "-p", "99999999999"][..],
        &["record", "99999999999"],
        &["trace", "-p", "99999999999"],
    ] {
        let (status, _, messages) = run(words);
        assert_eq!(
            (status, messages.as_str()),
            (1, "error: no process has the pid 99999999999\n"),
            "{words:?}"
        );
    }
}

/// A script's arguments stay its own, even after `-p`; a process may follow a bundled script that
/// takes no arguments.
#[test]
fn arguments_of_scripts_are_not_processes() {
    let named = Named::start('d', 1);
    let printed = |words: &[&str]| run(&[&["run", "--dump", "ast"], words].concat());
    // Parsed only: nothing is attached.
    let (status, output, messages) = printed(&[
        "-e",
        "begin { print($1); print($#) }",
        "-p",
        &named.name,
        "13",
        "14",
    ]);
    assert_eq!(status, 0, "{messages}");
    assert!(output.contains("$1") && output.contains("$#"), "{output}");
    for words in [
        &["syslat", &named.name][..],
        &["syslat", &named.pids()[0]],
        &[&named.pids()[0], "syslat"],
    ] {
        assert_eq!(printed(words).0, 0, "{words:?}");
    }
    let (status, _, messages) = printed(&["syslat", "no-such-process"]);
    assert_eq!(status, 1, "{messages}");
    assert!(
        messages.contains("no process is called no-such-process"),
        "{messages}"
    );
    // This script takes an argument.
    assert_eq!(printed(&["fsync-files", "5"]).0, 0);
}

/// Called as `bpftrace`, dptrace takes only one number for `-p` and prints bpftrace's messages.
#[test]
fn bpftrace_knows_no_names() {
    let folder = tempfile::tempdir().expect("a directory");
    let bpftrace = folder.path().join("bpftrace");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_dptrace"), &bpftrace).expect("linked");
    let output = testkit::command(bpftrace)
        .args(["-p", "1x", "-e", "begin {}"])
        .output()
        .expect("it runs");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(
        messages.contains("ailed to parse pid: invalid trailing bytes: 1x"),
        "{messages}"
    );
}
