//! `dptrace record` of the demo target, compared with the target's own truth.

mod losses;

use std::time::Duration;

use crate::common::kernel::{
    Demo, Process, Recorded, attached, kernel, needs, probe_lines, record, recorded,
};

/// Returns the lines that the truth's connections must have left, in no particular order.
fn expected(truth: &demo_target::Truth) -> Vec<String> {
    let mut lines = Vec::new();
    for qpair in &truth.qpairs {
        let demo_target::QpairTruth {
            pointer,
            thread,
            qid,
            subnqn,
            hostnqn,
            added,
            named,
            ..
        } = qpair;
        lines.push(format!(
            "nvmf_poll_group_add_qpair: tsc={added:#x}, qpair={pointer:#x}, thread={thread:#x}"
        ));
        lines.push(format!(
            "nvmf_ctrlr_add_qpair: tsc={named:#x}, qpair={pointer:#x}, qid={qid:#x}, subnqn='{subnqn}', hostnqn='{hostnqn}'"
        ));
        if let Some(removed) = qpair.removed {
            lines.push(format!(
                "nvmf_poll_group_remove_qpair: tsc={removed:#x}, qpair={pointer:#x}, thread={thread:#x}"
            ));
        }
    }
    lines.sort();
    lines
}

fn tsc(line: &str) -> u64 {
    let hex = line
        .split_once("tsc=0x")
        .and_then(|(_, rest)| rest.split(',').next());
    u64::from_str_radix(hex.expect("every line has a tsc"), 16).expect("hex")
}

#[track_caller]
fn assert_in_order(recorded: &Recorded) {
    for pair in recorded.lines.windows(2) {
        assert!(tsc(&pair[0]) <= tsc(&pair[1]), "{pair:#?}");
    }
    assert!(!recorded.last.contains("out of order"), "{}", recorded.last);
}

/// Checks that each connection of the target has its lines; `look` is called with each recording.
#[track_caller]
fn every_qpair(look: impl Fn(&Recorded)) {
    let mut longest = 0;
    for more in [
        &["--rate", "2000"][..],
        &["--no-teardown", "--connections", "32"],
        &["--all-ticks", "--seed", "7"],
    ] {
        let mut demo = Demo::start(&[&["--requests", "600", "--life", "10"], more].concat());
        let pid = demo.process.pid();
        let mut tracer = Process::start(&mut record([pid.to_string()]));
        tracer.wait_for("attached to");
        demo.go();
        let truth = demo.truth();
        let recorded = recorded(tracer);
        let (mut lines, expected) = (recorded.lines.clone(), expected(&truth));
        lines.sort();
        assert!(truth.qpairs.len() > 8, "{}", truth.qpairs.len());
        longest = truth
            .qpairs
            .iter()
            .map(|qpair| qpair.hostnqn.len())
            .fold(longest, usize::max);
        assert_eq!(lines, expected, "{more:?}");
        let last = format!(
            "note: process {pid} has ended: {} events, none lost",
            lines.len()
        );
        assert!(recorded.last.starts_with(&last), "{}", recorded.last);
        look(&recorded);
    }
    assert!(
        longest > 200,
        "names as long as they may be are among them: {longest}"
    );
}

#[test]
fn every_qpair_is_recorded_exactly() {
    let Some(_guard) = kernel() else { return };
    every_qpair(|_| ());
}

#[test]
#[ignore = "deep truth: no thread may stand still for 50 ms between its clock and its probe"]
fn every_qpair_is_recorded_in_order() {
    let Some(_guard) = kernel() else { return };
    every_qpair(assert_in_order);
}

/// Returns the number of events that found no room or that the kernel skipped.
fn lost(recorded: &Recorded) -> u64 {
    recorded.total(" lost because") + recorded.total(" skipped")
}

/// Checks every spec by itself, and all of them together: each probe has a line for each hit,
/// except those reported as lost. `look` is called with each recording.
#[track_caller]
fn every_spec(look: impl Fn(&Recorded)) {
    let has_probes = |text: &str| {
        objects::parse_specs(text)
            .expect("it is ours")
            .iter()
            .any(|spec| !spec.probes.is_empty())
    };
    let with_probes = objects::BUILT_IN
        .iter()
        .filter(|(_, text)| has_probes(text));
    let names: Vec<&str> = with_probes
        .filter_map(|(name, _)| name.strip_suffix(".toml"))
        .collect();
    for spec in names.iter().copied().chain(["all"]) {
        let mut demo = Demo::start(&["--requests", "300", "--flat-out", "--for", "30s"]);
        let tracer = attached(demo.process.pid(), ["--objects", spec]);
        demo.go();
        let truth = demo.truth();
        let recorded = recorded(tracer);
        let specs = objects::built_in().expect("they are ours");
        let specs = specs
            .into_iter()
            .filter(|known| spec == "all" || known.name == spec);
        let probes: std::collections::BTreeSet<String> = specs
            .flat_map(|spec| spec.probes)
            .map(|probe| probe.name)
            .collect();
        assert!(!probes.is_empty(), "{spec}");
        let (counts, mut missing) = (recorded.counts(), 0);
        for probe in &probes {
            let hits = truth
                .hits
                .get(&format!("spdk:{probe}"))
                .copied()
                .expect("it is a probe of the target's");
            let lines = counts.get(probe.as_str()).copied().unwrap_or(0);
            assert!(lines <= hits, "{spec}: {probe}: {lines} of {hits}");
            missing += hits - lines;
        }
        assert_eq!(missing, lost(&recorded), "{spec}: {}", recorded.last);
        assert_eq!(recorded.lines.len() as u64, counts.values().sum::<u64>());
        assert!(
            counts.keys().all(|probe| probes.contains(*probe)),
            "{spec}: {counts:?}"
        );
        look(&recorded);
    }
}

