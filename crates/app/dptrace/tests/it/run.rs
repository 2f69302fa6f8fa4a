//! `dptrace run` and `dptrace scripts`, as typed.

use std::path::Path;

use assert_cmd::Command;
use host::{Capabilities, Capability};

use crate::common::kernel::until;

fn dptrace(words: &[&str]) -> Command {
    let mut command = Command::cargo_bin("dptrace").unwrap();
    command.args(words);
    command
}

/// Runs a command; returns its standard output, standard error and exit status.
fn run(words: &[&str]) -> (String, String, i32) {
    let output = dptrace(words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        text(output.stdout),
        text(output.stderr),
        output.status.code().unwrap(),
    )
}

/// Returns whether scripts can run here; reports if not.
fn may_trace() -> bool {
    let may = Capabilities::own()
        .missing(&[Capability::Bpf, Capability::Perfmon])
        .is_empty();
    if !may {
        testkit::kernel::skip_if_permitted("kernel", "it needs CAP_BPF and CAP_PERFMON");
    }
    may
}

#[test]
fn without_root_a_script_is_checked_and_formatted() {
    let (out, _, status) = run(&["run", "--fmt", "-e", "begin{printf(\"%d\",1)}"]);
    assert_eq!(
        (out.as_str(), status),
        ("begin {\n  printf(\"%d\", 1);\n}\n", 0)
    );
    let (_, err, status) = run(&["run", "--check", "-e", "begin { print(nothing); }"]);
    assert_eq!(status, 2);
    assert!(
        err.contains("--> -e:1:15") && err.contains("nothing"),
        "{err}"
    );
    assert_eq!(
        run(&["run", "--check", "-e", "begin { @[comm] = count(); }"]).2,
        0
    );
}

/// Help needs no rights, no process, and nothing else that the script needs.
#[test]
fn a_script_says_what_it_takes() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("own.bt");
    let text = "#!/usr/bin/env -S dptrace run\n// Counts.\n\nbegin { print(getopt(\"top\", 5, \"how many\")); \
                print(getopt(\"all\")); print($2); }";
    std::fs::write(&script, text).unwrap();
    let script = script.to_str().unwrap();
    let (out, err, status) = run(&["run", script, "--", "--help"]);
    assert_eq!((err.as_str(), status), ("", 0), "{out}");
    assert!(
        out.starts_with("Counts.\n") && out.contains(" [$1] [$2] [-- OPTIONS OF THE SCRIPT]\n"),
        "{out}"
    );
    assert!(
        out.contains("\n  --top=N  how many (default 5)\n  --all\n"),
        "{out}"
    );
    let (out, _, status) = run(&["run", "syslat", "--", "--help"]);
    assert_eq!(status, 0, "{out}");
    assert!(
        out.contains("needs: ") && out.contains("no options of its own"),
        "{out}"
    );
    for (word, hint) in [
        ("--tpo=3", "did you mean --top?"),
        ("--top", "write --top=NUMBER"),
    ] {
        let (_, err, status) = run(&["run", "--check", script, "1", "2", "--", word]);
        assert!(
            status == 2 && err.contains(hint) && err.contains("has a mistake"),
            "{word}: {err}"
        );
    }
}

#[test]
fn arguments_that_are_missing_or_too_many_are_noted() {
    let check = |words: &[&str]| run(&[&["run", "--check"], words].concat());
    let one = "begin { print($1); }";
    let cases: [(&[&str], &str); 6] = [
        (
            &["-e", one],
            "note: -e reads $1, which is not given and so 0: put arguments after -e PROGRAM\n",
        ),
        (&["-e", one, "5"], ""),
        (
            &["-e", one, "5", "x"],
            "note: -e takes one argument; not used: x\n",
        ),
        (
            &["-e", "begin { }", "4711"],
            "note: -e takes no arguments; not used: 4711 (to name a process, use -p PID)\n",
        ),
        (&["-e", "begin { print($# > 0 ? $1 : 3); }"], ""),
        (&["-e", one, "--no-warnings"], ""),
    ];
    for (words, notes) in cases {
        let (_, err, status) = check(words);
        assert_eq!((err.as_str(), status), (notes, 0), "{words:?}");
    }
}

#[test]
fn what_is_no_script_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.bt");
    std::fs::write(&empty, "// nothing\n").unwrap();
    let program = folder.path().join("program");
    std::fs::write(&program, b"\x7fELF\xff").unwrap();
    for (words, expected) in [
        (
            &["run", empty.to_str().unwrap()][..],
            "empty.bt has no probe",
        ),
        (&["run", "-e", ""], "-e has no probe"),
        (
            &["run", program.to_str().unwrap()],
            "it is a program (dptrace run SCRIPT -c ",
        ),
        (
            &["run", "nosuch"],
            "dptrace scripts lists the bundled scripts",
        ),
    ] {
        let (_, err, status) = run(words);
        assert!(status == 2 && err.contains(expected), "{words:?}: {err}");
    }
    for words in [
        ["run", "-e", "begin { exit() }", "-c"],
        ["kernel-delay", "--sample-time", "0.1", "--"],
    ] {
        for (program, expected) in [
            (empty.as_path(), "is not executable"),
            (folder.path(), "is a directory"),
        ] {
            let (_, err, status) = run(&[&words[..], &[program.to_str().unwrap()]].concat());
            assert!(status == 1 && err.contains(expected), "{words:?}: {err}");
        }
    }
}

