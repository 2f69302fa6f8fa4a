//! Checks of artificial machines.

use std::collections::BTreeMap;

use host::settings::{
    Clock, Core, Facts, Group, IdleState, Interrupt, Placement, Queue, Thread, UnreadFile,
    UnreadReason,
};
use kernel_text::cpus::CpuSet;
use kernel_text::interrupts::Counts;

use crate::settings::{Finding, Intruder, Key, Level, Poller, advice, check, pollers};

fn set(list: &str) -> CpuSet {
    CpuSet::from_list(list).unwrap()
}

fn absent<T>(path: &str) -> Result<T, UnreadFile> {
    Err(UnreadFile {
        path: path.to_owned(),
        why: UnreadReason::Absent,
    })
}

fn thread(tid: u32, name: &str, allowed: &str, cpu: u32, ran: u64) -> Thread {
    Thread {
        pid: tid,
        tid,
        name: name.into(),
        is_kernel: false,
        is_fixed: false,
        policy: "SCHED_OTHER",
        priority: 0,
        allowed: set(allowed),
        cpu,
        ran: Some(ran),
    }
}

/// Returns four CPUs, of which 2-3 are isolated in each way; one thread polls on CPU 2, another one
/// on CPU 3.
fn quiet() -> Facts {
    let counts = || {
        Ok(Counts::parse(
            "  CPU0 CPU1 CPU2 CPU3\n 5: 1 1 1 1 IO-APIC nic\n",
        ))
    };
    let core = |cpu: u32| Core {
        siblings: [cpu].into_iter().collect(),
        node: Some(cpu / 2),
        ..Core::default()
    };
    Facts {
        release: Some((6, 12)),
        command_line: Ok(
            "quiet isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3".into(),
        ),
        online: set("0-3"),
        isolated: Ok(set("2-3")),
        nohz_full: Ok(set("2-3")),
        partitions: absent("/sys/fs/cgroup/cpuset.cpus.isolated"),
        cores: (0..4).map(|cpu| (cpu, core(cpu))).collect(),
        interrupts: vec![irq(5, "0-1", true)],
        counts: [counts(), counts()],
        queues: Ok(Vec::new()),
        workqueues: Ok(set("0-1")),
        rt_runtime: Ok(950_000),
        rt_period: Ok(1_000_000),
        fair_servers: absent("/sys/kernel/debug/sched/fair_server"),
        stat_interval: Ok(1),
        watchdog: Ok(1),
        nmi_watchdog: Ok(0),
        watchdog_cpus: Ok(set("0-1")),
        huge_pages: Ok("madvise".into()),
        clock: Clock {
            current: Ok("tsc".into()),
            available: vec!["tsc".into()],
        },
        nodes: 2,
        threads: vec![
            thread(100, "reactor_2", "2", 2, 990),
            thread(101, "reactor_3", "0-3", 3, 980),
        ],
        threads_left_out: 0,
        window: 1000,
        processes: vec![Placement {
            pid: 100,
            name: b"nvmf_tgt".to_vec(),
            groups: Vec::new(),
            cpuset: Some(("/sys/fs/cgroup/x/cpuset.cpus.effective".into(), set("0-3"))),
            is_isolated: false,
            memory: Ok(BTreeMap::from([(0, 5), (1, 995)])),
            huge_pages: Some(true),
        }],
    }
}

fn irq(number: u32, cpus: &str, has_writable_file: bool) -> Interrupt {
    Interrupt {
        number,
        name: "nic".into(),
        affinity: set(cpus),
        effective: set(cpus),
        has_writable_file,
    }
}

fn checked(facts: &Facts) -> Vec<Finding> {
    let pollers = pollers(facts, &[], None);
    check(facts, &set("2-3"), &pollers)
}

/// Returns the findings of a key after a change of the machine, worst first. Asserts that nothing
/// else became worse.
#[track_caller]
fn changed(key: Key, change: impl FnOnce(&mut Facts)) -> Vec<Finding> {
    let mut facts = quiet();
    change(&mut facts);
    let findings = checked(&facts);
    let (found, rest): (Vec<_>, Vec<_>) =
        findings.into_iter().partition(|finding| finding.key == key);
    assert!(
        rest.iter().all(|finding| finding.level == Level::Green),
        "{rest:#?}"
    );
    found
}

#[track_caller]
fn first(key: Key, change: impl FnOnce(&mut Facts)) -> (Level, String, Vec<String>) {
    let found = changed(key, change).into_iter().next().unwrap();
    (found.level, found.reason, found.change)
}

#[test]
fn a_quiet_machine_is_green() {
    let facts = quiet();
    let found: Vec<Poller> = pollers(&facts, &[], None);
    assert_eq!(
        found
            .iter()
            .map(|it| (it.tid, it.cpu, it.is_pinned))
            .collect::<Vec<_>>(),
        [(100, 2, true), (101, 3, false)]
    );
    let findings = checked(&facts);
    assert!(
        findings.iter().all(|finding| finding.level == Level::Green),
        "{findings:#?}"
    );
    assert!(findings.len() >= 22, "each check says something");
}

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

