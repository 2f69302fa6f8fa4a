//! Messages of `dptrace record` on processes and files that it can't record, and on missing rights.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::kernel::{
    Demo, PROGRAM, Process, attached, kernel, needs, record, recorded, recorded_until_hit, skip,
};
use tempfile::TempDir;

const NOBODY: [&str; 5] = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];

/// Returns its one line of messages; asserts this exit status.
#[track_caller]
fn refusal(command: &mut Command, status: i32) -> String {
    let messages = messages(command, status);
    assert_eq!(messages.lines().count(), 1, "{messages}");
    messages
}

/// Returns its messages if rights are missing: the advice is on lines of its own.
#[track_caller]
fn refused_rights(command: &mut Command) -> String {
    let messages = messages(command, 3);
    assert_eq!(messages.matches("error: ").count(), 1, "{messages}");
    messages
}

#[track_caller]
fn messages(command: &mut Command, status: i32) -> String {
    let done = command.stdin(Stdio::null()).output().expect("it runs");
    let messages = String::from_utf8(done.stderr).expect("UTF-8");
    assert_eq!(done.status.code(), Some(status), "{messages}");
    assert!(done.stdout.is_empty());
    messages.trim_end().to_owned()
}

#[track_caller]
fn refused(args: &[&str], status: i32) -> String {
    refusal(&mut record(args), status)
}

/// Makes a directory that everybody may read, with a copy of the program in it.
fn copy_for_all(name: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).expect("it is ours");
    let path = dir.path().join(name);
    testkit::copy_program(PROGRAM, &path);
    (dir, path)
}

/// Starts a demo target of this program file, run through another program.
fn demo_of(by: &[&str], program: &Path) -> Process {
    let mut words = by
        .iter()
        .map(std::ffi::OsStr::new)
        .chain([program.as_os_str()]);
    let mut command = testkit::command(words.next().expect("at least one"));
    command
        .args(words)
        .args(["demo-target", "--no-trace-file", "--for", "5m"])
        .stdout(Stdio::null());
    let mut process = Process::start(&mut command);
    process.wait_for("demo-target: pid");
    process
}

#[test]
fn numbers_that_are_no_process() {
    let Some(_guard) = kernel() else { return };
    assert_eq!(
        refused(&["-p", "4194304"], 1),
        "error: no process has the pid 4194304: /proc/4194304 is not there"
    );
    let messages = refused(&["-p", "2"], 1);
    assert!(
        messages.starts_with(
            "error: pid 2 (kthreadd) is a thread of the kernel: it runs no program file"
        ),
        "{messages}"
    );
    assert_eq!(
        refused(&[], 2),
        "error: nothing to record: give -p PID, -p NAME, or -- COMMAND"
    );
    let mut ended = testkit::command("true").spawn().expect("it starts");
    let stat = format!("/proc/{}/stat", ended.id());
    while !std::fs::read_to_string(&stat)
        .expect("we have not asked for its end")
        .contains(") Z ")
    {
        std::thread::yield_now();
    }
    let messages = refused(&["-p", &ended.id().to_string()], 1);
    assert!(messages.contains("(true) has ended"), "{messages}");
    ended.wait().expect("it is ours");
}

#[test]
fn a_thread_is_reported_with_its_process() {
    let Some(_guard) = kernel() else { return };
    let demo = Demo::start(&[]);
    let pid = demo.process.pid();
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
    let mut threads = tasks.map(|entry| {
        entry
            .expect("it lives")
            .file_name()
            .into_string()
            .expect("a number")
    });
    let thread = threads
        .find(|thread| *thread != pid.to_string())
        .expect("it has another thread");
    let messages = refused(&["-p", &thread], 1);
    assert_eq!(
        messages,
        format!("error: {thread} is a thread of process {pid}: -p {pid} is for all of its threads")
    );
}