#[test]
fn all_mistakes_are_reported_each_with_what_may_be_meant() {
    let script = "begin { @hits = 1; @c = cont(); printf(\"%s\", 5); print(@hit); $n = nsec; @hits = strlem(\"\"); }";
    let (_, err, status) = run(&["run", "--check", "-e", script]);
    assert_eq!(status, 2, "{err}");
    for hint in [
        "did you mean count?",
        "did you mean @hits?",
        "did you mean nsecs?",
        "did you mean strlen?",
    ] {
        assert!(err.contains(hint), "{hint}: {err}");
    }
    assert!(err.contains("5 mistakes"), "{err}");
}

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
            (err.contains("is stripped"), err.contains("near: inner")),
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

#[test]
fn what_is_missing_is_reported() {
    let cases: [(&[&str], &str); 8] = [
        (&["run"], "nothing to run: give"),
        (
            &["run", "no-such-script"],
            "failed to open file 'no-such-script'",
        ),
        (
            &["run", "-f", "xml", "-e", "begin {}"],
            "invalid output format \"xml\"",
        ),
        (&["scripts", "sysla"], "near: syslat"),
        (
            &["run", "pgqueries", "-p", "no-such-process"],
            "'pgqueries': No such file or directory; near: pg-queries",
        ),
        (
            &["run", "pg-queries", "5"],
            "pg-queries needs a process: dptrace run pg-queries 5 -p postgres --children\n",
        ),
        (
            &["run", "syslat"],
            "syslat needs a process: dptrace run syslat -p PID\n",
        ),
        (
            &["run", "pg-queries", "100ms"],
            "pg-queries: MS must be a number without a unit, not \"100ms\"\n",
        ),
    ];
    for (words, expected) in cases {
        let (_, err, status) = run(words);
        assert_eq!(status, 2, "{words:?}: {err}");
        assert!(err.contains(expected), "{words:?}: {err}");
    }
    let (_, err, status) = run(&["run", "-p", "99999999", "-e", "begin {}"]);
    assert_eq!(
        (err.as_str(), status),
        ("error: no process has the pid 99999999\n", 1)
    );
}

/// Triggers of kernel-delay and probes of scripts have different short names.
#[test]
fn short_names_of_the_other_command_are_explained() {
    for (script, hint) in [
        ("up:f {}", "a function is `uprobe:FILE:FUNCTION` (`u:`)"),
        (
            "upr:f {}",
            "a function's return is `uretprobe:FILE:FUNCTION` (`ur:`)",
        ),
        (
            "u:no-such-provider:probe {}",
            "a USDT probe is `usdt:FILE:PROVIDER:PROBE` (`U:`)",
        ),
    ] {
        let (_, err, status) = run(&["run", "--check", "-e", script]);
        assert!(
            status == 2 && err.contains(hint),
            "{script}: {status}: {err}"
        );
    }
    for trigger in ["u:/bin/sh:main", "up:/bin/sh:main"] {
        let (_, err, status) = run(&["kernel-delay", "-p", "1", "--start-trigger", trigger]);
        assert!(
            status == 2 && err.contains("names a file") && err.contains("up:FUNCTION"),
            "{trigger}: {err}"
        );
    }
}

