//! No script harms its target: breakpoints stand only where instructions begin, for any request and
//! any contents of the program's notes, symbols and line tables.
#![cfg(target_arch = "x86_64")]

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::code::{assert_code_is_the_files, changed};
use crate::common::kernel::{PROGRAM, Process, kernel, needs};
use elf::symbols::Functions;
use host::FilePlace;
use tempfile::TempDir;

/// Offsets in `rec` at which its instructions begin, except the first (`common/places.c`).
const BEGINS: [u64; 3] = [5, 6, 9];
/// Length of `rec` in bytes.
const LENGTH: u64 = 10;

/// The running program.
struct Target {
    folder: TempDir,
    process: Process,
}

impl Target {
    /// Builds and starts it: position-independent or not, with symbols or without.
    fn start(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let source = format!("{}/tests/it/common/places.c", env!("CARGO_MANIFEST_DIR"));
        let program = folder.path().join("places");
        let mut compiler = testkit::command("gcc");
        compiler
            .args(["-O1", "-g", "-Wall"])
            .args(flags)
            .arg("-o")
            .args([program.as_os_str(), source.as_ref()]);
        assert!(compiler.status().expect("gcc runs").success());
        let mut process = Process::start(testkit::command(&program).stdout(Stdio::piped()));
        process.wait_for("ready");
        Self { folder, process }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("places")
    }

    /// Runs dptrace on it; returns its output, its messages and its status.
    fn trace(&self, words: &[&str]) -> (String, String, Option<i32>) {
        let pid = self.process.pid().to_string();
        let words = words
            .iter()
            .map(|&word| if word == "PID" { pid.as_str() } else { word });
        let output = testkit::command(PROGRAM)
            .args(words)
            .env("NO_COLOR", "1")
            .output()
            .expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("it is UTF-8");
        (
            text(&output.stdout),
            text(&output.stderr),
            output.status.code(),
        )
    }

    fn run(&self, script: &str) -> (String, String, Option<i32>) {
        self.trace(&["run", "-q", "-p", "PID", "--for", "30s", "-e", script])
    }

    /// Asserts that it still runs, and that its results were right.
    #[track_caller]
    fn end_well(self) {
        let (status, output, said) = self.process.end();
        assert_eq!(
            (status.code(), output.as_str()),
            (Some(0), "wrong: 0\n"),
            "{status}: {said:?}"
        );
    }
}

#[test]
fn an_offset_within_an_instruction_is_refused_with_the_nearest() {
    let Some(_guard) = kernel() else { return };
    if !needs("gcc") {
        return;
    }
    let target = Target::start(&[]);
    let path = target.path();
    let file = FilePlace::at(&path).load().expect("it is a file");
    let image = file.image().expect("it is a program");
    let vaddr = Functions::read(&image, None)
        .named("rec")
        .next()
        .expect("it is there")
        .vaddr
        .0;
    for within in 1..LENGTH {
        for place in [format!("rec+{within}"), format!("{:#x}", vaddr + within)] {
            let script = format!("uprobe:{}:{place} {{ exit(7); }}", path.display());
            let (out, err, status) = target.run(&script);
            if BEGINS.contains(&within) {
                assert_eq!((out.trim(), status), ("", Some(7)), "{place}: {err}");
            } else {
                assert_eq!((out.as_str(), status), ("", Some(2)), "{place}: {err}");
                assert!(
                    err.contains("no instruction begins at") && err.contains("--unsafe"),
                    "{place}: {err}"
                );
            }
        }
    }
    let (_, err, _) = target.run(&format!("uprobe:{}:rec+3 {{ }}", path.display()));
    assert!(
        err.contains("no instruction begins at rec+3: rec and rec+5 are the nearest instructions"),
        "{err}"
    );
    // System-wide, too.
    let script = format!("uprobe:{}:rec+3 {{ }}", path.display());
    assert_eq!(
        target.trace(&["run", "--for", "1s", "-e", &script]).2,
        Some(2)
    );
    // With `--unsafe` there is a warning, and the probe is accepted: here, without attaching.
    let (_, err, status) = target.trace(&["run", "--unsafe", "--check", "-e", &script]);
    assert_eq!(status, Some(0), "{err}");
    assert!(
        err.contains("warning") && err.contains("no instruction begins at rec+3"),
        "{err}"
    );
    target.end_well();
}

#[test]
fn a_line_table_that_leads_into_an_instruction_is_not_followed() {
    let Some(_guard) = kernel() else { return };
    if !needs("gcc") {
        return;
    }
    let target = Target::start(&[]);
    let script = format!(
        "uprobe:{}@places.c:7777 {{ exit(7); }}",
        target.path().display()
    );
    let (_, err, status) = target.run(&script);
    assert_eq!(status, Some(2), "{err}");
    assert!(err.contains("no instruction begins at 0x"), "{err}");
    target.end_well();
}

