//! Output of `dptrace timeline` for a capture, compared with a target's own record of its delays.

mod causes;
mod eras;
mod story;
mod switches;

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
    let len = events.metadata().unwrap().len();
    std::fs::File::options()
        .write(true)
        .open(&events)
        .unwrap()
        .set_len(len * 2 / 5)
        .unwrap();
    let source = || Some(std::sync::Arc::new(std::fs::read(&events).unwrap()) as capture::Source);
    // Killed, and damaged later, with a description that states a good end.
    for description in [description, whole] {
        let description = serde_json::to_vec(&description).unwrap();
        std::fs::write(&meta, &description).unwrap();
        let reader = capture::Reader::open(&description, None, source()).unwrap();
        let last = reader
            .events()
            .unwrap()
            .map_while(Result::ok)
            .map(|event| event.at.0)
            .max()
            .unwrap();
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
