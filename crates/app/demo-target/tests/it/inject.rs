//! Delays with a known cause: the truth agrees with itself and with the trace.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::common::run;
use demo_target::{Cause, End, EndedBy, InjectionTruth, Truth};
use spdk_trace::RawTrace;

/// Options for rings that don't wrap, and time for some delays of each cause on each reactor.
const LOAD: [&str; 12] = [
    "--requests",
    "2000",
    "--rate",
    "5000",
    "--for",
    "2m",
    "--slots",
    "65536",
    "--inject-every",
    "10ms",
    "--inject-for",
    "1ms",
];
/// Limit on the wait for a delay that must come.
const TIMEOUT: Duration = Duration::from_mins(1);
const CAUSES: [Cause; 6] = [
    Cause::Own,
    Cause::Preempt,
    Cause::Softirq,
    Cause::Irq,
    Cause::Stop,
    Cause::Syscall,
];

/// One run with all causes, and its trace, which several tests use.
static RUN: LazyLock<(Truth, Vec<u8>)> = LazyLock::new(|| {
    let left = run(&[
        &LOAD[..],
        &["--keep", "--inject", "own,preempt,softirq,irq,stop,syscall"],
    ]
    .concat());
    (left.truth.clone(), left.take_trace())
});

/// Returns the delays of one cause. Asserts that there are some at each kind of stage.
fn delays_by(cause: Cause) -> Vec<InjectionTruth> {
    let all: Vec<_> = RUN
        .0
        .injections
        .iter()
        .filter(|it| it.cause == cause)
        .cloned()
        .collect();
    for ended_by in [EndedBy::Reactor, EndedBy::Device] {
        let at = |it: &InjectionTruth| !it.elsewhere && it.requests[0].ended_by == ended_by;
        assert!(all.iter().any(at), "{ended_by:?}: {all:#?}");
    }
    all
}

/// Checks facts that hold for every delay, for every cause, and however busy the machine is.
#[test]
fn the_truth_agrees_with_the_trace() {
    let trace = RawTrace::read(RUN.1.as_slice()).unwrap();
    let mut records = BTreeSet::new();
    trace.for_each(|record| {
        records.insert((record.tpoint.name.clone(), record.tsc.0));
        ControlFlow::Continue(())
    });
    for injection in &RUN.0.injections {
        // The effect of another reactor's delay on this one is only in the gap.
        let gap = injection
            .gaps
            .first()
            .filter(|_| injection.elsewhere)
            .copied();
        let [begin, end] = gap.unwrap_or([injection.begin.ticks, injection.end.ticks]);
        let gaps: u64 = injection.gaps.iter().map(|[from, to]| to - from).sum();
        assert!(
            injection
                .gaps
                .iter()
                .all(|[from, to]| begin <= *from && from < to && *to <= end),
            "{injection:?}"
        );
        assert!(
            injection.cause == Cause::Own || injection.taken >= gaps,
            "{injection:?}"
        );
        assert!(injection.taken <= end - begin, "{injection:?}");
        for request in &injection.requests {
            // From one poll to the next it may also have done some work, before it was stopped.
            let latest = if injection.elsewhere { end } else { begin };
            assert!(
                request.since <= latest && request.until.unwrap() >= end,
                "{injection:?}"
            );
            assert!(
                records.contains(&(request.stage.clone(), request.since)),
                "{request:?}"
            );
            assert!(
                records.contains(&(request.next.clone(), request.until.unwrap())),
                "{request:?}"
            );
        }
    }
}

#[test]
#[ignore = "deep truth: delays must come at each kind of stage within the run"]
fn the_reactors_own_code_is_no_gap() {
    let length = RUN.0.tsc_rate / 1_000;
    for injection in delays_by(Cause::Own) {
        let gaps: u64 = injection.gaps.iter().map(|[from, to]| to - from).sum();
        assert_eq!(
            injection.taken + gaps,
            injection.end.ticks - injection.begin.ticks
        );
        assert!(injection.taken + gaps >= length, "{injection:?}");
        assert!(injection.by.is_none() && injection.syscall.is_none());
    }
}

/// Returns the nanoseconds that a cause took from the reactor.
fn taken(injection: &InjectionTruth) -> u64 {
    let (begin, end) = (injection.begin, injection.end);
    let (ticks, nanos) = (end.ticks - begin.ticks, end.monotonic - begin.monotonic);
    (u128::from(injection.taken) * u128::from(nanos) / u128::from(ticks)) as u64
}

#[test]
#[ignore = "deep truth: it holds two clocks against each other, within 1 %"]
fn a_preemptor_takes_the_reactors_cpu() {
    for injection in delays_by(Cause::Preempt) {
        let by = injection.by.as_ref().unwrap();
        assert_eq!(by.comm, format!("preemptor_{}", injection.lcore));
        // Both are on one CPU, so the reactor did not run while the other one did. Gaps of less
        // than 2 us are not counted.
        assert!(
            taken(&injection) * 100 >= by.ran.unwrap() * 99,
            "{injection:?}"
        );
    }
}