#[test]
fn what_the_command_line_lacks_is_named() {
    let (level, reason, change) = first(Key::Isolated, |facts| {
        facts.isolated = Ok(set("2"));
        facts.command_line = Ok("isolcpus=2 rcu_nocbs=all".into());
    });
    assert_eq!(
        (level, change[0].as_str()),
        (
            Level::Red,
            "kernel command line: isolcpus=managed_irq,domain,2-3"
        )
    );
    assert_eq!(reason, "the scheduler may put any thread on CPU 3");
    let in_partition = first(Key::Isolated, |facts| {
        facts.isolated = Ok(set(""));
        facts.processes[0].is_isolated = true;
    });
    assert_eq!(in_partition.0, Level::Green);
    let (level, _, change) = first(Key::NohzFull, |facts| facts.nohz_full = Ok(set("")));
    assert_eq!(
        (level, change[0].as_str()),
        (Level::Yellow, "kernel command line: nohz_full=2-3")
    );
    assert!(
        first(Key::NohzFull, |facts| facts.nohz_full = absent("x"))
            .1
            .contains("CONFIG_NO_HZ_FULL")
    );
    let mut facts = quiet();
    facts.nohz_full = Ok(set(""));
    facts.command_line = Ok("quiet".into());
    let rcu = |facts: &Facts| {
        checked(facts)
            .into_iter()
            .find(|finding| finding.key == Key::RcuNocbs)
            .unwrap()
            .level
    };
    assert_eq!(rcu(&facts), Level::Yellow);
    for name in ["rcuop/2", "rcuos/3"] {
        facts.threads.push(Thread {
            is_kernel: true,
            is_fixed: true,
            ..thread(9, name, "0-1", 0, 0)
        });
    }
    assert_eq!(rcu(&facts), Level::Green);
}

#[test]
fn interrupts_are_moved_if_they_can_be() {
    let came = |facts: &mut Facts| {
        facts.counts[1] = Ok(Counts::parse(
            "  CPU0 CPU1 CPU2 CPU3\n 5: 1 1 8 1 IO-APIC nic\n",
        ));
    };
    let (level, reason, change) = first(Key::IrqAffinity, |facts| {
        facts.interrupts[0] = irq(5, "2", true);
        came(facts);
    });
    assert_eq!(
        (level, change),
        (
            Level::Red,
            vec!["echo 0-1 > /proc/irq/5/smp_affinity_list".to_owned()]
        )
    );
    assert!(reason.contains("came to CPU 2 7 times"), "{reason}");
    let (level, _, change) = first(Key::IrqAffinity, |facts| {
        facts.interrupts[0] = irq(5, "2-3", true);
    });
    assert_eq!(
        (level, change[0].contains("for irq in 5; do echo 0-1")),
        (Level::Yellow, true)
    );
    assert_eq!(
        first(Key::IrqAffinity, |facts| facts.interrupts[0] =
            irq(5, "2", false))
        .0,
        Level::Green
    );
    let (level, reason, change) = first(Key::IrqAffinity, |facts| {
        facts.interrupts[0] = irq(5, "2", false);
        came(facts);
    });
    assert_eq!((level, change.len()), (Level::Yellow, 0), "{reason}");
    let old = first(Key::IrqAffinity, |facts| {
        facts.release = Some((5, 10));
        facts.stat_interval = Ok(120);
        facts.interrupts[0] = irq(5, "2", true);
    });
    assert_eq!(old.2.len(), 2, "{old:?}");
}

#[test]
fn packets_and_work_are_kept_away() {
    let queue = |name: &str| Queue {
        device: "eth0".into(),
        name: name.into(),
        cpus: set("1-2"),
    };
    let (level, _, change) = first(Key::Rps, |facts| {
        facts.queues = Ok(vec![queue("rx-0"), queue("tx-0")]);
    });
    assert_eq!(
        (level, change[0].as_str()),
        (
            Level::Red,
            "echo 2 > /sys/class/net/eth0/queues/rx-0/rps_cpus"
        )
    );
    let (level, _, change) = first(Key::Workqueue, |facts| facts.workqueues = Ok(set("0-3")));
    assert_eq!(
        (level, change[0].as_str()),
        (
            Level::Yellow,
            "echo 3 > /sys/devices/virtual/workqueue/cpumask"
        )
    );
    let daemon = |facts: &mut Facts| facts.threads.push(thread(7, "irqbalance", "0-1", 0, 1));
    assert_eq!(first(Key::Irqbalance, daemon).0, Level::Green);
}

