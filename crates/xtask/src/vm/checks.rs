//! What is run on each kernel, and what must come of it.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail, ensure};
use demo_target::{QpairTruth, Truth};
use objects::{Event, Recording, Value};
use xtask::{GuestAnswer, GuestCommand};

use super::kernels::Kernel;

/// Where the demo target writes the truth, in the guest.
const TRUTH: &str = "/tmp/truth.json";
/// The clock that the kernel trusts.
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// What Debian's cloud kernels have, and from which of the tested releases on; nothing for none of them. It is what their
/// versions and configurations say, so that doctor's trials are held against something else than themselves.
const HAD_SINCE: [(&str, Option<(u32, u32)>); 20] = [
    ("bpf() programs", Some((5, 10))),
    ("ring buffer", Some((5, 10))),
    ("JIT compiler", Some((5, 10))),
    ("attach cookies", Some((5, 15))),
    ("bpf_loop", Some((5, 17))),
    ("reading kernel memory", Some((5, 10))),
    ("uprobes", Some((5, 10))),
    ("USDT semaphores", Some((5, 10))),
    ("uprobe_multi", Some((6, 6))),
    ("uprobe_multi PID filter", Some((6, 10))),
    ("sleepable uprobes", Some((6, 0))),
    ("tracepoints", Some((5, 10))),
    ("raw tracepoints", Some((5, 10))),
    ("typed tracepoints (tp_btf)", Some((5, 10))),
    ("kprobes", Some((5, 10))),
    // CONFIG_FPROBE is not set in Debian's 6.1.
    ("kprobe_multi", Some((6, 12))),
    ("fentry", Some((5, 10))),
    ("fexit", Some((5, 10))),
    ("perf links", Some((5, 15))),
    ("perf hardware events", None),
];

/// A command for the guest, and what is thought of its answer: what was seen, or why it is wrong.
pub(super) struct Check {
    /// For people.
    pub(super) name: &'static str,
    /// What is run.
    pub(super) command: GuestCommand,
    /// What is thought of it.
    pub(super) judge: fn(&Kernel, &GuestAnswer) -> anyhow::Result<String>,
}

/// All of them, in the order in which they run.
pub(super) fn all() -> Vec<Check> {
    let target = ["--", "/dptrace", "demo-target", "--requests", "300", "--for", "20s", "--truth", TRUTH];
    let record = |options: &[&str]| {
        let argv = ["dptrace", "record"].into_iter().chain(options.iter().copied()).chain(target);
        GuestCommand::new(&argv.collect::<Vec<_>>()).with_file(TRUTH)
    };
    vec![
        Check {
            name: "the kernel",
            command: GuestCommand::new(&["dptrace", "--version"]).with_file(CLOCK_SOURCE),
            judge: started,
        },
        Check {
            name: "doctor knows what this kernel has",
            command: GuestCommand::new(&["dptrace", "doctor", "--json"]),
            judge: examined,
        },
        Check {
            name: "doctor tells nobody that it is nobody",
            command: GuestCommand::new(&["dptrace", "doctor", "--json"]).as_nobody(),
            judge: refused,
        },
        Check { name: "record agrees with the demo target's truth", command: record(&[]), judge: recorded },
        Check {
            name: "record has every hit of every object's probes, each with its time",
            command: record(&["--objects", "all"]),
            judge: recorded_all,
        },
    ]
}

fn started(kernel: &Kernel, answer: &GuestAnswer) -> anyhow::Result<String> {
    ensure!(answer.status == Some(0), "dptrace does not run");
    let name = kernel.image.file_name().unwrap_or_default().display();
    Ok(format!("{name}, clock source {}", answer.file.as_deref().unwrap_or("unknown").trim()))
}

fn examined(kernel: &Kernel, answer: &GuestAnswer) -> anyhow::Result<String> {
    ensure!(answer.status == Some(0), "exit status {:?}", answer.status);
    let numbers = kernel.release.split_once('.').context("a release has two numbers")?;
    let release: (u32, u32) = (numbers.0.parse()?, numbers.1.parse()?);
    let found = findings(answer)?;
    let told = |name: &str| found.iter().find(|it| it["name"] == name).and_then(|it| it["answer"].as_str());
    for (name, since) in HAD_SINCE {
        let expected = if since.is_some_and(|since| release >= since) { "yes" } else { "no" };
        ensure!(told(name) == Some(expected), "{name}: {:?} instead of {expected}", told(name));
    }
    let missing: Vec<_> = found.iter().filter(|it| it["answer"] == "no").map(|it| it["name"].to_string()).collect();
    Ok(format!("all but {}", missing.join(", ")))
}

