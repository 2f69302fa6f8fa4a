//! Tests of whole screens.

use super::{PLAIN, expect, model, screen};
use crate::keys::Key;

#[test]
fn connections_at_80_by_24() {
    let text = screen(&mut model(3), PLAIN, (80, 24));
    let expected = [
        "dptrace top  nvmf_tgt [1234]  second 5  sampled: 25% of the records",
        "[1] Connections [2] Threads [3] Stages [4] CPUs [5] Pollers",
        "3 connections; 300 IOPS, 2.40k blocks/s; p50 115 us, p99 4.50 ms, max 4.50 ms",
        "slowest: cnode2 qid 2 of host-2: p99 61.0 us, max 61.0 us (95% of it target)",
        "its thread reactor_1 lost 20% (200 ms: 15% waited, 5.0% interrupts; 8.00 ms at",
        "once: longer than all requests that were read), mostly to yes [4711]",
        "t target  b buffer  h host's data  d device  r reply",
        "SUBSYSTEM QID HOST      DEPTH  IOPS STAGES            P50     P99     MAX KERNEL",
        "cnode2      2 host-2      3.5   200 ttttbdddddddr 56.0 us 61.0 us 61.0 us   3.4%",
        "cnode1      1 host-1      3.5   100 ttttbdddddddr 55.0 us 60.0 us 60.0 us   3.4%",
        "cnode0      0 host-0      3.5     0 ttttbdddddddr 54.0 us 59.0 us 59.0 us   3.4%",
    ];
    let last = "? help  Enter more  / filter  p process  Space freeze  m mouse  Tab next  q quit";
    let lines: Vec<&str> = expected.into_iter().chain([""; 12]).chain([last]).collect();
    expect(&text, &lines);
}

#[test]
fn connections_at_200_by_50() {
    let text = screen(&mut model(3), PLAIN, (200, 50));
    for part in [
        "SUBSYSTEM",
        "QID",
        "HOST",
        "TRANS",
        "DEPTH",
        "IOPS",
        "BLOCKS/s",
        "STAGES",
        "P50",
        "P99",
        "MAX",
        "KERNEL",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(text.contains("host-2") && text.contains("3.4%"), "{text}");
}

#[test]
fn pollers_stand_beside_their_reactors() {
    let mut model = model(3);
    model.key(Key::Char('5'));
    let text = screen(&mut model, PLAIN, (120, 24));
    let rows: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("POLLER"))
        .collect();
    let words = |row: &str| {
        row.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        rows[..3].iter().map(|row| words(row)).collect::<Vec<_>>(),
        [
            "POLLER SPDK THREAD REACTOR RUNS/s IDLE/s BUSY PERIOD LOST LONGEST",
            "nvmf_poll_group_poll nvmf_tgt_poll_group_001 reactor_1 2.00k 1.50k 25% always 50% 8.00 ms",
            "nvmf_poll_group_poll nvmf_tgt_poll_group_000 reactor_0 1.00k 750 25% 4.00 ms 50% 8.00 ms",
        ],
        "{text}"
    );
    assert!(text.contains("2 pollers; most work: nvmf_poll_group_poll on nvmf_tgt_poll_group_001"));
    model.key(Key::Enter);
    let text = screen(&mut model, PLAIN, (80, 24));
    assert!(
        text.contains("SPDK THREAD   nvmf_tgt_poll_group_001"),
        "{text}"
    );
    model.no_pollers("no symbols".to_owned());
    let text = screen(&mut model, PLAIN, (80, 24));
    assert!(text.contains("nothing here: no symbols"), "{text}");
}

#[test]
fn threads_and_stages_at_80_by_24() {
    let mut model = model(3);
    model.key(Key::Char('2'));
    let text = screen(&mut model, PLAIN, (80, 24));
    assert!(
        text.contains("reactor_1") && text.contains("uuuu") && text.contains("WW"),
        "{text}"
    );
    assert!(
        text.contains("70%") && text.contains("15%") && text.contains("8.00 ms"),
        "{text}"
    );
    model.key(Key::Char('3'));
    let text = screen(&mut model, PLAIN, (80, 24));
    assert!(
        text.contains("how long whole request took") && text.contains("NEW -> NEED_BUFFER"),
        "{text}"
    );
    // Five seconds: most requests at the bottom, and the one that took fifty times as long at the
    // top.
    assert!(text.contains("#####") && text.contains("....."), "{text}");
}

#[test]
fn cpus_at_80_by_24_and_their_details() {
    let mut model = model(3);
    model.key(Key::Char('4'));
    let text = screen(&mut model, PLAIN, (80, 24));
    let said = "2 CPUs of pollers; most was taken of CPU 2: 100 ms (10%), 60.0 ms of it yes [4711]";
    assert!(text.contains(&said[..79]), "{text}");
    for part in [
        "CPU OWNER",
        "TAKEN",
        "WORST INTRUDER",
        "ooooooo",
        "reactor_2",
        "90%",
        "10%",
        "60.0 ms",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let wide = screen(&mut model, PLAIN, (200, 24));
    assert!(
        wide.contains("WORST VICTIM") && wide.contains("work vmstat_update 900 ms"),
        "{wide}"
    );
    model.key(Key::Enter);
    let text = screen(&mut model, PLAIN, (80, 40));
    let expected = [
        "CPU 1",
        "reactor_1 [4710] has it for 90%",
        "longest other",
        "soft irqs           30.0 ms   3.0%",
        "  yes [4711]                               12   60.0 ms   8.00 ms",
        "    process yes [4711], nice 0",
        "  soft interrupt NET_RX                   300   30.0 ms    400 us",
        "    raised by interrupt irq 42 virtio3-rx",
        "victims: could run, but had to wait",
        "    still waits, for 900 ms",
    ];
    for part in expected {
        assert!(text.contains(part), "{part}\n{text}");
    }
    model.key(Key::Escape);
    model.no_cpus("not permitted".to_owned());
    assert!(screen(&mut model, PLAIN, (80, 24)).contains("nothing here: not permitted"));
}

#[test]
fn details_have_history_and_slowest_requests() {
    let mut model = model(3);
    model.key(Key::Enter);
    let text = screen(&mut model, PLAIN, (80, 24));
    assert!(
        text.contains("TCP nqn.2016-06.io.spdk:cnode2 nqn.2014-08.com.example:host-2 qid 2 0x2"),
        "{text}"
    );
    assert!(
        text.contains("the slowest requests")
            && text.contains("  TCP_REQ_NEW -> NEED_BUFFER          40.0 us tttttttttt")
            && text.contains("  TCP_REQ_EXECUTING -> EXECUTED       2.00 us ")
            && text
                .lines()
                .any(|line| line.ends_with("us                                 dd")),
        "{text}"
    );
    model.key(Key::Escape);
    model.key(Key::Char('2'));
    model.key(Key::Enter);
    let text = screen(&mut model, PLAIN, (80, 24));
    assert!(
        text.contains("yes [4711]") && text.contains("epoll_wait") && text.contains("longest wait"),
        "{text}"
    );
}
