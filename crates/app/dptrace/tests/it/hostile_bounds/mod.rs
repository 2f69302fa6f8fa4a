//! Files and processes that demand more work than their size warrants: each command ends, and stays
//! within its limit of memory. No time is measured; a command that does not end is killed after
//! half a minute, and has failed.

mod daemon;
mod elf;
mod members;

use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use crate::common::kernel::{PROGRAM, needs, until};
use tempfile::TempDir;

/// Timeout for anything that is sure to end.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Limit on the address space of dptrace with BPF's buffers and threads, in MiB.
const WITH_BPF: u64 = 1500;

/// Runs dptrace with at most this much address space. It must end by itself.
#[track_caller]
fn limited(mebibytes: u64, args: &[&str]) -> Output {
    let mut command = assert_cmd::Command::from_std(testkit::command("sh"));
    command.args([
        "-c",
        &format!("ulimit -v {}; exec \"$@\"", mebibytes << 10),
        "sh",
        PROGRAM,
    ]);
    let output = command
        .args(args)
        .env("NO_COLOR", "1")
        .timeout(TIMEOUT)
        .output()
        .expect("sh runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code().is_some_and(|code| code <= 3),
        "{args:?}: {:?} {errors}",
        output.status
    );
    output
}

/// Returns the output and messages of `kernel-delay` with the stacks of a process.
#[track_caller]
fn stacks(pid: &str) -> String {
    let output = limited(
        WITH_BPF,
        &["kernel-delay", "-p", pid, "--sample-time", "0.2", "-s"],
    );
    let text = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    assert!(output.status.success(), "{text}");
    text
}

/// A compiled and running test program; it ends with the test.
struct Running {
    child: Child,
    _dir: TempDir,
}

impl Running {
    /// Starts it. `None` without a compiler.
    #[track_caller]
    fn start(source: &str, options: &[&str]) -> Option<Self> {
        if !needs("gcc") {
            return None;
        }
        let dir = tempfile::tempdir().expect("a directory");
        let program = compiled(dir.path(), source, options);
        let child = testkit::command(program)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        Some(Self { child, _dir: dir })
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        testkit::end(&mut self.child);
    }
}

fn compiled(dir: &Path, source: &str, options: &[&str]) -> PathBuf {
    let (text, program) = (dir.join("hostile.c"), dir.join("hostile"));
    std::fs::write(&text, source).expect("it is writable");
    let done = testkit::command("gcc")
        .args(["-O1", "-g"])
        .args(options)
        .arg("-o")
        .args([&program, &text])
        .status();
    assert!(done.expect("gcc runs").success());
    program
}

/// Returns a program that sleeps in a function with these bytes in its unwind table.
fn sleeper(cfi: &str) -> String {
    format!(
        "#include <time.h>
        __attribute__((noinline)) void trap(void) {{
            __asm__ volatile(\".cfi_escape {cfi}\");
            for (;;) {{ struct timespec t = {{0, 2000000}}; nanosleep(&t, 0); }}
        }}
        int main(void) {{ trap(); return 0; }}"
    )
}

#[test]
fn unwind_expressions_that_jump_are_not_followed() {
    let Some(_guard) = crate::common::kernel::kernel() else {
        return;
    };
    // DW_CFA_def_cfa_expression: DW_OP_skip to itself; DW_OP_lit1, DW_OP_bra to both. And the
    // return address, register 16 on x86-64 and 30 on aarch64, by DW_CFA_val_expression.
    let register = if cfg!(target_arch = "aarch64") {
        30
    } else {
        16
    };
    let value = format!("0x16,{register},0x03,0x2f,0xfd,0xff");
    for cfi in [
        "0x0f,0x03,0x2f,0xfd,0xff",
        "0x0f,0x04,0x31,0x28,0xfc,0xff",
        &value,
    ] {
        let Some(process) = Running::start(&sleeper(cfi), &[]) else {
            return;
        };
        let text = until(|| stacks(&process.pid()), |text| text.contains("  trap+0x"));
        assert!(
            text.contains("[it goes on: this unwind table is not followed"),
            "{cfi}: {text}"
        );
        let said = text
            .matches(".eh_frame jumps, so it may never end: stacks end there")
            .count();
        assert_eq!(said, 1, "{cfi}: {text}");
    }
}

/// A function with 100,000 rows in its table; each lookup would start from the first.
#[test]
fn unwind_tables_of_endless_rows_are_not_followed() {
    let Some(_guard) = crate::common::kernel::kernel() else {
        return;
    };
    let source = sleeper("0x0a\\n.rept 100000\\n.cfi_escape 0x0b,0x0a\\n.endr\\n.cfi_escape 0x0b");
    let Some(process) = Running::start(&source, &[]) else {
        return;
    };
    let text = until(|| stacks(&process.pid()), |text| text.contains("  trap+0x"));
    assert!(text.contains("is too long to follow"), "{text}");
}

/// Debug information of a program whose function `trap` has 20,000 inlined functions, each within
/// the one before it.
const NESTED: &str = r#"
    .pushsection .debug_abbrev,"",@progbits
    .uleb128 1, 0x11; .byte 1; .uleb128 0x11, 1, 0x12, 7, 0, 0
    .uleb128 2, 0x2e; .byte 1; .uleb128 0x03, 8, 0x11, 1, 0x12, 7, 0, 0
    .uleb128 3, 0x1d; .byte 1; .uleb128 0x31, 0x13, 0x11, 1, 0x12, 7, 0, 0
    .byte 0
    .popsection
    .pushsection .debug_info,"",@progbits
    unit: .long unit_end - unit_begin
    unit_begin: .short 4; .long 0; .byte 8
    .uleb128 1; .quad trap; .quad 64
    subprogram: .uleb128 2; .asciz "trap"; .quad trap; .quad 64
    .rept 20000
    .uleb128 3; .long subprogram - unit; .quad trap; .quad 64
    .endr
    .fill 20002, 1, 0
    unit_end:
    .popsection
"#;

/// A lookup of lines would recurse into each of them, and overflow its stack.
#[test]
fn inlined_functions_without_end_are_not_followed() {
    let Some(_guard) = crate::common::kernel::kernel() else {
        return;
    };
    let assembly = NESTED.replace('"', "\\\"").replace('\n', "\\n");
    let spinner = "__attribute__((noinline)) void trap(void) { for (;;) __asm__ volatile(\"\"); }
        int main(void) { trap(); return 0; }";
    let source = format!("__asm__(\"{assembly}\");\n{spinner}");
    let Some(process) = Running::start(&source, &["-g0"]) else {
        return;
    };
    let lines =
        "config = { show_debug_info = true } profile:hz:99 { printf(\"%s\", ustack()); exit(); }";
    let output = limited(WITH_BPF, &["run", "-p", &process.pid(), "-e", lines]);
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success() && stdout.contains("trap+"),
        "{stdout}{stderr}"
    );
    assert!(
        stderr.contains("functions are shown without lines"),
        "{stdout}{stderr}"
    );
}