#[test]
fn every_spec_is_recorded() {
    let Some(_guard) = kernel() else { return };
    every_spec(|_| ());
}

#[test]
#[ignore = "deep truth: the reader must keep up with the target to lose no event"]
fn every_spec_is_recorded_in_order() {
    let Some(_guard) = kernel() else { return };
    every_spec(|recorded| {
        assert!(recorded.last.ends_with("none lost"), "{}", recorded.last);
        assert_in_order(recorded);
    });
}

/// A command is attached to before its first instruction, so that no hit is missed.
#[test]
fn a_command_is_recorded_from_its_start() {
    let Some(_guard) = kernel() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("truth.json");
    let path = path.to_str().expect("UTF-8");
    let command = [
        "demo-target",
        "--no-trace-file",
        "--requests",
        "100",
        "--truth",
        path,
    ];
    let tracer = Process::start(
        record([
            "--objects",
            "poll_group,qpair",
            "--",
            crate::common::kernel::PROGRAM,
        ])
        .args(command),
    );
    let recorded = recorded(tracer);
    let truth = crate::common::kernel::read_truth(path.as_ref());
    let counts = recorded.counts();
    assert_eq!(counts["nvmf_create_poll_group"], 2);
    for probe in [
        "nvmf_create_poll_group",
        "nvmf_poll_group_add_qpair",
        "nvmf_ctrlr_add_qpair",
    ] {
        assert_eq!(
            counts[probe],
            truth.hits[&format!("spdk:{probe}")],
            "{probe}"
        );
    }
}

/// A reader that goes away ends the recording without an error, and the target does not notice.
#[test]
fn a_broken_pipe_ends_it_quietly() {
    let Some(_guard) = kernel() else { return };
    let mut demo = Demo::start(&["--requests", "2000", "--rate", "2000", "--life", "2"]);
    let mut tracer = attached(demo.process.pid(), [""; 0]);
    drop(tracer.child.stdout.take());
    demo.go();
    let (status, _, messages) = tracer.end();
    assert!(status.success(), "{messages:?}");
    assert!(demo.truth().requests_completed >= 1);
}

#[test]
fn recording_ends_on_request() {
    let Some(_guard) = kernel() else { return };
    let demo = Demo::start(&[]);
    for signal in ["INT", "TERM"] {
        let tracer = attached(demo.process.pid(), [""; 0]);
        tracer.signal(signal);
        assert_eq!(recorded(tracer).last, "note: stopped: 0 events, none lost");
    }
    let tracer = attached(demo.process.pid(), ["--for", "10ms"]);
    assert_eq!(
        recorded(tracer).last,
        "note: the time is up: 0 events, none lost"
    );
    crate::common::code::assert_code_is_the_files(demo.process.pid());
    drop(demo);
}

#[test]
fn the_object_file_is_taken_by_bpftool_and_llvm() {
    let Some(_guard) = kernel() else { return };
    if !needs("/usr/sbin/bpftool") || !needs("llvm-objdump") {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("probes.o");
    let demo = Demo::start(&[]);
    let pid = demo.process.pid().to_string();
    let path = file.to_str().expect("UTF-8");
    let done = record(["-p", &pid, "--objects", "all", "--emit-object", path])
        .output()
        .expect("it runs");
    assert!(done.status.success() && done.stdout.is_empty(), "{done:?}");
    // In a mount namespace of its own, with a BPF file system that disappears with it.
    let script =
        "mount -t bpf bpf \"$1\" && bpftool prog loadall \"$2\" \"$1/progs\" && ls \"$1/progs\"";
    let mount = dir.path().join("bpf");
    std::fs::create_dir(&mount).expect("a directory");
    let mut bpftool = testkit::command("unshare");
    bpftool
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(&mount)
        .arg(&file);
    let done = bpftool
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output()
        .expect("it runs");
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let programs = String::from_utf8(done.stdout).expect("names");
    assert!(
        programs
            .lines()
            .any(|name| name.starts_with("nvmf_ctrlr_add_qpair")),
        "{programs}"
    );
    let done = testkit::command("llvm-objdump")
        .arg("-d")
        .arg(&file)
        .output()
        .expect("it runs");
    let text = String::from_utf8(done.stdout).expect("text");
    assert!(done.status.success());
    for program in programs.lines() {
        assert!(
            text.contains(&format!("<{program}>:")),
            "{program} in {text}"
        );
    }
    // LLVM knows stores of constants (opcodes 62 and 7a) from version 17 on.
    let mut unknown = text.lines().filter(|line| line.contains("<unknown>"));
    assert_eq!(
        unknown.find(|line| !line.contains(":\t62 ") && !line.contains(":\t7a ")),
        None
    );
    assert!(
        text.contains("call 114") || text.contains("call 0x72"),
        "{text}"
    );
}

/// A probe that is silent for a while is still polled: no line waits for the next one.
#[test]
fn lines_are_written_at_once() {
    let Some(_guard) = kernel() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("lines.txt");
    let mut demo = Demo::start(&[
        "--for",
        "1m",
        "--rate",
        "100",
        "--life",
        "1000000",
        "--connections",
        "2",
    ]);
    let tracer = attached(demo.process.pid(), ["-o", file.to_str().expect("UTF-8")]);
    demo.go();
    let start = std::time::Instant::now();
    while probe_lines(&std::fs::read_to_string(&file).unwrap_or_default()).len() < 4 {
        assert!(
            start.elapsed() < Duration::from_mins(1),
            "nothing was written while it ran"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    tracer.signal("INT");
    recorded(tracer);
    demo.process.signal("TERM");
    demo.truth();
}
