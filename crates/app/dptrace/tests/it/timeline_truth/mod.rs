//! Output of `dptrace timeline` for a capture, compared with a target's own record of its delays.

mod causes;
mod eras;
mod story;
mod switches;

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use story::{Stage, Story, lines, printed};

/// Checks that nothing is known of the time after the last event. Returns the number of such stages.
#[track_caller]
fn check_after(requests: &[Value], last: u64) -> usize {
    let mut after = 0;
    for request in requests.iter().filter(|line| line.get("slowest").is_some()) {
        for stage in Stage::all(request).filter(|stage| stage.begin >= last) {
            assert_eq!(
                stage.value["unknown_ns"], stage.value["length_ns"],
                "{}",
                stage.value
            );
            assert_eq!(
                stage.value["shares"],
                Value::Array(Vec::new()),
                "{}",
                stage.value
            );
            after += 1;
        }
        if request["boot_ns"].as_u64().unwrap() >= last {
            assert_eq!(
                (
                    &request["kernel_at_least_ns"],
                    &request["kernel_at_most_ns"]
                ),
                (&0.into(), &0.into())
            );
        }
    }
    after
}

/// Checks that the last interval of each reactor is unknown from the last event on.
#[track_caller]
fn check_last_intervals(story: &Story, intervals: &[Value], last: u64) {
    for tid in &story.captured.reactors {
        let its: Vec<&Value> = intervals.iter().filter(|it| it["tid"] == *tid).collect();
        let (it, before) = its.split_last().unwrap();
        // The gap begins earlier if the last events before the cut were lost.
        assert!(
            it["activity"] == "unknown" && it["from_ns"].as_u64().unwrap() <= last,
            "{it}"
        );
        assert!(
            before
                .iter()
                .all(|it| it["to_ns"].as_u64().unwrap() <= last)
        );
    }
}

/// Returns the time of the last event that can be read, if there is one.
fn last_event(description: &Value, events: &Path) -> Option<u64> {
    let description = serde_json::to_vec(description).unwrap();
    let source = Arc::new(std::fs::read(events).unwrap()) as capture::Source;
    let reader = capture::Reader::open(&description, None, Some(source)).unwrap();
    let events = reader.events().unwrap().map_while(Result::ok);
    events.map(|event| event.at.0).max()
}

/// Cuts the events at two fifths, or a little later: if the recorder had to wait for a CPU, its
/// first chunk is longer, and a chunk that is cut has no events.
fn cut(events: &Path, description: &Value) {
    let whole = std::fs::read(events).unwrap();
    let is_cut = (4..10).any(|tenths| {
        std::fs::write(events, &whole[..whole.len() * tenths / 10]).unwrap();
        last_event(description, events).is_some()
    });
    assert!(is_cut, "all events are in one chunk");
}

#[test]
#[ignore = "deep truth: more than a hundred stages must come within the capture of 1 s"]
fn after_the_last_event_of_a_cut_capture_nobody_is_blamed() {
    let Some(_alone) = crate::common::kernel::kernel() else {
        return;
    };
    let story = Story::capture("preempt", "20ms", "1s");
    let dir = story.dir.path().join("it");
    let [events, meta] = ["kernel.events", "meta.json"].map(|name| dir.join(name));
    let mut description: Value = serde_json::from_slice(&std::fs::read(&meta).unwrap()).unwrap();
    let whole = description.clone();
    description.as_object_mut().unwrap().remove("end").unwrap();
    cut(&events, &description);
    // Killed, and damaged later, with a description that states a good end.
    for description in [description, whole] {
        std::fs::write(&meta, serde_json::to_vec(&description).unwrap()).unwrap();
        let last = last_event(&description, &events).unwrap();
        let (out, messages) = printed(
            &["timeline", "it", "--json", "--slowest", "1000000"],
            story.dir.path(),
        );
        assert!(
            messages.contains("after the start: later times are unknown"),
            "{messages}"
        );
        let after = check_after(&lines(&out), last);
        assert!(after > 100, "{after} stages");
        let (out, _) = printed(&["timeline", "it", "--ndjson"], story.dir.path());
        check_last_intervals(&story, &lines(&out), last);
    }
}
