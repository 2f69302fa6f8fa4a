//! Functions and settings of the language, on the kernel, and the program under the name
//! `bpftrace`.

use std::path::{Path, PathBuf};

use crate::common::compile;
use crate::common::kernel::{PROGRAM, kernel, needs};
use crate::common::run::run;
use tempfile::TempDir;

/// Makes a folder with the program under the name `bpftrace`; returns it and that path.
fn bpftrace() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("bpftrace");
    std::os::unix::fs::symlink(PROGRAM, &link).unwrap();
    (folder, link)
}

/// Runs a program; returns its standard output, standard error and exit status.
fn output(program: &Path, words: &[&str]) -> (String, String, i32) {
    let output = testkit::command(program)
        .args(words)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        text(output.stdout),
        text(output.stderr),
        output.status.code().unwrap(),
    )
}

#[track_caller]
fn prints(script: &str, expected: &str) {
    let (out, err) = run(&["-e", script]);
    assert_eq!(out.trim(), expected, "{script}: {err}");
}

/// Strings of lengths known only at run time, in variables, as keys, and in each other.
#[test]
fn strings_are_joined_and_searched() {
    let Some(_alone) = kernel() else { return };
    prints(
        "begin { $a = comm; print(str_concat($a, \"-x\")); print(str_concat(\"<\", $a)); }",
        "dptrace-x\n<dptrace",
    );
    prints(
        "begin { $a = comm; $a = str_concat($a, $a); print($a); print(strlen($a)); }",
        "dptracedptrace\n14",
    );
    // There is always room for the longer of the two; longer results are cut at `max_strlen`.
    prints(
        "config = { max_strlen = 10 } begin { $a = comm; $b = str_concat($a, $a); print($b); print(strlen($b)); }",
        "dptracedptrace\n14",
    );
    prints(
        "begin { $a = comm; $i = 0; while ($i < 9) { $a = str_concat($a, $a); $i++; } print(strlen($a)); }",
        "1024",
    );
    prints(
        "begin { @a[str_concat(comm, \"1\")] = 1; print(@a[\"dptrace1\"]); clear(@a); }",
        "1",
    );
    prints(
        "begin { print(str_concat(str_concat(\"a\", comm), \"b\")); print(str_concat(\"\", \"\")); }",
        "adptraceb",
    );
    prints(
        "begin { $a = comm; print((strstr($a, \"trace\"), strstr($a, \"\"), strstr($a, \"tracy\"))); }",
        "(2, 0, -1)",
    );
    prints(
        "begin { $a = comm; $p = \"race\"; print((strstr($a, $p), strstr($p, $a), strstr(\"abc\", \"c\"))); }",
        "(3, -1, 2)",
    );
}

#[test]
fn memory_is_compared_in_order() {
    let Some(_alone) = kernel() else { return };
    prints(
        "begin { $a = comm; print((memcmp($a, \"dptrace\", 8), memcmp($a, \"dptracf\", 7))); }",
        "(0, -1)",
    );
    prints(
        "begin { $a = comm; $n = (uint64)pid * 0 + 2; print((memcmp($a, \"dpx\", $n), memcmp($a, \"da\", $n))); }",
        "(0, 15)",
    );
    prints(
        "begin { $a = (uint64)1; $b = (uint64)2; print((memcmp($a, $b, 8) < 0, memcmp($b, $a, 8) > 0)); }",
        "(true, true)",
    );
    // A count that is too large at run time is limited to the shorter value.
    prints(
        "begin { $a = comm; $n = (uint64)pid * 0 + 5000; print(memcmp($a, \"dp\", $n) == 0); }",
        "false",
    );
}

