//! Texts as Open vSwitch 3.1 and 4.0 write them, shortened.

use super::*;

const PERF: &str = include_str!("testdata/perf.txt");
const STATS: &str = include_str!("testdata/stats.txt");

#[test]
fn figures_and_milliseconds_are_found_by_name() {
    let text = parse(PERF);
    let [section] = text.sections.as_slice() else {
        panic!("{text:?}")
    };
    assert_eq!((section.core, section.numa), (1, Some(0)));
    let number = |name| section.number(name);
    assert_eq!(number("iterations"), Some(18_819_212));
    assert_eq!(number("used tsc cycles"), Some(220_865_126_502));
    assert_eq!(
        (
            number("rx packets"),
            number("upcalls"),
            number("lost upcalls")
        ),
        (Some(602_214_848), Some(1), Some(6163))
    );
    let rows = section.milliseconds.as_ref().unwrap();
    assert_eq!(rows.len(), 3);
    let newest = Millisecond {
        ms: 1_001_474,
        iterations: 410,
        cycles: 5842,
        packets: 13120,
        ..Millisecond::default()
    };
    assert_eq!(rows[0], newest);
}

#[test]
fn statistics_are_found_by_name() {
    let text = parse(STATS);
    let [section] = text.sections.as_slice() else {
        panic!("{text:?}")
    };
    assert_eq!(
        (
            section.number("processing cycles"),
            section.number("idle cycles")
        ),
        (Some(220_962_107_887), Some(0))
    );
    assert_eq!(section.milliseconds, None);
}

#[test]
fn queues_have_ports() {
    let text = "Displaying last 60 seconds pmd usage %\npmd thread numa_id 0 core_id 1:\n  isolated : true\n  port: a b             queue-id:  3 (enabled)   pmd usage: 51 %\n  port: null1           queue-id:  0 (enabled)   pmd usage: NOT AVAIL\n  overhead:  4 %\n";
    let text = parse(text);
    let section = &text.sections[0];
    assert_eq!(section.word("isolated"), Some("true"));
    assert_eq!(
        section.queues[0],
        Queue {
            port: "a b".into(),
            queue: 3,
            percent: Some(51)
        }
    );
    assert_eq!(
        (section.queues[1].queue, section.queues[1].percent),
        (0, None)
    );
    assert_eq!(section.number("overhead"), Some(4));
}

/// Columns in another order, new columns, and a line that lacks a value.
#[test]
fn columns_are_found_by_their_headings() {
    let text = "pmd thread numa_id 0 core_id 2:\n   iter      cycles    packets\n   7   1   2\n\n   new one   ms       upcalls   Kpps\n   5  100  7   3\n   5  101  7\n   x  102  7   3\n";
    let rows = parse(text).sections[0].milliseconds.clone().unwrap();
    assert_eq!(
        rows,
        [Millisecond {
            ms: 100,
            upcalls: 7,
            packets: 3,
            ..Millisecond::default()
        }]
    );
}

#[test]
fn the_main_thread_is_no_section() {
    let text = parse(
        "Iterations: 3\nmain thread:\n  Rx packets:  4\npmd thread numa_id 0 core_id nonsense:\n  Rx packets: 5\n",
    );
    assert_eq!(text, Text::default());
}

/// Real outputs of both versions, if they lie beside the repository.
#[test]
fn real_outputs_are_read() {
    let Some(data) = testkit::shared_data("ovs") else {
        return;
    };
    let quiet = std::fs::read_to_string(data.join("ovs40/pmd-perf.quiet.txt")).unwrap();
    let rows = parse(&quiet).sections[0].milliseconds.clone().unwrap();
    assert_eq!(rows.len(), 1000);
    // A rival had its CPU, in slices.
    let rival = std::fs::read_to_string(data.join("ovs31/pmd-perf.rival.txt")).unwrap();
    let rows = parse(&rival).sections[0].milliseconds.clone().unwrap();
    let mut history = crate::History::default();
    history.add(&rows, rows.iter().map(|row| row.ms).max().unwrap());
    let lengths: Vec<u64> = history
        .slow(0, u64::MAX, 5)
        .iter()
        .map(crate::Stretch::length)
        .collect();
    assert_eq!(lengths, [7, 9, 6, 6]);
    let off = std::fs::read_to_string(data.join("ovs31/pmd-perf-show.metrics-off.txt")).unwrap();
    assert_eq!(parse(&off).sections[0].milliseconds, None);
}

proptest::proptest! {
    #[test]
    fn no_input_panics_the_parser(text in "(pmd thread numa_id 0 core_id [0-9]{1,12}:\n|   ms       Kpps   upcalls\n|[ -~\n]{0,30}\n|[0-9 ]{0,30}\n){0,20}") {
        let parsed = parse(&text);
        let mut history = crate::History::default();
        for section in &parsed.sections {
            history.add(section.milliseconds.as_deref().unwrap_or_default(), 1000);
        }
        history.slow(0, u64::MAX, 1);
    }
}
