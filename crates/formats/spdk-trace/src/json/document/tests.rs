//! Tests of documents that are cut or broken.

use super::*;

const ENTRIES: &str = r#"{"lcore": 0, "tpoint": 64, "tsc": 1000, "size": 12, "args": [18446744073709551615, "a\"}]"]},
        {"lcore": 1, "tpoint": 64, "tsc": 2000, "object": {"id": "r1", "value": 77}, "args": [2, ""]}, {"lcore": 1, "what": tru},
        {"lcore": 1, "tpoint": 65, "tsc": 3}, {"lcore": 0, "tpoint": 64, "tsc": 4000, "annotations": {"q": {"p": 1}}}"#;

fn tables() -> &'static str {
    r#""tsc_rate": 2600000000, "tpoints": [{"name": "T", "id": 64, "new_object": false, "args":
        [{"name": "n", "type": 0, "size": 8}, {"name": "s", "type": 2, "size": 8}]}]"#
}

fn all(trace: &JsonTrace) -> (Vec<String>, String) {
    let mut records = Vec::new();
    let problems = trace.for_each(|record| {
        let args: Vec<_> = record.args.iter().collect();
        records.push(format!(
            "{:?} {:?} {:?} {args:?}",
            record.tsc, record.object, record.annotations
        ));
        ControlFlow::Continue(())
    });
    (
        records,
        format!(
            "{:?} {:?}",
            trace.problems(),
            problems.iter().collect::<Vec<_>>()
        ),
    )
}

/// Tests windows of every size.
#[test]
fn a_document_is_the_same_in_windows() {
    let tables = tables();
    let texts = [
        format!("the tool's talk\n{{{tables}, \"entries\": [{ENTRIES}]}}\nmore talk"),
        format!("{{{tables}, \"entries\": [{ENTRIES}"),
        format!("{{\"entries\": [{ENTRIES}], {tables}}}"),
        format!("{{{tables}, \"entries\": []}}"),
    ];
    for text in &texts {
        let whole = JsonTrace::parse(text.clone().into_bytes()).unwrap();
        for window in 1..text.len() + 2 {
            let trace = JsonTrace::open_by(Box::new(text.clone().into_bytes()), window).unwrap();
            assert_eq!(all(&trace), all(&whole), "{window} bytes at once");
            assert_eq!(trace.is_annotated().unwrap(), whole.is_annotated().unwrap());
        }
    }
    let records = all(&JsonTrace::parse(texts[0].clone().into_bytes()).unwrap());
    assert_eq!(records.0.len(), 3, "{records:?}");
}
