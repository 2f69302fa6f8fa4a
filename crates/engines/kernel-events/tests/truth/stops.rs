//! Test of the signals that stop a process: each stop has its sender.

use std::time::Duration;

use kernel_events::{ProcessSet, Recorder};
use rustix::process::{Pid, Signal};
use scene::{Activities, Activity, EventKind, Tid};
use testkit::kernel;

use crate::{RING, own_tid};

#[test]
fn a_stop_has_the_sender_of_its_signal() {
    let Some(_alone) = kernel::may_run("signals of the kernel's events") else {
        return;
    };
    let mut child = testkit::command("sleep").arg("60").spawn().unwrap();
    let facts = kernel_events::facts().unwrap();
    let mut recorder = Recorder::start(&facts, &ProcessSet::one(child.id()), RING).unwrap();
    let (start, pid) = (recorder.started(), Pid::from_child(&child));
    for signal in [Signal::STOP, Signal::CONT, Signal::TSTP, Signal::CONT] {
        rustix::process::kill_process(pid, signal).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut events = recorder.next(Duration::from_millis(10)).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    events.extend(recorder.finish().unwrap().0);
    // A reader that got no CPU for a while hands out some events late.
    events.sort_by_key(|recorded| recorded.event.at);
    let us = own_tid();
    let its = Tid(child.id());
    let signals: Vec<_> = events
        .iter()
        .filter_map(|recorded| match recorded.event.kind {
            EventKind::StopSignal { tid, number, by } => Some((tid, number, by)),
            _ => None,
        })
        .collect();
    assert_eq!(signals, [(its, 19, us), (its, 20, us)]);
    let name = std::fs::read("/proc/thread-self/comm").unwrap();
    let is_named = |(of, bytes): (Tid, [u8; 16])| of == us && bytes.starts_with(name.trim_ascii());
    assert!(
        events
            .iter()
            .filter_map(|recorded| recorded.name)
            .any(is_named)
    );
    let mut activities = Activities::new([its], start);
    for recorded in &events {
        activities.event(&recorded.event);
    }
    let end = events.last().unwrap().event.at;
    let intervals = activities.finish(end).remove(&its).unwrap();
    let stops: Vec<_> = intervals
        .iter()
        .map(|interval| interval.activity)
        .filter(|activity| matches!(activity, Activity::Stopped(_)))
        .collect();
    assert_eq!(stops, [Activity::Stopped(Some(us)); 2]);
}
