//! Any text as a recording: its events, and the lives of the objects that they tell of.
#![no_main]

use std::fmt::Write;

use dptrace_fuzz::within;
use libfuzzer_sys::fuzz_target;
use objects::{Event, Key, Lifetimes, Recording, TSC, Value, built_in};
use spdk_trace::Ticks;

fn line(event: &Event<'_>) -> String {
    let mut line = format!("{}: ", event.probe);
    for (i, (name, value)) in event.args.iter().enumerate() {
        let comma = if i == 0 { "" } else { ", " };
        let _ = match value {
            Value::Int(n) => write!(line, "{comma}{name}={n:#x}"),
            Value::Str(s) => write!(line, "{comma}{name}='{s}'"),
        };
    }
    line
}

fn check_events(recording: &Recording<'_>) {
    assert!(recording.events.len() + recording.broken.len() <= recording.lines);
    assert!(recording.events.is_sorted_by_key(|event| event.tsc));
    for event in &recording.events {
        assert_eq!(event.arg(TSC), Some(Value::Int(event.tsc)));
        let line = line(event);
        let again = Recording::parse(&line, |_| true);
        assert_eq!(again.events, std::slice::from_ref(event), "written and read again: {line:?}");
    }
}

fn check_lifetimes(lifetimes: &Lifetimes, recording: &Recording<'_>) {
    assert!(lifetimes.all().len() as u64 + lifetimes.orphans <= recording.events.len() as u64);
    for object in lifetimes.all() {
        assert!(object.begin <= object.end, "{object:?}");
        assert!(object.text.starts_with("qpair(") && object.text.ends_with(')'), "{object:?}");
        assert!(!object.text.contains(char::is_control), "{object:?}");
    }
    for event in &recording.events {
        let Some(key) = event.arg("qpair").map(Key::from) else { continue };
        for tsc in [0, event.tsc.saturating_sub(1), event.tsc, event.tsc.saturating_add(1), u64::MAX] {
            let Some(object) = lifetimes.at(0, key, Ticks(tsc)) else { continue };
            assert!((object.begin.0..=object.end.0).contains(&tsc), "{object:?} at {tsc}");
        }
        let begins = event.probe == "nvmf_poll_group_add_qpair";
        assert!(!begins || lifetimes.at(0, key, Ticks(event.tsc)).is_some(), "{event:?} begins nothing");
    }
}

fuzz_target!(|text: &str| {
    let specs = built_in().unwrap_or_default();
    let wanted = |probe: &str| specs.iter().flat_map(|s| &s.probes).any(|p| p.name == probe);
    check_events(&Recording::parse(text, |_| true));
    let recording = within(text.len(), 32, || Recording::parse(text, wanted));
    let lifetimes = within(text.len(), 32, || Lifetimes::new(&specs, &recording));
    check_lifetimes(&lifetimes, &recording);
});
