//! Tests of the losses of requests of several kinds, and of the sentence about them.

use std::collections::HashSet;

use ::requests::Ending;
use scene::{
    Activity, ActivitySum, BootNanos, Cpu, Interrupt, KernelEvent, Mark, Share, StageOfRequest,
    Tid, Waker,
};
use spdk_trace::{Lcore, ObjectName, TickRate, Ticks};

use super::*;
use crate::json;
use crate::source::{Events, Kernel, Ticker};
use crate::verdict::Verdict;
use crate::words;

const REACTOR: Tid = Tid(11);
const RUSTC: Tid = Tid(99);
const GZIP: Tid = Tid(98);
const KWORKER: Tid = Tid(97);
const CRON: Tid = Tid(96);
const PREEMPTOR: Tid = Tid(12);
const MS: u64 = 1_000_000;

struct Names;

impl Events for Names {
    fn events(&self) -> Box<dyn Iterator<Item = Result<KernelEvent, String>> + '_> {
        Box::new(std::iter::empty())
    }
    fn late(&self) -> u64 {
        0
    }
    fn name(&self, tid: Tid, _: BootNanos) -> Option<String> {
        let name = match tid {
            RUSTC => "rustc",
            GZIP => "gzip",
            KWORKER => "kworker",
            CRON => "cron",
            _ => "preemptor",
        };
        Some(name.to_owned())
    }
}

fn source() -> Source {
    Source {
        trace: None,
        ticker: Ticker::Stated(TickRate::new(1_000_000_000).unwrap()),
        kernel: Some(Kernel {
            events: Box::new(Names),
            threads: vec![REACTOR, PREEMPTOR],
            own_names: HashSet::new(),
            start: BootNanos(0),
            end: None,
            has_last: true,
        }),
        lcores: std::collections::HashMap::new(),
        calls_have_names: true,
        meta: None,
        notes: Vec::new(),
    }
}

/// Returns a request of one stage that begins at a time, and of which an activity took that long.
fn request(begin: u64, length: u64, taken: Option<(Activity, u64)>) -> Request<RequestLabels> {
    let mark = |(tpoint, at)| Mark {
        tpoint,
        ticks: Ticks(at),
        at: BootNanos(at),
        lcore: Lcore(1),
        tid: None,
    };
    let shares = taken.map(|(activity, took)| Share {
        activity,
        at_least: took - 1_000,
        at_most: took,
    });
    let stage = StageOfRequest {
        from: 1,
        to: 2,
        begin: BootNanos(begin),
        end: BootNanos(begin + length),
        lcore: Lcore(1),
        tid: Some(REACTOR),
        cpu: Some(Cpu(1)),
        ending: Ending::Either,
        ends: StageEnd::Found {
            usual: None,
            turn: 0,
        },
        intervals: Vec::new(),
        intervals_left_out: 0,
        sums: Vec::new(),
        shares: shares.into_iter().collect(),
        absent: taken.map_or(0, |(_, took)| took),
        unknown: 0,
        returned: taken.map(|(_, took)| (took, 0)),
    };
    Request {
        name: ObjectName {
            prefix: 'r',
            number: begin,
        },
        number: begin,
        related: None,
        related_number: None,
        records: [(1, begin), (2, begin + length)].map(mark).to_vec(),
        stages: vec![stage],
        size: 4096,
        depth: None,
        unfinished: false,
        is_perhaps_over: false,
        is_admin: Some(false),
        excluded: None,
        data: RequestLabels {
            group: Vec::new(),
            owner: None,
        },
    }
}

/// Returns the sentence on these requests, and what others took of the stage at each quantile.
fn judged(source: &Source, requests: &[Request<RequestLabels>]) -> (String, [(u64, u64); 3]) {
    let mut times = Times::default();
    for request in requests {
        times.whole.add(request.length());
        let stage = times.stages.entry((1, 2)).or_default();
        stage.add(request.length());
    }
    let mut loss = Loss::from_times(&times);
    for request in requests {
        loss.add(request, source);
    }
    let subject = Subject::from_request(&requests[0]);
    let sentence = Verdict::new(&[], &subject, &times, &loss).sentence(source);
    (sentence, loss.stages[&(1, 2)].taken())
}

/// Requests of two kinds: a few are fast but late, the others were stopped or preempted for 20 ms.
/// The percentile is that of a fast one, and nobody took anything of it.
#[test]
fn a_percentile_between_two_kinds_of_requests_loses_nothing_to_the_slow_kind() {
    let mut requests: Vec<_> = (0..1_976)
        .map(|nth| request(nth * MS, 100_000, None))
        .collect();
    requests.extend((0..4).map(|nth| request(nth * 50 * MS, 899_000, None)));
    // Five stalls of two requests each.
    for nth in 0..10 {
        let taken = Some((Activity::Stopped(None), 20 * MS + nth * 10_000));
        requests.push(request(nth / 2 * 100 * MS + nth, 21 * MS, taken));
    }
    for nth in 0..6 {
        let taken = Some((Activity::Waits(PREEMPTOR), 20 * MS));
        requests.push(request((50 + nth * 100) * MS, 22 * MS, taken));
    }
    let (sentence, at_quantiles) = judged(&source(), &requests);
    assert_eq!(
        sentence,
        "p99 of ? is 899 us, the slowest took 22.0 ms: of 20 requests at or beyond p99, 10 were \
         stopped for 20.0 ms to 20.1 ms each (5 stalls); 6 lost 20.0 ms each to preemptor [its \
         own thread] (6 stalls); 4 lost little or nothing to others"
    );
    assert_eq!(at_quantiles[0], (0, 0));
    assert_eq!(at_quantiles[1], (0, 0), "the stage at p99 lost nothing");
    assert_eq!(at_quantiles[2].1, 20 * MS, "that at p99.9 did");
}

