use std::sync::Arc;

use bt_abi::map::{hist_buckets, lhist_buckets};
use bt_abi::{Aggregation, Field, Layout, LayoutKind, SeriesOp};

use super::*;
use crate::lookups::tests::EmptyLookups;
use crate::output::{Form, Printer};

const U64: ValueType = ValueType::Int {
    size: 8,
    signed: false,
};
const I64: ValueType = ValueType::Int {
    size: 8,
    signed: true,
};
const STR: ValueType = ValueType::Str { size: 8 };

fn map(key: ValueType, value: impl Into<MapValue>) -> ScriptMap {
    let value = value.into();
    let per_cpu = !matches!(value, MapValue::Scalar(_));
    ScriptMap {
        name: "@".into(),
        bpf_name: "m".into(),
        key_size: key.size().next_multiple_of(8).max(8),
        key,
        value,
        per_cpu,
        key_table: None,
    }
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(8, 0);
    bytes
}

fn show(map: &ScriptMap, elements: &Elements, args: PrintArgs, form: Form) -> String {
    Printer::new(form)
        .map(&Table::printed(map, elements, args, &Decoder::new(&EmptyLookups, "..")).unwrap())
}

fn plain(map: &ScriptMap, elements: &Elements) -> String {
    show(map, elements, PrintArgs::default(), Form::Text)
}

fn json(map: &ScriptMap, elements: &Elements) -> String {
    show(map, elements, PrintArgs::default(), Form::Json)
}

/// Returns the key of a map without keys.
fn no_key() -> Vec<u8> {
    words(&[0])
}

#[test]
fn scalars() {
    let scalar = map(ValueType::None, MapValue::Scalar(I64));
    let five = [(no_key(), vec![words(&[5])])];
    assert_eq!(plain(&scalar, &five), "@: 5\n");
    assert_eq!(
        json(&scalar, &five),
        "{\"type\": \"map\", \"data\": {\"@\": 5}}\n"
    );
    assert_eq!(plain(&scalar, &[]), "@: 0\n");
    let string = map(ValueType::None, MapValue::Scalar(STR));
    let elements = [(no_key(), vec![text("a \n \"")])];
    assert_eq!(
        json(&string, &elements),
        "{\"type\": \"map\", \"data\": {\"@\": \"a \\n \\\"\"}}\n"
    );
    let pointer = map(ValueType::None, MapValue::Scalar(ValueType::Pointer));
    let elements = [(no_key(), vec![words(&[0x32])])];
    assert_eq!(
        (plain(&pointer, &elements), json(&pointer, &elements)),
        (
            "@: 0x32\n".into(),
            "{\"type\": \"map\", \"data\": {\"@\": 50}}\n".into()
        )
    );
}

#[test]
fn values_come_first_and_then_keys() {
    let counts = map(STR, Aggregation::Count);
    let elements = [
        (text("c"), vec![words(&[1]), words(&[1])]),
        (text("b"), vec![words(&[5]), words(&[0])]),
        (text("a"), vec![words(&[2]), words(&[0])]),
    ];
    assert_eq!(plain(&counts, &elements), "@[a]: 2\n@[c]: 2\n@[b]: 5\n");
    assert_eq!(
        show(&counts, &elements, PrintArgs { top: 1, div: 2 }, Form::Text),
        "@[b]: 2\n"
    );
    assert_eq!(
        show(&counts, &elements, PrintArgs { top: 9, div: 0 }, Form::Text),
        plain(&counts, &elements)
    );
    assert_eq!(plain(&counts, &[]), "");
    let signed = map(I64, MapValue::Scalar(I64));
    let elements = [
        (words(&[1]), vec![words(&[3])]),
        (words(&[u64::MAX]), vec![words(&[u64::MAX - 1])]),
    ];
    assert_eq!(plain(&signed, &elements), "@[-1]: -2\n@[1]: 3\n");
    let strings = map(U64, MapValue::Scalar(STR));
    let elements = [
        (words(&[10]), vec![text("a")]),
        (words(&[9]), vec![text("b")]),
    ];
    assert_eq!(plain(&strings, &elements), "@[9]: b\n@[10]: a\n");
}

#[test]
fn several_keys_are_a_tuple() {
    let field = |offset, ty| Field {
        name: None,
        offset,
        ty,
        bits: None,
    };
    let fields = vec![field(0, STR), field(8, U64)];
    let key = ValueType::Tuple(Arc::new(Layout {
        kind: LayoutKind::Tuple,
        size: 16,
        fields,
    }));
    let tuples = map(key, MapValue::Scalar(U64));
    let elements = [([text("bpf"), words(&[2])].concat(), vec![words(&[5])])];
    assert_eq!(plain(&tuples, &elements), "@[bpf, 2]: 5\n");
    assert_eq!(
        json(&tuples, &elements),
        "{\"type\": \"map\", \"data\": {\"@\": {\"bpf,2\": 5}}}\n"
    );
}