fn refused(_: &Kernel, answer: &GuestAnswer) -> anyhow::Result<String> {
    ensure!(answer.status == Some(3), "exit status {:?}", answer.status);
    let found = findings(answer)?;
    let programs = found.iter().find(|it| it["name"] == "bpf() programs").context("no line for bpf()")?;
    ensure!(programs["answer"] == "no" && programs["get"].to_string().contains("setcap"), "{programs}");
    Ok(answer.stderr.trim().to_owned())
}

fn findings(answer: &GuestAnswer) -> anyhow::Result<Vec<serde_json::Value>> {
    answer.stdout.lines().map(|line| serde_json::from_str(line).with_context(|| format!("not JSON: {line}"))).collect()
}

/// As many lines as the target counted hits, and none without ticks: most of these probes have none of their own, and the
/// guest's counter is low, since the machine was started a moment ago.
fn recorded_all(_: &Kernel, answer: &GuestAnswer) -> anyhow::Result<String> {
    let truth = truth_of(answer)?;
    let recording = Recording::parse(&answer.stdout, |_| true);
    let mut lines: BTreeMap<&str, u64> = BTreeMap::new();
    for event in &recording.events {
        *lines.entry(event.probe).or_default() += 1;
        let ticks = event.arg("tsc");
        ensure!(ticks.is_some_and(|ticks| ticks != Value::Int(0)), "{} without ticks: {ticks:?}", event.probe);
    }
    for (probe, count) in &lines {
        let hits = truth.hits.get(&format!("spdk:{probe}")).copied().unwrap_or_default();
        ensure!(hits == *count, "{probe}: {count} lines, {hits} hits");
    }
    ensure!(lines.len() >= 10, "only {} probes were hit", lines.len());
    Ok(format!("{} probes, {} lines", lines.len(), recording.events.len()))
}

fn truth_of(answer: &GuestAnswer) -> anyhow::Result<Truth> {
    ensure!(answer.status == Some(0), "exit status {:?}", answer.status);
    let truth = answer.file.as_deref().context("the target wrote no truth")?;
    serde_json::from_str(truth).context("reading the truth")
}

/// Every connection came, was named and went at the ticks that the target itself noted, and nothing else was written.
fn recorded(_: &Kernel, answer: &GuestAnswer) -> anyhow::Result<String> {
    let truth = truth_of(answer)?;
    let recording = Recording::parse(&answer.stdout, |_| true);
    ensure!(recording.broken.is_empty(), "broken lines: {:?}", recording.broken);
    let mut expected = 0;
    for qpair in &truth.qpairs {
        expected += 2 + usize::from(qpair.removed.is_some());
        lived(&recording, qpair)?;
    }
    ensure!(!truth.qpairs.is_empty(), "the target had no connection");
    ensure!(recording.events.len() == expected, "{} lines instead of {expected}", recording.events.len());
    let told = answer.stderr.lines().last().unwrap_or_default();
    Ok(format!("{} connections, {expected} lines; {told}", truth.qpairs.len()))
}

fn lived(recording: &Recording<'_>, qpair: &QpairTruth) -> anyhow::Result<()> {
    hit(recording, "nvmf_poll_group_add_qpair", qpair.added, qpair, &[("thread", Value::Int(qpair.thread))])?;
    let names = [
        ("qid", Value::Int(qpair.qid.into())),
        ("subnqn", Value::Str(&qpair.subnqn)),
        ("hostnqn", Value::Str(&qpair.hostnqn)),
    ];
    hit(recording, "nvmf_ctrlr_add_qpair", qpair.named, qpair, &names)?;
    match qpair.removed {
        Some(when) => hit(recording, "nvmf_poll_group_remove_qpair", when, qpair, &[]),
        None => Ok(()),
    }
}

/// The hit of this probe for this connection was recorded, at this time, with these arguments.
fn hit(
    recording: &Recording<'_>,
    probe: &str,
    tsc: u64,
    qpair: &QpairTruth,
    args: &[(&str, Value<'_>)],
) -> anyhow::Result<()> {
    let of_qpair = |event: &&Event<'_>| event.probe == probe && event.arg("qpair") == Some(Value::Int(qpair.pointer));
    let events = recording.events.iter().filter(of_qpair);
    let Some(event) = events.min_by_key(|event| event.tsc.abs_diff(tsc)) else {
        bail!("no {probe} of {:#x}", qpair.pointer);
    };
    ensure!(event.tsc == tsc, "{probe} of {:#x} at {:#x} instead of {tsc:#x}", qpair.pointer, event.tsc);
    for (name, value) in args {
        ensure!(event.arg(name) == Some(*value), "{probe} of {:#x}: {name} is {:?}", qpair.pointer, event.arg(name));
    }
    Ok(())
}
