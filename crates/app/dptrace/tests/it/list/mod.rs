//! `dptrace list` on real files and processes of this machine.

mod refusals;
mod tracepoints;

use std::path::Path;
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
    assert!(error.contains("did you mean libstdcxx:throw"), "{error}");
    let error = messages(&[path, "libstdcxx:thorw"], 1);
    assert!(error.contains("did you mean libstdcxx:throw"), "{error}");
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

/// A library's short name is the same file for `list` as for the probes of a script.
#[test]
fn a_library_is_known_by_its_short_name() {
    let done = dptrace().args(["run", "-l", "uprobe:libc:malloc"]).output();
    let probes = String::from_utf8(done.expect("it runs").stdout).expect("UTF-8");
    let Some(path) = probes.lines().find_map(|line| line.strip_prefix("uprobe:")) else {
        return testkit::kernel::skip("libc", "the linker's cache has no libc");
    };
    let path = path.strip_suffix(":malloc").expect("its name");
    for name in ["libc", "c", "libc.so", "libc.so.6"] {
        let done = dptrace()
            .args(["list", name, "--functions", "malloc"])
            .assert()
            .success();
        let out = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
        assert_eq!(out.lines().next(), Some(path), "{name}: {out}");
    }
    let error = messages(&["libno-such-one"], 1);
    assert!(error.contains("there is no file libno-such-one"), "{error}");
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
        error.contains("did you mean ") && error.contains("dptrace::list::run"),
        "{error}"
    );
    let error = messages(&[OWN, "--functions", "with_funktions"], 1);
    assert!(error.contains("with_functions"), "{error}");
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self")
        .is_ok_and(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata) == 0)
}
