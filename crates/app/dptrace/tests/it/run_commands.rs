//! A command that a script starts: it ends with the script, all its files are searched, and its
//! values are as in C.

use std::path::Path;
use std::process::Stdio;

use crate::common::compile;
use crate::common::kernel::{PROGRAM, kernel, needs};
use crate::common::run::run;
use tempfile::TempDir;

fn folder() -> Option<TempDir> {
    needs("cc").then(|| tempfile::tempdir().unwrap())
}

/// A reader of our output waits until all processes that hold it have closed it.
#[test]
fn a_command_ends_with_its_script() {
    let Some(_alone) = kernel() else { return };
    let mut script = testkit::command(PROGRAM);
    script.args([
        "run",
        "-q",
        "-e",
        "interval:ms:20 { printf(\"%d\\n\", cpid); exit(); }",
        "-c",
        "sleep 1000",
    ]);
    // Read to the end, which comes only once the command's copy is closed too.
    let output = script.stderr(Stdio::null()).output().unwrap();
    let pid = String::from_utf8(output.stdout).unwrap();
    let words =
        std::fs::read(format!("/proc/{}/cmdline", pid.lines().next().unwrap())).unwrap_or_default();
    assert!(!words.starts_with(b"sleep"), "{pid} is still there");
}

#[test]
fn a_signal_to_us_runs_its_probe() {
    let Some(_alone) = kernel() else { return };
    let script = "self:signal:SIGUSR1 { printf(\"came\\n\"); exit(); } end { printf(\"end\\n\"); }";
    // The command is a child of the tracer, and starts when everything is attached.
    let folder = tempfile::tempdir().unwrap();
    let command = folder.path().join("command");
    std::fs::write(&command, "kill -USR1 $PPID\nexec sleep 1000\n").unwrap();
    let command = format!("/bin/sh {}", command.display());
    let output = testkit::command(PROGRAM)
        .args(["run", "-q", "-e", script, "-c", &command])
        .output()
        .unwrap();
    let (out, message) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(out.trim_end(), "came\nend", "{message}");
    for signal in ["SIGKILL", "SIGSEGV"] {
        let script = format!("self:signal:{signal} {{ exit(); }}");
        let output = testkit::command(PROGRAM)
            .args(["run", "-e", &script])
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && message.contains("cannot be caught"),
            "{message}"
        );
    }
}

#[test]
fn a_pattern_of_files_means_libraries_of_a_command_too() {
    let Some(_alone) = kernel() else { return };
    let Some(folder) = folder() else { return };
    if !Path::new("/usr/include/sys/sdt.h").exists()
        && !Path::new("/usr/include/x86_64-linux-gnu/sys/sdt.h").exists()
    {
        return testkit::kernel::skip_if_permitted("sdt.h", "no <sys/sdt.h> here");
    }
    let probes = |provider: &str| {
        let probes =
            ["one", "two", "three"].map(|name| format!("DTRACE_PROBE({provider}, {name});"));
        probes.concat()
    };
    let head = "#include <sys/sdt.h>\n";
    compile(
        folder.path(),
        "libpart.so",
        &format!("{head}void part(void) {{ {} }}", probes("library")),
        &["-shared", "-fPIC"],
    );
    let path = folder.path().display().to_string();
    let source = format!(
        "{head}void part(void); int main(void) {{ {} part(); return 0; }}",
        probes("program")
    );
    let whole = compile(
        folder.path(),
        "whole",
        &source,
        &["-L.", "-lpart", &format!("-Wl,-rpath,{path}")],
    );
    let (out, err) = run(&[
        "-e",
        &format!("usdt:{path}/*::* {{ @[probe] = count(); }}"),
        "-c",
        &whole,
    ]);
    assert_eq!(out.matches("]: 1\n").count(), 6, "{out}{err}");
}

