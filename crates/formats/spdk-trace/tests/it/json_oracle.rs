//! Compares arbitrary documents, with valid and invalid entries, with serde_json.

use std::fmt::Write;

use crate::common::json::read_json;
use crate::common::line::problems;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use spdk_trace::Problem;

/// The tracepoints: id, name, and the type of each argument.
const TPOINTS: [(u64, &str, &[u64]); 3] = [
    (64, "NONE", &[]),
    (65, "NUMBERS", &[0, 1]),
    (1000, "TEXTS", &[2, 0, 2]),
];

fn tables() -> [String; 3] {
    let tpoints: Vec<_> = TPOINTS
        .iter()
        .map(|(id, name, args)| {
            let args: Vec<_> = args
                .iter()
                .map(|kind| json!({"name": "a", "type": kind, "size": 8}))
                .collect();
            json!({"name": name, "id": id, "new_object": true, "args": args})
        })
        .collect();
    [
        "\"tsc_rate\":1000".to_owned(),
        format!("\"tpoints\":{}", Value::from(tpoints)),
        "\"owners\":{\"1\":\"x\"}".to_owned(),
    ]
}

/// Returns the expected line of an entry; `None` if it is left out.
fn expected(entry: &Value) -> Option<String> {
    let entry = entry.as_object()?;
    let number_or = |value: Option<&Value>, or: u64| value.map_or(Some(or), number);
    let text = |key: &str| match entry.get(key) {
        None => Some(String::new()),
        Some(value) => value.as_str().map(str::to_owned),
    };
    let (lcore, tsc) = (number(entry.get("lcore")?)?, number(entry.get("tsc")?)?);
    let id = number(entry.get("tpoint")?)?;
    let size = u32::try_from(number_or(entry.get("size"), 0)?).ok()?;
    let (poller, owner, related) = (text("poller")?, text("owner")?, text("related")?);
    let object = match entry.get("object") {
        None => String::new(),
        Some(object) => shown_object(object.as_object()?)?,
    };
    let args = shown_args(entry.get("args"), id)?;
    let (_, name, _) = TPOINTS.iter().find(|(known, ..)| *known == id)?;
    u16::try_from(lcore).ok()?;
    let mut line = format!("{lcore} {tsc} {name}");
    let owner = if entry.contains_key("owner") {
        format!("<{owner}>")
    } else {
        owner
    };
    let size = if size == 0 {
        String::new()
    } else {
        format!("size {size}")
    };
    let related = object_name(&related).map_or_else(String::new, |name| format!("({name})"));
    let poller = entry.contains_key("poller").then_some(poller);
    for part in poller.into_iter().chain(
        [owner, size, object, related, args]
            .into_iter()
            .filter(|part| !part.is_empty()),
    ) {
        line.push(' ');
        line.push_str(&part);
    }
    Some(line)
}

fn number(value: &Value) -> Option<u64> {
    let signed = value.as_i64().map(i64::cast_unsigned);
    value
        .as_u64()
        .or(signed)
        .or(value.as_f64().map(|float| float as u64))
}

fn object_name(text: &str) -> Option<String> {
    let mut chars = text.chars();
    let prefix = chars.next()?;
    let digits = chars.as_str();
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    all_digits
        .then(|| digits.parse::<u64>().ok())
        .flatten()
        .map(|number| format!("{prefix}{number}"))
}

fn shown_object(object: &Map<String, Value>) -> Option<String> {
    let id = match object.get("id") {
        None => None,
        Some(id) => object_name(id.as_str()?),
    };
    let value = object.get("value").map_or(Some(0), number)?;
    if object.get("id").is_some_and(|id| id == "") {
        let age = object.get("time").map_or(Some(0), number)?;
        return Some(format!("nameless({value:#x})+{age}"));
    }
    let age = match object.get("time") {
        None => String::new(),
        Some(time) => format!("+{}", number(time)?),
    };
    Some(id.map_or_else(
        || format!("value({value:#x})"),
        |name| format!("{name}({value:#x}){age}"),
    ))
}

fn shown_args(args: Option<&Value>, id: u64) -> Option<String> {
    let empty = Vec::new();
    let args = match args {
        None => &empty,
        Some(args) => args.as_array()?,
    };
    let kinds = TPOINTS
        .iter()
        .find(|(known, ..)| *known == id)
        .map_or(&[][..], |(.., kinds)| kinds);
    let mut shown = Vec::new();
    for (i, arg) in args.iter().enumerate() {
        let arg = match arg {
            Value::Null => break,
            Value::String(text) => format!("a='{text}'"),
            arg => {
                let number = number(arg)?;
                if kinds.get(i) == Some(&1) {
                    format!("a={number:#x}")
                } else {
                    format!("a={number}")
                }
            }
        };
        shown.push(arg);
    }
    shown.truncate(kinds.len());
    Some(shown.join(" "))
}

fn any_number() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => (0_u64..70_000).prop_map(Value::from),
        2 => any::<u64>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => (0_u32..1 << 30).prop_map(|n| Value::from(f64::from(n) / 4.0)),
    ]
}

