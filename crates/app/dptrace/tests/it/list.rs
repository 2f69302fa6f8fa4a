//! `dptrace list` on real files and processes of this machine.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::common::{dptrace, printed};
use serde_json::Value;

/// The program itself, a file with known functions.
const OWN: &str = env!("CARGO_BIN_EXE_dptrace");

const LIBSTDCXX: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/aarch64-linux-gnu/libstdc++.so.6",
    "/usr/lib64/libstdc++.so.6",
    "/usr/lib/libstdc++.so.6",
];

/// Returns the path of libstdc++, which always has three probes, if it is installed.
fn libstdcxx() -> Option<&'static str> {
    let found = LIBSTDCXX.into_iter().find(|path| Path::new(path).exists());
    if found.is_none() {
        testkit::kernel::skip_if_permitted("libstdc++", "no libstdc++.so.6 here");
    }
    found
}

/// Returns the messages on standard error; asserts this exit status, and no output.
#[track_caller]
fn messages<S: AsRef<std::ffi::OsStr>>(args: &[S], status: i32) -> String {
    let done = dptrace().arg("list").args(args).assert().code(status);
    assert_eq!(
        String::from_utf8_lossy(&done.get_output().stdout),
        "",
        "nothing on standard output"
    );
    String::from_utf8_lossy(&done.get_output().stderr).into_owned()
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect()
}

/// Process that waits until the test is over.
struct Waiting(Child);

impl Waiting {
    fn start(command: &mut Command) -> Self {
        Self(command.spawn().expect("it starts"))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.kill().expect("it is ours");
        self.0.wait().expect("it is ours");
    }
}

#[test]
fn the_probes_of_a_library() {
    let Some(path) = libstdcxx() else { return };
    let text = printed(["list", path]);
    assert_eq!(text.lines().next(), Some(path));
    for (name, line) in ["libstdcxx:catch", "libstdcxx:rethrow", "libstdcxx:throw"]
        .iter()
        .zip(text.lines().skip(1))
    {
        assert!(
            line.starts_with(&format!("  {name} "))
                && line.contains("1 place")
                && line.contains(" @ "),
            "{line}"
        );
    }
    assert_eq!(text.lines().count(), 4, "{text}");
}

