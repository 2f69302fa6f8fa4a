//! Benchmarks of the readers alone: from bytes to records, with every argument read.

use std::hint::black_box;
use std::ops::ControlFlow;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use spdk_trace::{JsonTrace, RawTrace, Record};
use testkit::{Era, Workload};

fn main() {
    divan::main();
}

/// Builds four wrapped rings of 64 Ki slots: 8 MiB.
fn trace(era: Era) -> Vec<u8> {
    let workload = Workload {
        lcores: 4,
        slots: 64 * 1024,
        qpairs: 64,
        truth: false,
        ..Workload::new(era)
    };
    workload.filling(125).generate().file.bytes
}

fn look(record: &Record<'_>) -> ControlFlow<()> {
    for (_, value) in record.args.iter() {
        black_box(value);
    }
    black_box(record.object);
    ControlFlow::Continue(())
}

#[divan::bench(args = [Era::A, Era::C, Era::E, Era::F])]
fn raw(bencher: Bencher<'_, '_>, era: Era) {
    let bytes = trace(era);
    let records = RawTrace::read(&bytes).map_or(0, |trace| trace.record_count());
    bencher.counter(ItemsCount::new(records)).bench(|| {
        if let Ok(trace) = RawTrace::read(&bytes) {
            trace.for_each(look);
        }
    });
}

/// Measures a document in spdk_trace's format with many typical entries.
#[divan::bench]
fn json(bencher: Bencher<'_, '_>) {
    let head = r#"{"tsc_rate":2600000000,"tpoints":[{"name":"TCP_REQ_NEW","id":320,"new_object":true,"args":[{"name":"qd","type":0,"size":4}]},{"name":"TCP_REQ_EXECUTED","id":327,"new_object":false,"args":[]}],"owners":{"262":"127.0.0.1:51292 nqn.2016-06.io.spdk:cnode1 127.0.0.1:4420 qid:1"},"entries":["#;
    let owner = r#""poller":"t262","owner":"127.0.0.1:51292 nqn.2016-06.io.spdk:cnode1 127.0.0.1:4420 qid:1""#;
    let entries: Vec<_> = (0..50_000u64)
        .map(|i| match i % 2 {
            0 => format!(
                r#"{{"lcore":0,"tpoint":320,"tsc":{},{owner},"object":{{"id":"r{i}","value":{}}},"args":[7]}}"#,
                3_340_000_000_000 + i * 90,
                94_000_000_000_000 + i % 64 * 904
            ),
            _ => format!(
                r#"{{"lcore":0,"tpoint":327,"tsc":{},{owner},"object":{{"id":"r{}","time":90,"value":{}}},"args":[]}}"#,
                3_340_000_000_000 + i * 90,
                i - 1,
                94_000_000_000_000 + (i - 1) % 64 * 904
            ),
        })
        .collect();
    let text = format!("{head}{}]}}", entries.join(",")).into_bytes();
    bencher
        .counter(BytesCount::new(text.len()))
        .with_inputs(|| text.clone())
        .bench_values(|text| {
            if let Ok(trace) = JsonTrace::parse(text) {
                black_box(trace.for_each(look));
            }
        });
}
