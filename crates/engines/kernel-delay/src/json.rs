//! Sample as one JSON object, with times in nanoseconds.

use crate::layout::NUMBERED_SLOTS;
use serde_json::{Value, json};

use crate::names::call_name;
use crate::processes::{ProcessSum, process_sums};
use crate::sample::{Interrupt, Sample, Stat, ThreadSample};
use crate::upcalls::Upcalls;

/// Returns a sample as one JSON object.
pub fn json(sample: &Sample) -> Value {
    json!({
        "start_ns": sample.window.start,
        "stop_ns": sample.window.stop,
        "edge_ns": sample.window.edge,
        "threads": sample.threads.iter().map(thread).collect::<Vec<_>>(),
        "processes": process_sums(sample).iter().map(ProcessSum::json).collect::<Vec<_>>(),
        "upcalls": sample.upcalls.as_ref().map(Upcalls::json),
    })
}

fn thread(thread: &ThreadSample) -> Value {
    let budget = &thread.budget;
    let calls = budget.calls.iter();
    json!({
        "tid": thread.tid,
        "pid": thread.pid,
        "name": thread.name,
        "born": thread.started_in_window,
        "ended": thread.ended_in_window,
        "budget": {
            "window_ns": budget.window,
            "sum_ns": budget.sum(),
            "user_ns": budget.user,
            "syscalls_ns": budget.in_calls(),
            "blocked_ns": budget.blocked(),
            "ready_ns": budget.ready,
            "throttled_at_most_ns": thread.throttled_at_most,
            "hard_irq_ns": budget.hard,
            "soft_irq_ns": budget.soft,
            "stopped_ns": budget.stopped,
            "tracing_ns": budget.traced,
            "page_faults_ns": budget.fault_cpu,
            "page_faults_blocked_ns": budget.fault_blocked,
            "reclaim_ns": budget.reclaim_cpu,
            "reclaim_blocked_ns": budget.reclaim_blocked,
            "blocked_elsewhere_ns": budget.blocked_elsewhere,
            "frozen_ns": budget.frozen,
            "calls": calls.map(|call| json!({
                "name": call_name(call.slot), "number": number(call.slot), "cpu_ns": call.cpu, "blocked_ns": call.blocked,
            })).collect::<Vec<_>>(),
        },
        "page_faults": stat(&thread.faults),
        "reclaims": stat(&thread.reclaims),
        "stuck_in": thread.stuck_in,
        "longest_wait_ns": thread.longest_wait,
        "ran_instead": thread.preemptors.iter()
            .map(|task| json!({
                "name": task.name, "ns": task.nanos, "relation": task.relation.word(), "pids": task.pids, "work": task.work,
            })).collect::<Vec<_>>(),
        "ran_instead_unknown_ns": thread.wait_without_names(),
        "syscalls": thread.calls.iter().map(|call| {
            let Stat { count, total, max, .. } = call.stat;
            json!({
                "name": call_name(call.slot), "number": number(call.slot), "count": count, "total_ns": total, "max_ns": max,
                "errors": call.errors, "mean_ns": call.mean(), "p50_ns": call.percentile(50), "p99_ns": call.percentile(99),
            })
        }).collect::<Vec<_>>(),
        "long_poll": with_shortest(&thread.polls),
        "run": with_shortest(&thread.runs),
        "ready": stat(&thread.waits),
        "stopped": stat(&thread.stops),
        "hard_irqs": thread.hard.iter().map(interrupt).collect::<Vec<_>>(),
        "cpu_irqs": thread.vectors.iter().map(interrupt).collect::<Vec<_>>(),
        "soft_irqs": thread.soft.iter().map(interrupt).collect::<Vec<_>>(),
        "ready_histogram": histogram(&thread.wait_histogram),
        "blocked_histogram": histogram(&thread.blocked_histogram),
    })
}

/// Returns a call's number; `None` for a slot that stands for several.
fn number(slot: u32) -> Option<u32> {
    Some(slot).filter(|slot| *slot < NUMBERED_SLOTS)
}

fn stat(stat: &Stat) -> Value {
    json!({ "count": stat.count, "total_ns": stat.total, "max_ns": stat.max })
}

fn with_shortest(stat: &Stat) -> Value {
    json!({ "count": stat.count, "total_ns": stat.total, "min_ns": stat.min, "max_ns": stat.max })
}

fn interrupt(interrupt: &Interrupt) -> Value {
    let Interrupt { number, name, stat } = interrupt;
    json!({ "name": name, "number": number, "count": stat.count, "total_ns": stat.total, "max_ns": stat.max })
}

/// Returns the counts that are not zero, each with its lower bound.
fn histogram(counts: &[u32]) -> Value {
    let filled = (0_u32..).zip(counts).filter(|&(_, &count)| count > 0);
    let from = |power: u32| if power == 0 { 0_u64 } else { 1 << power };
    Value::Array(
        filled
            .map(|(power, count)| json!({ "from_ns": from(power), "count": count }))
            .collect(),
    )
}
