//! A process whose every name tries to control a terminal, and whose first thread may have ended.
//! All commands work on it, and print no control character except line ends and tabs.

mod messages;

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use crate::common::kernel::{PROGRAM, kernel, needs, until};
use crate::common::small::Small;
use tempfile::TempDir;

/// Bytes of a hostile name: an escape sequence, a line end, a character of C1 (U+009B), DEL, a
/// change of direction, and a byte that is not UTF-8.
const EVIL: &[u8] = b"e\x1b[31m\n\xc2\x9b\x7f\xe2\x80\xae\xff";

const LIBRARY: &str = r#"
long turn(const char *text) __asm__("\"turn\033[31m\302\233\177\"");
__attribute__((noinline)) long turn(const char *text) { return text[0]; }
long enter(const char *text, long (*back)(const char *)) __asm__("\"enter\033[31m\302\233\"");
__attribute__((noinline)) long enter(const char *text, long (*back)(const char *)) { return back(text) + 1; }
"#;

/// Source of the program. One of its probes has hostile names and arguments, and one can be
/// recorded.
const MAIN: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
#define PROBE(provider, name, args) __asm__ volatile("990: nop\n" \
    ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n.4byte 992f-991f,994f-993f,3\n991: .asciz \"stapsdt\"\n" \
    "992: .balign 4\n993: .8byte 990b\n.8byte 0\n.8byte 0\n.asciz \"" provider "\"\n.asciz \"" name "\"\n" \
    ".asciz \"" args "\"\n994: .balign 4\n.popsection\n" : : : "memory")
#define EVIL "e\033[31m\n\302\233\177\342"
long turn(const char *text) __asm__("\"turn\033[31m\302\233\177\"");
long enter(const char *text, long (*back)(const char *)) __asm__("\"enter\033[31m\302\233\"");
long evil(const char *text) __asm__("\"evil\033[31m\302\233\177\"");
__attribute__((noinline)) long evil(const char *text) {
    PROBE("p\033[31m\302\233", "n\177\302\233", "8@$1\033[31m 4@$2");
    PROBE("plain", "tick", "8@$0 8@$7");
    return turn(text);
}
__attribute__((noinline)) void plain(const char *text) { enter(text, evil); }
static void *work(void *text) {
    prctl(PR_SET_NAME, "t" EVIL);
    for (;;) { plain(text); usleep(2000); }
}
int main(int argc, char **argv) {
    pthread_t thread;
    prctl(PR_SET_NAME, "m" EVIL);
    pthread_create(&thread, 0, work, argv[1]);
    puts("ready"); fflush(stdout);
    if (argc > 2 && open(argv[2], O_RDONLY) >= 0) pthread_exit(0);
    getchar();
    return 0;
}
"#;

const SPEC: &str = r#"
[[object]]
name = "plain"
provider = "plain"
key = "k"
[[object.probe]]
name = "tick"
role = "begin"
args = ["tsc", "k"]
"#;

/// The running process.
struct Victim {
    child: Child,
    dir: TempDir,
    /// Path in a directory with a hostile name.
    program: PathBuf,
    cgroup: Option<PathBuf>,
}