fn any_text() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => "[ -~]{0,12}",
        1 => any::<String>(),
        3 => "[a-z][0-9]{1,3}",
        1 => r#"["\\/\n\t\u{0}\u{7f}\u{e9}\u{1f600}{}\[\],:]{0,8}"#,
    ]
    .prop_map(Value::from)
}

/// Generates any value, which is mostly wrong for a field.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any_number(),
        any_text()
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec(("[a-z]{1,6}", inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// Generates a field that is mostly present and mostly valid.
fn field(
    right: impl Strategy<Value = Value> + 'static,
    there: u32,
) -> impl Strategy<Value = Option<Value>> {
    prop_oneof![
        there => right.prop_map(Some),
        20 => Just(None),
        1 => any_value().prop_map(Some),
    ]
}

fn any_entry() -> impl Strategy<Value = Value> {
    let id = prop_oneof![8 => prop::sample::select(vec![64_u64, 65, 1000]), 1 => 0_u64..70_000]
        .prop_map(Value::from);
    let object = (
        field(any_text(), 60),
        field(any_number(), 200),
        field(any_number(), 40),
    )
        .prop_map(|(id, value, time)| {
            let fields = [("id", id), ("value", value), ("time", time)];
            Value::Object(
                fields
                    .into_iter()
                    .filter_map(|(key, value)| Some((key.to_owned(), value?)))
                    .collect(),
            )
        });
    let arg =
        prop_oneof![10 => any_number(), 10 => any_text(), 1 => Just(Value::Null), 1 => any_value()];
    let fields = (
        field(any_number(), 2000),
        field(id, 2000),
        field(any_number(), 2000),
        field(any_text(), 20),
        field(any_text(), 20),
        field((0_u64..1 << 33).prop_map(Value::from), 20),
        field(object, 20),
        field(any_text(), 20),
        field(vec(arg, 0..5).prop_map(Value::from), 60),
        field(any_value(), 20),
    );
    let keys = [
        "lcore", "tpoint", "tsc", "poller", "owner", "size", "object", "related", "args", "unknown",
    ];
    let entry = fields.prop_map(move |(a, b, c, d, e, f, g, h, i, j)| {
        let values = [a, b, c, d, e, f, g, h, i, j];
        keys.iter()
            .zip(values)
            .filter_map(|(key, value)| Some(((*key).to_owned(), value?)))
            .collect::<Vec<_>>()
    });
    let entry = entry
        .prop_shuffle()
        .prop_map(|fields| Value::Object(fields.into_iter().collect()));
    prop_oneof![30 => entry, 1 => any_value()]
}

/// Formatting of a document.
#[derive(Clone, Copy, Debug)]
enum Style {
    Compact,
    Pretty,
    /// All characters outside of ASCII as `\uNNNN`.
    Ascii,
}

fn written(entries: &[Value], style: Style, order: [usize; 4]) -> String {
    let entries = Value::from(entries.to_vec());
    let text = match style {
        Style::Pretty => format!("{entries:#}"),
        Style::Compact | Style::Ascii => entries.to_string(),
    };
    let [rate, tpoints, owners] = tables();
    let pieces = [rate, tpoints, owners, format!("\"entries\":{text}")];
    let text = format!("{{{}}}", order.map(|piece| pieces[piece].clone()).join(","));
    if !matches!(style, Style::Ascii) {
        return text;
    }
    let mut ascii = String::new();
    for c in text.chars() {
        if c.is_ascii() {
            ascii.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string can't fail.
            let _ = write!(ascii, "\\u{unit:04X}");
        }
    }
    ascii
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_document_is_read_as_serde_json_reads_it(
        entries in vec(any_entry(), 0..12),
        style in prop::sample::select(vec![Style::Compact, Style::Pretty, Style::Ascii]),
        order in prop::sample::select(vec![[0, 1, 2, 3], [3, 2, 1, 0], [2, 3, 1, 0], [1, 2, 0, 3]]),
        before in prop::sample::select(vec!["", "Using newest trace file\n", "Trace Size of lcore (0): 5 {\n"]),
    ) {
        let text = written(&entries, style, order);
        // The oracle reads the same text.
        let document: Value = serde_json::from_str(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let entries = document["entries"].as_array().cloned().unwrap_or_default();
        let expected: Vec<_> = entries.iter().filter_map(expected).collect();

        let (lines, found) = read_json(format!("{before}{text}\nTrace Size"));
        prop_assert_eq!(&lines, &expected, "{}", text);
        let reported: u64 = found.iter().map(|finding| finding.count).sum();
        prop_assert_eq!(reported, (entries.len() - lines.len()) as u64, "{:?}", problems(&found));
        let whole = |problem| matches!(problem, Problem::BrokenEntry(_) | Problem::UnknownTpoint);
        prop_assert!(found.iter().all(|finding| whole(finding.problem)), "{:?}", problems(&found));
    }
}