#[test]
fn patterns_choose_probes() {
    let Some(path) = libstdcxx() else { return };
    let names = |pattern: &str| {
        let lines = json_lines(&printed(["list", path, pattern, "--json"]));
        lines
            .iter()
            .map(|line| line["name"].as_str().expect("a name").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("throw"), ["throw"]);
    assert_eq!(names("libstdcxx:*throw"), ["rethrow", "throw"]);
    assert_eq!(names("lib*:"), ["catch", "rethrow", "throw"]);
    let error = messages(&[path, "thorw"], 1);
    assert!(error.contains("near: libstdcxx:throw"), "{error}");
    let error = messages(&[path, "libstdcxx:thorw"], 1);
    assert!(error.contains("near: libstdcxx:throw"), "{error}");
}

#[test]
fn json_has_everything() {
    let Some(path) = libstdcxx() else { return };
    let lines = json_lines(&printed(["list", path, "throw", "--json"]));
    let [probe] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    assert_eq!(
        (&probe["kind"], &probe["provider"], &probe["file"]),
        (&"usdt".into(), &"libstdcxx".into(), &path.into())
    );
    assert_eq!(probe["semaphore"], false);
    let place = &probe["places"][0];
    let offset = place["offset"]
        .as_str()
        .and_then(|offset| offset.strip_prefix("0x"))
        .expect("hex");
    assert!(u64::from_str_radix(offset, 16).is_ok_and(|offset| offset > 0));
    assert_eq!(place["args"].as_array().map(Vec::len), Some(2));
    assert_eq!(place["args"][0]["type"], "u64");
}

/// Debian's PostgreSQL has 72 probes, with semaphores, some in several places.
#[test]
fn postgres_has_semaphores_and_places() {
    let path = "/usr/lib/postgresql/15/bin/postgres";
    if !Path::new(path).exists() {
        return testkit::kernel::skip_if_permitted("files", &format!("no {path} here"));
    }
    let text = printed(["list", path]);
    assert!(
        text.lines().skip(1).all(|line| line.contains("semaphore")),
        "{text}"
    );
    let probes = json_lines(&printed(["list", path, "--json"]));
    assert_eq!(text.lines().count(), probes.len() + 1);
    let several = probes.iter().find(|probe| {
        probe["places"]
            .as_array()
            .is_some_and(|places| places.len() > 1)
    });
    let several = several.expect("a probe in several places");
    let count = several["places"].as_array().map_or(0, Vec::len);
    let places = printed([
        "list",
        path,
        several["name"].as_str().expect("a name"),
        "--places",
    ]);
    assert_eq!(places.lines().count(), 2 + count, "{places}");
    assert!(
        places.contains(several["places"][1]["offset"].as_str().expect("an offset")),
        "{places}"
    );
    assert!(text.contains("(differs at "), "{text}");
}

/// A probe of a library that a process maps is found through the process.
#[test]
fn the_probes_of_a_process() {
    let Some(path) = libstdcxx() else { return };
    let child = Waiting::start(testkit::command("sleep").arg("60").env("LD_PRELOAD", path));
    // The dynamic linker maps it a moment after the process starts.
    let maps = format!("/proc/{}/maps", child.pid());
    while !std::fs::read_to_string(&maps)
        .expect("its maps")
        .contains("libstdc++")
    {
        std::thread::yield_now();
    }
    let probes = json_lines(&printed([
        "list",
        "-p",
        &child.pid(),
        "libstdcxx:throw",
        "--json",
    ]));
    assert_eq!(probes.len(), 1);
    let real = Path::new(path).canonicalize().expect("it is there");
    assert_eq!(probes[0]["file"], real.to_str().expect("UTF-8"));
}

/// As in a container: a library that exists only in the process's mount namespace. Root reads it as
/// the mapped file itself; other users read it through the process's root directory.
#[test]
fn a_library_of_another_mount_namespace() {
    let Some(path) = libstdcxx() else { return };
    if !is_root() {
        return testkit::kernel::skip_if_permitted(
            "root",
            "not root, so no mount namespace can be made",
        );
    }
    let dir = tempfile::tempdir().expect("a directory");
    let inside = dir.path().join("inside.so").display().to_string();
    let mount = format!(
        "mount -t tmpfs none {0} && cp {path} {inside}",
        dir.path().display()
    );
    let script = format!("{mount} && LD_PRELOAD={inside} exec sleep 60");
    let mut child =
        Waiting::start(testkit::command("unshare").args(["--mount", "sh", "-c", &script]));
    let maps = format!("/proc/{}/maps", child.pid());
    while !std::fs::read_to_string(&maps)
        .expect("its maps")
        .contains(&inside)
    {
        if child.0.try_wait().expect("it is ours").is_some() {
            return testkit::kernel::skip_if_permitted(
                "mount namespaces",
                "no mount namespace can be made here",
            );
        }
        std::thread::yield_now();
    }
    assert!(!Path::new(&inside).exists());
    let pid = child.pid();
    let args = ["list", "-p", &pid, "throw"];
    let expected = printed(args);
    assert!(expected.starts_with(&inside), "{expected}");

    let mut less = testkit::command("setpriv");
    let less = less
        .args(["--bounding-set=-sys_admin,-checkpoint_restore", OWN])
        .args(args)
        .output();
    match less {
        Ok(done) => assert_eq!(String::from_utf8_lossy(&done.stdout), expected, "{done:?}"),
        Err(error) => {
            testkit::kernel::skip_if_permitted("setpriv", &format!("no setpriv here: {error}"));
        }
    }
}

#[test]
fn broken_notes_are_reported() {
    let Some(path) = libstdcxx() else { return };
    let mut bytes = std::fs::read(path).expect("it is there");
    let note = b"libstdcxx\0throw\0";
    let at = bytes
        .windows(note.len())
        .position(|window| window == note)
        .expect("the note");
    bytes[at] = 1;
    let dir = tempfile::tempdir().expect("a directory");
    let broken = dir.path().join("broken.so");
    std::fs::write(&broken, bytes).expect("it is ours");
    let done = dptrace().arg("list").arg(&broken).assert().success();
    let out = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
    let messages = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(
        out.contains("libstdcxx:catch") && !out.contains(":throw"),
        "{out}"
    );
    assert!(
        messages.contains("left out 1 invalid USDT note")
            && messages.contains("provider is not printable"),
        "{messages}"
    );
}

#[test]
fn our_own_process_and_its_libraries_functions() {
    let own = std::process::id().to_string();
    // The number of probes is not checked: libc has some or none.
    dptrace().args(["list", "-p", &own]).assert().success();
    let name = "*our_own_process_and_its_libraries_functions*";
    let functions = json_lines(&printed([
        "list",
        "-p",
        &own,
        "--functions",
        name,
        "--json",
    ]));
    let exe = std::env::current_exe().expect("our own path");
    assert!(
        functions
            .iter()
            .any(|function| function["file"] == exe.to_str().expect("UTF-8")),
        "{functions:?}"
    );
    assert!(printed(["list", "-p", &own, "--functions", "malloc"]).contains("libc"));
}

#[test]
fn a_program_without_probes_is_no_failure() {
    let child = Waiting::start(testkit::command("sleep").arg("60"));
    dptrace()
        .args(["list", "-p", &child.pid()])
        .assert()
        .success();
    let error = messages(&["-p", &child.pid(), "no_such_probe"], 1);
    assert!(
        error.contains("no USDT probe of pid") && error.contains("sleep"),
        "{error}"
    );
}

#[test]
fn functions_have_their_authors_names() {
    let text = printed(["list", OWN, "--functions", "dptrace::list::run"]);
    assert!(
        text.starts_with(OWN) && text.trim_end().ends_with(" dptrace::list::run"),
        "{text}"
    );
    let functions = json_lines(&printed([
        "list",
        OWN,
        "--functions",
        "dptrace::list::run",
        "--json",
    ]));
    assert_eq!(functions[0]["kind"], "function");
    let symbol = functions[0]["symbol"].as_str().expect("a symbol");
    assert!(
        symbol.starts_with("_ZN7dptrace4list3run") || symbol.starts_with("_R"),
        "{symbol}"
    );
    // The mangled name finds it too.
    assert!(printed(["list", OWN, "--functions", symbol]).contains("dptrace::list::run"));
    let error = messages(&[OWN, "--functions", "dptrace::list::rnu"], 1);
    assert!(
        error.contains("near: ") && error.contains("dptrace::list::run"),
        "{error}"
    );
    let error = messages(&[OWN, "--functions", "with_funktions"], 1);
    assert!(error.contains("with_functions"), "{error}");
}

#[test]
fn what_is_no_process_with_a_program() {
    let error = messages(&["-p", "4194305"], 1);
    assert!(error.contains("no process has the pid 4194305"), "{error}");
    if std::fs::read("/proc/2/comm").is_ok_and(|name| name == b"kthreadd\n") {
        let error = messages(&["-p", "2"], 1);
        assert!(
            error.contains("pid 2 (kthreadd) is a thread of the kernel"),
            "{error}"
        );
    } else {
        testkit::kernel::skip_if_permitted(
            "kernel threads",
            "no kernel thread is to be seen here (a container?)",
        );
    }
}

#[test]
fn what_is_no_program() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).expect("it is ours");
        path
    };
    let error = messages(&[file("script", b"#!/usr/bin/env python3\n")], 1);
    assert!(
        error.contains("script") && error.contains("/usr/bin/env python3"),
        "{error}"
    );
    assert!(messages(&[file("text", b"hello")], 1).contains("not an ELF file"));
    assert!(messages(&[file("empty", b"")], 1).contains("no bytes"));
    let mut narrow = [0; 64];
    narrow[..5].copy_from_slice(b"\x7fELF\x01");
    narrow[18] = 3;
    assert!(messages(&[file("narrow", &narrow)], 1).contains("32-bit ELF file (machine i386)"));
    assert!(
        messages(
            &[file(
                "cut",
                &std::fs::read(OWN).expect("it is there")[..500]
            )],
            1
        )
        .contains("truncated")
    );
    assert!(messages(&[dir.path()], 1).contains("not a regular file"));
    assert!(messages(&["/no/such/file"], 1).contains("/no/such/file"));
    assert!(
        !messages(&[file("\u{1b}[31m", b"x")], 1).contains('\u{1b}'),
        "control characters go to no terminal"
    );
}

