//! Tests of the findings on pollers and on the threads beside them.

use std::collections::BTreeMap;

use host::settings::{Facts, Thread, UnreadFile};

use super::{absent, first, quiet, set, thread};
use crate::settings::{Key, Level, pollers};

#[test]
fn pollers_are_pinned_or_always_on_a_cpu() {
    let mut facts = quiet();
    facts.threads = vec![
        thread(1, "pinned", "2", 2, 0),
        thread(2, "lazy", "0-3", 3, 300),
        thread(3, "busy", "0-3", 1, 900),
    ];
    facts.threads.iter_mut().for_each(|thread| thread.pid = 1);
    let tids = |pids: &[u32], cpus| {
        pollers(&facts, pids, cpus)
            .iter()
            .map(|it| it.tid)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (tids(&[1], None), tids(&[], None), tids(&[7], None)),
        (vec![1, 3], vec![3], vec![])
    );
    assert_eq!(
        (tids(&[1], Some(&set("2"))), tids(&[], Some(&set("2")))),
        (vec![1], vec![])
    );
}

/// Before Linux 6.12 real-time threads are throttled, since then ordinary threads have a server.
#[test]
fn the_effect_of_a_real_time_poller_depends_on_the_kernel() {
    let real_time = |facts: &mut Facts| facts.threads[0].policy = "SCHED_FIFO";
    let old = |runtime: i64| {
        first(Key::RealTime, |facts| {
            real_time(facts);
            facts.release = Some((6, 6));
            facts.rt_runtime = Ok(runtime);
        })
    };
    let (level, reason, _) = old(950_000);
    assert!(
        level == Level::Yellow && reason.contains("stops it for 50 ms in each 1000 ms"),
        "{reason}"
    );
    let (level, _, change) = old(-1);
    assert_eq!(
        (level, change[0].as_str()),
        (Level::Red, "sysctl -w kernel.sched_rt_runtime_us=950000")
    );
    let new = |servers: Result<BTreeMap<u32, u64>, UnreadFile>| {
        first(Key::RealTime, |facts| {
            real_time(facts);
            facts.rt_runtime = Ok(-1);
            facts.fair_servers = servers;
        })
    };
    assert_eq!(new(absent("x")).0, Level::Yellow);
    assert_eq!(
        new(Ok(BTreeMap::from([(2, 50_000_000), (3, 0)]))).0,
        Level::Yellow
    );
    assert_eq!(new(Ok(BTreeMap::from([(2, 0)]))).0, Level::Red);
}

#[test]
fn neighbours_are_named() {
    let (level, reason, change) = first(Key::SharedCpu, |facts| {
        facts.threads.push(thread(7, "cron", "2-3", 2, 20));
    });
    assert_eq!(
        (level, change[0].as_str()),
        (Level::Red, "taskset -pc 0-1 7")
    );
    assert!(
        reason.starts_with("cron [7] of process 7 may run on CPU 2-3 only"),
        "{reason}"
    );
    let (level, reason, _) = first(Key::SharedCpu, |facts| {
        facts.threads.push(thread(7, "a\x1b", "0-3", 2, 20));
    });
    assert!(
        level == Level::Red && reason.contains("a\\x1b [7] for"),
        "{reason}"
    );
    let kernel = Thread {
        is_kernel: true,
        ..thread(8, "khugepaged", "0-3", 0, 0)
    };
    let (level, _, change) = first(Key::KernelThreads, |facts| facts.threads.push(kernel));
    assert_eq!(
        (level, change[0].as_str()),
        (Level::Yellow, "for tid in 8; do taskset -pc 0-1 $tid; done")
    );
    let (level, reason, change) = first(Key::Siblings, |facts| {
        facts.cores.get_mut(&2).unwrap().siblings = set("0,2");
        facts.threads.push(thread(9, "backup", "0-1", 0, 700));
    });
    assert!(
        level == Level::Red && reason.contains("backup [9] 70%"),
        "{reason}"
    );
    assert_eq!(change, ["echo 0 > /sys/devices/system/cpu/cpu0/online"]);
}
