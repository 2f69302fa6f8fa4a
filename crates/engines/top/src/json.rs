//! A second as JSON.

use serde_json::{Value, json};
use stats::Histogram;
use text::json::document;
use text::utc;

use crate::sample::{
    Connection, Cpu, CpuTask, Kind, Request, Sample, Share, Stage, Thread, Traffic,
};

/// Returns a second as a line of JSON: `connections`, `stages`, `threads` and `cpus` are each `null`
/// if there is no source of them.
pub fn json(subject: &str, sample: &Sample) -> String {
    let traffic = sample.traffic.as_ref();
    let second = json!({
        "process": subject,
        "second": sample.number,
        "utc": utc::text(i128::from(sample.time) * 1_000_000),
        "trace": traffic.map(trace),
        "connections": traffic.map(|traffic| traffic.connections.iter().map(|it| connection(it, traffic)).collect::<Vec<_>>()),
        "stages": traffic.map(|traffic| traffic.stages.iter().map(stage).collect::<Vec<_>>()),
        "threads": sample.threads.as_ref().map(|threads| threads.iter().map(thread).collect::<Vec<_>>()),
        "cpus": sample.cpus.as_ref().map(|cpus| cpus.iter().map(cpu).collect::<Vec<_>>()),
    });
    document("top.second", &second)
}

/// To three decimals: more is noise.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn trace(traffic: &Traffic) -> Value {
    let Traffic {
        length,
        written,
        read,
        ..
    } = traffic;
    json!({
        "length_ns": u64::try_from(length.as_nanos()).unwrap_or(u64::MAX),
        "slots_written": written,
        "slots_read": read,
        "share_read": rounded(traffic.sampled()),
    })
}

fn times(times: &Histogram) -> Value {
    let [p50, p99] = times.quantiles(&[0.5, 0.99]);
    json!({ "count": times.count(), "mean_ns": times.mean(), "p50_ns": p50, "p99_ns": p99, "max_ns": times.max() })
}

fn shares<K: Kind>(share: &Share<K>) -> Value {
    K::ALL
        .iter()
        .map(|(kind, _, name)| ((*name).to_owned(), json!(rounded(share.share(*kind)))))
        .collect()
}

fn connection(connection: &Connection, traffic: &Traffic) -> Value {
    let Connection {
        identity,
        depth,
        iops,
        blocks,
        phases,
        thread,
        taken,
        slowest,
        ..
    } = connection;
    json!({
        "subnqn": identity.subnqn,
        "host": identity.host,
        "qid": identity.queue,
        "transport": identity.transport,
        "address": identity.address,
        "depth": rounded(*depth),
        "iops": rounded(*iops),
        "blocks_per_second": rounded(*blocks),
        "requests": times(&connection.times),
        "time_in": shares(phases),
        "thread": thread.as_deref(),
        "kernel_took": taken.map(rounded),
        "slowest": slowest.iter().map(|it| request(it, traffic)).collect::<Vec<_>>(),
    })
}

fn request(request: &Request, traffic: &Traffic) -> Value {
    let stage = |&(place, nanos): &(u16, u64)| {
        let name = traffic
            .stages
            .get(usize::from(place))
            .map(|stage| stage.name.as_str());
        json!({ "stage": name, "ns": nanos })
    };
    json!({
        "object": request.name,
        "ns": request.nanos,
        "stages": request.stages.iter().map(stage).collect::<Vec<_>>(),
    })
}

fn stage(stage: &Stage) -> Value {
    json!({ "stage": stage.name, "times": times(&stage.times) })
}

fn cpu(cpu: &Cpu) -> Value {
    json!({
        "cpu": cpu.number,
        "window_ns": cpu.window,
        "owner": cpu.owner,
        "time_in": shares(&cpu.uses),
        "others_took": rounded(cpu.taken()),
        "intruders": cpu.intruders.iter().map(taker).collect::<Vec<_>>(),
        "victims": cpu.victims.iter().map(taker).collect::<Vec<_>>(),
        "lost": cpu.lost,
    })
}

fn taker(taker: &CpuTask) -> Value {
    let CpuTask {
        kind,
        name,
        cause,
        count,
        nanos,
        longest,
        still,
    } = taker;
    json!({
        "kind": kind,
        "name": name,
        "cause": cause,
        "count": count,
        "ns": nanos,
        "longest_ns": longest,
        "waits_still_ns": still,
    })
}

fn thread(thread: &Thread) -> Value {
    let named = |list: &[(String, u64)]| -> Vec<Value> {
        list.iter()
            .map(|(name, nanos)| json!({ "name": name, "ns": nanos }))
            .collect()
    };
    json!({
        "name": thread.name,
        "tid": thread.tid,
        "window_ns": thread.window,
        "time_in": shares(&thread.parts),
        "kernel_took": rounded(thread.taken()),
        "longest_wait_ns": thread.longest_wait,
        "ran_instead": named(&thread.instead),
        "calls": named(&thread.calls),
        "calls_ended": thread.call_count,
    })
}
