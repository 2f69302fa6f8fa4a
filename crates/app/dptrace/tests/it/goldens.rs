//! The listing compared with that of SPDK's annotation script, on traces of real targets.

use crate::common::shared::{Sample, assert_same};
use crate::common::{dptrace, printed};
use serde_json::Value;

/// Column of the owner: after lcore, blank, time, blank.
const OWNER: usize = 3 + 1 + 16 + 1;
/// Distance from the owner's column to the object's: blank, name, blank, size.
const NAME_AND_SIZE: usize = 24 + 1 + 12;

fn trace(sample: &Sample, extension: &str, more: &[&str]) -> String {
    let path = sample.path(extension);
    printed(["trace", "-i", &path.to_string_lossy()].iter().chain(more))
}

fn annotated(sample: &Sample, extension: &str) -> String {
    trace(
        sample,
        extension,
        &["-b", &sample.path("bpftraces").to_string_lossy()],
    )
}

/// Parses the document from the output of `spdk_trace -j`: up to v23.05 text follows it.
fn document(sample: &Sample) -> Value {
    let text = sample.text("json");
    let mut documents = serde_json::Deserializer::from_str(&text).into_iter();
    documents.next().expect("a document").expect("JSON")
}

/// Returns the name of a tracepoint id.
fn tpoint_name<'a>(document: &'a Value, id: &Value) -> &'a str {
    let tpoints = document["tpoints"].as_array().expect("tpoints");
    let tpoint = tpoints
        .iter()
        .find(|tpoint| &tpoint["id"] == id)
        .expect("a known tracepoint");
    tpoint["name"].as_str().expect("a name")
}

#[test]
fn raw_files_are_listed_as_the_script_lists_them() {
    for sample in Sample::with(&["v23.05"], &["annot_native.txt"]) {
        assert_same(
            &annotated(&sample, "trace"),
            &sample.text("annot_native.txt"),
            &sample,
        );
    }
}

/// Hosts of real targets whose records carry no pointer to the connection: each of the two
/// connected to its subsystem.
#[test]
fn hosts_are_known_by_the_owner_where_records_carry_no_pointer() {
    for sample in Sample::with(&["v24.09", "v26.09-pre"], &["trace", "bpftraces"]) {
        let listing = annotated(&sample, "trace");
        let mut known = 0;
        for line in listing.lines() {
            let Some((_, behind)) = line.split_once(" nqn.2016-06.io.spdk:cnode") else {
                continue;
            };
            let host = format!("hostnqn=nqn.2014-08.org.nvmexpress:host{})", &behind[..1]);
            assert!(line.ends_with(&host), "{line}");
            known += 1;
        }
        assert!(known > 100, "{known} records of connections");
    }
}

#[test]
fn json_is_listed_as_the_script_lists_it() {
    for sample in Sample::with(&["v23.05", "v26.09-pre"], &["annot_json.txt"]) {
        assert_same(
            &annotated(&sample, "json"),
            &sample.text("annot_json.txt"),
            &sample,
        );
    }
}

#[test]
fn json_on_standard_input_is_listed_as_the_script_lists_it() {
    for sample in Sample::with(&["v23.05", "v26.09-pre"], &["annot_json.txt"]) {
        for input in [&[][..], &["-i", "-"]] {
            let mut command = dptrace();
            command
                .arg("trace")
                .args(input)
                .arg("-b")
                .arg(sample.path("bpftraces"))
                .write_stdin(sample.text("json"));
            let done = command.assert().success();
            let ours = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
            assert_same(&ours, &sample.text("annot_json.txt"), &sample);
        }
    }
}

/// The script of v24.09 looked for a field that its JSON lacks, and left the owner's column empty;
/// dptrace shows the poller. So that column is checked against the JSON, and the rest against the
/// script.
#[test]
fn json_of_v24_09_is_listed_as_the_script_lists_it_but_for_the_owner() {
    for sample in Sample::with(&["v24.09"], &["annot_json.txt"]) {
        let document = document(&sample);
        let entries = document["entries"].as_array().expect("entries");
        let (ours, theirs) = (annotated(&sample, "json"), sample.text("annot_json.txt"));
        assert_eq!(ours.lines().count(), entries.len());
        assert_eq!(theirs.lines().count(), entries.len());
        for ((line, wanted), entry) in ours.lines().zip(theirs.lines()).zip(entries) {
            let poller = entry["poller"].as_str().unwrap_or_default();
            let column = format!("{poller:<3} ");
            assert!(line[OWNER..].starts_with(&column), "{sample:?}: {line}");
            assert_eq!(&wanted[OWNER..OWNER + 4], "    ", "{wanted}");
            assert_eq!(line[..OWNER], wanted[..OWNER], "{sample:?}");
            assert_eq!(
                line[OWNER + column.len()..],
                wanted[OWNER + 4..],
                "{sample:?}"
            );
        }
    }
}