#[test]
fn files_that_are_no_programs_of_this_machine() {
    let Some(_guard) = kernel() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let refused_file = |name: &str, content: &[u8]| {
        let path = dir.path().join(name);
        testkit::write_program(&path, content);
        let messages = refused(&["--", path.to_str().expect("UTF-8")], 1);
        let prefix = format!("error: {}: ", path.display());
        messages
            .strip_prefix(&prefix)
            .unwrap_or_else(|| panic!("{messages}"))
            .to_owned()
    };
    let script = refused_file("script", b"#!/bin/sh\nexit 0\n");
    assert_eq!(
        script,
        "a script run by /bin/sh, not an ELF file: look at the interpreter instead"
    );
    let text = refused_file("text", b"hello");
    assert!(
        text.starts_with("not an ELF file: it starts with 68 65 6c 6c"),
        "{text}"
    );
    let narrow = refused_file("narrow", &narrow_program());
    assert!(
        narrow.contains("32-bit") && narrow.contains("i386"),
        "{narrow}"
    );
    assert!(
        refused(&["--", "./no-such-file"], 1)
            .starts_with("error: there is no program ./no-such-file: ")
    );
    assert_eq!(
        refused(&["--", "no-such-program"], 1),
        "error: there is no program no-such-program in PATH"
    );
    let bare = refused(&["--", "/bin/true"], 1);
    assert!(
        bare.contains("has no USDT probes") && bare.contains("--with-usdt"),
        "{bare}"
    );
}

