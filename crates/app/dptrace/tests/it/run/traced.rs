//! Processes that a script traces, and those it leaves out.

use super::{may_trace, run};
use crate::common::kernel::until;

/// A packaged program: its functions have no names unless its debug information is installed too.
#[test]
fn a_stripped_file_is_reported_where_a_function_is_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("program.c");
    std::fs::write(
        &source,
        "static __attribute__((noinline)) int inner(int n) { return n; }\n\
                             int main(int n, char **all) { (void)all; return inner(n); }\n",
    )
    .unwrap();
    for (flag, hint) in [("-s", true), ("-g0", false)] {
        let program = folder.path().join(format!("program{flag}"));
        let built = testkit::command("gcc")
            .args([flag, "-o"])
            .args([&program, &source])
            .status();
        assert!(built.unwrap().success());
        let (_, err, status) = run(&[
            "run",
            "-e",
            &format!("uprobe:{}:inmer {{ }}", program.display()),
        ]);
        assert_ne!(status, 0, "{err}");
        assert_eq!(
            (
                err.contains("is stripped"),
                err.contains("did you mean inner")
            ),
            (hint, !hint),
            "{err}"
        );
    }
}

/// The program's own functions have no names in a stack, and the report states why.
#[test]
fn a_stripped_program_is_reported_where_its_stacks_have_no_names() {
    if !may_trace() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("calls.c"), folder.path().join("calls"));
    let text = "#include <time.h>\nint main(void) { struct timespec t = { 0, 1000000 }; for (;;) nanosleep(&t, 0); }\n";
    std::fs::write(&source, text).unwrap();
    let flags = ["-s", "-fno-omit-frame-pointer", "-o"];
    let built = testkit::command("gcc")
        .args(flags)
        .args([&program, &source])
        .status();
    assert!(built.unwrap().success());
    let mut child = testkit::command(&program).spawn().unwrap();
    let pid = child.id().to_string();
    let (out, err, status) = run(&[
        "kernel-delay",
        "-p",
        &pid,
        "-s",
        "--sample-time",
        "0.3",
        "--stack-copy",
        "0",
    ]);
    child.kill().unwrap();
    child.wait().unwrap();
    if err.contains("this kernel ") {
        return testkit::kernel::skip_if_permitted("kernel", &err);
    }
    assert_eq!(status, 0, "{err}");
    let note = format!(
        "note: {} is stripped, and has no debug file here",
        program.display()
    );
    assert!(
        !out.contains("calls+0x") || err.matches(&note).count() == 1,
        "{out}{err}"
    );
}

/// A shell with all the processes that it starts, and the first line that it prints.
struct Family(std::process::Child, String);

impl Family {
    fn start(script: &str) -> Self {
        use std::io::BufRead as _;
        use std::os::unix::process::CommandExt as _;
        use std::process::Stdio;
        let mut shell = testkit::command("sh");
        shell
            .args(["-c", script])
            .process_group(0)
            .stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(shell.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Self(shell, line.trim().to_owned())
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

/// A server's first process often does nothing itself.
#[test]
fn children_that_are_left_out_are_reported() {
    if !may_trace() {
        return;
    }
    // Both are there once the line is printed.
    let parent = Family::start("sleep 1000 & sleep 1000 & echo $!; wait");
    let (pid, child) = (parent.0.id().to_string(), &parent.1);
    let said = |of: &str, options: &[&str]| {
        run(&[&["run", "-e", "begin { exit() }", "-p", of], options].concat()).1
    };
    let note =
        format!("note: process {pid} has 2 children, which are not included: add --children\n");
    let alone = said(&pid, &[]);
    assert!(alone.contains(&note), "{alone}");
    let both = format!("{pid},{child}");
    let note = format!(
        "process {pid} has started others of these; processes that it starts from now on are not \
         included"
    );
    let several = said(&both, &[]);
    assert!(several.contains(&note), "{several}");
    for (of, option) in [
        (&pid, "--children"),
        (&pid, "--no-warnings"),
        (&both, "--children"),
    ] {
        let messages = said(of, &[option]);
        assert!(!messages.contains("not included"), "{option}: {messages}");
    }
}

/// A library may be loaded later, or only by a child: then its probes see nothing.
#[test]
fn a_library_that_is_not_loaded_is_reported() {
    if !may_trace() {
        return;
    }
    let parent = Family::start("LD_PRELOAD=libm.so.6 sleep 1000 & echo $!; wait");
    let (pid, child) = (parent.0.id().to_string(), &parent.1);
    let said = |script: &str, options: &[&str]| {
        let script = format!("begin {{ exit() }} {script}");
        run(&[&["run", "-e", &script, "-p"], options].concat()).1
    };
    let (root, note) = ("uprobe:libm:cbrt { @ = count() }", "note: process ");
    // The child may not have begun its program.
    let alone = until(
        || said(root, &[&pid]),
        |alone| alone.contains(", but 1 child has: --children includes it\n"),
    );
    let expected = format!("{note}{pid} (sh) has not loaded libm.so.6 (yet), but 1 child has");
    assert!(alone.contains(&expected), "{alone}");
    let any = format!("{root} uprobe:libc:read {{ @ = count() }}");
    for (script, options) in [
        (root, &[child.as_str()][..]),
        (root, &[&pid, "--children"]),
        (root, &[&pid, "--no-warnings"]),
        (&any, &[&pid]),
    ] {
        let messages = said(script, options);
        assert!(!messages.contains("loaded"), "{options:?}: {messages}");
    }
}

#[test]
fn processes_that_were_started_meanwhile_are_counted() {
    if !may_trace() {
        return;
    }
    let parent = Family::start("echo; while sleep 0.1; do sleep 1000 & done");
    let pid = parent.0.id().to_string();
    let said = |options: &[&str]| {
        run(&[
            &["run", "-e", "interval:s:1 { exit() }", "-p", &pid],
            options,
        ]
        .concat())
        .1
    };
    // On a busy machine the shell may start none while the script runs.
    let counted = until(
        || said(&[]),
        |counted| counted.contains(" started since then w"),
    );
    let children = said(&["--children"]);
    assert!(counted.contains("add --children"), "{counted}");
    assert!(!children.contains("started since then"), "{children}");
}

#[test]
fn a_command_is_traced_from_its_first_instruction_and_its_end_is_the_end() {
    if !may_trace() {
        return;
    }
    let script =
        "tracepoint:syscalls:sys_enter_execve /pid == cpid/ { @[str(args.filename)] = count(); }";
    let (out, err, status) = run(&["run", "-e", script, "-c", "/bin/true"]);
    assert_eq!(
        (out.as_str(), status),
        ("\n\n@[/bin/true]: 1\n", 0),
        "{err}"
    );
}