#[test]
fn tests_of_a_script_pass_or_fail() {
    let Some(_alone) = kernel() else { return };
    let script = "test:okay { print(\"quiet\"); } test:fails { print(\"loud\"); return 1; } test:exits { exit(3); }
        test:ends { exit(); } bench:no_test { @ = 1; } test:later { errorf(\"wrong\"); }";
    let run = |more: &[&str], script: &str| {
        let done = testkit::command(PROGRAM)
            .args([&["run", "--mode"], more, &["-e", script]].concat())
            .output()
            .unwrap();
        (done.status.code(), String::from_utf8(done.stdout).unwrap())
    };
    let (status, out) = run(&["test"], script);
    let lines: Vec<&str> = out
        .lines()
        .map(|line| line.split(" (").next().unwrap())
        .collect();
    let expected = [
        "[==========] Running 5 tests.",
        "[ RUN      ] okay",
        "[       OK ] okay",
        "[ RUN      ] fails",
        "loud",
        "[  FAILED  ] fails",
        "[ RUN      ] exits",
        "[  FAILED  ] exits",
        "[ RUN      ] ends",
        "[       OK ] ends",
        "[ RUN      ] later",
        "[  FAILED  ] later",
        "[==========] 5 tests ran.",
        "[  PASSED  ] 2 tests.",
        "[  FAILED  ] 3 tests, listed below:",
        "[  FAILED  ] fails",
        "[  FAILED  ] exits",
        "[  FAILED  ] later",
    ];
    assert_eq!(
        (status, lines.as_slice()),
        (Some(1), &expected[..]),
        "{out}"
    );
    let (status, out) = run(
        &["test", "-f", "json"],
        "test:one { } test:two { return 2; }",
    );
    let passed: Vec<_> = out
        .lines()
        .map(|line| line.contains("\"passed\": true"))
        .collect();
    assert_eq!((status, passed), (Some(1), vec![true, false]), "{out}");
    assert_eq!(run(&["test"], "test:one { return 0; }").0, Some(0));
    assert_eq!(
        run(&["test"], "bench:one { }").0,
        Some(2),
        "nothing to test is a mistake"
    );
    assert!(
        run(&["bench"], script).1.contains("no_test")
            && !run(&["bench"], script).1.contains("okay")
    );
}

/// Links to a file, and the command's own name for it, are the same file: a hit counts once.
#[test]
fn a_file_with_several_names_is_probed_once() {
    let Some(_alone) = kernel() else { return };
    let Some(folder) = folder() else { return };
    let source = "__attribute__((noinline)) int foo(int x) { __asm__ volatile(\"\"); return x + 1; }
        int main(void) { int sum = 0; for (int i = 0; i < 10; i++) sum += foo(i); return sum == 0; }";
    compile(folder.path(), "foo", source, &["-O1"]);
    std::os::unix::fs::symlink("foo", folder.path().join("fo2")).unwrap();
    for pattern in [
        "./fo*".to_owned(),
        format!("{}/fo*", folder.path().display()),
    ] {
        let script = format!("uprobe:{pattern}:foo {{ @ = count(); }}");
        let mut command = testkit::command(PROGRAM);
        let done = command
            .args(["run", "-e", &script, "-c", "./foo"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let [out, messages] =
            [&done.stdout, &done.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(
            out.contains("@: 10\n") && messages.contains("Attached 1 probe\n"),
            "{pattern}: {out}{messages}"
        );
    }
}

/// A process with another root directory is probed in its own files, by its own names for them. The
/// host's file of that name has no hits from it.
#[test]
fn a_process_in_another_root_is_probed_in_its_own_files() {
    let Some(_alone) = kernel() else { return };
    let Some(folder) = folder() else { return };
    let source = "#include <unistd.h>
        __attribute__((noinline)) void turn(void) { __asm__ volatile(\"\"); }
        int main(void) { for (;;) { turn(); usleep(1000); } }";
    let program = compile(folder.path(), "turns", source, &["-static", "-O1"]);
    let root = folder.path().join("root");
    std::fs::create_dir(&root).unwrap();
    std::fs::copy(&program, root.join("turns")).unwrap();
    let mut turns = testkit::command("chroot")
        .arg(&root)
        .arg("/turns")
        .spawn()
        .unwrap();
    let pid = turns.id().to_string();
    while std::fs::read(format!("/proc/{pid}/comm")).unwrap() != b"turns\n" {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let of = |file: &str| {
        format!("uprobe:{file}:turn {{ printf(\"hit\\n\"); exit(); }} interval:s:20 {{ exit(); }}")
    };
    let seen = ["/turns", "/tur*"].map(|file| run(&["-p", &pid, "-e", &of(file)]));
    let _ = turns.kill();
    let _ = turns.wait();
    for (out, err) in seen {
        assert!(out.contains("hit"), "{out}{err}");
    }
}

/// A process maps files of /lib as files of /usr/lib, if one is a link to the other.
#[test]
fn a_pattern_in_lib_means_usr_lib() {
    let Some(_alone) = kernel() else { return };
    if !Path::new("/lib").is_symlink() {
        return;
    }
    let mut sleeps = testkit::command("sleep").arg("60").spawn().unwrap();
    let (pid, script) = (
        sleeps.id().to_string(),
        "uprobe:/lib/*/libc.so*:malloc { } interval:ms:10 { exit(); }",
    );
    let done = testkit::command(PROGRAM)
        .args(["run", "-e", script, "-p", &pid])
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&done.stderr);
    let _ = sleeps.kill();
    let _ = sleeps.wait();
    assert!(
        done.status.success() && messages.contains("Attached "),
        "{messages}"
    );
}

#[test]
fn bit_fields_have_signs_and_floating_point_numbers_are_numbers() {
    let Some(_alone) = kernel() else { return };
    let Some(folder) = folder() else { return };
    let source = "union mixed { int number; float real; double wide; };
        struct parts { int id : 31; unsigned top : 1; signed char small : 3; float real; union mixed mixed; };
        struct parts all = { -1, 1, -2, 1.5, { .real = 2.5 } };
        __attribute__((noinline)) void take(struct parts *parts) { __asm__ volatile(\"\" ::\"r\"(parts) : \"memory\"); }
        int main(void) { take(&all); return 0; }";
    let program = compile(folder.path(), "parts", source, &["-g", "-O1"]);
    let script = format!(
        "uprobe:{program}:take {{
            print(*args.parts); print(args.parts->id); print(args.parts->real); $all = *args.parts;
            print(($all.small, $all.id < 0, $all.mixed.real)); @[args.parts->id] = count();
        }}"
    );
    let (out, err) = run(&["-e", &script, "-c", &program]);
    let expected = "{ .id = -1, .top = 1, .small = -2, .real = 1.5, .mixed = { .number = 1075838976, .real = 2.5, \
                    .wide = 5.315350785e-315 } }\n-1\n1.5\n(-2, true, 2.5)\n";
    assert_eq!(
        out.split("\n\n").next().map(str::trim_end),
        Some(expected.trim_end()),
        "{out}{err}"
    );
    assert!(out.contains("@[-1]: 1\n"), "{out}");
    let script = format!("uprobe:{program}:take {{ print(args.parts->mixed); }}");
    let (out, _) = run(&["-f", "json", "-e", &script, "-c", &program]);
    assert!(out.contains("\"real\": 2.5"), "{out}");
}

#[test]
fn lines_are_counted_without_those_of_include() {
    let words = [
        "run",
        "--check",
        "--include",
        "errno.h",
        "--include",
        "signal.h",
        "-e",
        "begin { print(EPERM); }\nbegin { print(nothing); }",
    ];
    let output = testkit::command(PROGRAM)
        .args(words)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(
        err.contains("--> -e:2:15\n") && err.contains("2 | begin { print(nothing); }\n"),
        "{err}"
    );
}
