//! Tests of the JSON that `spdk_trace -j` and others write, also damaged.

use crate::common::json::read_json;
use crate::common::line::problems;
use spdk_trace::{ArgKind, Error, JsonTrace, TickRate};

/// Rate and tracepoints, as SPDK writes them.
const RATE: &str = r#""tsc_rate":2600000000"#;
const TPOINTS: &str = r#""tpoints":[
{"name":"NEW","id":320,"new_object":true,"args":[{"name":"qpair","type":1,"size":8}]},
{"name":"DONE","id":321,"new_object":false,"args":[{"name":"n","type":0,"size":4},{"name":"s","type":2,"size":40}]},
{"name":"PLAIN","id":64,"new_object":false,"args":[]}]"#;
const ENTRIES: [&str; 4] = [
    r#"{"lcore":0,"tpoint":64,"tsc":100}"#,
    r#"{"lcore":1,"tpoint":320,"tsc":110,"poller":"t01","size":4096,"object":{"id":"r0","value":24326896},"args":[5]}"#,
    r#"{"lcore":0,"tpoint":321,"tsc":120,"object":{"id":"r0","value":24326896,"time":10},"args":[7,"a [\"}\" b"]}"#,
    r#"{"lcore":0,"tpoint":321,"tsc":130,"object":{"value":5},"related":"r0","args":[1,""]}"#,
];
const LINES: [&str; 4] = [
    "0 100 PLAIN",
    "1 110 NEW t01 size 4096 r0(0x17332f0) qpair=0x5",
    "0 120 DONE r0(0x17332f0)+10 n=7 s='a [\"}\" b'",
    "0 130 DONE value(0x5) (r0) n=1 s=''",
];

fn entries(entries: &[&str]) -> String {
    format!("\"entries\":[{}]", entries.join(","))
}

/// Creates a document of these entries.
fn document(these: &[&str]) -> String {
    format!("{{{RATE},{TPOINTS},{}}}", entries(these))
}

#[track_caller]
fn shows(text: &str, expected: &[&str], reported: &[&str]) {
    let (lines, found) = read_json(text);
    assert_eq!(lines, expected, "{text}");
    assert_eq!(problems(&found), reported, "{text}");
}

/// Checks that an entry between two good ones is left out for this reason, and that the two are
/// read.
#[track_caller]
fn is_left_out(entry: &str, why: &str) {
    let text = document(&[ENTRIES[0], entry, ENTRIES[3]]);
    let at = text
        .find(ENTRIES[0])
        .map_or(0, |first| first + ENTRIES[0].len() + 1);
    shows(
        &text,
        &[LINES[0], LINES[3]],
        &[&format!("{why} x1 at {at:#x}")],
    );
}

/// `spdk_trace` up to v23.05 writes this for an object whose type has no prefix.
#[test]
fn an_objects_name_may_be_empty() {
    let entry = r#"{"lcore":0,"tpoint":321,"tsc":120,"object":{"id":"","value":5,"time":10},"args":[7,"s"]}"#;
    shows(
        &document(&[entry]),
        &["0 120 DONE nameless(0x5)+10 n=7 s='s'"],
        &[],
    );
}

#[test]
fn entries_are_given_in_the_order_of_the_document() {
    shows(&document(&ENTRIES), &LINES, &[]);
    shows(
        &document(&[ENTRIES[2], ENTRIES[0]]),
        &[LINES[2], LINES[0]],
        &[],
    );
    shows(&document(&[]), &[], &[]);
}

#[test]
fn tables_are_read() {
    let trace = JsonTrace::parse(document(&ENTRIES).into_bytes()).unwrap();
    assert_eq!(Some(trace.tick_rate()), TickRate::new(2_600_000_000));
    let tpoints = trace.tpoints().all();
    let names: Vec<_> = tpoints
        .iter()
        .map(|t| (t.id, t.name.as_str(), t.new_object, t.args.len()))
        .collect();
    assert_eq!(
        names,
        [
            (320, "NEW", true, 1),
            (321, "DONE", false, 2),
            (64, "PLAIN", false, 0)
        ]
    );
    assert_eq!(
        (tpoints[1].args[1].kind, tpoints[1].args[1].size),
        (ArgKind::String, 40)
    );
    assert_eq!(trace.owners(), None);
}

