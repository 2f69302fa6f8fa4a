//! An audit as JSON: an object for each CPU, then one for each individual intrusion, each on its
//! own line.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::layout::FIRST_CLASS;
use super::run::AuditResult;
use super::{CpuReport, Intruder, Share, Victim, name_of};

/// Formats the report, one JSON object per line.
pub(super) fn lines(found: &AuditResult) -> String {
    let cpus = found.cpus.iter().map(|cpu| cpu_json(found, cpu));
    let start = found.cpus.iter().map(|cpu| cpu.start).min().unwrap_or(0);
    let each = found.each.kept.iter().map(|one| {
        let (kind, name, cause) = name_of(&found.sums, &one.key, &one.name, &found.names);
        let at = one.began.saturating_sub(start);
        json!({"each": kind, "name": name, "cause": cause, "cpu": one.key.cpu, "at_ns": at, "ns": one.own})
    });
    let mut lines = String::new();
    let all = cpus
        .map(|cpu| ("cpus.cpu", cpu))
        .chain(each.map(|one| ("cpus.intrusion", one)));
    for (ty, value) in all {
        // Writing to a string does not fail.
        let _ = writeln!(lines, "{}", text::json::document(ty, &value));
    }
    lines
}

fn cpu_json(found: &AuditResult, cpu: &CpuReport) -> Value {
    let share = |share: &Share| json!({"what": share.what, "count": share.count, "ns": share.total, "longest_ns": share.longest});
    let left_out = found.each.left_out.get(&cpu.cpu).copied().unwrap_or(0);
    json!({
        "cpu": cpu.cpu,
        "window_ns": cpu.window,
        "poller": cpu.poller.as_ref().map(intruder_json),
        "budget": cpu.budget.iter().map(share).collect::<Vec<_>>(),
        "stolen_ns": found.stolen.get(&cpu.cpu),
        "intruders": cpu.intruders.iter().map(intruder_json).collect::<Vec<_>>(),
        "victims": cpu.victims.iter().map(victim).collect::<Vec<_>>(),
        "lost": {
            "counts": cpu.lost,
            "ns_without_name": cpu.unnamed,
            "single": cpu.unsent,
            "single_not_listed": left_out,
            "skipped": found.sums.skipped,
        },
        "missing": found.missing,
    })
}

fn intruder_json(who: &Intruder) -> Value {
    let shown = who
        .classes
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0);
    let histogram = shown.map(
        |(nth, &count)| json!({"below_ns": 1_u64 << (FIRST_CLASS as usize + nth), "count": count}),
    );
    let thread = who.thread.as_ref().map(|thread| {
        json!({
            "pid": thread.process.0,
            "process": thread.process.1,
            "policy": thread.policy,
            "cgroup": thread.cgroup,
            "affinity": thread.affinity,
        })
    });
    json!({
        "kind": who.kind,
        "name": who.name,
        "tid": who.tid,
        "cause": who.cause,
        "count": who.count,
        "ns": who.total,
        "longest_ns": who.longest,
        "longest_at_ns": who.longest_at,
        "histogram": histogram.collect::<Vec<_>>(),
        "thread": thread,
        "affinity": who.affinity,
    })
}

fn victim(victim: &Victim) -> Value {
    let mut value = intruder_json(&victim.who);
    if let Some(object) = value.as_object_mut() {
        object.insert("waits_still_ns".to_owned(), json!(victim.still));
        object.insert("before".to_owned(), json!(victim.before));
    }
    value
}