#[test]
fn arguments_that_a_bundled_script_does_not_take_are_reported() {
    let (_, err, status) = run(&["run", "--check", "fsync-files", "100", "200"]);
    assert!([0, 3].contains(&status), "{err}");
    assert!(
        err.contains("note: fsync-files.bt takes one argument; not used: 200"),
        "{err}"
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

/// A missing function is not the user's mistake, and errors that follow from it are not printed.
#[test]
fn a_bundled_script_that_cannot_run_says_what_it_needs() {
    let (out, err, status) = run(&["run", "--check", "bridge_loop", "-c", "/bin/true"]);
    assert_eq!((out.as_str(), status), ("", 3), "{err}");
    assert!(
        err.starts_with("error: bridge_loop can't run here: "),
        "{err}"
    );
    assert!(
        err.contains("has no function bridge_run. It needs ovs-vswitchd with symbols"),
        "{err}"
    );
    assert_eq!(err.lines().count(), 1, "{err}");
    let (out, err, status) = run(&["run", "--check", "nvmf", "-c", "/bin/true"]);
    assert_eq!(
        (out.as_str(), status, err.lines().count()),
        ("", 3, 1),
        "{err}"
    );
    assert!(
        err.contains("none of its probes is there") && err.contains("--with-usdt"),
        "{err}"
    );
}

/// The kernel lowers the limit if samples take long; it never exceeds a million.
#[test]
fn more_samples_than_the_kernel_takes_are_refused() {
    let (_, err, status) = run(&[
        "run",
        "--check",
        "-e",
        "profile:hz:99999999 { @ = count(); }",
    ]);
    assert_eq!(status, 2, "{err}");
    assert!(
        err.contains("profile:hz:99999999 is above the kernel's limit of "),
        "{err}"
    );
    assert!(err.contains("kernel.perf_event_max_sample_rate"), "{err}");
}

#[test]
fn a_script_in_place_of_a_trace_is_recognized() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("own.bt");
    std::fs::write(&script, "begin { }\n").unwrap();
    let script = script.to_str().unwrap();
    for (name, what) in [(script, "a script"), ("syslat", "a bundled script")] {
        let (_, err, status) = run(&["trace", name]);
        assert_eq!(status, 2, "{err}");
        assert!(
            err.contains(&format!(
                "it is {what}, not a trace: use dptrace run {name}\n"
            )),
            "{err}"
        );
    }
}

#[test]
fn bundled_scripts_are_listed_and_printed() {
    let list = run(&["scripts"]).0;
    assert!(
        list.contains("  syslat  ") && list.contains("  pg-queries [MS]  "),
        "{list}"
    );
    let json = run(&["scripts", "--json"]).0;
    assert!(json.contains(r#""arguments":"[MS]""#), "{json}");
    let help = run(&["run", "pg-queries", "--", "--help"]).0;
    assert!(
        help.contains("usage: dptrace run [OPTIONS] pg-queries [MS]\n"),
        "{help}"
    );
    let (text, _, _) = run(&["scripts", "syslat"]);
    assert!(text.starts_with("#!"));
    assert_eq!(run(&["run", "--fmt", "syslat"]).2, 0);
}

#[test]
fn begin_and_end_and_maps() {
    if !may_trace() {
        return;
    }
    let (out, err, status) = run(&[
        "run",
        "-e",
        "begin { printf(\"hi %s\\n\", \"you\"); @a[1] = 2; } end { exit(7); }",
    ]);
    assert_eq!(
        (out.as_str(), err.as_str(), status),
        ("hi you\n\n\n@a[1]: 2\n", "Attached 2 probes\n", 7)
    );
    let (out, err, _) = run(&["run", "-f", "json", "-e", "begin { @a[1] = 2; }"]);
    assert_eq!(run(&["run", "--json", "-e", "begin { @a[1] = 2; }"]).0, out);
    let expected = "{\"type\": \"attached_probes\", \"count\": 1, \"data\": {\"probes\": 1}}\n\
                    {\"type\": \"map\", \"data\": {\"@a\": {\"1\": 2}}}\n";
    assert_eq!((out.as_str(), err.as_str()), (expected, ""));
}

#[test]
fn an_iterator_goes_through_what_there_is_and_ends() {
    if !may_trace() {
        return;
    }
    let script = "begin { print(\"first\"); } iter:task_file /ctx.task.tgid == curtask.tgid/ { @[ctx.fd] = count(); } \
                  end { print(\"last\"); }";
    let (out, err, status) = run(&["run", "-q", "-e", script]);
    assert_eq!(status, 0, "{err}");
    let lines: Vec<&str> = out.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines[..2], ["first", "last"], "{out}");
    assert!(
        ["@[0]: 1", "@[1]: 1", "@[2]: 1"]
            .iter()
            .all(|file| lines.contains(file)),
        "{out}"
    );
    let (listed, _, _) = run(&["run", "-l", "iter:task*"]);
    let listed: Vec<&str> = listed.lines().collect();
    assert!(
        ["iter:task", "iter:task_file"]
            .iter()
            .all(|known| listed.contains(known)),
        "{listed:?}"
    );
    assert!(!listed.iter().any(|name| name.contains("__")), "{listed:?}");
}

#[test]
fn system_calls_have_names() {
    if may_trace() {
        let script = "begin { print(syscall_name(__NR_read)); print(syscall_name(99999)); }";
        assert_eq!(
            run(&["run", "-q", "-e", script]).0.trim_end(),
            "read\n99999"
        );
    }
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

#[test]
fn probes_of_a_file_and_of_the_kernel_are_listed() {
    let own = env!("CARGO_BIN_EXE_dptrace");
    let (out, _, _) = run(&["run", "-l", &format!("uprobe:{own}:main")]);
    assert_eq!(out, format!("uprobe:{own}:main\n"));
    assert_eq!(
        run(&["run", "-l", "interval:*"]).0,
        "interval:hz:\ninterval:ms:\ninterval:s:\ninterval:us:\n"
    );
    if Path::new("/sys/kernel/btf/vmlinux").exists() {
        let (out, _, _) = run(&["run", "-lv", "rawtracepoint:sched_switch"]);
        assert!(
            out.starts_with("rawtracepoint:sched_switch\n")
                && out.contains("struct task_struct* prev"),
            "{out}"
        );
    }
}

#[test]
fn by_the_name_bpftrace_it_is_dptrace_run() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("bpftrace");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_dptrace"), &link).unwrap();
    let output = Command::from_std(testkit::command(&link))
        .args(["--check", "-e", "begin { print(nothing); }"])
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.starts_with("stdin:1:15-22: ERROR: "), "{err}");
    assert!(
        err.contains("\nbegin { print(nothing); }\n              ~~~~~~~\n"),
        "{err}"
    );
}
