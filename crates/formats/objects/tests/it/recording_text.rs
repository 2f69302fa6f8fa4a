//! Tests that recordings survive a round trip, both ways.

use objects::{Event, Recording, TSC, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use text::printable;

/// Generates strings of ordinary characters, of the format's own, and of any.
fn string() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9.:-]{0,40}",
        vec(
            prop_oneof![
                Just("'"),
                Just(", "),
                Just("a=0x1"),
                Just("b"),
                Just("="),
                Just("\\x27"),
                Just("\n")
            ],
            0..12
        )
        .prop_map(|parts| parts.concat()),
        any::<String>(),
    ]
}

#[derive(Clone, Debug)]
enum Owned {
    Int(u64),
    Str(String),
}

fn values() -> impl Strategy<Value = Vec<Owned>> {
    vec(
        prop_oneof![
            any::<u64>().prop_map(Owned::Int),
            string().prop_map(Owned::Str)
        ],
        0..6,
    )
}

/// Returns whether the format keeps the string unchanged.
fn is_kept(string: &str) -> bool {
    let after_quotes = || string.match_indices("', ").map(|(at, _)| &string[at + 3..]);
    let name = |after: &str| {
        after
            .split_once('=')
            .is_some_and(|(name, _)| !name.is_empty() && is_name(name))
    };
    !string.contains(char::is_control) && !after_quotes().any(name)
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn written_lines_are_read_back(probe in "[a-zA-Z_][a-zA-Z0-9_]{0,20}", tsc in 1u64.., values in values()) {
        const NAMES: [&str; 6] = ["a", "b", "qpair", "subnqn", "x1", "_"];
        let rest = NAMES.iter().zip(&values).map(|(name, value)| match value {
            Owned::Int(n) => (*name, Value::Int(*n)),
            Owned::Str(s) => (*name, Value::Str(s)),
        });
        let event = Event { probe: &probe, tsc, args: [(TSC, Value::Int(tsc))].into_iter().chain(rest).collect() };
        let line = event.to_string();
        prop_assert!(!line.contains(char::is_control), "{line:?}");
        let read = Recording::parse(&line, |_| true);
        prop_assert_eq!((read.lines, &read.broken, read.events.len()), (1, &vec![], 1));
        prop_assert_eq!(read.events[0].args.len(), event.args.len());
        for ((name, value), (read_name, read)) in event.args.iter().zip(&read.events[0].args) {
            prop_assert_eq!(name, read_name);
            match (value, read) {
                (Value::Str(string), Value::Str(read)) if is_kept(string) => prop_assert_eq!(string, read),
                // The shown text is the same, except for quotes that would have ended the string.
                (Value::Str(string), Value::Str(read)) => {
                    prop_assert_eq!(printable::text(string.as_bytes()).replace('\'', "\\x27"), read.replace('\'', "\\x27"));
                }
                _ => prop_assert_eq!(value, read),
            }
        }
        prop_assert_eq!(read.events[0].to_string(), line, "written again, it is the same line");
    }

    #[test]
    fn lines_that_were_read_are_written_back(strings in vec(string(), 1..4), tsc in any::<u64>()) {
        let args: Vec<_> = strings.iter().enumerate().map(|(i, s)| format!(", s{i}='{s}'")).collect();
        let text = format!("add: tsc={tsc:#x}{}\n", args.concat());
        let read = Recording::parse(&text, |_| true);
        for event in &read.events {
            let line = event.to_string();
            let again = Recording::parse(&line, |_| true);
            prop_assert_eq!(again.broken.len(), 0);
            prop_assert_eq!(again.events.len(), 1);
            if event.args.iter().all(|(_, value)| !matches!(value, Value::Str(s) if !is_kept(s))) {
                prop_assert_eq!(&again.events[0], event);
            }
        }
    }
}
