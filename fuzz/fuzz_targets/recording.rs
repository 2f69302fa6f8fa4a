//! Any text as a recording: its events, and the lives of the objects that they tell of.
#![no_main]

use dptrace_fuzz::within;
use libfuzzer_sys::fuzz_target;
use objects::{Key, Lifetimes, ObjectSpec, Recording, TSC, Value, built_in};
use spdk_trace::Ticks;

fn check_events(recording: &Recording<'_>) {
    assert!(recording.events.len() + recording.broken.len() <= recording.lines);
    assert!(recording.events.is_sorted_by_key(|event| event.tsc));
    for event in &recording.events {
        // A hit without a time has that of a line before it.
        assert!(
            [Some(Value::Int(event.tsc)), Some(Value::Int(0))].contains(&event.arg(TSC)),
            "{event:?}"
        );
        // A spec has no such names, so nobody writes them.
        if event.probe.contains(char::is_control) {
            continue;
        }
        let line = event.to_string();
        assert!(!line.contains(char::is_control), "{line:?}");
        let again = Recording::parse(&line, |_| true);
        assert_eq!(again.events.len(), 1, "written and read again: {line:?}");
        let again = &again.events[0];
        assert_eq!(again.to_string(), line);
        let strings =
            |value: &Value<'_>| matches!(value, Value::Str(s) if s.contains(char::is_control));
        if !event.args.iter().any(|(_, value)| strings(value)) {
            assert_eq!(
                (again.probe, &again.args),
                (event.probe, &event.args),
                "{line:?}"
            );
        }
    }
}

fn check_lifetimes(lifetimes: &Lifetimes, recording: &Recording<'_>, specs: &[ObjectSpec]) {
    // A hit may tell of one object of each spec.
    assert!(
        lifetimes.all().len() as u64 + lifetimes.orphans
            <= (recording.events.len() * specs.len()) as u64
    );
    for object in lifetimes.all() {
        assert!(object.begin <= object.end, "{object:?}");
        let told = object.text.strip_prefix(&specs[object.spec].name);
        assert!(
            told.is_some_and(|text| text.starts_with('(') && text.ends_with(')')),
            "{object:?}"
        );
        assert!(!object.text.contains(char::is_control), "{object:?}");
    }
    for event in &recording.events {
        for (number, spec) in specs.iter().enumerate() {
            let Some(key) = event.arg(&spec.key).map(Key::from) else {
                continue;
            };
            for tsc in [
                0,
                event.tsc.saturating_sub(1),
                event.tsc,
                event.tsc.saturating_add(1),
                u64::MAX,
            ] {
                let Some(object) = lifetimes.at(number, key, Ticks(tsc)) else {
                    continue;
                };
                assert!(
                    (object.begin.0..=object.end.0).contains(&tsc),
                    "{object:?} at {tsc}"
                );
            }
            let begins = spec
                .probes
                .iter()
                .any(|p| p.name == event.probe && p.role.begins());
            assert!(
                !begins || lifetimes.at(number, key, Ticks(event.tsc)).is_some(),
                "{event:?} begins nothing"
            );
        }
    }
}

fuzz_target!(|text: &str| {
    let specs = built_in().unwrap_or_default();
    let wanted = |probe: &str| {
        specs
            .iter()
            .flat_map(|s| &s.probes)
            .any(|p| p.name == probe)
    };
    check_events(&Recording::parse(text, |_| true));
    let recording = within(text.len(), 32, || Recording::parse(text, wanted));
    let lifetimes = within(text.len(), 64, || Lifetimes::new(&specs, &recording));
    check_lifetimes(&lifetimes, &recording, &specs);
});
