//! Delays with a known cause: the truth agrees with itself and with the trace.
#![expect(clippy::unwrap_used, reason = "a test says what it saw by panicking")]

mod common;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use common::{Left, run};
use demo_target::{Cause, EndedBy, InjectionTruth};
use spdk_trace::RawTrace;

/// Rings that don't wrap, and time for some delays of each cause on each reactor.
const LOAD: [&str; 10] =
    ["--requests", "1000", "--rate", "5000", "--for", "1m", "--slots", "65536", "--inject-every", "20ms"];

fn delayed_by(causes: &str) -> Left {
    run(&[&LOAD[..], &["--inject-for", "1ms", "--keep", "--inject", causes]].concat())
}

/// What is true of every delay, whatever its cause, and however busy the machine is.
fn check(left: &Left, causes: &[Cause]) -> Vec<InjectionTruth> {
    let (truth, bytes) = (&left.truth, left.take_trace());
    let trace = RawTrace::read(bytes.as_slice()).unwrap();
    let mut records = BTreeSet::new();
    trace.for_each(|record| {
        records.insert((record.tpoint.name.clone(), record.tsc.0));
        ControlFlow::Continue(())
    });
    for cause in causes {
        let of = |ended_by| truth.injections.iter().filter(move |it| it.requests[0].ended_by == ended_by);
        for ended_by in [EndedBy::Reactor, EndedBy::Device] {
            assert!(of(ended_by).any(|it| it.cause == *cause), "{cause:?}, {ended_by:?}: {:#?}", truth.injections);
        }
    }
    for injection in &truth.injections {
        let (begin, end) = (injection.begin.ticks, injection.end.ticks);
        assert!(causes.contains(&injection.cause), "{injection:?}");
        assert!(injection.gaps.iter().all(|[from, to]| begin <= *from && from < to && *to <= end), "{injection:?}");
        assert!(injection.taken <= end - begin, "{injection:?}");
        for request in &injection.requests {
            assert!(request.since <= begin && request.until.unwrap() >= end, "{injection:?}");
            assert!(records.contains(&(request.stage.clone(), request.since)), "{request:?}");
            assert!(records.contains(&(request.next.clone(), request.until.unwrap())), "{request:?}");
        }
    }
    truth.injections.clone()
}

#[test]
fn a_preemptor_takes_the_reactors_cpu() {
    let left = delayed_by("preempt");
    let rate = u128::from(left.truth.tsc_rate);
    for injection in check(&left, &[Cause::Preempt]) {
        let by = injection.by.as_ref().unwrap();
        assert_eq!(by.comm, format!("preemptor_{}", injection.lcore));
        // Both are on one CPU, so the reactor did not run while the other one did. Gaps of less than 2 us are not counted.
        let ran = u128::from(by.ran.unwrap()) * rate / 1_000_000_000;
        assert!(u128::from(injection.taken) * 100 >= ran * 99, "{injection:?}");
    }
}

#[test]
fn its_own_code_takes_nothing_from_the_cpu() {
    let left = delayed_by("own");
    let length = left.truth.tsc_rate / 1_000;
    for injection in check(&left, &[Cause::Own]) {
        let gaps: u64 = injection.gaps.iter().map(|[from, to]| to - from).sum();
        assert_eq!(injection.taken + gaps, injection.end.ticks - injection.begin.ticks);
        assert!(injection.taken + gaps >= length, "{injection:?}");
        assert!(injection.by.is_none() && injection.syscall.is_none());
    }
}

#[test]
fn causes_take_turns() {
    let left = delayed_by("own,preempt");
    let injections = check(&left, &[Cause::Own, Cause::Preempt]);
    for lcore in 0..2 {
        let causes: Vec<_> = injections.iter().filter(|it| it.lcore == lcore).map(|it| it.cause).collect();
        assert!(
            causes.chunks(2).all(|pair| pair[0] == Cause::Own && pair.get(1).is_none_or(|it| *it == Cause::Preempt))
        );
    }
    // One at a time, so no reactor's delay delays the other one.
    let mut times: Vec<_> = injections.iter().map(|it| (it.begin.ticks, it.end.ticks)).collect();
    times.sort_unstable();
    assert!(times.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{times:?}");
}

#[test]
fn nothing_is_injected_for_comparison() {
    let truth = run(&[&LOAD[..], &["--no-trace-file", "--inject", "none"]].concat()).truth;
    assert_eq!((truth.injections.len(), truth.requests_completed), (0, 1_000));
}