#[test]
fn text_may_stand_before_and_behind_the_document() {
    let document = document(&ENTRIES);
    for (before, behind) in [
        ("", "\nTrace Size of lcore (0): 5\n"),
        (
            "Using newest trace file found: /dev/shm/nvmf_trace.pid1\nTrace Size of lcore (0): 5\n",
            "\n",
        ),
        ("{ } a brace { [ without a key\n", "} ] \" {"),
        ("\u{feff}", ""),
    ] {
        shows(&format!("{before}{document}{behind}"), &LINES, &[]);
    }
}

#[test]
fn blanks_and_newlines_may_stand_everywhere() {
    let mut spaced = String::new();
    let mut in_string = false;
    let mut before = ' ';
    for c in document(&ENTRIES).chars() {
        in_string ^= c == '"' && before != '\\';
        before = c;
        let blank = if in_string { "" } else { " \n\t\r " };
        if "{}[],:".contains(c) {
            spaced.extend([blank, &c.to_string(), blank]);
        } else {
            spaced.push(c);
        }
    }
    shows(&spaced, &LINES, &[]);
}

#[test]
fn keys_may_come_in_any_order() {
    let entries = entries(&ENTRIES);
    let owners = r#""owners":{"256":"somebody"}"#;
    // `jq -S` writes them sorted.
    shows(&format!("{{{entries},{TPOINTS},{RATE}}}"), &LINES, &[]);
    shows(&format!("{{{entries},{RATE},{TPOINTS}}}"), &LINES, &[]);
    shows(&format!("{{{TPOINTS},{entries},{RATE}}}"), &LINES, &[]);
    shows(
        &format!("{{{entries},{owners},{TPOINTS},{RATE}}}"),
        &LINES,
        &[],
    );
    for order in [
        format!("{{{entries},{owners},{TPOINTS},{RATE}}}"),
        format!("{{{owners},{RATE},{TPOINTS},{entries}}}"),
        format!("{{{TPOINTS},{entries},{owners},{RATE}}}"),
    ] {
        let trace = JsonTrace::parse(order.clone().into_bytes()).unwrap();
        let owners = trace
            .owners()
            .unwrap_or_else(|| panic!("no owners: {order}"));
        assert_eq!(owners, [("256".to_owned(), "somebody".to_owned())]);
    }
    let entry = r#"{"args":[7,"a [\"}\" b"],"object":{"time":10,"value":24326896,"id":"r0"},"tsc":120,"tpoint":321,"lcore":0}"#;
    shows(&document(&[entry]), &[LINES[2]], &[]);
}

#[test]
#[ignore = "the tables are read up to the entries if rate and tracepoints are known by then; no writer has this order"]
fn owners_may_stand_behind_the_entries() {
    let text = format!("{{{RATE},{TPOINTS},{},\"owners\":{{}}}}", entries(&ENTRIES));
    assert!(
        JsonTrace::parse(text.into_bytes())
            .unwrap()
            .owners()
            .is_some()
    );
}

#[test]
fn unknown_keys_are_passed_over() {
    let more = r#""x":{"a":[1,{"b":"}]\""}]},"y":null,"z":-1.5e3,"":[],"entry":[{"lcore":9}]"#;
    let entry = ENTRIES[1].replace("{\"lcore", &format!("{{{more},\"lcore"));
    let text = format!("{{{more},{RATE},{TPOINTS},{}}}", entries(&[&entry]));
    shows(
        &text.replace("{\"name\"", &format!("{{{more},\"name\"")),
        &[LINES[1]],
        &[],
    );
}

