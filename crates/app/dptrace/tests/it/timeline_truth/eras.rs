//! Every era of the trace file, both transports, and reactors that sleep.

use std::collections::HashSet;

use serde_json::Value;

use crate::common::kernel;
use crate::timeline_truth::story::{Stage, Story, Target, Times, number};

/// All eras of SPDK's trace file.
const ERAS: [&str; 7] = ["A", "B", "C", "D0", "D", "E", "F"];
/// Prefixes of the request records of each transport.
const TRANSPORTS: [&str; 2] = ["TCP_REQ", "RDMA_REQ"];
/// Number of captures of a target beyond the first.
const MORE_TRIES: usize = 8;

/// Starts a target with a trace of an era.
fn start(era: &'static str) -> (&'static str, Target) {
    let args = [
        "--trace-era",
        era,
        "--interrupt-mode",
        "--rate",
        "150",
        "--connections",
        "32",
    ];
    (era, Target::start(&format!("era-{era}"), &args))
}

#[test]
#[ignore = "deep truth: the reader must know 95 % of the stages, in one of nine tries"]
fn requests_of_every_era_and_transport_are_explained() {
    let Some(_alone) = kernel::kernel() else {
        return;
    };
    // All at once: they sleep most of the time.
    let targets: Vec<_> = testkit::on_last_cpu(|| ERAS.into_iter().map(start).collect());
    let capture = |(era, target): (&'static str, Target)| {
        let mut captured = target.captured("1s");
        let mut timeline = target.timeline();
        // On a busy machine a target may have no time for requests of both transports.
        for _ in 0..MORE_TRIES {
            if TRANSPORTS
                .iter()
                .all(|transport| timeline.contains(&first_record(transport)))
            {
                break;
            }
            captured = target.captured("2s");
            timeline = target.timeline();
        }
        (era, Story::end_with(target, captured, &timeline))
    };
    let threads: Vec<_> = targets
        .into_iter()
        .map(|target| std::thread::spawn(move || capture(target)))
        .collect();
    let (mut all, mut unknown) = (0, Vec::new());
    for thread in threads {
        let (era, story) = thread.join().unwrap();
        for transport in TRANSPORTS {
            all += check_transport(&story, era, transport, &mut unknown);
        }
        let summaries = || {
            story
                .lines
                .iter()
                .filter(|line| line.get("summary").is_some())
        };
        assert!(
            summaries().all(|line| line["sentence"]
                .as_str()
                .is_some_and(|text| !text.is_empty())),
            "{era}"
        );
        let woken: u64 = story
            .stages()
            .map(|stage| stage.blamed(|share| share["activity"] == "woken")[1])
            .sum();
        assert!(woken > 0, "{era}: nobody waited after a wake-up");
    }
    // Over all eras together: one hole, where the kernel skipped a switch, affects some stages of
    // one request, and on a busy machine a target may have only five requests of a transport.
    assert!(
        unknown.len() * 20 <= all,
        "of {all} stages not all is known of these: {unknown:#?}"
    );
}

/// Returns the name of the first record of a transport's requests.
fn first_record(transport: &str) -> String {
    format!("{transport}_NEW")
}

/// Checks the requests of a transport, from the first record to the last, with their threads.
/// Returns the number of their stages; adds the incompletely known ones to `unknown`.
fn check_transport(story: &Story, era: &str, transport: &str, unknown: &mut Vec<String>) -> usize {
    let first = first_record(transport);
    let requests: Vec<&Value> = story
        .requests()
        .filter(|request| request["first"] == first.as_str())
        .collect();
    assert!(!requests.is_empty(), "{era}: no request of {transport}");
    let mut all = 0;
    for request in requests {
        let stages = request["stages"].as_array().unwrap();
        let sum: u64 = stages.iter().map(|stage| number(stage, "length_ns")).sum();
        assert_eq!(sum, number(request, "length_ns"), "{era}: {request}");
        let named = |from: &str, to: &str| {
            let [from, to] = [from, to].map(|name| format!("{transport}_{name}"));
            stages
                .iter()
                .find(|stage| stage["from"] == from.as_str() && stage["to"] == to.as_str())
        };
        assert_eq!(
            named("RDY_TO_EXECUTE", "EXECUTING").unwrap()["ends"],
            "own work",
            "{era}: {request}"
        );
        assert_eq!(
            named("EXECUTING", "EXECUTED").unwrap()["ends"],
            "found",
            "{era}: {request}"
        );
        for stage in stages {
            assert!(
                story.captured.reactors.contains(&number(stage, "tid")),
                "{era}: {stage}"
            );
            all += 1;
            if number(stage, "unknown_ns") > 0 {
                unknown.push(format!("{era}: {stage}"));
            }
        }
    }
    all
}