#[test]
fn mistakes_are_usage_errors() {
    assert!(messages(&[""; 0], 2).contains("-p PID"));
    assert!(messages(&["-p", "1", "a", "b"], 2).contains("only one pattern is allowed"));
    assert!(messages(&[OWN, ""], 2).contains("pattern"));
    messages(&["--tracepoints", "-p", "1"], 2);
    messages(&["a", "b", "c"], 2);
}

/// Another user's process: status 3, and the rights that it takes.
#[test]
fn what_is_not_permitted() {
    if !is_root() {
        return testkit::kernel::skip_if_permitted("root", "not root, so nobody else can be tried");
    }
    let child = Waiting::start(testkit::command("sleep").arg("60"));
    // Our own folder may be closed to other users.
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).expect("it is ours");
    let copy = dir.path().join("dptrace");
    testkit::copy_program(OWN, &copy);
    let nobody = 65534;
    let done = testkit::command(&copy)
        .args(["list", "-p", &child.pid()])
        .uid(nobody)
        .gid(nobody)
        .output();
    let done = done.expect("nobody may run it");
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(3), "{error}");
    assert!(error.contains("CAP_SYS_PTRACE"), "{error}");
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self")
        .is_ok_and(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata) == 0)
}

/// Runs `list` with a tracefs in a mount namespace of its own, so that the machine's mounts do not
/// change. `None` if nothing can be mounted.
fn with_tracefs(args: &str) -> Option<std::process::Output> {
    let script =
        format!("mount -t tracefs tracefs /sys/kernel/tracing || exit 77; exec {OWN} list {args}");
    match testkit::command("unshare")
        .args(["--mount", "sh", "-c", &script])
        .output()
    {
        Ok(done) if is_root() && done.status.code() != Some(77) => Some(done),
        _ => {
            testkit::kernel::skip_if_permitted("tracefs", "tracefs can't be mounted here");
            None
        }
    }
}