#[test]
fn notes_that_lead_elsewhere_than_to_a_nop_are_left_out() {
    let Some(_guard) = kernel() else { return };
    if !needs("gcc") {
        return;
    }
    // The function has no unwind information, so in a stripped file nothing shows where it begins:
    // only the bytes decide.
    for flags in [&["-no-pie"][..], &["-no-pie", "-s"]] {
        let target = Target::start(flags);
        let stripped = flags.len() > 1;
        let path = target.path().display().to_string();
        let (out, err, status) = target.run("usdt:*:places:good { exit(7); }");
        assert_eq!((out.trim(), status), ("", Some(7)), "{err}");
        let (_, err, status) = target.run("usdt:*:places:mov { exit(7); }");
        assert_eq!(status, Some(2), "{err}");
        assert!(
            err.contains("not a nop") || err.contains("no instruction begins"),
            "{err}"
        );
        let listed = target.trace(&["list", &path]);
        assert!(
            listed.0.contains("places:good") && !listed.0.contains("places:mov"),
            "{listed:?}"
        );
        if !stripped {
            let (_, err, status) = target.run("usdt:*:places:inside { exit(7); }");
            assert_eq!(status, Some(2), "{err}");
            assert!(!listed.0.contains("places:inside"), "{listed:?}");
            assert!(
                listed.1.contains("left out 2 invalid USDT notes")
                    && listed.1.contains("no instruction begins")
            );
        }
        let spec = target.folder.path().join("spec.toml");
        let probe = "[[object]]\nname = \"x\"\nprovider = \"places\"\nkey = \"n\"\n\
                     [[object.probe]]\nname = \"mov\"\nrole = \"seen\"\nargs = [\"tsc\", \"n\"]\n";
        std::fs::write(&spec, probe).expect("it is ours");
        let spec = spec.display().to_string();
        let (_, err, status) =
            target.trace(&["record", "-p", "PID", "--for", "1s", "--objects", &spec]);
        assert_eq!(status, Some(1), "{err}");
        assert!(err.contains("invalid USDT note"), "{err}");
        let trigger = [
            "kernel-delay",
            "-p",
            "PID",
            "--start-trigger",
            "u:places:mov",
        ];
        let (_, err, status) = target.trace(&trigger);
        assert_eq!(status, Some(2), "{err}");
        assert!(err.contains("left out the USDT note"), "{err}");
        target.end_well();
    }
}

/// Two notes at one place, with different semaphores. The kernel takes one of them at a time, and
/// refuses the other with an uninformative error. If a tracer is killed at the wrong moment, it
/// refuses that one for good.
#[test]
fn a_place_that_has_another_semaphore_is_refused_with_its_reason() {
    let Some(_guard) = kernel() else { return };
    if !needs("gcc") {
        return;
    }
    let target = Target::start(&["-no-pie"]);
    let pid = target.process.pid().to_string();
    let script = "usdt:*:places:one { }";
    let mut first = Process::start(
        testkit::command(PROGRAM)
            .args(["run", "-p", &pid, "-e", script])
            .stdout(Stdio::null()),
    );
    first.wait_for("Attached");
    let (_, err, status) = target.run("usdt:*:places:other { exit(7); }");
    assert_eq!(status, Some(1), "{err}");
    assert!(
        err.contains("another semaphore")
            && err.contains("leaking uprobe")
            && err.contains("mv NEW FILE"),
        "{err}"
    );
    first.signal("INT");
    first.end();
    target.end_well();
}

/// If a SIGKILL is pending for the tracer, the kernel gives up removing its breakpoints from a
/// process. They then stay for good, and each hit costs a useless trap.
#[test]
#[ignore = "deep soak: sixteen tracers are killed, and the right moment is luck"]
fn a_tracer_that_is_killed_while_it_attaches_leaves_no_breakpoint() {
    const ROUNDS: u32 = 16;
    let Some(_guard) = kernel() else { return };
    if !needs("gcc") {
        return;
    }
    let target = Target::start(&["-no-pie"]);
    let pid = target.process.pid();
    let tracer = |more: &[&str]| {
        let mut command = testkit::command(PROGRAM);
        command.args([
            "run",
            "-q",
            "-p",
            &pid.to_string(),
            "-e",
            "usdt:*:places:many { @ = count(); }",
        ]);
        command
            .args(more)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().expect("it starts")
    };
    let start = Instant::now();
    assert!(tracer(&["--dry-run"]).wait().expect("it is ours").success());
    let whole = start.elapsed();
    for round in 1..=ROUNDS {
        let mut tracer = tracer(&[]);
        // Most of the time before the first round, and after the last, is spent on other things.
        std::thread::sleep(whole * (4 + round) / (6 + ROUNDS));
        tracer.kill().expect("it is ours");
        tracer.wait().expect("it is ours");
        // A killed tracer's links are closed a moment later.
        let patience = Instant::now() + Duration::from_mins(1);
        while changed(pid).is_some() && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_code_is_the_files(pid);
    }
    target.end_well();
}
