//! Stages of single requests, with the activities of their threads.

use std::collections::HashMap;

use scene::{
    Activity, Consumer as _, Cpu, EventKind, Interrupt, LeaveReason, Setting, Share, Survey, Waker,
};

use super::{IDLE, PREEMPTOR, REACTOR, event, join, setting, switch};

#[test]
fn a_stage_has_what_its_thread_did() {
    let events = [
        switch(100, REACTOR, LeaveReason::Preempted, PREEMPTOR),
        switch(400, PREEMPTOR, LeaveReason::Blocked, REACTOR),
        event(
            500,
            EventKind::Begin {
                tid: REACTOR,
                interrupt: Interrupt::Tick,
            },
        ),
        event(
            510,
            EventKind::End {
                tid: REACTOR,
                interrupt: Interrupt::Tick,
            },
        ),
    ];
    let all = join(setting(), &events, &[(0, 0, 50), (1, 0, 450), (2, 0, 520)]);
    let request = &all.requests[0];
    assert_eq!(
        (request.length(), request.data, request.unfinished),
        (470, 3, false)
    );
    let shares: Vec<_> = request
        .stages
        .iter()
        .map(|stage| stage.shares.clone())
        .collect();
    let share = |activity, took| {
        vec![Share {
            activity,
            at_least: took,
            at_most: took,
        }]
    };
    let expected = [
        share(Activity::Waits(PREEMPTOR), 300),
        share(Activity::Interrupted(Interrupt::Tick), 10),
    ];
    assert_eq!(shares, expected);
    assert_eq!(request.stages[0].cpu, Some(Cpu(1)));
    let lengths: Vec<_> = request.stages[0]
        .intervals
        .iter()
        .map(|it| (it.length(), it.activity))
        .collect();
    assert_eq!(
        lengths,
        [
            (50, Activity::Runs),
            (300, Activity::Waits(PREEMPTOR)),
            (50, Activity::Runs)
        ]
    );
}

#[test]
fn all_intervals_of_a_stage_are_summed_up() {
    let switches = |i: u64| {
        let at = 100 + 10 * i;
        [
            switch(at, REACTOR, LeaveReason::Preempted, PREEMPTOR),
            switch(at + 3, PREEMPTOR, LeaveReason::Blocked, REACTOR),
        ]
    };
    let events: Vec<_> = (0..3_000).flat_map(switches).collect();
    let stage = &join(setting(), &events, &[(0, 0, 100), (1, 0, 30_100)]).requests[0].stages[0];
    let sums: Vec<_> = stage
        .sums
        .iter()
        .map(|sum| (sum.activity, sum.count, sum.nanos))
        .collect();
    assert_eq!(
        sums,
        [
            (Activity::Runs, 3_000, 21_000),
            (Activity::Waits(PREEMPTOR), 3_000, 9_000)
        ]
    );
    assert_eq!(
        (stage.intervals.len(), stage.intervals_left_out),
        (2_048, 3_952)
    );
}

#[test]
fn a_reactor_that_sleeps_is_woken_and_waits_for_the_cpu() {
    let events = [
        event(
            10,
            EventKind::CallEnter {
                tid: REACTOR,
                number: 232,
            },
        ),
        switch(20, REACTOR, LeaveReason::Blocked, IDLE),
        event(
            700,
            EventKind::Wake {
                tid: REACTOR,
                on: Cpu(1),
                by: Waker::Unknown,
            },
        ),
        switch(790, IDLE, LeaveReason::Preempted, REACTOR),
        event(795, EventKind::CallExit { tid: REACTOR }),
    ];
    let usual = {
        let mut survey = Survey::default();
        let all = join(
            setting(),
            &[event(
                900,
                EventKind::CallEnter {
                    tid: REACTOR,
                    number: 0,
                },
            )],
            &[(2, 9, 0), (3, 9, 600)],
        );
        for request in &all.requests {
            survey.request(request);
        }
        survey.finish()
    };
    assert_eq!(usual.longest((2, 3)), Some(600));
    let all = join(
        Setting { usual, ..setting() },
        &events,
        &[(2, 0, 0), (3, 0, 800)],
    );
    // Asleep it waited for the device; from the wake-up on, for the kernel.
    let shares = &all.requests[0].stages[0].shares;
    assert_eq!(
        *shares,
        [Share {
            activity: Activity::Woken(IDLE),
            at_least: 90,
            at_most: 90
        }]
    );
}

#[test]
fn time_of_unknown_threads_is_not_blamed() {
    let events = [
        switch(100, REACTOR, LeaveReason::Preempted, PREEMPTOR),
        switch(400, PREEMPTOR, LeaveReason::Blocked, REACTOR),
    ];
    let all = join(
        Setting {
            lcores: HashMap::new(),
            ..setting()
        },
        &events,
        &[(0, 0, 50), (1, 0, 450)],
    );
    let stage = &all.requests[0].stages[0];
    assert_eq!(
        (stage.shares.len(), stage.unknown, stage.tid),
        (0, 400, None)
    );
    assert!(
        all.events >= 2 && all.intervals[&REACTOR].len() == 3,
        "{:?}",
        all.intervals
    );
}
