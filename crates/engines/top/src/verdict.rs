//! Verdict in words: the slowest connection, and who takes its thread's time.

use ordering::Order as _;

use crate::sample::{Connection, Kind as _, Part, Phase, Sample, Share, Thread, Traffic};
use crate::table::percent;
use crate::views::short_name;

/// Minimum share of a thread's time taken by the kernel for a line: a twentieth, as in the verdicts
/// of `dptrace timeline`.
const MIN_REPORTED_SHARE: f64 = 0.05;

/// Minimum share of a thread's time for which a way of losing it is named.
const MIN_NAMED_SHARE: f64 = 0.01;

/// Returns a line on the slowest connection, and one on a thread that lost time, if there are any.
pub(crate) fn lines(sample: &Sample) -> Vec<String> {
    let slowest = sample
        .traffic
        .as_ref()
        .and_then(|traffic| Some((traffic, slowest(traffic)?)));
    let thread = worst_thread(sample, slowest.map(|(_, connection)| connection));
    let of_slowest = slowest.map(|(traffic, connection)| connection_line(traffic, connection));
    of_slowest
        .into_iter()
        .chain(thread.map(|thread| thread_line(thread, slowest)))
        .collect()
}

/// Returns the connection with the greatest p99; `None` if no request ended.
fn slowest(traffic: &Traffic) -> Option<&Connection> {
    let ended = traffic
        .connections
        .iter()
        .filter(|connection| connection.times.count() > 0);
    ended.max_by_key(|connection| (connection.times.quantile(0.99), connection.times.max()))
}

fn connection_line(traffic: &Traffic, connection: &Connection) -> String {
    let identity = &connection.identity;
    let queue = identity
        .queue
        .map(|queue| format!(" qid {queue}"))
        .unwrap_or_default();
    let of = if identity.host.is_empty() { "" } else { " of " };
    let [p99, max] = [connection.times.quantile(0.99), connection.times.max()].map(screen::time);
    let spent = connection.slowest.first().and_then(|request| {
        let mut phases: Share<Phase> = Share::default();
        for &(place, nanos) in &request.stages {
            let phase = traffic
                .stages
                .get(usize::from(place))
                .and_then(|stage| stage.phase);
            phases.add(phase.unwrap_or(Phase::Target), nanos);
        }
        let (phase, _, name) = Phase::ALL
            .iter()
            .max_by_key(|(phase, ..)| phases.get(*phase))?;
        (phases.get(*phase) > 0)
            .then(|| format!(" ({} of it {name})", percent(phases.share(*phase))))
    });
    // The line has 80 columns on a small terminal. The table has more of the names, and the details
    // have them whole.
    let [name, host] = [(&identity.subnqn, 16), (&identity.host, 14)]
        .map(|(name, width)| screen::shorten(short_name(name), width));
    format!(
        "slowest: {name}{queue}{of}{host}: p99 {p99}, max {max}{}",
        spent.unwrap_or_default()
    )
}

/// Returns the thread of the slowest connection if it lost enough, or else, of those that work for
/// connections, the one that lost most. Without connections all threads count.
fn worst_thread<'a>(sample: &'a Sample, slowest: Option<&Connection>) -> Option<&'a Thread> {
    let lost = || {
        sample
            .threads
            .iter()
            .flatten()
            .filter(|thread| thread.taken() >= MIN_REPORTED_SHARE)
    };
    let own = slowest.and_then(|connection| lost().find(|thread| connection.is_of(thread)));
    let works = |thread: &&Thread| match &sample.traffic {
        Some(traffic) => traffic
            .connections
            .iter()
            .any(|connection| connection.is_of(thread)),
        None => true,
    };
    own.or_else(|| {
        lost()
            .filter(works)
            .max_by(|a, b| a.taken().total_cmp(&b.taken()))
    })
}

/// Returns the line of a thread that lost time, with its relation to the slowest request.
fn thread_line(thread: &Thread, slowest: Option<(&Traffic, &Connection)>) -> String {
    let (whose, relation) = match slowest {
        None => ("", String::new()),
        Some((traffic, connection)) if connection.is_of(thread) => {
            let is_sampled = traffic.read < traffic.written;
            ("its thread ", at_once(thread, connection, is_sampled))
        }
        Some(_) => ("not its thread: ", String::new()),
    };
    let blame = thread
        .blame
        .as_ref()
        .map(|blame| format!(", {blame}"))
        .unwrap_or_default();
    let lost = screen::time(thread.parts.taken());
    let ways = ways_of_loss(thread);
    format!(
        "{whose}{} lost {} ({lost}{ways}{relation}){blame}",
        thread.name,
        percent(thread.taken())
    )
}