/// One stall that delayed all requests beyond p99.9 is one event. The sentence is about p99, which
/// has the causes that recur, too.
#[test]
fn one_stall_of_many_requests_does_not_hide_the_causes_that_recur() {
    let mut requests: Vec<_> = (0..6_929)
        .map(|nth| request(nth * MS, 100_000, None))
        .collect();
    for nth in 0..63 {
        let taken = Some((Activity::Stopped(None), 20 * MS));
        requests.push(request(nth * 100 * MS, 20 * MS + 100_000, taken));
    }
    for nth in 0..8 {
        let taken = Some((Activity::Waits(RUSTC), 56 * MS));
        requests.push(request(9_000 * MS + nth, 69 * MS, taken));
    }
    let (sentence, _) = judged(&source(), &requests);
    assert_eq!(
        sentence,
        "p99 of ? is 20.1 ms, the slowest took 69.0 ms: of 71 requests at or beyond p99, 63 were \
         stopped for 20.0 ms each (63 stalls); 8 lost 56.0 ms each to rustc (one stall)"
    );
    let alone = judged(&source(), &requests[6_992..]).0;
    assert_eq!(
        alone,
        "p99 of ? is 69.0 ms: all 8 requests at or beyond p99 lost 56.0 ms each to rustc (one stall)"
    );
}

/// Stops by different senders are different causes.
#[test]
fn a_stop_is_attributed_to_the_sender_of_the_signal() {
    let stops = |from: u64, count: u64, by: Option<Tid>| {
        (from..from + count).map(move |nth| {
            let taken = Some((Activity::Stopped(by), 20 * MS));
            request(nth * 100 * MS, 21 * MS, taken)
        })
    };
    let mut requests: Vec<_> = stops(0, 6, Some(RUSTC)).collect();
    requests.extend(stops(6, 5, Some(PREEMPTOR)));
    requests.extend(stops(11, 4, Some(Tid(0))));
    let (sentence, _) = judged(&source(), &requests);
    let stopped = format!("stopped by rustc [{}]", RUSTC.0);
    let expected = format!(
        "6 were {stopped} for 20.0 ms each (6 stalls); 5 were stopped by preemptor [its own \
         thread] for 20.0 ms each (5 stalls); 4 were stopped by the kernel for 20.0 ms each (4 \
         stalls)"
    );
    assert!(sentence.ends_with(&expected), "{sentence}");
    let (sentence, _) = judged(&source(), &requests[..1]);
    assert!(
        sentence.ends_with(&format!("it was {stopped} for 20.0 ms")),
        "{sentence}"
    );
    let by_kernel = Activity::Stopped(Some(Tid(0)));
    assert_eq!(
        json::activity(&source(), by_kernel, BootNanos(0)),
        r#""activity":"stopped","by":{"tid":0,"comm":"the kernel","own":false}"#
    );
}

/// A call that blocks is one cause, however many threads end its waits: only one that ended most of
/// the time is named.
#[test]
fn a_call_that_blocks_names_who_ended_most_of_its_waits() {
    let call = kernel_delay::call_number("futex");
    let waits = |wakers: &[Waker]| {
        let waits = (0..).zip(wakers).map(|(nth, &by)| {
            let taken = Some((Activity::Blocked { call, by }, 50 * MS));
            request(nth * 100 * MS, 51 * MS, taken)
        });
        judged(&source(), &waits.collect::<Vec<_>>()).0
    };
    let [own, other] = [PREEMPTOR, RUSTC].map(Waker::Thread);
    let ends = |wakers: &[Waker], until: &str, times: &str| {
        let (sentence, each) = (waits(wakers), if wakers.len() == 1 { "" } else { " each" });
        let cause = format!("lost 50.0 ms{each} to its own call futex, which blocked");
        let expected = format!("{cause}{until}{times}");
        assert!(sentence.ends_with(&expected), "{sentence}");
    };
    ends(&[own], " until preemptor [12] woke it", "");
    ends(&[other], " until rustc [99] woke it", "");
    ends(&[own; 6], " until preemptor [12] woke it", " (6 stalls)");
    let mostly = [own, other, own, Waker::Unknown, own, own];
    ends(
        &mostly,
        " mostly until preemptor [12] woke it",
        " (6 stalls)",
    );
    let workers: Vec<Waker> = (0..40).map(|nth| Waker::Thread(Tid(200 + nth))).collect();
    ends(&workers, "", " (40 stalls)");
    let by_network = Waker::Interrupt(Interrupt::Soft(3));
    ends(&[by_network], " until the network's interrupt", "");
}