#[test]
fn strings_may_have_escapes() {
    let entry = r#"{"lcore":0,"tpoint":321,"tsc":1,"poller":"\u0074\"1","owner":"gr\u00f6\u00dfe \ud83d\ude00","args":[1,"\\\/\b\f\n\r\t\u0041"]}"#;
    shows(
        &document(&[entry]),
        &["0 1 DONE t\"1 <größe 😀> n=1 s='\\/\u{8}\u{c}\n\r\tA'"],
        &[],
    );
}

#[test]
fn names_that_a_terminal_would_obey_are_escaped() {
    let tpoints = TPOINTS.replace("PLAIN", r"\u001b[1m");
    let text = format!(
        "{{\"owners\":{{\"1\":\"\\u0007x\"}},{RATE},{tpoints},{}}}",
        entries(&[ENTRIES[0]])
    );
    shows(&text, &["0 100 \\x1b[1m"], &[]);
    let trace = JsonTrace::parse(text.into_bytes()).unwrap();
    assert_eq!(
        trace.owners(),
        Some(&[("1".to_owned(), "\\x07x".to_owned())][..])
    );
}

#[test]
fn an_overwritten_argument_is_null_in_v21_07_and_those_behind_it_are_lost() {
    let entry = |args: &str| format!("{{\"lcore\":0,\"tpoint\":321,\"tsc\":1,\"args\":[{args}]}}");
    for (args, expected) in [
        ("null,null", "0 1 DONE"),
        ("5,null", "0 1 DONE n=5"),
        ("5 , null ", "0 1 DONE n=5"),
        ("null,\"text\"", "0 1 DONE"),
        ("null,[{}],\"]\"", "0 1 DONE"),
        ("5", "0 1 DONE n=5"),
        ("", "0 1 DONE"),
        ("5,\"x\",6,\"more than declared\"", "0 1 DONE n=5 s='x'"),
    ] {
        shows(
            &document(&[&entry(args), ENTRIES[0]]),
            &[expected, LINES[0]],
            &[],
        );
    }
}

#[test]
fn numbers_are_read_as_jq_rounds_them() {
    let entry = |tsc: &str| format!("{{\"lcore\":0,\"tpoint\":64,\"tsc\":{tsc}}}");
    for (text, tsc) in [
        ("18446744073709551615", u64::MAX),
        ("18446744073709552000", u64::MAX),
        ("1.8446744073709552e+19", u64::MAX),
        ("5214359046177.0", 5_214_359_046_177),
        ("5.214359046177E12", 5_214_359_046_177),
        ("-1", u64::MAX),
        ("0", 0),
    ] {
        shows(
            &document(&[&entry(text)]),
            &[&format!("0 {tsc} PLAIN")],
            &[],
        );
    }
}