/// If the kernel is locked down, the error states that.
#[test]
fn a_script_writes_into_a_process_or_says_why_not() {
    let Some(_alone) = kernel() else { return };
    if !needs("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "#include <stdio.h>\nchar text[16] = \"before\";\n__attribute__((noinline)) void hit(char *p) { __asm__ \
                volatile(\"\" :: \"r\"(p) : \"memory\"); }\nint main(void) { hit(text); puts(text); return 0; }\n";
    let program = compile(folder.path(), "own", text, &["-O1"]);
    let script = format!("uprobe:{program}:hit {{ print(write_user(arg0, \"after!\", 6)); }}");
    let (out, err, status) = output(
        Path::new(PROGRAM),
        &["run", "-q", "--unsafe", "-e", &script, "-c", &program],
    );
    if status == 3 {
        assert!(
            err.contains("(bpf_probe_write_user): it is locked down"),
            "{err}"
        );
    } else {
        assert!(
            status == 0 && out.contains("true") && out.contains("after!"),
            "{out}{err}"
        );
    }
    let (_, err, status) = output(Path::new(PROGRAM), &["run", "-e", &script, "-c", &program]);
    assert!(
        status == 2 && err.contains("write_user() is unsafe"),
        "{err}"
    );
}

/// Areas of scratch memory too large for a per-CPU map, and small ones, in one script.
#[test]
fn strings_need_more_memory_than_a_cpu_has_at_once() {
    let Some(_alone) = kernel() else { return };
    let long = "x".repeat(9000);
    let script = "config = { max_strlen = 9999 } tracepoint:syscalls:sys_enter_execve / strncmp(str(args.filename), \"/xxx\", 4) == 0 / \
                  { @map[str(args.filename)] = str(args.filename); for ($kv : @map) { print($kv); } exit(); } \
                  tracepoint:syscalls:sys_enter_execve { @small[str_concat(comm, \"!\")] = count(); }";
    // The kernel allows paths of up to 4095 bytes, and reads the name after the tracepoint.
    let command = format!("/bin/sh -c 'exec /{long}'");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own.sh");
    std::fs::write(&file, format!("exec /{long}\n")).unwrap();
    let command = command.replace(&format!("-c 'exec /{long}'"), &file.display().to_string());
    let (out, err) = run(&["--for", "60s", "-e", script, "-c", &command]);
    assert!(
        out.contains(&format!("(/{long}, /{long})")),
        "{} {err}",
        out.len()
    );
    assert!(
        out.contains("@small[") && !err.contains("lost") && !err.contains("left out"),
        "{err}"
    );
}

#[test]
fn maps_are_printed_by_name() {
    let Some(_alone) = kernel() else { return };
    prints(
        "begin { @z = 1; @b = 2; @ = 3; @a = 4; }",
        "@: 3\n@a: 4\n@b: 2\n@z: 1",
    );
}

/// Options, statuses, and the sentences that tools look for.
#[test]
fn under_the_name_bpftrace_it_takes_its_options() {
    let (_folder, bpftrace) = bpftrace();
    let (out, _, status) = output(&bpftrace, &["-V"]);
    assert!(status == 0 && out.starts_with("bpftrace v0."), "{out}");
    assert_eq!(output(&bpftrace, &["--version"]).0, out);
    let (out, err, status) = output(
        &bpftrace,
        &["-d", "ast", "-I", "/nowhere", "-e", "begin { exit() }"],
    );
    assert!(status == 0 && out.contains("(begin)"), "{out}{err}");
    let (_, err, status) = output(&bpftrace, &["--no-such-option"]);
    assert!(status == 2 && err.contains("\nUSAGE:\n"), "{err}");
    let script = "begin { print(getopt(\"top\", 1, \"how many\")); }";
    let (_, err, status) = output(&bpftrace, &["-e", script, "--", "--help"]);
    assert!(
        status == 2 && err.contains("HINT: expected program options:\n  --top: how many\n"),
        "{err}"
    );
    let (_, err, _) = output(&bpftrace, &["-l", "no_such_file.bt"]);
    assert!(
        err.contains("Treating 'no_such_file.bt' as a search pattern."),
        "{err}"
    );
}

#[test]
fn under_the_name_bpftrace_it_uses_its_words() {
    let Some(_alone) = kernel() else { return };
    let (_folder, bpftrace) = bpftrace();
    let (out, _, _) = output(&bpftrace, &["--info"]);
    assert!(
        out.contains("\n  btf: ") && out.contains("\n  kprobes: "),
        "{out}"
    );
    for (script, expected) in [
        (
            "begin { @a = 0; print((uint64)10 % (uint64)@a); }",
            "WARNING: Divide or modulo by 0 detected.",
        ),
        (
            "let @a = hash(1); begin { @a[1] = 1; @a[2] = 2; }",
            "WARNING: Map full; can't update element.",
        ),
    ] {
        let (_, err, status) = output(&bpftrace, &["-e", script]);
        assert!(status == 0 && err.contains(expected), "{err}");
    }
    let (_, err, _) = output(&bpftrace, &["-k", "-e", "begin { @[1] = 1; print(@[2]); }"]);
    assert!(
        err.contains("WARNING: Can't lookup map element because it does not exist."),
        "{err}"
    );
    let script = "config = { missing_probes = warn } uprobe:/bin/sh:no_such_function { }";
    let (_, err, status) = output(&bpftrace, &["-e", script]);
    assert!(
        status == 1
            && err.contains("WARNING: Probe has no valid attach points.")
            && err.ends_with("\nNo probes to attach\n"),
        "{err}"
    );
    let (_, err, _) = output(&bpftrace, &["-e", "kprobe:no_such_function { }"]);
    assert!(
        err.contains("WARNING: no_such_function is not traceable"),
        "{err}"
    );
}
