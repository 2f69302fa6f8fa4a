//! The report as JSON: one object.

use serde_json::{Map, Value, json};
use text::json;

use super::{Report, ThreadNames, ThreadReport};
use crate::{Cause, ExplainedStretch, Names as _, Reason};

/// Open vSwitch counts its history in milliseconds.
const NANOS_PER_MS: u64 = 1_000_000;

/// Formats the object, followed by a newline.
pub(super) fn document(report: &Report) -> String {
    let settings = report.settings.as_ref().map(|settings| {
        let pairs = settings
            .iter()
            .map(|(name, value)| (name.clone(), Value::from(value.clone())));
        pairs.collect::<Map<String, Value>>()
    });
    let object = json!({
        "pid": report.pid,
        "ns": report.nanos,
        "threads": report.threads.iter().map(|thread| thread_json(thread, &report.names)).collect::<Vec<_>>(),
        "ports": report.ports.0.iter().map(|(port, counters)| json!({"port": port, "since": counters})).collect::<Vec<_>>(),
        "settings": settings,
        "advice": report.advice,
        "notes": report.notes,
    });
    json::document("pmd.report", &object) + "\n"
}

fn thread_json(thread: &ThreadReport, names: &ThreadNames) -> Value {
    let off = &thread.off;
    let slow = thread.slow.as_ref().map(|slow| {
        slow.iter()
            .map(|one| stretch_json(one, names))
            .collect::<Vec<_>>()
    });
    let figures = thread.figures.as_ref().map(|figures| {
        let counters = &figures.counters;
        json!({
            "packets": counters.packets,
            "iterations": counters.iterations,
            "busy_cycles": counters.busy_cycles,
            "idle_cycles": counters.idle_cycles,
            "upcalls": counters.upcalls,
            "lost_upcalls": counters.lost_upcalls,
            "passed_cycles": figures.passed,
            "taken_cycles": figures.taken,
            "said": {"busy": figures.said_busy(), "cycles_per_packet": figures.said_cycles_per_packet()},
            "true": {"busy": figures.true_busy(), "cycles_per_packet": figures.true_cycles_per_packet()},
        })
    });
    let taker = |(name, nanos): &(String, u64)| json!({"name": name, "ns": nanos});
    let queue = |queue: &crate::Queue| json!({"port": queue.port, "queue": queue.queue, "percent": queue.percent});
    json!({
        "name": thread.thread.name,
        "tid": thread.thread.tid,
        "cpu": thread.thread.cpu,
        "sentence": thread.sentence(names),
        "milliseconds": thread.milliseconds,
        "gaps": thread.holes,
        "slow": slow,
        "budget_ns": {
            "own": off.own,
            "calls": off.in_calls,
            "waited": off.waited,
            "stopped": off.stopped,
            "interrupted": off.interrupted,
            "blocked": off.blocked,
            "asleep": off.asleep,
            "unknown": off.unknown,
        },
        "waited_for": thread.takers.iter().map(taker).collect::<Vec<_>>(),
        "figures": figures,
        "queues": thread.queues.iter().map(queue).collect::<Vec<_>>(),
        "isolated": thread.is_isolated,
    })
}

fn stretch_json(explained: &ExplainedStretch, names: &ThreadNames) -> Value {
    let stretch = &explained.stretch;
    let share = |(cause, nanos): &(Cause, u64)| json!({"reason": reason(*cause), "who": culprit_name(*cause, names), "ns": nanos});
    json!({
        "from_ns": stretch.from * NANOS_PER_MS,
        "length_ns": stretch.length() * NANOS_PER_MS,
        "goes_on": stretch.goes_on,
        "reason": reason(explained.cause),
        "who": culprit_name(explained.cause, names),
        "shares": explained.shares.iter().map(share).collect::<Vec<_>>(),
        "iterations": stretch.row.iterations,
        "packets": stretch.row.packets,
        "upcalls": stretch.row.upcalls,
        "vhost_queue": stretch.row.vhost_queue,
    })
}

fn reason(cause: Cause) -> &'static str {
    match cause.reason() {
        Reason::Waited => "waited",
        Reason::Stopped => "stopped",
        Reason::Interrupted => "interrupted",
        Reason::Blocked => "blocked",
        Reason::InCall => "call",
        Reason::Unknown => "unknown",
        Reason::OwnWork => "own work",
    }
}

fn culprit_name(cause: Cause, names: &ThreadNames) -> Option<String> {
    match cause {
        Cause::Waited(tid) => Some(names.thread(tid)),
        Cause::Interrupted(interrupt) => Some(names.interrupt(interrupt)),
        Cause::Blocked(Some(call)) | Cause::InCall(call) => Some(names.call(call)),
        Cause::Blocked(None) | Cause::Stopped | Cause::Unknown | Cause::OwnWork => None,
    }
}