#[test]
fn aggregations_of_all_cpus() {
    let one = |value: Aggregation, cpus: &[&[u64]]| {
        let elements = [(no_key(), cpus.iter().map(|cpu| words(cpu)).collect())];
        plain(&map(ValueType::None, value), &elements)
    };
    let minus = (-7_i64).cast_unsigned();
    assert_eq!(
        one(Aggregation::Sum { signed: true }, &[&[minus], &[5]]),
        "@: -2\n"
    );
    assert_eq!(
        one(Aggregation::Sum { signed: false }, &[&[1 << 63], &[5]]),
        "@: 9223372036854775813\n"
    );
    assert_eq!(
        one(Aggregation::Min { signed: true }, &[&[minus, 1], &[0, 0]]),
        "@: -7\n"
    );
    assert_eq!(
        one(Aggregation::Max { signed: true }, &[&[minus, 1], &[0, 0]]),
        "@: -7\n"
    );
    assert_eq!(
        one(Aggregation::Max { signed: false }, &[&[3, 1], &[9, 1]]),
        "@: 9\n"
    );
    assert_eq!(
        one(Aggregation::Avg { signed: false }, &[&[10, 2], &[2, 1]]),
        "@: 4\n"
    );
    let stats = Aggregation::Stats { signed: true };
    assert_eq!(
        one(stats, &[&[6, 3], &[0, 0]]),
        "@: { .count = 3, .average = 2, .total = 6 }\n"
    );
    let empty = plain(
        &map(ValueType::None, Aggregation::Stats { signed: true }),
        &[],
    );
    assert_eq!(empty, "@: { .count = 0, .average = 0, .total = 0 }\n");
    let keyed = map(STR, Aggregation::Stats { signed: false });
    let elements = [
        (text("curl"), vec![words(&[2, 1])]),
        (text("zsh"), vec![words(&[10, 1])]),
    ];
    let expected = "{\"type\": \"stats\", \"data\": {\"@\": {\"curl\": {\"count\": 1, \"average\": 2, \"total\": 2}, \
                    \"zsh\": {\"count\": 1, \"average\": 10, \"total\": 10}}}}\n";
    assert_eq!(json(&keyed, &elements), expected);
}

fn bars(lines: &[(&str, u64, usize)]) -> String {
    let line = |&(label, count, bar): &(&str, u64, usize)| {
        format!("{label:<16}{count:>8} |{:<52}|\n", "@".repeat(bar))
    };
    lines.iter().map(line).collect()
}

#[test]
fn histograms() {
    let mut counts = vec![0; hist_buckets(0) as usize];
    (counts[0], counts[3], counts[4], counts[6]) = (1, 2, 1, 1);
    let scalar = map(ValueType::None, Aggregation::Hist { bits: 0 });
    let elements = [(no_key(), vec![words(&counts)])];
    let lines = bars(&[
        ("(..., 0)", 1, 26),
        ("[0]", 0, 0),
        ("[1]", 0, 0),
        ("[2, 4)", 2, 52),
        ("[4, 8)", 1, 26),
        ("[8, 16)", 0, 0),
        ("[16, 32)", 1, 26),
    ]);
    assert_eq!(plain(&scalar, &elements), format!("@:\n{lines}\n"));
    assert!(json(&scalar, &elements).starts_with(
        "{\"type\": \"hist\", \"data\": {\"@\": [{\"max\": -1, \"count\": 1},{\"min\": 0, \"max\": 0, \"count\": 0},"
    ));
    let zeros = [(no_key(), vec![vec![0; 8 * hist_buckets(0) as usize]])];
    assert_eq!(
        json(&scalar, &zeros),
        "{\"type\": \"hist\", \"data\": {\"@\": []}}\n"
    );
    let keyed = map(
        STR,
        Aggregation::Lhist {
            min: 0,
            max: 100,
            step: 10,
        },
    );
    let mut counts = vec![0; lhist_buckets(0, 100, 10) as usize];
    (counts[1], counts[11]) = (1, 1);
    let elements = [(text("a"), vec![words(&counts)])];
    let shown = json(&keyed, &elements);
    assert!(shown.starts_with(
        "{\"type\": \"hist\", \"data\": {\"@\": {\"a\": [{\"min\": 0, \"max\": 9, \"count\": 1},"
    ));
    assert!(
        shown.ends_with("{\"min\": 100, \"count\": 1}]}}}\n"),
        "{shown}"
    );
    assert!(plain(&keyed, &elements).starts_with("@[a]:\n[0, 10) "));
}

