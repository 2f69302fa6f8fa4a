//! Comparison of `dptrace record` with the demo target's truth.

use std::collections::BTreeMap;

use anyhow::{bail, ensure};
use demo_target::QpairTruth;
use objects::{Event, Recording, Value};
use xtask::{GuestAnswer, GuestCommand};

use super::{Check, TRUTH, truth_of};

/// Returns all checks.
pub(super) fn all() -> Vec<Check> {
    let target = [
        "--",
        "dptrace",
        "demo-target",
        "--requests",
        "300",
        "--for",
        "20s",
        "--truth",
        TRUTH,
    ];
    let record = |options: &[&str]| {
        let argv = ["dptrace", "record"]
            .into_iter()
            .chain(options.iter().copied())
            .chain(target);
        GuestCommand::new(&argv.collect::<Vec<_>>()).with_file(TRUTH)
    };
    vec![
        Check::command(
            "`record`: every connection with its names, at the time that the target noted",
            record(&[]),
            recorded,
        ),
        Check::command(
            "`record --objects all`: every hit of every object's probes, each with its time",
            record(&["--objects", "all"]),
            recorded_all,
        ),
    ]
}

/// Checks that there are as many lines as the target counted hits, and none without ticks. Most of
/// these probes have no ticks of their own, and the guest's counter is low, since the machine was
/// started a moment ago.
fn recorded_all(answer: &GuestAnswer) -> anyhow::Result<()> {
    let truth = truth_of(answer)?;
    let recording = Recording::parse(&answer.stdout, |_| true);
    let mut lines: BTreeMap<&str, u64> = BTreeMap::new();
    for event in &recording.events {
        *lines.entry(event.probe).or_default() += 1;
        let ticks = event.arg("tsc");
        ensure!(
            ticks.is_some_and(|ticks| ticks != Value::Int(0)),
            "{} without ticks: {ticks:?}",
            event.probe
        );
    }
    for (probe, count) in &lines {
        let hits = truth
            .hits
            .get(&format!("spdk:{probe}"))
            .copied()
            .unwrap_or_default();
        ensure!(hits == *count, "{probe}: {count} lines, {hits} hits");
    }
    ensure!(lines.len() >= 10, "only {} probes were hit", lines.len());
    Ok(())
}

/// Checks that every connection came, was named and went at the ticks that the target itself noted,
/// and that nothing else was written.
fn recorded(answer: &GuestAnswer) -> anyhow::Result<()> {
    let truth = truth_of(answer)?;
    let recording = Recording::parse(&answer.stdout, |_| true);
    ensure!(
        recording.broken.is_empty(),
        "broken lines: {:?}",
        recording.broken
    );
    let mut expected = 0;
    for qpair in &truth.qpairs {
        expected += 2 + usize::from(qpair.removed.is_some());
        lived(&recording, qpair)?;
    }
    ensure!(!truth.qpairs.is_empty(), "the target had no connection");
    ensure!(
        recording.events.len() == expected,
        "{} lines instead of {expected}",
        recording.events.len()
    );
    Ok(())
}

fn lived(recording: &Recording<'_>, qpair: &QpairTruth) -> anyhow::Result<()> {
    hit(
        recording,
        "nvmf_poll_group_add_qpair",
        qpair.added,
        qpair,
        &[("thread", Value::Int(qpair.thread))],
    )?;
    let names = [
        ("qid", Value::Int(qpair.qid.into())),
        ("subnqn", Value::Str(&qpair.subnqn)),
        ("hostnqn", Value::Str(&qpair.hostnqn)),
    ];
    hit(
        recording,
        "nvmf_ctrlr_add_qpair",
        qpair.named,
        qpair,
        &names,
    )?;
    match qpair.removed {
        Some(when) => hit(recording, "nvmf_poll_group_remove_qpair", when, qpair, &[]),
        None => Ok(()),
    }
}

/// Checks that the hit of this probe for this connection was recorded, at this time, with these
/// arguments.
fn hit(
    recording: &Recording<'_>,
    probe: &str,
    tsc: u64,
    qpair: &QpairTruth,
    args: &[(&str, Value<'_>)],
) -> anyhow::Result<()> {
    let of_qpair = |event: &&Event<'_>| {
        event.probe == probe && event.arg("qpair") == Some(Value::Int(qpair.pointer))
    };
    let events = recording.events.iter().filter(of_qpair);
    let Some(event) = events.min_by_key(|event| event.tsc.abs_diff(tsc)) else {
        bail!("no {probe} of {:#x}", qpair.pointer);
    };
    ensure!(
        event.tsc == tsc,
        "{probe} of {:#x} at {:#x} instead of {tsc:#x}",
        qpair.pointer,
        event.tsc
    );
    for (name, value) in args {
        ensure!(
            event.arg(name) == Some(*value),
            "{probe} of {:#x}: {name} is {:?}",
            qpair.pointer,
            event.arg(name)
        );
    }
    Ok(())
}
