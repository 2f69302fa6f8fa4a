//! Reads the output back, with the library's decoder, and with Perfetto's own schema if Python has
//! it.
//!
//! `everything.pftrace` is the output of [`one_of_everything`], and `schema.expected` the schema's
//! reading of it. If the bytes change, the schema must read them again: run the test with
//! `WRITE_EVERYTHING=tests/everything.pftrace`, then
//! `python3 tests/schema.py < tests/everything.pftrace > tests/schema.expected`.
#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::io::Write as _;
use std::process::Stdio;

use perfetto::proto::{
    Data, Ftrace, IrqEntry, IrqExit, LocalTimer, SchedSwitch, SchedWaking, Softirq, SysCall, read,
};
use perfetto::{Slice, Track, TrackKind, TrackSpec, Value, Writer};

/// Output of [`one_of_everything`].
const EVERYTHING: &[u8] = include_bytes!("everything.pftrace");

/// Writes the clocks, the machine and the process, and creates two tracks: of slices, and of a
/// counter.
fn write_head(writer: &mut Writer<Vec<u8>>) -> (Track, Track) {
    writer.clocks(1_000, 1_700_000_000_000_000_000).unwrap();
    writer.machine("6.18.0", "x86_64").unwrap();
    writer
        .process(
            1_000,
            42,
            &["nvmf_tgt".to_owned(), "-m".to_owned()],
            [(43, "reactor_1")],
        )
        .unwrap();
    let spec = TrackSpec {
        name: "nvmf_tgt",
        parent: None,
        rank: 0,
        kind: TrackKind::Process { pid: 42 },
    };
    let process = writer.track(&spec).unwrap();
    let spec = TrackSpec {
        name: "queue 1",
        parent: Some(process),
        rank: 1,
        kind: TrackKind::Slices,
    };
    let queue = writer.track(&spec).unwrap();
    let spec = TrackSpec {
        name: "in flight",
        parent: Some(queue),
        rank: 0,
        kind: TrackKind::Counter,
    };
    let depth = writer.track(&spec).unwrap();
    (queue, depth)
}

/// Writes a request with a stage, a counter and an instant.
fn write_request(writer: &mut Writer<Vec<u8>>, queue: Track, depth: Track) {
    let (request, stage, subnqn) = (
        writer.name("r1"),
        writer.name("EXECUTING"),
        writer.key("subnqn"),
    );
    let nqn = writer.text("nqn.2016-06.io.spdk:cnode1");
    let details = [
        (subnqn, Value::Text(nqn)),
        (writer.key("size"), Value::Count(4096)),
        (writer.key("delta"), Value::Number(-3)),
        (writer.key("object"), Value::Once("r1")),
    ];
    writer
        .begin(&Slice {
            track: queue,
            name: request,
            begin: 2_000,
            end: 3_000,
            details: &details,
            flows: &[7],
        })
        .unwrap();
    writer
        .slice(&Slice {
            track: queue,
            name: stage,
            begin: 2_100,
            end: 2_900,
            details: &[],
            flows: &[],
        })
        .unwrap();
    writer.end(queue, 3_000).unwrap();
    writer.counter(depth, 2_000, 1).unwrap();
    writer.instant(queue, request, 2_500, &[]).unwrap();
}

/// Writes switches and wake-ups, with a loss between them.
fn write_scheduling(writer: &mut Writer<Vec<u8>>) {
    let switch = SchedSwitch {
        prev_pid: Some(43),
        next_pid: Some(99),
        next_comm: Some("kworker/1:2".to_owned()),
        ..SchedSwitch::default()
    };
    writer
        .kernel(1, 2_200, 43, Ftrace::SchedSwitch(switch))
        .unwrap();
    writer.lost(1).unwrap();
    let waking = SchedWaking {
        pid: Some(43),
        target_cpu: Some(1),
        ..SchedWaking::default()
    };
    writer
        .kernel(1, 2_300, 99, Ftrace::SchedWaking(waking))
        .unwrap();
}

