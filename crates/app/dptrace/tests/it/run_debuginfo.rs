//! Functions and types of a program that scripts can use: from `--debuginfo` folders, of processes,
//! of functions that the compiler changed.

use std::path::Path;
use std::process::{Child, Output, Stdio};

use crate::common::kernel::{PROGRAM, kernel, needs};

const SOURCE: &str = r#"
#include <unistd.h>
struct secret { int first; long second; };
struct secret kept = { 1, 2 };
void made(long) __asm__("made.constprop.0");
__attribute__((noinline)) void made(long n) { __asm__ volatile("" ::"r"(n) : "memory"); }
__attribute__((noinline)) static void hidden(struct secret *secret) { __asm__ volatile("" ::"r"(secret) : "memory"); }
int main(int count, char **words)
{
    hidden(&kept);
    made(7);
    if (count > 1)
        pause();
    return words == 0;
}
"#;

/// Builds the program with debug information, and again without; the debug file of the latter is in
/// the folder `elsewhere`.
fn build(folder: &Path) -> bool {
    if !needs("cc") || !needs("objcopy") {
        return false;
    }
    std::fs::write(folder.join("whole.c"), SOURCE).unwrap();
    std::fs::create_dir(folder.join("elsewhere")).unwrap();
    let steps: [&[&str]; 3] = [
        &["cc", "-g", "-O1", "-o", "whole", "whole.c"],
        &[
            "objcopy",
            "--only-keep-debug",
            "whole",
            "elsewhere/bare.debug",
        ],
        &["objcopy", "--strip-all", "whole", "bare"],
    ];
    for step in steps {
        let done = testkit::command(step[0])
            .args(&step[1..])
            .current_dir(folder)
            .status();
        assert!(done.unwrap().success(), "{step:?}");
    }
    true
}

fn run(words: &[&str]) -> (String, String, Option<i32>) {
    let Output {
        stdout,
        stderr,
        status,
    } = testkit::command(PROGRAM)
        .args(words)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    (
        String::from_utf8(stdout).unwrap(),
        String::from_utf8(stderr).unwrap(),
        status.code(),
    )
}

/// Process that is killed when the test ends.
struct Waiting(Child);

impl Waiting {
    fn start(program: &Path, words: &[&str]) -> Self {
        Self(
            testkit::command(program)
                .args(words)
                .stdin(Stdio::null())
                .spawn()
                .unwrap(),
        )
    }

    /// Waits until the child has executed the program.
    fn wait_for_exec(&self) {
        let exe = || std::fs::read_link(format!("/proc/{}/exe", self.pid())).unwrap_or_default();
        while !exe().ends_with("whole") {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        testkit::end(&mut self.0);
    }
}

#[test]
fn a_debug_file_in_another_folder_has_names_of_functions_too() {
    let Some(_alone) = kernel() else { return };
    let folder = tempfile::tempdir().unwrap();
    if !build(folder.path()) {
        return;
    }
    let (bare, debug) = (folder.path().join("bare"), folder.path().join("elsewhere"));
    let (bare, debug) = (bare.display().to_string(), debug.display().to_string());
    let script = format!(
        "uprobe:{bare}:hidden {{ printf(\"%d %s\\n\", args.secret->second, usym(reg(\"ip\"))); exit(); }}"
    );
    // The command waits, so that names can be looked up while it runs.
    let command = format!("{bare} x");
    let (out, err, status) = run(&[
        "run",
        "-q",
        "--debuginfo",
        &debug,
        "-e",
        &script,
        "-c",
        &command,
    ]);
    assert_eq!(
        (out.trim_end(), err.as_str(), status),
        ("2 hidden", "", Some(0))
    );
    let (_, err, status) = run(&["run", "-q", "-e", &script, "-c", &bare]);
    assert!(
        status == Some(2) && err.contains("has no function hidden"),
        "{err}"
    );
    check_other_build(folder.path(), (&bare, &debug), &script);
}

/// Checks that a debug file of another build is not used.
#[track_caller]
fn check_other_build(folder: &Path, (bare, debug): (&str, &str), script: &str) {
    testkit::copy_program(bare, folder.join("other"));
    let step = [
        "-O2",
        "-g",
        "-Wl,--build-id=0x1234",
        "-o",
        "elsewhere/other.debug",
        "whole.c",
    ];
    assert!(
        testkit::command("cc")
            .args(step)
            .current_dir(folder)
            .status()
            .unwrap()
            .success()
    );
    let other = folder.join("other").display().to_string();
    let (_, err, status) = run(&[
        "run",
        "--debuginfo",
        debug,
        "-e",
        &script.replace(bare, &other),
        "-c",
        &other,
    ]);
    assert!(
        status == Some(2) && err.contains("has no function hidden"),
        "{err}"
    );
}

#[test]
fn a_function_that_the_compiler_changed_is_called_that_where_its_arguments_are_read() {
    let folder = tempfile::tempdir().unwrap();
    if !build(folder.path()) {
        return;
    }
    let whole = folder.path().join("whole").display().to_string();
    for (body, warns) in [("print(arg0);", true), ("@ = count();", false)] {
        let script = format!("uprobe:{whole}:made.constprop.0 {{ {body} }}");
        let (_, err, status) = run(&["run", "--check", "-e", &script]);
        assert_eq!(status, Some(0), "{err}");
        let messages = "warning: the compiler changed made.constprop.0: its arguments may differ \
                        from the source\n";
        assert_eq!(err.contains(messages), warns, "{err}");
    }
}

#[test]
fn a_struct_of_a_process_is_listed_and_one_that_is_nowhere_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    if !build(folder.path()) {
        return;
    }
    let process = Waiting::start(&folder.path().join("whole"), &["x"]);
    process.wait_for_exec();
    let (out, err, status) = run(&["run", "-lv", "struct secret", "-p", &process.pid()]);
    assert_eq!(status, Some(0), "{err}");
    assert!(
        out.contains("whole: struct secret {") && out.contains("long second;")
            || out.contains("long int second;"),
        "{out}"
    );
    let (out, err, status) = run(&["run", "-lv", "struct nowhere", "-p", &process.pid()]);
    assert_eq!((out.as_str(), status), ("", Some(1)));
    assert!(
        err.starts_with(
            "error: the kernel's types have no struct nowhere, nor the process's debug information"
        ),
        "{err}"
    );
}

#[test]
fn a_process_that_keeps_no_trace_entries_is_called_that() {
    let folder = tempfile::tempdir().unwrap();
    if !build(folder.path()) {
        return;
    }
    for (words, reason) in [
        (
            &["-e", "all", "--num-trace-entries", "0"][..],
            "--num-trace-entries 0",
        ),
        (&["--num-trace-entries=8192"], "started with -e"),
    ] {
        let process = Waiting::start(&folder.path().join("whole"), words);
        process.wait_for_exec();
        let (_, err, status) = run(&["trace", "-p", &process.pid()]);
        assert_eq!(status, Some(1));
        assert!(
            err.contains("has no trace file") && err.contains(reason),
            "{err}"
        );
    }
}