/// Says in which ways a thread lost time, the longest first, unless it only waited for a CPU.
fn ways_of_loss(thread: &Thread) -> String {
    let of = |parts: &[Part]| -> u64 { parts.iter().map(|&part| thread.parts.get(part)).sum() };
    let mut ways = [
        (of(&[Part::Waited]), "waited"),
        (of(&[Part::Stopped]), "stopped"),
        (of(&[Part::Hard, Part::Soft]), "interrupts"),
    ];
    ways.order_by_key(|(nanos, _)| std::cmp::Reverse(*nanos));
    let share = |nanos| screen::share(nanos, thread.window);
    let named: Vec<String> = ways
        .into_iter()
        .filter(|(nanos, _)| share(*nanos) >= MIN_NAMED_SHARE)
        .map(|(nanos, way)| format!("{} {way}", percent(share(nanos))))
        .collect();
    match named.as_slice() {
        [] => String::new(),
        [only] if only.ends_with("waited") => String::new(),
        _ => format!(": {}", named.join(", ")),
    }
}

/// Says how long a thread was away at once, and whether that is long enough for the slowest request:
/// a stage that waits for a device ends only once its thread sees the device's answer.
fn at_once(thread: &Thread, connection: &Connection, is_sampled: bool) -> String {
    if thread.longest_wait == 0 {
        return String::new();
    }
    let max = connection.times.max();
    let verdict = match thread.longest_wait {
        // A request in flight meanwhile would have taken as long. Of a part of the second, such a
        // request is not read.
        wait if wait > max && is_sampled => "longer than all requests that were read",
        wait if wait > max => "none of its requests met that",
        wait if wait >= max / 2 => "that can explain the max",
        _ => "too short for that max",
    };
    let longest = screen::time(thread.longest_wait);
    format!("; {longest} at once: {verdict}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Identity, Request, Stage};

    fn connection(name: &str, thread: &str, nanos: u64) -> Connection {
        let identity = Identity {
            subnqn: format!("nqn.2016-06.io.spdk:{name}"),
            queue: Some(3),
            ..Identity::default()
        };
        let slowest = vec![Request {
            nanos,
            stages: vec![(1, nanos / 4), (2, nanos / 4 * 3)],
            ..Request::default()
        }];
        let (identity, thread) = (identity.into(), Some(thread.into()));
        let mut connection = Connection {
            identity,
            thread,
            slowest,
            ..Connection::default()
        };
        connection.times.add(nanos);
        connection
    }

    fn thread(name: &str, waited: u64, blame: Option<&str>) -> Thread {
        let blame = blame.map(str::to_owned);
        let mut thread = Thread {
            name: name.to_owned(),
            window: 1_000_000_000,
            blame,
            ..Thread::default()
        };
        thread.parts.add(Part::Waited, waited);
        thread.parts.add(Part::Own, 1_000_000_000 - waited);
        thread
    }

    fn sample(waited: [u64; 3]) -> Sample {
        let stages = [None, Some(Phase::Target), Some(Phase::Device)];
        let stages = stages
            .map(|phase| Stage {
                phase,
                ..Stage::default()
            })
            .to_vec();
        let connections = vec![
            connection("fast", "reactor_0", 50_000),
            connection("slow", "reactor_1", 2_000_000),
        ];
        let traffic = Traffic {
            connections,
            stages,
            ..Traffic::default()
        };
        let [of_0, of_1, other] = waited;
        let threads = vec![
            thread("reactor_0", of_0, None),
            thread("reactor_1", of_1, Some("mostly to yes [1]")),
            thread("x", other, None),
        ];
        Sample {
            traffic: Some(traffic),
            threads: Some(threads),
            ..Sample::default()
        }
    }

    #[test]
    fn the_slowest_connection_and_its_thread_are_named() {
        let lines = lines(&sample([900_000_000, 290_000_000, 0]));
        assert_eq!(
            lines[0],
            "slowest: slow qid 3: p99 2.00 ms, max 2.00 ms (75% of it device)"
        );
        assert_eq!(
            lines[1],
            "its thread reactor_1 lost 29% (290 ms), mostly to yes [1]"
        );
    }

    #[test]
    fn a_wait_of_its_thread_can_explain_the_slowest_request() {
        let line = |longest_wait| {
            let mut sample = sample([0, 290_000_000, 0]);
            let threads = sample.threads.as_mut().expect("they are there");
            threads[1].longest_wait = longest_wait;
            lines(&sample)[1].clone()
        };
        assert_eq!(
            line(1_000_000),
            "its thread reactor_1 lost 29% (290 ms; 1.00 ms at once: that can explain the max), \
             mostly to yes [1]"
        );
        assert!(line(900_000).contains("900 us at once: too short for that max"));
        assert!(line(9_000_000).contains("9.00 ms at once: none of its requests met that"));
    }

    #[test]
    fn another_thread_is_named_if_it_works_for_connections() {
        assert!(
            lines(&sample([900_000_000, 1_000_000, 0]))[1]
                .starts_with("not its thread: reactor_0 lost 90% (900 ms)")
        );
        assert_eq!(lines(&sample([1_000_000, 0, 900_000_000])).len(), 1);
        let threads_only = Sample {
            traffic: None,
            ..sample([0, 0, 900_000_000])
        };
        assert!(
            lines(&threads_only)[0].starts_with("x lost"),
            "without a trace all count"
        );
        assert!(lines(&Sample::default()).is_empty());
    }
}