#[test]
fn a_wait_has_its_waker_in_words_and_json() {
    let source = source();
    let wait = |name, by| Activity::Blocked {
        call: kernel_delay::call_number(name),
        by,
    };
    let did = |name, by| words::did(&source, wait(name, by), BootNanos(0));
    let interrupt = |it| Waker::Interrupt(it);
    let timer = interrupt(Interrupt::Tick);
    let expected = [
        (did("futex", Waker::Unknown), "blocked in futex"),
        (
            did("futex", Waker::Thread(RUSTC)),
            "blocked in futex until rustc [99] woke it",
        ),
        (did("futex", timer), "blocked in futex until its timer"),
        (
            did("futex", interrupt(Interrupt::Soft(1))),
            "blocked in futex until its timer",
        ),
        (
            did("futex", interrupt(Interrupt::Soft(4))),
            "blocked in futex until softirq block",
        ),
        (
            did("pread64", interrupt(Interrupt::Hard(27))),
            "blocked in pread64 until irq 27",
        ),
        // Nothing else is to be expected.
        (did("clock_nanosleep", timer), "blocked in clock_nanosleep"),
        (
            did("clock_nanosleep", Waker::Thread(RUSTC)),
            "blocked in clock_nanosleep until rustc [99] woke it",
        ),
    ];
    for (words, expected) in expected {
        assert_eq!(words, expected);
    }
    let json = |by| json::activity(&source, wait("futex", by), BootNanos(0));
    let blocked = r#""activity":"blocked","call":"futex""#;
    assert_eq!(json(Waker::Unknown), blocked);
    let by = r#","by":{"tid":12,"comm":"preemptor","own":true}"#;
    assert_eq!(json(Waker::Thread(PREEMPTOR)), format!("{blocked}{by}"));
    let by = r#","interrupt":"timer tick""#;
    assert_eq!(json(timer), format!("{blocked}{by}"));
}

#[test]
fn all_that_was_done_has_the_waker_of_most_waits() {
    let call = kernel_delay::call_number("futex");
    let sum = |by, nanos| ActivitySum {
        activity: Activity::Blocked { call, by },
        count: 1,
        nanos,
    };
    let [worker, other] = [PREEMPTOR, RUSTC].map(Waker::Thread);
    let done = |sums: &[ActivitySum]| words::all_done(&source(), sums, BootNanos(0));
    assert_eq!(
        done(&[sum(worker, 50 * MS)]),
        "blocked in futex 50.0 ms (until preemptor [12] woke it)"
    );
    assert_eq!(
        done(&[sum(worker, 40 * MS), sum(other, 10 * MS)]),
        "blocked in futex 50.0 ms (2 times, mostly until preemptor [12] woke it)"
    );
    assert_eq!(
        done(&[sum(worker, 25 * MS), sum(other, 25 * MS)]),
        "blocked in futex 50.0 ms (2 times)"
    );
}

/// Causes beyond the third may have most of the requests: they have names and a bound, too.
#[test]
fn causes_beyond_the_third_are_named() {
    let mut requests: Vec<_> = (0..1_978)
        .map(|nth| request(nth * MS, 100_000, None))
        .collect();
    let takers = [
        (RUSTC, 40 * MS, 2),
        (PREEMPTOR, 30 * MS, 2),
        (GZIP, 20 * MS, 2),
        (KWORKER, 2 * MS, 10),
        (CRON, MS, 4),
    ];
    let mut begin = 0;
    for (tid, took, count) in takers {
        for _ in 0..count {
            begin += 50 * MS;
            requests.push(request(
                begin,
                took + MS,
                Some((Activity::Waits(tid), took)),
            ));
        }
    }
    let (sentence, _) = judged(&source(), &requests);
    assert!(
        sentence.ends_with(
            "2 lost 20.0 ms each to gzip (2 stalls); 14 lost up to 2.00 ms each to kworker, cron"
        ),
        "{sentence}"
    );
}

/// A user asks whose requests are slow before why: those near the slowest count, not those beyond a
/// percentile, which are usual ones if slow ones are rare.
#[test]
fn slow_requests_are_counted_by_connection() {
    let mut requests: Vec<_> = (0..2_000)
        .map(|nth| request(nth * MS, 100_000 + nth, None))
        .collect();
    for (owner, length) in [("b", 20), ("a", 19), ("b", 11), ("c", 9)] {
        let mut slow = request(0, length * MS, None);
        slow.data.owner = Some(owner.into());
        requests.push(slow);
    }
    let count = |requests: &[Request<RequestLabels>]| {
        let mut times = Times::default();
        for it in requests {
            times.whole.add(it.length());
        }
        let mut slow = SlowRequests::new(&times);
        for it in requests {
            slow.add(it);
        }
        slow
    };
    let slow = count(&requests);
    assert_eq!(slow.found(), Some((10 * MS, 3)));
    assert_eq!(slow.owners(), [("b", 2), ("a", 1)]);
    // No request is slow among even ones.
    assert_eq!(count(&requests[..2_000]).found(), None);
}
