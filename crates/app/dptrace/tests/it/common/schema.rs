//! The schema of dptrace's JSON, `docs/json-schema.json`, as a judge of what commands print.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let text = include_str!("../../../../../../docs/json-schema.json");
    let schema: Value = serde_json::from_str(text).expect("JSON");
    jsonschema::validator_for(&schema).expect("a schema")
});

/// Returns the lines of a text as objects, which the schema permits.
#[track_caller]
pub(crate) fn validated(text: &str) -> Vec<Value> {
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    for line in &lines {
        let errors = || {
            SCHEMA
                .iter_errors(line)
                .map(|it| format!("{}: {it}", it.instance_path()))
                .collect::<Vec<_>>()
        };
        assert!(SCHEMA.is_valid(line), "{:#?}\n{line:#}", errors());
        assert_units(line, "");
    }
    lines
}

/// Asserts that times are whole nanoseconds, and have no other unit.
#[track_caller]
fn assert_units(value: &Value, name: &str) {
    match value {
        Value::Object(members) => members
            .iter()
            .for_each(|(name, value)| assert_units(value, name)),
        Value::Array(items) => items.iter().for_each(|item| assert_units(item, name)),
        Value::Number(number) => {
            assert!(
                !name.ends_with("_ns") || number.is_u64() || number.is_i64(),
                "{name}: {number}"
            );
            let other = ["_us", "_ms", "_s", "_seconds"]
                .iter()
                .any(|unit| name.ends_with(unit));
            assert!(!other, "{name}: times are in nanoseconds");
        }
        _ => {}
    }
}

/// Returns the types of lines, each once.
pub(crate) fn types(lines: &[Value]) -> Vec<&str> {
    let mut types: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["type"].as_str())
        .collect();
    types.sort_unstable();
    types.dedup();
    types
}