/// Address space of dptrace besides its input, in MiB.
const WITHOUT: u64 = 64;

/// Lists a file's probes with at most eight times its size of memory; returns the output.
#[track_caller]
fn listed(file: &[u8], options: &[&str]) -> (String, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("hostile");
    std::fs::write(&path, file).expect("it is writable");
    let path = path.to_str().expect("UTF-8");
    let output = limited(
        WITHOUT + 8 * (file.len() as u64 >> 20),
        &[&["list", path], options].concat(),
    );
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("UTF-8"));
    (stdout, stderr)
}

/// Notes with one name and equal arguments, and notes with a name each: both take a small multiple
/// of the file, in any form of output.
#[test]
fn many_notes_take_a_small_multiple_of_their_size() {
    const COUNT: usize = 20_000;
    let same = elf::note("n", "8@%rax -4@$5 8@8(%rdi,%rsi,4)").repeat(COUNT);
    let each = (0..COUNT)
        .flat_map(|number| elf::note(&format!("n{number}"), ""))
        .collect();
    for (notes, names) in [(same, 1), (each, COUNT)] {
        let file = elf::file(&[elf::Section::new(".note.stapsdt", elf::NOTE, notes)]);
        let (json, _) = listed(&file, &["--json"]);
        assert_eq!(
            (json.lines().count(), json.matches("\"address\"").count()),
            (names, COUNT)
        );
        if names == 1 {
            let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
            assert_eq!(value["places"].as_array().map(Vec::len), Some(COUNT));
            assert_eq!(value["places"][COUNT - 1]["args"][1]["place"], "$5");
        }
        let (text, _) = listed(&file, &["--places"]);
        assert_eq!(text.lines().count(), 1 + names + COUNT);
    }
}

/// 65,000 sections that all share the same notes: each byte is read once, and the omission is
/// reported.
#[test]
fn overlapping_notes_are_read_once() {
    let notes = elf::note("n", "").repeat(20_000);
    let bytes = notes.len() as u64;
    for name in [".note.stapsdt", ".note.other"] {
        let mut sections = vec![elf::Section::new(".note.stapsdt", elf::NOTE, notes.clone())];
        sections.extend((0..65_000).map(|number| elf::Section {
            name,
            kind: elf::NOTE,
            flags: 0,
            content: elf::Content::Shared(bytes - number * 4),
        }));
        let (text, errors) = listed(&elf::file(&sections), &[]);
        assert!(text.contains("p:n  20000 places"), "{text}");
        let said = errors
            .contains("65000 areas of notes overlap others, or are more than any linker writes");
        assert_eq!(said, name == ".note.stapsdt", "{errors}");
    }
}

/// A file of object specs that is too long to be one.
#[test]
fn endless_specs_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("endless.toml");
    std::fs::write(&path, "[[object]]\n".repeat(1 << 20)).expect("it is writable");
    let output = limited(
        WITHOUT,
        &["generate", "--objects", path.to_str().expect("UTF-8")],
    );
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && errors.contains("object specs of at most 1 MiB"),
        "{errors}"
    );
}
