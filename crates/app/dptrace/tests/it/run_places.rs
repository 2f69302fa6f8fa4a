//! Probes of `dptrace run` at places in a process: memory, and source lines. The process is this
//! one.

use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};

use host::{Capabilities, Capability};

static WATCHED: AtomicU64 = AtomicU64::new(0);

/// Returns whether scripts can run here; reports if not.
fn may_trace() -> bool {
    let may = Capabilities::own()
        .missing(&[Capability::Bpf, Capability::Perfmon, Capability::SysAdmin])
        .is_empty();
    if !may {
        testkit::kernel::skip_if_permitted(
            "kernel",
            "it needs CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN",
        );
    }
    may
}

/// Runs a script that ends by itself while `work` is repeated; returns its standard output.
fn run_while(script: &str, mut work: impl FnMut()) -> String {
    let pid = std::process::id().to_string();
    let mut command = testkit::command(env!("CARGO_BIN_EXE_dptrace"));
    command
        .args(["run", "-p", &pid, "-e", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    while child.try_wait().unwrap().is_none() {
        work();
        std::thread::yield_now();
    }
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn memory_is_watched() {
    if !may_trace() {
        return;
    }
    let script = format!(
        "watchpoint:{:p}:8:w {{ print((\"written\", usermode, reg(\"sp\") > 0)); exit(); }}",
        &raw const WATCHED
    );
    let shown = run_while(&script, || {
        WATCHED.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(shown.trim(), "(written, 1, true)");
}

#[inline(never)]
fn marked() -> u32 {
    std::hint::black_box(line!())
}

#[test]
fn a_line_of_the_source_is_a_place() {
    if !may_trace() {
        return;
    }
    let line = marked();
    let exe = std::env::current_exe().unwrap();
    let script = format!(
        "uprobe:{}@run_places.rs:{line} {{ print(\"there\"); exit(); }}",
        exe.display()
    );
    assert_eq!(
        run_while(&script, || {
            std::hint::black_box(marked());
        })
        .trim(),
        "there"
    );
}

#[test]
fn arguments_are_a_value() {
    if !may_trace() {
        return;
    }
    let script = "tracepoint:raw_syscalls:sys_enter { @ = args; print(@.id >= 0); exit(); }";
    let shown = run_while(script, || drop(std::fs::metadata("/")));
    assert!(
        shown.starts_with("true\n")
            && shown.contains("@: { .id = ")
            && shown.contains(", .args = ["),
        "{shown}"
    );
}

#[test]
#[ignore = "deep truth: the kernel's trace is shared, and the kernel may drop a line of it"]
fn debugf_goes_to_the_trace_pipe() {
    if !may_trace() {
        return;
    }
    let Ok(tracefs) = sys::mount::detached("tracefs") else {
        return testkit::kernel::skip_if_permitted("kernel", "no tracefs");
    };
    let mark = format!("dptrace-test-{}", std::process::id());
    let script =
        format!("interval:ms:10 {{ debugf(\"{mark} %s %d %x 100%%\", \"a\", -1, 16); exit(); }}");
    assert_eq!(run_while(&script, || ()).trim(), "");
    let path = format!(
        "/proc/self/fd/{}/trace",
        std::os::fd::AsRawFd::as_raw_fd(&tracefs)
    );
    let trace = std::fs::read_to_string(path).unwrap();
    let last = trace.lines().rev().take(20).collect::<Vec<_>>();
    assert!(
        trace.contains(&format!("bpf_trace_printk: {mark} a -1 10 100%")),
        "{mark} is not in the trace, which ends with {last:#?}"
    );
}
