//! One test for each bug that was found in the program.

use crate::common::{dptrace, printed};
use serde_json::Value;
use testkit::{Era, Record, Tpoint, TraceBuilder};

/// Returns a document with these entries and one tracepoint, whose argument is called `arg`.
fn document(arg: &str, entries: &str) -> String {
    let arg = serde_json::to_string(arg).expect("a string");
    format!(
        r#"{{"tsc_rate":1000000,"tpoints":[{{"name":"T","id":1,"new_object":false,"args":[{{"name":{arg},"type":1,"size":8}}]}}],"entries":[{entries}]}}"#
    )
}

/// Returns what the program prints for a document on standard input.
fn messages(document: &str, args: &[&str]) -> String {
    let done = dptrace()
        .args(args)
        .write_stdin(document)
        .assert()
        .success();
    String::from_utf8(done.get_output().stdout.clone()).expect("output is UTF-8")
}

const HOSTILE: &str = r#"{"lcore":0,"tpoint":1,"tsc":5,"args":[1],"annotations":{"qpair":{"hostnqn":"x\u001b[31m\u0007"}}}"#;

#[test]
fn a_documents_annotations_do_not_reach_the_terminal_raw() {
    let document = document("qpair", HOSTILE);
    for form in ["text", "spdk", "json", "ndjson", "csv"] {
        let messages = messages(&document, &["trace", "--format", form]);
        assert!(
            !messages.contains(['\u{1b}', '\u{7}']),
            "{form}: {messages:?}"
        );
    }
    assert!(messages(&document, &["trace"]).ends_with("qpair(hostnqn=x\\x1b[31m\\x07)\n"));
}

#[test]
fn annotations_that_are_no_json_do_not_break_what_is_written() {
    let broken = r#"{"lcore":0,"tpoint":1,"tsc":5,"args":[1],"annotations":{"qpair":]}"#;
    for form in ["json", "ndjson"] {
        let messages = messages(&document("qpair", broken), &["trace", "--format", form]);
        serde_json::from_str::<Value>(&messages)
            .unwrap_or_else(|e| panic!("{form}: {e}: {messages}"));
    }
}

#[test]
fn annotations_stay_where_a_recording_knows_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let recording = dir.path().join("other");
    std::fs::write(
        &recording,
        "nvmf_poll_group_add_qpair: tsc=0x1, qpair=0xff, thread=0x1\n",
    )
    .expect("written");
    let entry = r#"{"lcore":0,"tpoint":1,"tsc":5,"args":[1],"annotations":{"qpair":{"qid":7}}}"#;
    let args = [
        "trace",
        "--format",
        "json",
        "-b",
        recording.to_str().expect("UTF-8"),
    ];
    let json: Value =
        serde_json::from_str(&messages(&document("qpair", entry), &args)).expect("JSON");
    assert_eq!(json["entries"][0]["annotations"]["qpair"]["qid"], 7);
}

#[test]
fn an_arguments_name_may_hold_anything() {
    let name = "a\",\"tsc\":1,\\";
    let messages = messages(
        &document(name, r#"{"lcore":0,"tpoint":1,"tsc":5,"args":[1]}"#),
        &["trace", "--format", "ndjson"],
    );
    let line: Value = serde_json::from_str(&messages).expect("JSON");
    assert_eq!(
        (&line["tsc"], &line["args"][name]),
        (&5.into(), &"0x1".into())
    );
}

#[test]
fn owners_of_one_description_are_distinguished_by_number() {
    let mut trace = TraceBuilder::new(Era::F).slots(16).owner_count(16);
    trace
        .owner_type(1, b't')
        .tpoint(Tpoint::new(1, "T").owner_type(1));
    for id in [5, 6] {
        trace
            .owner(id, 1, 1, "the same")
            .record(0, Record::new(1, 100 + u64::from(id)).owner(id));
    }
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("t.trace");
    std::fs::write(&path, trace.build()).expect("written");
    let path = path.to_str().expect("UTF-8");
    let shown = |owner: &str| printed(["trace", path, "--owner", owner, "--tsc"]);
    let times = |listing: &str| [" 105 ", " 106 "].map(|tsc| listing.matches(tsc).count());
    assert_eq!(times(&shown("t05")), [1, 0]);
    assert_eq!(times(&shown("t06")), [0, 1]);
    assert_eq!(times(&shown("the *")), [1, 1]);
}

#[test]
fn the_whole_of_filtered_objects_is_their_stages() {
    let mut trace = TraceBuilder::new(Era::C).slots(16).tsc_rate(1_000_000);
    trace
        .object_type(1, b'r')
        .tpoint(Tpoint::new(1, "NEW").object_type(1).new_object());
    trace
        .tpoint(Tpoint::new(2, "BEGIN").object_type(1))
        .tpoint(Tpoint::new(3, "END").object_type(1));
    for (id, tsc) in [(1, 100), (2, 150), (3, 160)] {
        trace.record(0, Record::new(id, tsc).object(9));
    }
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("t.trace");
    std::fs::write(&path, trace.build()).expect("written");
    let messages = printed([
        "latency",
        "--json",
        "--tpoint",
        "BEGIN,END",
        path.to_str().expect("UTF-8"),
    ]);
    let means: Vec<Value> = messages
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).expect("JSON")["mean_ns"].clone())
        .collect();
    assert_eq!(means, [10_000, 10_000], "{messages}");
}

#[test]
fn a_pipe_is_a_file() {
    let document = document("a", r#"{"lcore":0,"tpoint":1,"tsc":5,"args":[1]}"#);
    assert_eq!(
        messages(&document, &["trace", "/dev/stdin"]),
        messages(&document, &["trace"])
    );
}

#[test]
fn output_never_goes_over_a_recording_or_a_spec() {
    let dir = tempfile::tempdir().expect("a folder");
    dptrace()
        .args(["demo", "--write"])
        .arg(dir.path())
        .assert()
        .success();
    let file = |name: &str| {
        dir.path()
            .join(name)
            .into_os_string()
            .into_string()
            .expect("UTF-8")
    };
    std::fs::write(file("spec.toml"), printed(["objects", "qpair"])).expect("written");
    for (option, name) in [("-b", "demo.recording"), ("--objects", "spec.toml")] {
        let before = std::fs::read(file(name)).expect("read");
        let args = [
            "trace",
            &file("demo.trace"),
            option,
            &file(name),
            "-o",
            &file(name),
        ]
        .map(str::to_owned);
        dptrace().args(args).assert().code(2);
        assert_eq!(std::fs::read(file(name)).expect("read"), before);
    }
}
