//! Tests of the drawing, as text: a model made of data, on terminals of several sizes.

mod screens;

use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;
use screen::Colours;
use stats::Histogram;

use super::*;
use crate::keys::Key;
use crate::sample::{
    Connection, Cpu, CpuTask, CpuUse, Identity, Part, Phase, Poller, Request, Sample, Share, Stage,
    Thread, Traffic,
};

const PLAIN: TerminalCaps = TerminalCaps {
    colours: Colours::None,
    unicode: false,
    eighths: false,
};

fn connection(index: u32, iops: f64, micros: u64) -> Connection {
    let mut times = Histogram::default();
    (0..100).for_each(|n| times.add((micros + n / 10) * 1000));
    let mut phases: Share<Phase> = Share::default();
    for (phase, nanos) in [
        (Phase::Target, 30),
        (Phase::Buffer, 10),
        (Phase::Device, 50),
        (Phase::Reply, 10),
    ] {
        phases.add(phase, nanos);
    }
    let stages = vec![(1, 40_000), (2, u64::from(index) * 1000)];
    Connection {
        identity: std::sync::Arc::new(Identity {
            subnqn: format!("nqn.2016-06.io.spdk:cnode{}", index % 3),
            host: format!("nqn.2014-08.com.example:host-{index}"),
            queue: Some(index % 4),
            transport: "TCP".to_owned(),
            address: format!("0x{index:x}"),
        }),
        depth: 3.5,
        iops,
        blocks: iops * 8.0,
        times,
        phases,
        thread: Some("reactor_1".into()),
        tid: None,
        taken: Some(0.034),
        slowest: vec![Request {
            second: 1,
            name: format!("r{index}"),
            nanos: micros * 2000,
            stages,
        }],
    }
}

fn poller(reactor: u64) -> Poller {
    Poller {
        address: reactor,
        name: "nvmf_poll_group_poll".to_owned(),
        thread: format!("nvmf_tgt_poll_group_00{reactor}"),
        reactor: Some(format!("reactor_{reactor}")),
        runs: 1000.0 * (reactor + 1) as f64,
        busy: 0.25,
        period: (reactor == 0).then_some(4_000_000),
        taken: Some(0.5),
        longest_wait: Some(8_000_000),
    }
}

fn thread(tid: u32) -> Thread {
    let mut parts: Share<Part> = Share::default();
    for (part, nanos) in [
        (Part::Own, 700),
        (Part::Calls, 100),
        (Part::Waited, 150),
        (Part::Soft, 50),
    ] {
        parts.add(part, nanos * 1_000_000);
    }
    Thread {
        name: format!("reactor_{}", tid % 10),
        tid,
        window: 1_000_000_000,
        parts,
        longest_wait: 8_000_000,
        instead: vec![
            ("yes [4711]".to_owned(), 120_000_000),
            ("kworker/0:1".to_owned(), 30_000_000),
        ],
        blame: Some("mostly to yes [4711]".to_owned()),
        calls: vec![("epoll_wait".to_owned(), 90_000_000)],
        call_count: 400,
    }
}

fn cpu(number: u32) -> Cpu {
    let mut uses: Share<CpuUse> = Share::default();
    for (part, nanos) in [
        (CpuUse::Owner, 900),
        (CpuUse::Threads, 60),
        (CpuUse::Soft, 30),
        (CpuUse::Timer, 10),
    ] {
        uses.add(part, nanos * 1_000_000);
    }
    let thread = CpuTask {
        kind: "thread",
        name: "yes [4711]".to_owned(),
        cause: Some("process yes [4711], nice 0".to_owned()),
        count: 12,
        nanos: 60_000_000,
        longest: 8_000_000,
        still: None,
    };
    let packets = CpuTask {
        kind: "soft interrupt",
        name: "NET_RX".to_owned(),
        cause: Some("raised by interrupt irq 42 virtio3-rx".to_owned()),
        count: 300,
        nanos: 30_000_000,
        longest: 400_000,
        still: None,
    };
    let victim = CpuTask {
        kind: "work",
        name: "vmstat_update".to_owned(),
        count: 1,
        nanos: 900_000_000,
        longest: 900_000_000,
        still: Some(900_000_000),
        cause: None,
    };
    Cpu {
        number,
        window: 1_000_000_000,
        owner: Some(format!("reactor_{number} [4710]")),
        uses,
        intruders: vec![thread, packets],
        victims: vec![victim],
        lost: 0,
    }
}

fn sample(number: u64, connections: u32) -> Sample {
    let stage = |name: &str, phase, micros: u64| {
        let mut times = Histogram::default();
        (0..50).for_each(|n| times.add((micros + n) * 1000));
        times.add(micros * 50_000);
        Stage {
            name: name.to_owned(),
            phase,
            order: if phase.is_some() { micros as f64 } else { 0.0 },
            times,
        }
    };
    let stages = vec![
        stage("whole request", None, 90),
        stage("TCP_REQ_NEW -> TCP_REQ_NEED_BUFFER", Some(Phase::Target), 5),
        stage(
            "TCP_REQ_EXECUTING -> TCP_REQ_EXECUTED",
            Some(Phase::Device),
            40,
        ),
    ];
    let all = (0..connections)
        .map(|index| connection(index, f64::from(index) * 100.0, 50 + u64::from(index)))
        .collect();
    let traffic = Traffic {
        written: 1000,
        read: 250,
        connections: all,
        stages,
        ..Traffic::default()
    };
    let threads = Some(vec![thread(4711), thread(4712)]);
    Sample {
        number,
        time: 0,
        traffic: Some(traffic),
        threads,
        pollers: Some(vec![poller(0), poller(1)]),
        cpus: Some(vec![cpu(1), cpu(2)]),
    }
}