/// Returns a 32-bit program that loops for ever: a header, a program header, and a jump to itself.
fn narrow_program() -> Vec<u8> {
    const BASE: u32 = 0x0804_8000;
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // ET_EXEC, EM_386.
    for half in [2_u16, 3] {
        file.extend(half.to_le_bytes());
    }
    // Version, entry, program headers, section headers, flags.
    for word in [1, BASE + 84, 52, 0, 0] {
        file.extend(u32::to_le_bytes(word));
    }
    for half in [52_u16, 32, 1, 40, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    // PT_LOAD: offset, addresses, sizes, readable and executable, alignment.
    for word in [1, 0, BASE, BASE, 86, 86, 5, 0x1000] {
        file.extend(u32::to_le_bytes(word));
    }
    file.extend([0xeb, 0xfe]);
    file
}

#[test]
fn a_32_bit_process() {
    let Some(_guard) = kernel() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("narrow");
    testkit::write_program(&path, &narrow_program());
    // Some kernels run no 32-bit programs; the file alone is checked above.
    let Ok(child) = testkit::command(&path).spawn() else {
        return testkit::kernel::skip_if_permitted("32-bit programs", "no 32-bit programs here");
    };
    let mut child = child;
    let messages = refused(&["-p", &child.id().to_string()], 1);
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    assert!(
        messages.contains("32-bit") && messages.contains("narrow"),
        "{messages}"
    );
}

#[test]
fn a_stripped_program_has_its_probes() {
    let Some(_guard) = kernel() else { return };
    if !needs("strip") {
        return;
    }
    let (_dir, path) = copy_for_all("stripped");
    assert!(
        testkit::command("strip")
            .arg(&path)
            .status()
            .expect("it runs")
            .success()
    );
    let demo = demo_of(&[], &path);
    recorded_until_hit(attached(demo.pid(), ["--for", "5m"]));
}

/// The process has another number in its namespace, and a file that only it can see.
#[test]
fn a_process_of_other_namespaces() {
    let Some(_guard) = kernel() else { return };
    let (dir, _) = copy_for_all("dptrace");
    let script = "mount -t tmpfs none /mnt && cp \"$1/dptrace\" /mnt/hidden && exec /mnt/hidden demo-target \
                  --no-trace-file --for 5m";
    let mut command = testkit::command("unshare");
    command.args([
        "--pid",
        "--mount",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        "-c",
        script,
        "sh",
    ]);
    let mut outer = Process::start(command.arg(dir.path()).stdout(Stdio::null()));
    let line = outer.wait_for("demo-target: pid");
    assert!(line.contains("pid 1,"), "{line}");
    let children = format!("/proc/{0}/task/{0}/children", outer.pid());
    let pid: u32 = std::fs::read_to_string(children)
        .expect("it lives")
        .trim()
        .parse()
        .expect("it has one child");
    let mut tracer = Process::start(&mut record(["-p", &pid.to_string()]));
    let messages = tracer.wait_for("attached to");
    assert!(
        messages.contains(" in /mnt/hidden ") && messages.contains(&format!("process {pid}")),
        "{messages}"
    );
    assert!(!Path::new("/mnt/hidden").exists(), "we can't see its file");
    recorded_until_hit(tracer);
}

/// dptrace and the process are in the same container.
#[test]
fn from_within_a_pid_namespace() {
    let Some(_guard) = kernel() else { return };
    let mut command = testkit::command("unshare");
    command.args([
        "--pid",
        "--mount",
        "--fork",
        "--kill-child",
        "--mount-proc",
        PROGRAM,
        "record",
        "--",
        PROGRAM,
    ]);
    command
        .args(["demo-target", "--no-trace-file", "--requests", "50"])
        .stdout(Stdio::piped());
    let came = recorded(Process::start(&mut command));
    assert!(
        !came.lines.is_empty() && came.last.contains("has ended"),
        "{}",
        came.last
    );
}

/// Returns a command of user nobody, with these options of setpriv(1).
fn as_nobody(options: &[&str], program: &Path, pid: u32) -> Command {
    let mut command = testkit::command("setpriv");
    command.args(NOBODY).args(options).arg(program).args([
        "record",
        "-p",
        &pid.to_string(),
        "--for",
        "5m",
    ]);
    command.env("NO_COLOR", "1").stdout(Stdio::piped());
    command
}

#[test]
fn missing_parts_are_named() {
    let Some(_guard) = kernel() else { return };
    if !needs("setpriv") {
        return;
    }
    let (_dir, path) = copy_for_all("dptrace");
    let own = demo_of(&[&["setpriv"], &NOBODY[..]].concat(), &path);
    let messages = refused_rights(&mut as_nobody(&[], &path, own.pid()));
    let first = "error: not permitted to use BPF: CAP_BPF and CAP_PERFMON are missing\n";
    assert!(messages.starts_with(first), "{messages}");
    for (has, missing) in [("bpf", "CAP_PERFMON"), ("perfmon", "CAP_BPF")] {
        let caps = format!("+{has}");
        let messages = refused_rights(&mut as_nobody(
            &["--inh-caps", &caps, "--ambient-caps", &caps],
            &path,
            own.pid(),
        ));
        let first = format!("error: not permitted to use BPF: {missing} is missing\n");
        assert!(messages.starts_with(&first), "{messages}");
    }
    let other = Demo::start(&[]);
    let both = [
        "--inh-caps",
        "+bpf,+perfmon",
        "--ambient-caps",
        "+bpf,+perfmon",
    ];
    let messages = refused_rights(&mut as_nobody(&both, &path, other.process.pid()));
    assert!(messages.contains("CAP_SYS_PTRACE"), "{messages}");
}

#[test]
fn two_capabilities_are_enough_for_one_s_own_process() {
    let Some(_guard) = kernel() else { return };
    if !needs("setpriv") {
        return;
    }
    let (dir, path) = copy_for_all("dptrace");
    let own = demo_of(&[&["setpriv"], &NOBODY[..]].concat(), &path);
    let both = [
        "--inh-caps",
        "+bpf,+perfmon",
        "--ambient-caps",
        "+bpf,+perfmon",
    ];
    recorded_until_hit(Process::start(&mut as_nobody(&both, &path, own.pid())));
    let with_file_caps = dir.path().join("with-caps");
    testkit::copy_program(&path, &with_file_caps);
    let set = testkit::command("/usr/sbin/setcap")
        .arg("cap_bpf,cap_perfmon+ep")
        .arg(&with_file_caps)
        .status();
    if !set.is_ok_and(|status| status.success()) {
        return skip("setcap", "files can't have capabilities here");
    }
    recorded_until_hit(Process::start(&mut as_nobody(
        &[],
        &with_file_caps,
        own.pid(),
    )));
}
