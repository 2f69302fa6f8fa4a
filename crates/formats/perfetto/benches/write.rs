//! Benchmarks of writing: stages of requests as slices, and kernel events.
#![expect(clippy::unwrap_used, reason = "a benchmark that can't go on fails")]

use std::io;

use divan::Bencher;
use divan::counter::ItemsCount;
use perfetto::proto::{Ftrace, SchedSwitch};
use perfetto::{Slice, TrackKind, TrackSpec, Value, Writer};

/// Number of slices or events per run.
const ITEMS: u64 = 1_000_000;

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 5)]
fn slices(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(ITEMS)).bench(|| {
        let mut writer = Writer::new(io::sink()).unwrap();
        let spec = TrackSpec {
            name: "queue",
            parent: None,
            rank: 0,
            kind: TrackKind::Slices,
        };
        let track = writer.track(&spec).unwrap();
        let (name, key) = (writer.name("EXECUTING"), writer.key("qpair"));
        let nqn = writer.text("nqn.2016-06.io.spdk:cnode1");
        for n in 0..ITEMS {
            let (begin, end) = ((1 << 50) + n * 1_000, (1 << 50) + n * 1_000 + 900);
            writer
                .slice(&Slice {
                    track,
                    name,
                    begin,
                    end,
                    details: &[(key, Value::Text(nqn))],
                    flows: &[],
                })
                .unwrap();
        }
        writer.finish().unwrap();
    });
}

#[divan::bench(sample_count = 5)]
fn switches(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(ITEMS)).bench(|| {
        let mut writer = Writer::new(io::sink()).unwrap();
        for n in 0..ITEMS {
            let next_comm = Some("kworker/1:2".to_owned());
            let switch = SchedSwitch {
                prev_pid: Some(1),
                next_pid: Some(2),
                next_comm,
                ..SchedSwitch::default()
            };
            writer
                .kernel(1, (1 << 50) + n, 1, Ftrace::SchedSwitch(switch))
                .unwrap();
        }
        writer.finish().unwrap();
    });
}