#[test]
fn time_series() {
    let value = Aggregation::Series {
        interval: 100_000_000,
        buckets: 3,
        op: SeriesOp::Max,
        signed: false,
    };
    let scalar = map(ValueType::None, value);
    // Epochs 5 and 7 of a ring of three, on two CPUs.
    let elements = [(
        no_key(),
        vec![
            words(&[0, 0, 0, 4, 1, 7, 3, 1, 5]),
            words(&[0, 0, 0, 9, 1, 7, 1, 1, 2]),
        ],
    )];
    let shown = plain(&scalar, &elements);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], "@:");
    assert_eq!(
        lines[3],
        "00:00:00.500 *                                                   | 3"
    );
    assert_eq!(
        lines[4],
        "00:00:00.600 |                                                   | -"
    );
    assert_eq!(
        lines[5],
        "00:00:00.700 |                                                   * 9"
    );
    let expected = "{\"type\": \"tseries\", \"data\": {\"@\": [{\"interval_start\":\"1970-01-01 \
                    00:00:00.500000000\",\"value\":3},{\"interval_start\":\"1970-01-01 \
                    00:00:00.700000000\",\"value\":9}]}}\n";
    assert_eq!(json(&scalar, &elements), expected);
}

/// Epoch 0 is a machine's first. A slot is empty because nothing was counted in it, not because of
/// its epoch.
#[test]
fn a_time_series_has_its_first_epoch() {
    let value = Aggregation::Series {
        interval: 1_000_000_000,
        buckets: 3,
        op: SeriesOp::Last,
        signed: false,
    };
    let scalar = map(ValueType::None, value);
    // `last` at moment 0 of epoch 0; the other slots are empty.
    let elements = [(no_key(), vec![words(&[5, 1, 0, 0, 0, 0, 0, 0, 0])])];
    let expected = "{\"type\": \"tseries\", \"data\": {\"@\": [{\"interval_start\":\"1970-01-01 \
                    00:00:00.000000000\",\"value\":5}]}}\n";
    assert_eq!(json(&scalar, &elements), expected);
    let with_epoch_1 = [(
        no_key(),
        vec![words(&[5, 1, 0, 7, 1_000_000_001, 1, 0, 0, 0])],
    )];
    let shown = plain(&scalar, &with_epoch_1);
    assert!(
        shown.contains("| 5\n") && shown.contains("* 7\n"),
        "{shown}"
    );
}

#[test]
fn another_size_is_an_internal_error_with_its_map() {
    let error = |map: &ScriptMap, elements: &Elements| {
        let decoder = Decoder::new(&EmptyLookups, "..");
        Table::from_elements(map, elements, PrintArgs::default(), &decoder)
            .unwrap_err()
            .to_string()
    };
    let sizes =
        |what, found, wanted| format!("{what} of the map @ has {found} bytes, expected {wanted}");
    let values = [
        (MapValue::Scalar(U64), 8),
        (Aggregation::Count.into(), 8),
        (Aggregation::Min { signed: true }.into(), 16),
        (Aggregation::Stats { signed: true }.into(), 16),
        (
            Aggregation::Lhist {
                min: 0,
                max: 2,
                step: 1,
            }
            .into(),
            32,
        ),
        (
            Aggregation::Series {
                interval: 1,
                buckets: 2,
                op: SeriesOp::Sum,
                signed: false,
            }
            .into(),
            48,
        ),
    ];
    for (value, wanted) in values {
        for found in [0, wanted - 8, wanted + 8] {
            if found != wanted {
                let shown = error(
                    &map(ValueType::None, value.clone()),
                    &[(no_key(), vec![vec![0; found]])],
                );
                assert!(
                    shown.starts_with(&sizes("a value", found, wanted)),
                    "{value:?}: {shown}"
                );
            }
        }
    }
    let shown = error(
        &map(STR, Aggregation::Count),
        &[(vec![0; 3], vec![words(&[1])])],
    );
    assert!(shown.starts_with(&sizes("a key", 3, 8)), "{shown}");
}

#[test]
fn values_that_are_no_elements() {
    let printer = Printer::new(Form::Json);
    assert_eq!(
        printer.words("printf", "test 5"),
        "{\"type\": \"printf\", \"data\": \"test 5\"}\n"
    );
    assert_eq!(
        printer.attached_probes(1),
        "{\"type\": \"attached_probes\", \"count\": 1, \"data\": {\"probes\": 1}}\n"
    );
    let tuple = Value::Tuple(vec![
        Value::Bool(true),
        Value::Tuple(vec![Value::Uint(4), Value::text("s")]),
    ]);
    assert_eq!(
        printer.value(&tuple),
        "{\"type\": \"value\", \"data\": [true,[4,\"s\"]]}\n"
    );
    // A reader with only floating point would change 2^53 + 1.
    assert_eq!(
        printer.value(&Value::Uint((1 << 53) + 1)),
        "{\"type\": \"value\", \"data\": \"9007199254740993\"}\n"
    );
}