/// Before Linux 6.12 real-time threads are throttled, since then ordinary threads have a server.
#[test]
fn what_a_real_time_poller_does_depends_on_the_kernel() {
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

#[test]
fn limits_memory_and_the_rest() {
    let group = Group {
        file: "/c/cpu.max".into(),
        quota: 50,
        period: 100,
        throttled: 3,
        is_v2: true,
    };
    let (level, _, change) = first(Key::CpuQuota, |facts| facts.processes[0].groups.push(group));
    assert_eq!(
        (level, change[0].as_str()),
        (Level::Red, "echo max > '/c/cpu.max'")
    );
    assert_eq!(
        first(Key::Cpuset, |facts| facts.processes[0].cpuset =
            Some(("f".into(), set("0-2"))))
        .0,
        Level::Yellow
    );
    let (level, reason, _) = first(Key::NumaMemory, |facts| {
        facts.processes[0].memory = Ok(BTreeMap::from([(0, 60), (1, 40)]));
    });
    assert!(
        level == Level::Yellow && reason.starts_with("60% of the memory"),
        "{reason}"
    );
    let too_large = UnreadFile {
        path: "/proc/100/numa_maps".into(),
        why: UnreadReason::TooLarge,
    };
    assert_eq!(
        first(Key::NumaMemory, |facts| facts.processes[0].memory =
            Err(too_large))
        .0,
        Level::Unknown
    );
    assert_eq!(
        first(Key::Watchdog, |facts| facts.watchdog_cpus = Ok(set("0-3"))).2,
        ["sysctl -w kernel.watchdog_cpumask=0-1"]
    );
    assert_eq!(
        first(Key::HugePages, |facts| facts.huge_pages =
            Ok("always".into()))
        .0,
        Level::Yellow
    );
    assert_eq!(
        first(Key::StatInterval, |facts| facts.release = Some((5, 10))).0,
        Level::Yellow
    );
    assert_eq!(
        first(Key::Clocksource, |facts| facts.clock.current =
            Ok("hpet".into()))
        .0,
        Level::Red
    );
    let governor = |name: &'static str, driver: &'static str| {
        first(Key::Frequency, move |facts| {
            let core = facts.cores.get_mut(&2).unwrap();
            (core.governor, core.driver) = (Some(name.into()), Some(driver.into()));
        })
    };
    assert_eq!(
        (
            governor("performance", "x").0,
            governor("powersave", "intel_pstate").0
        ),
        (Level::Green, Level::Yellow)
    );
    assert_eq!(governor("powersave", "acpi-cpufreq").0, Level::Red);
    let state = IdleState {
        number: 3,
        name: "C6".into(),
        latency: 133,
        disabled: false,
    };
    let (level, _, change) = first(Key::IdleStates, |facts| {
        facts.cores.get_mut(&2).unwrap().idle.push(state);
        facts.threads[0].ran = Some(500);
    });
    assert_eq!(
        (level, change[0].as_str()),
        (
            Level::Yellow,
            "echo 1 > /sys/devices/system/cpu/cpu2/cpuidle/state3/disable"
        )
    );
}

#[test]
fn a_machine_that_is_all_polled_has_no_lines_that_need_another_cpu() {
    let mut facts = quiet();
    facts.online = set("2-3");
    facts.interrupts[0] = irq(5, "2", true);
    facts.isolated = Ok(set(""));
    facts.workqueues = Ok(set("2-3"));
    facts.watchdog_cpus = Ok(set("2-3"));
    let findings = checked(&facts);
    assert!(
        findings
            .iter()
            .all(|finding| finding.change.is_empty() || finding.key == Key::StatInterval),
        "{findings:#?}"
    );
}

#[test]
fn intruders_have_advice() {
    let mut facts = quiet();
    facts.interrupts = vec![irq(5, "2", true), irq(6, "3", true)];
    facts.counts[1] = Ok(Counts::parse(
        "  CPU0 CPU1 CPU2 CPU3\n 5: 1 1 8 1 IO-APIC nic\n 6: 1 1 1 9 IO-APIC nic\n",
    ));
    facts.queues = Ok(vec![Queue {
        device: "eth0".into(),
        name: "rx-0".into(),
        cpus: set("2"),
    }]);
    facts.nohz_full = Ok(set(""));
    facts.threads.push(thread(7, "cron", "2", 2, 20));
    let findings = checked(&facts);
    let keys = |intruder, cpu| {
        advice(&findings, intruder, cpu)
            .iter()
            .map(|it| it.key)
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(Intruder::Interrupt(5), 2), [Key::IrqAffinity]);
    assert_eq!(keys(Intruder::Interrupt(6), 2), []);
    assert_eq!(
        keys(Intruder::SoftInterrupt("NET_RX"), 2),
        [Key::Rps, Key::IrqAffinity]
    );
    assert_eq!(
        (keys(Intruder::Tick, 3), keys(Intruder::Thread(7), 2)),
        (vec![Key::NohzFull], vec![Key::SharedCpu])
    );
    assert_eq!(
        (
            keys(Intruder::Thread(8), 2),
            keys(Intruder::Worker(Some(true)), 2)
        ),
        (vec![], vec![])
    );
}