fn model(connections: u32) -> Model {
    let mut model = Model::new("nvmf_tgt [1234]", [None, None]);
    (1..=5).for_each(|number| model.push(sample(number, connections)));
    model
}

/// Returns the screen as text.
fn screen(model: &mut Model, look: TerminalCaps, (width, height): (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("in memory");
    terminal
        .draw(|frame| draw(model, look, frame.buffer_mut()))
        .expect("drawn");
    let buffer = terminal.backend().buffer();
    let line = |y: u16| {
        (0..width)
            .map(|x| buffer[(x, y)].symbol())
            .collect::<String>()
            .trim_end()
            .to_owned()
    };
    (0..height).map(line).collect::<Vec<_>>().join("\n")
}

fn expect(found: &str, expected: &[&str]) {
    assert_eq!(found, expected.join("\n"), "\n{found}\n");
}

#[test]
fn every_size_and_state_can_be_drawn() {
    let looks = [
        PLAIN,
        TerminalCaps {
            colours: Colours::Sixteen,
            unicode: true,
            eighths: false,
        },
        TerminalCaps {
            colours: Colours::Many,
            unicode: true,
            eighths: true,
        },
        TerminalCaps {
            colours: Colours::Sixteen,
            unicode: false,
            eighths: false,
        },
    ];
    let keys = ['1', '2', '3', '4']
        .into_iter()
        .flat_map(|tab| [Key::Char(tab), Key::Enter, Key::Escape]);
    let keys = keys.chain([
        Key::Char('?'),
        Key::End,
        Key::Escape,
        Key::Char('/'),
        Key::Char('x'),
    ]);
    let mut full = model(100);
    let mut empty = Model::new(
        "a [1]",
        [
            Some("it has none".to_owned()),
            Some("not permitted".to_owned()),
        ],
    );
    for key in keys {
        for model in [&mut full, &mut empty] {
            model.key(key);
            for look in looks {
                for size in [
                    (1, 1),
                    (20, 6),
                    (21, 7),
                    (40, 10),
                    (80, 24),
                    (200, 50),
                    (500, 4),
                    (5, 100),
                ] {
                    screen(model, look, size);
                }
            }
        }
    }
}

#[test]
fn the_selected_line_is_on_the_screen() {
    let mut model = model(100);
    for key in [Key::End, Key::PageUp, Key::PageUp, Key::Home, Key::PageDown] {
        model.key(key);
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("in memory");
        terminal
            .draw(|frame| draw(&mut model, PLAIN, frame.buffer_mut()))
            .expect("drawn");
        let buffer = terminal.backend().buffer();
        let is_chosen = |y: &u16| buffer[(0, *y)].modifier.contains(Modifier::REVERSED);
        assert_eq!((7..23).filter(is_chosen).count(), 1, "{key:?}");
    }
}

#[test]
fn clicks_hit_the_drawn_item() {
    let mut model = model(100);
    model.key(Key::Char('m'));
    let text = screen(&mut model, PLAIN, (80, 24));
    let tabs = text.lines().nth(1).expect("the tabs");
    for (name, tab) in [
        ("Threads", Tab::Threads),
        ("CPUs", Tab::Cpus),
        ("Connections", Tab::Connections),
    ] {
        model.key(Key::Click(tabs.find(name).expect("it is there") as u16, 1));
        assert_eq!(model.tab(), tab);
    }
    model.key(Key::End);
    let text = screen(&mut model, PLAIN, (80, 24));
    let (y, line) = text.lines().enumerate().nth(10).expect("a line");
    let host = line.split_whitespace().nth(2).expect("a host").to_owned();
    model.key(Key::Click(3, y as u16));
    model.key(Key::Click(3, y as u16));
    let text = screen(&mut model, PLAIN, (80, 24));
    assert!(
        text.contains("the slowest requests") && text.contains(&format!("{host} ")),
        "{host}\n{text}"
    );
}

#[test]
fn colours_are_those_that_there_are() {
    let mut model = model(3);
    for (colours, has_any) in [
        (Colours::None, false),
        (Colours::Sixteen, true),
        (Colours::Many, true),
    ] {
        for tab in ['1', '2', '3', '4'] {
            model.key(Key::Char(tab));
            let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("in memory");
            let look = TerminalCaps {
                colours,
                unicode: true,
                eighths: true,
            };
            terminal
                .draw(|frame| draw(&mut model, look, frame.buffer_mut()))
                .expect("drawn");
            let colour = |cell: &ratatui_core::buffer::Cell| {
                cell.fg != ratatui_core::style::Color::Reset
                    || cell.bg != ratatui_core::style::Color::Reset
            };
            let found = terminal.backend().buffer().content().iter().any(colour);
            assert_eq!(found, has_any, "{colours:?} {tab}");
        }
    }
}