/// The script crashes on raw files of the newer versions, so the listing is compared with that of
/// the same trace's JSON. The JSON lacks the following parts, which this test checks in the raw
/// file's listing and then removes:
/// - the owner's column: the description if the file has one valid at that time, else prefix and
///   number (v24.09's JSON has no descriptions at all: those are in the text output of its
///   `spdk_trace`);
/// - the id of an object whose tracepoint has no object type, and the `n/a` of one whose creation
///   was not seen: in the JSON both are an `object` with a `value` only;
/// - `time: 0.000` of the record that creates an object: the JSON leaves its time out.
#[test]
fn raw_files_of_newer_versions_are_listed_as_their_json_and_what_it_leaves_out() {
    for sample in Sample::with(&["v24.09", "v26.09-pre"], &["json", "txt"]) {
        let document = document(&sample);
        let entries = document["entries"].as_array().expect("entries");
        let text = sample.text("txt");
        let messages: Vec<_> = text.lines().filter(|line| !is_head(line)).collect();
        let (raw, json) = (trace(&sample, "trace", &[]), trace(&sample, "json", &[]));
        let lines: Vec<_> = raw.lines().zip(json.lines()).collect();
        assert_eq!(
            (lines.len(), raw.lines().count()),
            (entries.len(), entries.len()),
            "{sample:?}"
        );
        for (at, (raw, json)) in lines.into_iter().enumerate() {
            let name = tpoint_name(&document, &entries[at]["tpoint"]);
            let stripped = strip(raw, &entries[at], &description(messages[at]), name);
            let owner = match document.get("owners") {
                Some(_) => entries[at]["owner"].as_str(),
                None => entries[at]["poller"].as_str(),
            };
            let (json, shown) = without_owner(json, name);
            assert_eq!(shown, owner.unwrap_or_default(), "{sample:?}: {json}");
            assert_eq!(stripped, json, "{sample:?}, record {at}: {raw}");
        }
    }
}

fn is_head(line: &str) -> bool {
    line.starts_with("TSC Rate") || line.starts_with("Trace Size")
}

/// Returns the owner's description in a line of `spdk_trace`: 64 columns after the thread's name,
/// the lcore and the time.
fn description(line: &str) -> String {
    let (_, behind) = line.split_once(": ").expect("an lcore");
    let (_, behind) = behind.trim_start().split_once(' ').expect("a time");
    behind[..64].trim_end().to_owned()
}

/// Returns the line without its owner's column, and that column.
fn without_owner<'a>(line: &'a str, name: &str) -> (String, &'a str) {
    let behind = &line[OWNER..];
    let at = behind
        .find(&format!(" {name}"))
        .expect("the tracepoint's name");
    (
        format!("{}{}", &line[..OWNER], &behind[at..]),
        behind[..at].trim_end(),
    )
}

/// Checks and removes the parts that the JSON lacks.
fn strip(line: &str, entry: &Value, description: &str, name: &str) -> String {
    let (line, owner) = without_owner(line, name);
    let expected = if description.is_empty() {
        entry["poller"].as_str().unwrap_or_default()
    } else {
        description
    };
    assert_eq!(owner, expected, "{line}");
    let object = OWNER + 1 + NAME_AND_SIZE;
    let (head, tail) = line.split_at(line.len().min(object));
    let Some(value) = entry["object"]["value"].as_u64() else {
        return line;
    };
    let left_out = if entry["object"]["id"].is_null() {
        let shown = tail
            .strip_prefix("id: ")
            .and_then(|id| id.split(' ').next())
            .unwrap_or_default();
        assert!(shown == "n/a" || shown == format!("{value:x}"), "{line}");
        format!("id: {shown:<12} ")
    } else if entry["object"]["time"].is_null() {
        // The id takes 12 columns, or more if it is longer.
        let at = tail
            .find(" time: ")
            .unwrap_or_else(|| panic!("no time: {line}"))
            + 1;
        let time = format!("{:<15}", &tail[at..]);
        let behind = time
            .strip_prefix("time: 0.000    ")
            .unwrap_or_else(|| panic!("not created then: {line}"));
        return format!("{head}{}{behind}", &tail[..at])
            .trim_end()
            .to_owned();
    } else {
        return line;
    };
    let tail = format!("{tail:<17}");
    let behind = tail.strip_prefix(&left_out).expect("an id of 12 columns");
    format!("{head}{behind}").trim_end().to_owned()
}