#[test]
#[ignore = "deep truth: it judges the length of a delay, by two clocks"]
fn a_system_call_blocks_the_reactor() {
    for injection in delays_by(Cause::Syscall) {
        assert_eq!(
            (injection.syscall, injection.calls),
            (Some(libc::SYS_nanosleep as u32), Some(1))
        );
        assert!(taken(&injection) >= 990_000, "{injection:?}");
    }
}

#[test]
#[ignore = "deep truth: it judges the length of a delay, and both reactors must run around it"]
fn a_stop_takes_all_reactors() {
    let injections = delays_by(Cause::Stop);
    for injection in &injections {
        assert_eq!(injection.by.as_ref().unwrap().comm, "stopper");
        // A reactor that was kept from its CPU meanwhile may have noticed only a part.
        assert!(
            injection.elsewhere || taken(injection) >= 990_000,
            "{injection:?}"
        );
    }
    // On a busy machine the other reactor did not run for long before or after: then it is a gap of
    // unknown cause.
    let overlaps = |begin, end| {
        injections
            .iter()
            .any(|it| begin < it.end.ticks && it.begin.ticks < end)
    };
    let has_gap = || RUN.0.gaps.iter().any(|gap| overlaps(gap.begin, gap.end));
    assert!(
        injections.iter().any(|it| it.elsewhere) || has_gap(),
        "{injections:#?}"
    );
}

#[test]
#[ignore = "deep truth: the interrupts must take time from the reactor at each kind of stage"]
fn packets_make_soft_interrupts() {
    for injection in delays_by(Cause::Softirq) {
        assert_eq!(injection.syscall, Some(libc::SYS_sendto as u32));
        assert!(
            injection.calls.unwrap() > 0 && injection.taken > 0,
            "{injection:?}"
        );
    }
}

#[test]
#[ignore = "deep truth: the interrupts must take time from the reactor at each kind of stage"]
fn timers_make_hard_interrupts() {
    for injection in delays_by(Cause::Irq) {
        assert_eq!(injection.syscall, Some(libc::SYS_timerfd_settime as u32));
        assert!(
            injection.calls.unwrap() > 0 && injection.taken > 0,
            "{injection:?}"
        );
    }
}

#[test]
#[ignore = "deep truth: a busy CPU may make the target go without a cause, so that turns differ"]
fn causes_take_turns() {
    for lcore in 0..2 {
        let here = RUN
            .0
            .injections
            .iter()
            .filter(|it| !it.elsewhere && it.lcore == lcore);
        let causes: Vec<_> = here.map(|it| it.cause).collect();
        assert!(
            causes
                .chunks(CAUSES.len())
                .all(|turn| turn == &CAUSES[..turn.len()]),
            "{causes:?}"
        );
    }
}

#[test]
fn causes_come_one_at_a_time() {
    let here = RUN.0.injections.iter().filter(|it| !it.elsewhere);
    let mut times: Vec<_> = here.map(|it| (it.begin.ticks, it.end.ticks)).collect();
    times.sort_unstable();
    assert!(
        times.windows(2).all(|pair| pair[0].1 <= pair[1].0),
        "{times:?}"
    );
}

#[test]
fn nothing_is_injected_for_comparison() {
    let truth = run(&[
        "--requests",
        "500",
        "--rate",
        "5000",
        "--no-trace-file",
        "--inject",
        "none",
        "--for",
        "5m",
    ])
    .truth;
    assert_eq!((truth.injections.len(), truth.requests_completed), (0, 500));
}

/// Sleeping reactors do the same work, and the causes of their delays are known as well.
#[test]
fn reactors_that_sleep_are_delayed_as_well() {
    // Two targets at a time would delay one another.
    LazyLock::force(&RUN);
    let args = [
        "--requests",
        "500",
        "--rate",
        "5000",
        "--for",
        "2m",
        "--no-trace-file",
        "--interrupt-mode",
    ];
    // On a busy machine a run of 0.1 s may be over before the preemptor gets the CPU.
    let until = Instant::now() + TIMEOUT;
    let is_delayed = || {
        let truth = run(&[
            &args[..],
            &["--inject", "own,preempt", "--inject-every", "5ms"],
        ]
        .concat())
        .truth;
        assert_eq!(
            (truth.ended, truth.requests_completed),
            (End::Requests, 500)
        );
        truth.injections.iter().any(|it| it.cause == Cause::Preempt)
    };
    while !is_delayed() {
        assert!(Instant::now() < until, "no delay by the preemptor");
    }
    let idle = run(&args).truth;
    assert_eq!((idle.requests_completed, idle.injections.len()), (500, 0));
}