/// Checks that the preemptors are blamed for no more of a stage than they were ordered to take.
#[track_caller]
fn check_preemptors(stage: &Stage<'_>, preemptors: &HashSet<u64>, ordered: &Times) {
    let is_preemptor = |share: &Value| {
        share["by"]["tid"]
            .as_u64()
            .is_some_and(|tid| preemptors.contains(&tid))
    };
    let [least, most] = stage.blamed(|share| is_preemptor(share) && share["activity"] == "woken");
    assert!(least <= most, "{}", stage.value);
    let ordered = if most > 0 { ordered.within(stage) } else { 0 };
    assert!(
        most <= ordered + 50_000,
        "{most} of {ordered} ns: {}",
        stage.value
    );
}

#[test]
#[ignore = "deep truth: it compares waits with the orders of a rival within 50 us"]
fn late_wakeups_are_blamed_and_sleep_is_not() {
    let Some(_alone) = kernel::kernel() else {
        return;
    };
    // The rival's preemptors take its CPU for 2 ms, every few milliseconds, at a higher priority.
    let delays = [
        "--interrupt-mode",
        "--inject",
        "preempt",
        "--inject-every",
        "5ms",
        "--inject-for",
        "2ms",
    ];
    let (rival, target) = testkit::on_last_cpu(|| {
        let target = Target::start(
            "sleeps",
            &["--interrupt-mode", "--rate", "500", "--life", "1000"],
        );
        (Target::start_without_trace("rival", &delays), target)
    });
    let captured = target.captured("1s");
    let (_dir, truth) = rival.end();
    let story = Story::end(target, captured);
    let injections = truth["injections"].as_array().unwrap();
    let preemptors: HashSet<u64> = injections
        .iter()
        .map(|it| number(&it["by"], "tid"))
        .collect();
    let ordered = Times::from_injections(&injections.iter().collect::<Vec<_>>());
    let mut woken = 0;
    for stage in story.stages() {
        check_preemptors(&stage, &preemptors, &ordered);
        // By any thread: on a busy machine the preemptors may seldom be the cause.
        let [_, most] = stage.blamed(|share| share["activity"] == "woken");
        woken += u64::from(most > 0);
        // A thread on its CPU in such a call is not asleep: on a busy machine that alone may be
        // long enough to be blamed.
        let is_poll = |share: &Value| {
            share["call"]
                .as_str()
                .is_some_and(|call| call.starts_with("epoll"))
        };
        let slept = |share: &Value| share["activity"] == "blocked" && is_poll(share);
        assert_eq!(stage.blamed(slept), [0, 0], "{}", stage.value);
    }
    assert!(woken > 0, "nobody waited after a wake-up");
    // Reactors slept, and waited no longer than the kernel counts.
    let intervals = story.intervals();
    let sum = |what: &[&str]| -> u64 {
        let its = intervals
            .iter()
            .filter(|it| story.captured.reactors.contains(&number(it, "tid")));
        let its = its.filter(|it| what.contains(&it["activity"].as_str().unwrap()));
        its.map(|it| number(it, "to_ns") - number(it, "from_ns"))
            .sum()
    };
    let (waits, waited) = (sum(&["preempted", "woken"]), story.captured.waited);
    assert!(
        waits <= waited + waited / 20 + 2_000_000,
        "{waits} of {waited} ns"
    );
    // On a busy machine they may seldom be idle.
    assert!(sum(&["blocked"]) > 0, "they never slept");
}
