//! Tests of the merger of seconds.

use super::*;

#[test]
fn a_second_is_given_when_it_is_whole() {
    let mut merger = Merger::new(true, true, &Observer::silent());
    merger.take(Part::Threads(1, Vec::new()));
    assert!(merger.next(SECOND).is_none());
    merger.take(Part::Traffic(1, Box::default(), Vec::new()));
    merger.take(Part::Traffic(2, Box::default(), Vec::new()));
    assert_eq!(merger.next(SECOND).map(|sample| sample.number), Some(1));
    assert!(merger.next(SECOND).is_none());
    let late = merger.next(SECOND * 2 + MAX_PART_DELAY);
    assert!(late.is_some_and(|sample| sample.threads.is_none() && sample.traffic.is_some()));
    // Its other part comes after all: the second is not handed out again.
    merger.take(Part::Threads(2, Vec::new()));
    assert!(merger.next(SECOND * 2 + MAX_PART_DELAY).is_none());
    // The kernel had no time for the third.
    merger.take(Part::Traffic(3, Box::default(), Vec::new()));
    merger.take(Part::Threads(4, Vec::new()));
    assert_eq!(merger.next(SECOND).map(|sample| sample.number), Some(3));
    merger.take(Part::Over(Source::Kernel, None));
    merger.take(Part::Traffic(5, Box::default(), Vec::new()));
    assert_eq!(merger.next(SECOND).map(|sample| sample.number), Some(4));
    assert_eq!(merger.next(SECOND).map(|sample| sample.number), Some(5));
    assert!(merger.is_last());
}

#[test]
fn cpus_are_waited_for_once_they_come() {
    let mut merger = Merger::new(true, false, &Observer::silent());
    let traffic = |second| Part::Traffic(second, Box::default(), Vec::new());
    let cpus = |second| Part::Cpus(second, Vec::new());
    merger.take(traffic(1));
    assert!(
        merger
            .next(SECOND)
            .is_some_and(|sample| sample.cpus.is_none())
    );
    merger.take(cpus(1));
    assert!(merger.next(SECOND).is_none(), "it was given");
    merger.take(traffic(2));
    assert!(merger.next(SECOND).is_none());
    merger.take(cpus(2));
    assert!(
        merger
            .next(SECOND)
            .is_some_and(|sample| sample.cpus.is_some() && sample.traffic.is_some())
    );
    // The trace had no time for the third.
    merger.take(cpus(3));
    merger.take(traffic(4));
    merger.take(cpus(4));
    assert_eq!(merger.next(SECOND * 4).map(|sample| sample.number), Some(4));
    merger.take(Part::Over(Source::Cpus, Some(anyhow::anyhow!("no rights"))));
    merger.take(traffic(5));
    assert!(
        merger.next(SECOND * 5).is_some() && merger.no_cpus.take().as_deref() == Some("no rights")
    );
}

#[test]
fn pollers_get_what_was_taken_from_their_reactor() {
    let mut merger = Merger::new(false, true, &Observer::silent());
    let poller = |reactor: &str| Poller {
        reactor: Some(reactor.to_owned()),
        ..Poller::default()
    };
    merger.take(Part::Pollers(
        1,
        vec![poller("reactor_0"), poller("reactor_1")],
    ));
    assert!(
        merger.next(SECOND).is_none(),
        "the kernel's part is missing"
    );
    let mut thread = Thread {
        name: "reactor_1".to_owned(),
        window: 100,
        longest_wait: 7,
        ..Thread::default()
    };
    thread.parts.add(top::Part::Waited, 25);
    merger.take(Part::Threads(1, vec![thread]));
    let pollers = merger
        .next(SECOND)
        .and_then(|sample| sample.pollers)
        .expect("pollers");
    let of_reactors: Vec<_> = pollers
        .iter()
        .map(|it| (it.taken, it.longest_wait))
        .collect();
    assert_eq!(of_reactors, [(None, None), (Some(0.25), Some(7))]);
}

#[test]
fn connections_get_what_was_taken_from_their_thread() {
    let mut thread = Thread {
        name: "reactor_1".to_owned(),
        window: 100,
        ..Thread::default()
    };
    thread.parts.add(top::Part::Waited, 25);
    let traffic = Traffic {
        connections: vec![top::Connection::default(); 2],
        ..Traffic::default()
    };
    let traffic = with_taken(
        traffic,
        &[None, Some(Worker::Named("reactor_1".into()))],
        Some(&[thread]),
        &BTreeMap::new(),
    );
    let taken: Vec<_> = traffic
        .connections
        .iter()
        .map(|connection| connection.taken)
        .collect();
    assert_eq!(taken, [None, Some(0.25)]);
}

/// Its name is that of the second before.
#[test]
fn a_worker_has_its_name_also_in_a_second_without_threads() {
    let mut merger = Merger::new(true, true, &Observer::silent());
    let mut worker = |second: u64, threads: Option<Vec<Thread>>| {
        let traffic = Traffic {
            connections: vec![top::Connection::default()],
            ..Traffic::default()
        };
        let worker = Some(Worker::Numbered(7));
        merger.take(Part::Traffic(second, Box::new(traffic), vec![worker]));
        if let Some(threads) = threads {
            merger.take(Part::Threads(second, threads));
        }
        let elapsed = SECOND * u32::try_from(second).expect("few") + MAX_PART_DELAY;
        let traffic = merger.next(elapsed).and_then(|sample| sample.traffic);
        traffic.and_then(|it| it.connections[0].thread.clone())
    };
    let thread = Thread {
        name: "worker".to_owned(),
        tid: 7,
        ..Thread::default()
    };
    assert_eq!(worker(1, None).as_deref(), Some("thread [7]"));
    assert_eq!(worker(2, Some(vec![thread])).as_deref(), Some("worker [7]"));
    assert_eq!(worker(3, None).as_deref(), Some("worker [7]"));
    assert_eq!(worker(4, Some(Vec::new())).as_deref(), Some("thread [7]"));
}
