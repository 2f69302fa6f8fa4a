//! Comparison of the report of `dptrace doctor` with facts from other sources.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use xtask::{GuestAnswer, GuestCommand};

use super::{Check, Known, NOT_SUPPORTED};
use crate::vm::hardware::Architecture;

/// Feature that a kernel may have.
pub(in crate::vm) struct Feature {
    /// Name in doctor's report.
    pub(in crate::vm) name: &'static str,
    /// First of the tested releases whose Debian cloud kernel has it; `None` if none has it.
    since: Option<(u32, u32)>,
    /// Behaviour of dptrace without it.
    pub(in crate::vm) without: &'static str,
}

const fn feature(name: &'static str, since: Option<(u32, u32)>, without: &'static str) -> Feature {
    Feature {
        name,
        since,
        without,
    }
}

/// Features of Debian's cloud kernels, according to their versions and configurations: an
/// independent reference for doctor's trials.
pub(in crate::vm) const FEATURES: [Feature; 22] = [
    feature("bpf() programs", Some((5, 10)), "nothing works"),
    feature("ring buffer", Some((5, 10)), "nothing works"),
    feature("JIT compiler", Some((5, 10)), "slower"),
    feature(
        "map keys over 512 bytes",
        Some((5, 11)),
        "falls back: strings have 240 bytes by default",
    ),
    feature(
        "atomic exchange",
        Some((5, 12)),
        "falls back: `kernel-delay` keeps three marks for each thread",
    ),
    feature(
        "attach cookies",
        Some((5, 15)),
        "falls back: one program for each probe instead of one for many",
    ),
    feature("bpf_loop", Some((5, 17)), "refused: loops in scripts"),
    feature(
        "reading kernel memory",
        Some((5, 10)),
        "refused: everything that reads it",
    ),
    feature(
        "uprobes",
        Some((5, 10)),
        "only `kernel-delay` and probes of the kernel work",
    ),
    feature(
        "USDT semaphores",
        Some((5, 10)),
        "probes that have one are not hit",
    ),
    feature(
        "uprobe_multi",
        Some((6, 6)),
        "falls back: a perf event for each place",
    ),
    feature(
        "uprobe_multi PID filter",
        Some((6, 10)),
        "falls back: as without uprobe_multi",
    ),
    feature(
        "sleepable uprobes",
        Some((6, 0)),
        "falls back: a string that is not in memory yet is reported as unreadable",
    ),
    feature("tracepoints", Some((5, 10)), "refused: `tracepoint`"),
    feature(
        "raw tracepoints",
        Some((5, 10)),
        "scripts don't run: their `begin` is such a program",
    ),
    feature(
        "typed tracepoints (tp_btf)",
        Some((5, 10)),
        "refused: `rawtracepoint` with types, `kernel-delay`",
    ),
    feature(
        "kprobes",
        Some((5, 10)),
        "refused: `kprobe`, `kretprobe`; `kernel-delay`'s `k:` and `kr:` fall back to fentry",
    ),
    // Debian's 6.1 has CONFIG_FPROBE off.
    feature(
        "kprobe_multi",
        Some((6, 12)),
        "nothing is lost: dptrace always uses a perf event for each function",
    ),
    feature("fentry", Some((5, 10)), "refused: `fentry`"),
    feature("fexit", Some((5, 10)), "refused: `fexit`"),
    feature(
        "perf links",
        Some((5, 15)),
        "falls back: the perf event holds the program itself",
    ),
    feature("perf hardware events", None, "refused: `hardware`"),
];

/// Differences of Debian's kernels for aarch64: functions call programs since Linux 6.4 there
/// ("arm64: ftrace: Add direct call support"), none of the releases has CONFIG_FPROBE, and QEMU
/// emulates the processor's counters.
const ON_AARCH64: [(&str, Option<(u32, u32)>); 4] = [
    ("kprobe_multi", None),
    ("fentry", Some((6, 4))),
    ("fexit", Some((6, 4))),
    ("perf hardware events", Some((5, 10))),
];

/// Returns both checks; the one whose answer describes the kernel comes first.
pub(super) fn all() -> Vec<Check> {
    let command = GuestCommand::new(&["dptrace", "doctor", "--json"]);
    vec![
        Check::command(
            "`doctor` reports what this kernel has",
            command.clone(),
            examined,
        ),
        Check::command(
            "`doctor` reports to the user nobody what that user lacks",
            command.as_nobody(),
            not_for_nobody,
        ),
    ]
}

/// Returns doctor's answers, by name.
pub(super) fn answers(answer: &GuestAnswer) -> anyhow::Result<BTreeMap<String, String>> {
    let text = |finding: &serde_json::Value, field: &str| {
        finding[field].as_str().unwrap_or_default().to_owned()
    };
    Ok(findings(answer)?
        .iter()
        .map(|finding| (text(finding, "name"), text(finding, "answer")))
        .collect())
}

/// Checks doctor's answers against the features of Debian's kernels.
pub(super) fn is_right(known: &Known, architecture: Architecture) -> anyhow::Result<()> {
    for Feature { name, since, .. } in FEATURES {
        let differs = ON_AARCH64
            .iter()
            .find(|(own, _)| architecture == Architecture::Aarch64 && *own == name);
        let since = differs.map_or(since, |(_, since)| *since);
        let expected = since.is_some_and(|since| known.release >= since);
        ensure!(
            known.has(name) == expected,
            "doctor on {name}: {:?}, and it is {expected}",
            known.doctor.get(name)
        );
    }
    Ok(())
}

fn examined(answer: &GuestAnswer) -> anyhow::Result<()> {
    ensure!(answer.status == Some(0), "exit status {:?}", answer.status);
    Ok(())
}

fn not_for_nobody(answer: &GuestAnswer) -> anyhow::Result<()> {
    ensure!(
        answer.status == Some(NOT_SUPPORTED),
        "exit status {:?}",
        answer.status
    );
    let found = findings(answer)?;
    let programs = found
        .iter()
        .find(|it| it["name"] == "bpf() programs")
        .context("no line for bpf()")?;
    ensure!(
        programs["answer"] == "no" && programs["get"].to_string().contains("setcap"),
        "{programs}"
    );
    Ok(())
}

fn findings(answer: &GuestAnswer) -> anyhow::Result<Vec<serde_json::Value>> {
    answer
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("not JSON: {line}")))
        .collect()
}