#[test]
fn tracepoints_with_their_fields() {
    let Some(done) = with_tracefs("--tracepoints sched:sched_switch --json") else {
        return;
    };
    let lines = json_lines(&String::from_utf8_lossy(&done.stdout));
    assert_eq!(lines.len(), 1, "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(
        (&lines[0]["category"], &lines[0]["name"]),
        (&"sched".into(), &"sched_switch".into())
    );
    let fields = lines[0]["fields"].as_array().expect("fields");
    let pid = fields
        .iter()
        .find(|field| field["name"] == "prev_pid")
        .expect("prev_pid");
    assert_eq!((&pid["type"], &pid["size"]), (&"pid_t".into(), &4.into()));

    let names = with_tracefs("--tracepoints 'sched:*'").expect("it could be mounted");
    let names = String::from_utf8_lossy(&names.stdout).into_owned();
    assert!(
        names.lines().any(|line| line == "sched:sched_switch") && names.lines().is_sorted(),
        "{names}"
    );

    let slip = with_tracefs("--tracepoints sched_swich").expect("it could be mounted");
    assert_eq!(slip.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&slip.stderr).contains("near: sched:sched_switch"));
}

#[test]
fn tracefs_that_is_not_mounted() {
    if [
        "/sys/kernel/tracing/events",
        "/sys/kernel/debug/tracing/events",
    ]
    .iter()
    .any(|path| Path::new(path).exists())
    {
        return testkit::kernel::skip_if_permitted(
            "machine without tracefs",
            "tracefs is mounted here",
        );
    }
    if !is_root() {
        return testkit::kernel::skip_if_permitted(
            "root",
            "not root, so that debugfs may be closed to us",
        );
    }
    assert!(
        messages(&["--tracepoints"], 3).contains("mount -t tracefs tracefs /sys/kernel/tracing")
    );
}