#[test]
fn an_entry_of_an_unknown_tracepoint_is_left_out() {
    is_left_out(r#"{"lcore":0,"tpoint":65,"tsc":1}"#, "UnknownTpoint");
    is_left_out(r#"{"lcore":0,"tpoint":65535,"tsc":1}"#, "UnknownTpoint");
}

#[test]
fn an_entry_of_another_shape_is_left_out() {
    for (entry, why) in [
        (r#"{"tpoint":64,"tsc":1}"#, "it has no lcore"),
        (r#"{"lcore":0,"tsc":1}"#, "it has no tpoint"),
        (r#"{"lcore":0,"tpoint":64}"#, "it has no tsc"),
        ("{}", "it has no lcore"),
        (r#"{"lcore":"0","tpoint":64,"tsc":1}"#, "a number"),
        (r#"{"lcore":0,"tpoint":64,"tsc":null}"#, "a number"),
        (
            r#"{"lcore":0,"tpoint":64,"tsc":1,"size":4294967296}"#,
            "its size does not fit in 32 bits",
        ),
        (
            r#"{"lcore":0,"tpoint":64,"tsc":1,"args":{}}"#,
            "an array of arguments",
        ),
        (
            r#"{"lcore":0,"tpoint":64,"tsc":1,"args":[true]}"#,
            "a number",
        ),
        (
            r#"{"lcore":0,"tpoint":64,"tsc":1,"object":"r0"}"#,
            "an object",
        ),
        (r#"{"lcore":0,"tpoint":64,"tsc":1,"poller":7}"#, "a string"),
        ("[]", "an entry"),
        ("null", "an entry"),
        ("17", "an entry"),
        ("\"}{\"", "an entry"),
    ] {
        is_left_out(entry, &format!("BrokenEntry({why:?})"));
    }
}

#[test]
fn a_broken_definition_is_left_out_and_so_are_its_entries() {
    for broken in [
        r#"{"name":"PLAIN","id":"64","args":[]}"#,
        r#"{"id":64,"args":[]}"#,
        "{}",
        "null",
        r#"{"name":"PLAIN","id":64,"args":7}"#,
    ] {
        let tpoints = TPOINTS.replace(
            r#"{"name":"PLAIN","id":64,"new_object":false,"args":[]}"#,
            broken,
        );
        let text = format!("{{{RATE},{tpoints},{}}}", entries(&ENTRIES));
        let (lines, found) = read_json(text.as_str());
        assert_eq!(lines, LINES[1..], "{text}");
        assert_eq!(
            (
                found.count(spdk_trace::Problem::BrokenDefinition),
                found.iter().count()
            ),
            (1, 2),
            "{text}"
        );
    }
}

#[test]
fn tables_of_another_shape_are_left_out() {
    let entries = entries(&ENTRIES);
    for rate in ["\"2600000000\"", "null", "{}", "0"] {
        let (lines, found) = read_json(format!("{{\"tsc_rate\":{rate},{TPOINTS},{entries}}}"));
        assert_eq!(
            (lines.len(), problems(&found)),
            (4, vec!["NoTickRate x1 at 0x0".to_owned()]),
            "tsc_rate {rate}"
        );
    }
    for owners in ["null", "[]", "{\"1\":2}", "7"] {
        let (lines, _) = read_json(format!(
            "{{\"owners\":{owners},{RATE},{TPOINTS},{entries}}}"
        ));
        assert_eq!(lines, LINES, "owners {owners}");
    }
    for tpoints in ["null", "{}", "7"] {
        let (lines, found) = read_json(format!("{{{RATE},\"tpoints\":{tpoints},{entries}}}"));
        assert_eq!(
            (lines.len(), found.count(spdk_trace::Problem::UnknownTpoint)),
            (0, 4),
            "tpoints {tpoints}"
        );
    }
}

#[test]
fn an_invalid_document_is_reported() {
    let fails = |text: &str| JsonTrace::parse(text.into()).unwrap_err().to_string();
    assert!(matches!(
        JsonTrace::parse(Vec::new()),
        Err(Error::NoDocument { .. })
    ));
    assert!(
        fails("TSC Rate: 2600000000\n")
            .contains("give the raw trace file, or the output of spdk_trace -j")
    );
    assert!(
        fails("nothing \x1b[1m here").ends_with("the text begins with \"nothing \\x1b[1m here\"")
    );
    assert!(fails("{{{{[[[[").contains("nor a JSON document"));
}

#[test]
fn nesting_is_not_followed() {
    let deep = "[{\"a\":".repeat(100_000);
    let closed = format!("{deep}1{}", "}]".repeat(100_000));
    shows(
        &format!("{{\"x\":{closed},{RATE},{TPOINTS},{}}}", entries(&ENTRIES)),
        &LINES,
        &[],
    );
    is_left_out(&closed, "BrokenEntry(\"an entry\")");
    let entry = format!("{{\"x\":{closed},{}", &ENTRIES[0][1..]);
    shows(&document(&[&entry]), &[LINES[0]], &[]);
    // The nesting is never closed.
    let (lines, found) = read_json(format!(
        "{{{RATE},{TPOINTS},\"entries\":[{},{deep}",
        ENTRIES[0]
    ));
    assert_eq!(
        (lines, found.count(spdk_trace::Problem::DocumentCut)),
        (vec![LINES[0].to_owned()], 1)
    );
    assert!(JsonTrace::parse(deep.into_bytes()).is_err());
}