/// Writes interrupts and a system call.
fn write_interrupts(writer: &mut Writer<Vec<u8>>) {
    writer
        .kernel(
            0,
            2_300,
            0,
            Ftrace::IrqEntry(IrqEntry {
                irq: Some(24),
                name: Some("nvme0q1".to_owned()),
            }),
        )
        .unwrap();
    writer
        .kernel(0, 2_310, 0, Ftrace::IrqExit(IrqExit { irq: Some(24) }))
        .unwrap();
    writer
        .kernel(0, 2_320, 0, Ftrace::SoftirqEntry(Softirq { vec: Some(3) }))
        .unwrap();
    writer
        .kernel(0, 2_330, 0, Ftrace::SoftirqExit(Softirq { vec: Some(3) }))
        .unwrap();
    writer
        .kernel(0, 2_340, 0, Ftrace::SysEnter(SysCall { id: Some(232) }))
        .unwrap();
    writer
        .kernel(0, 2_350, 0, Ftrace::SysExit(SysCall { id: Some(232) }))
        .unwrap();
    writer
        .kernel(
            0,
            2_360,
            0,
            Ftrace::TimerEntry(LocalTimer { vector: Some(236) }),
        )
        .unwrap();
    writer
        .kernel(
            0,
            2_370,
            0,
            Ftrace::TimerExit(LocalTimer { vector: Some(236) }),
        )
        .unwrap();
}

/// Writes a trace with one of everything.
fn one_of_everything() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    let (queue, depth) = write_head(&mut writer);
    write_request(&mut writer, queue, depth);
    write_scheduling(&mut writer);
    write_interrupts(&mut writer);
    let bytes = writer.finish().unwrap();
    if let Some(path) = std::env::var_os("WRITE_EVERYTHING") {
        std::fs::write(path, &bytes).unwrap();
    }
    bytes
}

#[test]
fn written_traces_are_read_back() {
    let packets = read(&one_of_everything()).unwrap();
    assert_eq!(
        packets[0].sequence_flags,
        Some(perfetto::proto::SEQ_CLEARED)
    );
    assert!(
        packets
            .iter()
            .all(|packet| packet.trusted_packet_sequence_id == Some(1))
    );
    let events: Vec<_> = packets
        .iter()
        .filter_map(|packet| match &packet.data {
            Some(Data::TrackEvent(event)) => Some((
                packet.timestamp.unwrap(),
                event.r#type.unwrap(),
                event.track_uuid.unwrap(),
            )),
            _ => None,
        })
        .collect();
    let expected = [
        (2_000, 1, 2),
        (2_100, 1, 2),
        (2_900, 2, 2),
        (3_000, 2, 2),
        (2_000, 4, 3),
        (2_500, 3, 2),
    ];
    assert_eq!(events, expected);
    // A name is sent once, before or with the first event that uses it.
    let mut sent = Vec::new();
    for packet in &packets {
        sent.extend(
            packet
                .interned_data
                .iter()
                .flat_map(|data| data.event_names.iter().map(|name| name.iid.unwrap())),
        );
        if let Some(Data::TrackEvent(event)) = &packet.data {
            assert!(event.name_iid.is_none_or(|name| sent.contains(&name)));
        }
    }
    assert_eq!(sent, [1, 2]);
    let bundles: Vec<_> = packets
        .iter()
        .filter_map(|packet| match &packet.data {
            Some(Data::FtraceEvents(bundle)) => {
                Some((bundle.cpu.unwrap(), bundle.event.len(), bundle.lost_events))
            }
            _ => None,
        })
        .collect();
    // The loss is reported with the events after it.
    assert_eq!(bundles, [(1, 1, None), (0, 8, None), (1, 1, Some(true))]);
}

#[test]
fn written_fields_match_the_schema() {
    assert!(
        one_of_everything() == EVERYTHING,
        "write it anew, and let the schema read it"
    );
}

/// Perfetto's own schema knows each field, and finds each value in it.
#[test]
fn the_schema_reads_what_is_expected() {
    let has_schema = testkit::command("python3")
        .args(["-c", "import perfetto.protos"])
        .stderr(Stdio::null())
        .status();
    if !has_schema.is_ok_and(|status| status.success()) {
        println!("not run: python3 has no module perfetto");
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schema.py");
    let mut reader = testkit::command("python3")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    reader.stdin.take().unwrap().write_all(EVERYTHING).unwrap();
    let output = reader.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert_eq!(text, include_str!("schema.expected"));
}
