//! `dptrace run` and `dptrace scripts`, as typed.

mod mistakes;
mod traced;

use std::path::Path;

use assert_cmd::Command;
use host::{Capabilities, Capability};

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
    // The script's path can be long, so that its usage has two lines.
    let words: Vec<&str> = out.split_whitespace().collect();
    let usage = "own.bt [$1] [$2] [-- OPTIONS OF THE SCRIPT] Options";
    assert!(
        out.starts_with("Counts.\n") && words.join(" ").contains(usage),
        "{out}"
    );
    assert!(
        out.contains("\n  --top=N  how many (default 5)\n  --all\n"),
        "{out}"
    );
    let (out, _, status) = run(&["run", "syslat", "--", "--help"]);
    assert_eq!(status, 0, "{out}");
    assert!(
        out.contains("needs: ")
            && out.contains("no options of its own")
            && out.lines().all(|line| line.len() <= 80),
        "{out}"
    );
    for (word, hint) in [
        ("--tpo=3", "did you mean --top?"),
        ("--top", "write --top=NUMBER"),
    ] {
        let (_, err, status) = run(&["run", "--check", script, "1", "2", "--", word]);
        assert!(
            status == 2 && err.contains(hint) && err.starts_with("error: "),
            "{word}: {err}"
        );
    }
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
    assert!(
        help.contains("example: dptrace run pg-queries -p postgres --children --for 10s\n"),
        "{help}"
    );
    // Its argument stands in the name of a probe.
    let help = run(&["run", "libcalls", "--", "--help"]).0;
    assert!(
        help.contains("usage: dptrace run [OPTIONS] libcalls LIBRARY [START]\n"),
        "{help}"
    );
    // The help of a script, wherever it is asked for.
    for words in [["libcalls", "--help"], ["libcalls", "-h"]] {
        assert_eq!(run(&[&["run"], &words[..]].concat()).0, help);
    }
    assert_eq!(run(&["run", "libcalls", "libz", "--help"]).0, help);
    assert!(run(&["run", "--help"]).0.contains("Usage: dptrace run"));
    let (text, _, _) = run(&["scripts", "syslat"]);
    assert!(text.starts_with("#!"));
    assert_eq!(run(&["run", "--fmt", "syslat"]).2, 0);
}

/// The programs of no script use a helper that is newer than the kernel that it asks for, which is
/// dptrace's own least one (5.10) if it names none.
#[test]
fn bundled_scripts_name_the_kernel_that_they_need() {
    if !may_trace() {
        return;
    }
    let mut compiled = 0;
    for script in bundled_scripts::all() {
        let mut words = vec!["run", script.name];
        words.extend((script.name == "libcalls").then_some("libc"));
        words.extend((script.name == "libcalls").then_some("mallo"));
        words.extend(["--dump", "insns", "-c", "/bin/true"]);
        let (insns, _, status) = run(&words);
        // Some are about programs that /bin/true is not.
        if status != 0 {
            continue;
        }
        compiled += 1;
        let stated = script.kernel().unwrap_or("5.10");
        let (major, minor) = stated.split_once('.').unwrap();
        let stated = bpf_insn::KernelVersion::new(major.parse().unwrap(), minor.parse().unwrap());
        let calls = insns.split("; bpf_").skip(1);
        for call in calls {
            let name = call.split([';', ' ', '\n']).next().unwrap();
            let helper = bpf_insn::Helper::by_name(&format!("bpf_{name}")).unwrap();
            let since = helper.since().unwrap();
            assert!(since <= stated, "{}: bpf_{name}, {since}", script.name);
        }
    }
    assert!(compiled > 20, "{compiled} scripts compile here");
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
fn a_link_named_bpftrace_is_dptrace_run() {
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