impl Victim {
    /// Starts it. With a file to open, its first thread then ends.
    fn start(opens: Option<&Path>) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let folder = dir.path().join(OsStr::from_bytes(EVIL));
        std::fs::create_dir(&folder).expect("it can be made");
        let library = folder.join(OsStr::from_bytes(&[b"lib", EVIL, b".so"].concat()));
        let program = folder.join(OsStr::from_bytes(EVIL));
        let (main_c, library_c) = (dir.path().join("main.c"), dir.path().join("library.c"));
        std::fs::write(&main_c, MAIN).expect("written");
        std::fs::write(&library_c, LIBRARY).expect("written");
        let cc = |args: &[&OsStr]| {
            let done = testkit::command("cc")
                .args(["-O1", "-g", "-fno-omit-frame-pointer", "-pthread"])
                .args(args)
                .output();
            let done = done.expect("cc runs");
            assert!(
                done.status.success(),
                "{}",
                String::from_utf8_lossy(&done.stderr)
            );
        };
        cc(&[
            "-shared".as_ref(),
            "-fPIC".as_ref(),
            "-o".as_ref(),
            library.as_ref(),
            library_c.as_ref(),
        ]);
        cc(&[
            "-o".as_ref(),
            program.as_ref(),
            main_c.as_ref(),
            library.as_ref(),
        ]);
        let mut command = testkit::command(&program);
        command
            .arg(OsStr::from_bytes(EVIL))
            .env("EVIL", OsStr::from_bytes(EVIL));
        command.args(opens);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut ready = [0; 6];
        child
            .stdout
            .as_mut()
            .expect("it is piped")
            .read_exact(&mut ready)
            .expect("it says so");
        let cgroup = in_cgroup(child.id());
        Self {
            child,
            dir,
            program,
            cgroup,
        }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // It may have ended already.
        testkit::end(&mut self.child);
        if let Some(cgroup) = &self.cgroup {
            // Its threads leave the group shortly after the process has been waited for.
            for _ in 0..100 {
                match std::fs::remove_dir(cgroup) {
                    Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => {}
                    _ => break,
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
    }
}

/// Moves it into a control group whose name is hostile, except that it can't hold a line end.
/// `None` if there can be no group.
fn in_cgroup(pid: u32) -> Option<PathBuf> {
    let name: Vec<u8> = EVIL.iter().copied().filter(|&byte| byte != b'\n').collect();
    let name = [b"dptrace-", pid.to_string().as_bytes(), name.as_slice()].concat();
    let roots = [
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/unified",
        "/sys/fs/cgroup/cpu",
    ]
    .map(Path::new);
    let root = roots
        .into_iter()
        .find(|root| root.join("cgroup.procs").exists())?;
    let folder = root.join(OsStr::from_bytes(&name));
    std::fs::create_dir(&folder).ok()?;
    if std::fs::write(folder.join("cgroup.procs"), pid.to_string()).is_err() {
        testkit::kernel::skip_if_permitted("cgroups", "no process can be moved into a cgroup here");
    }
    Some(folder)
}

/// Runs the program, and checks each character that it prints.
#[track_caller]
fn harmless<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> (Output, String) {
    let args: Vec<OsString> = args
        .into_iter()
        .map(|arg| arg.as_ref().to_owned())
        .collect();
    let mut command = testkit::command(PROGRAM);
    let output = command
        .args(&args)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let mut all = String::new();
    for (stream, bytes) in [
        ("standard output", &output.stdout),
        ("standard error", &output.stderr),
    ] {
        let text = std::str::from_utf8(bytes);
        let text = text
            .unwrap_or_else(|error| panic!("{args:?}: {stream} is not UTF-8: {error}: {bytes:?}"));
        let obeyed = |c: char| {
            c.is_control() && !matches!(c, '\n' | '\t') || ('\u{202a}'..='\u{202e}').contains(&c)
        };
        let line = text.lines().find(|line| line.contains(obeyed));
        assert_eq!(line, None, "{args:?}: {stream}");
        // A line end in a name must not end a line: the following character there is of C1. A
        // script's output of strings and files may contain line ends.
        let prints = args[0] == "run" && args.iter().any(|arg| arg == "-e");
        let torn = text
            .lines()
            .find(|line| line.starts_with("\\xc2\\x9b\\x7f"));
        assert!(torn.is_none() || prints, "{args:?}: {stream}: {text}");
        all.push_str(text);
    }
    assert!(
        output.status.code().is_some_and(|code| code < 4),
        "{args:?}: {}: {all}",
        output.status
    );
    (output, all)
}

#[track_caller]
fn works<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> String {
    let (output, all) = harmless(args);
    assert!(output.status.success(), "{}: {all}", output.status);
    all
}

#[test]
fn every_command_writes_names_that_nobody_obeys() {
    let Some(_guard) = kernel() else { return };
    if !needs("cc") {
        return;
    }
    let victim = Victim::start(None);
    let pid = &victim.pid();
    let program = victim.program.as_os_str();
    assert!(works(["list", "-p", pid]).contains("plain:tick"));
    works(["list", "--places", "-p", pid]);
    let functions = works(["list", "--functions", "-p", pid]);
    assert!(
        functions.contains("evil\\x1b[31m\\xc2\\x9b\\x7f") && functions.contains("turn\\x1b[31m"),
        "{functions}"
    );
    works(["list", "--json", "-p", pid]);
    works(["list", "--json", "--functions", "-p", pid]);
    works(["list".as_ref(), program]);
    for pattern in ["uprobe:*", "usdt:*:*"] {
        works(["run", "-p", pid, "-l", pattern]);
        works(["run", "-p", pid, "-lv", pattern]);
    }
    let cat = format!(
        "BEGIN {{ cat(\"{}\"); exit(); }}",
        victim.dir.path().join("plain").display()
    );
    std::fs::write(victim.dir.path().join("plain"), EVIL).expect("written");
    assert!(works(["run", "-e", &cat]).contains("e\\x1b[31m"));
    works(["run", "-f", "json", "-e", &cat]);
    let prints = "uprobe:__EXE__:*evil* { printf(\"%s %s %s %s %r\", comm, str(arg0), func, usym(reg(\"ip\")), buf(arg0, 4)); \
         printf(\"%s %s\", ustack, probe); print((comm, usym(reg(\"ip\")), str(arg0))); @[comm, ustack, str(arg0)] = count(); \
         @s = str(arg0); @c[cgroup_path(cgroup)] = 1; exit(); }";
    let printed = works(["run", "-p", pid, "-e", prints]);
    assert!(printed.contains("evil\\x1b[31m"), "{printed}");
    works(["run", "-v", "-p", pid, "-e", prints]);
    works(["run", "-p", pid, "-f", "json", "-e", prints]);
    works(["run", "--dump", "types", "-p", pid, "-e", prints]);
    works(["run", "--dump", "insns", "-p", pid, "-e", prints]);
    let own = "uprobe:__EXE__:nothing { }";
    harmless(["run", "-p", pid, "-e", own]);
    let delay = ["kernel-delay", "-p", pid, "--sample-time", "0.1"];
    works(delay);
    let events = ["--syscall-events", "0", "--stack-trace-size", "64"];
    works(delay.iter().chain(&events));
    works(delay.iter().chain(&["--json"]));
    works(delay.iter().chain(&["--json"]).chain(&events));
    works(delay.iter().chain(&["--thread", "nobody"]));
    harmless(["kernel-delay", "--name", "nobody\u{1b}[31m\u{9b}"]);
    let spec = victim.dir.path().join("spec.toml");
    std::fs::write(&spec, SPEC).expect("written");
    let spec = spec.to_str().expect("it is UTF-8");
    let record = ["record", "-p", pid, "--objects", spec, "--for", "300ms"];
    until(|| works(record), |recorded| recorded.contains("tick: "));
    harmless(["record", "-p", pid]);
    harmless(["trace", "-p", pid]);
    harmless(["latency", "-p", pid]);
}

#[test]
fn a_process_lives_as_long_as_one_of_its_threads() {
    let Some(_guard) = kernel() else { return };
    if !needs("cc") {
        return;
    }
    let small = Small::new();
    let trace = small.path("t.trace");
    let victim = Victim::start(Some(&trace));
    let pid = &victim.pid();
    let status = format!("/proc/{pid}/status");
    while !String::from_utf8_lossy(&std::fs::read(&status).expect("it lives")).contains("(zombie)")
    {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(works(["list", "-p", pid]).contains("plain:tick"));
    let counts = "uprobe:__EXE__:plain { @hits = count(); @[ustack(2)] = count(); exit(); }";
    let counted = works(["run", "-p", pid, "-e", counts]);
    assert!(
        counted.contains("@hits: ") && !counted.contains("@hits: 0") && counted.contains("plain"),
        "{counted}"
    );
    let delay = works(["kernel-delay", "-p", pid, "--sample-time", "0.1"]);
    assert!(delay.contains("[TIME BUDGET]"), "{delay}");
    let spec = victim.dir.path().join("spec.toml");
    std::fs::write(&spec, SPEC).expect("written");
    let spec = spec.to_str().expect("it is UTF-8");
    let record = ["record", "-p", pid, "--objects", spec, "--for", "300ms"];
    let recorded = until(|| works(record), |recorded| recorded.contains("tick: "));
    assert!(recorded.contains("the time is up"), "{recorded}");
    let (output, said) = harmless(["trace", "-p", pid]);
    assert!(
        !output.status.success() && said.contains("has no trace file"),
        "{said}"
    );
    // This process has the trace open, so it counts as its writer.
    let follow = [
        "trace".as_ref(),
        "--follow".as_ref(),
        "--for".as_ref(),
        "200ms".as_ref(),
        "-i".as_ref(),
        trace.as_os_str(),
    ];
    let said = works(follow);
    assert!(said.contains("the time is up"), "{said}");
}
