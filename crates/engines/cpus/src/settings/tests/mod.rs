//! Checks of artificial machines.

mod interruptions;
mod limits;
mod threads;

use std::collections::BTreeMap;

use host::settings::{
    Clock, Core, Facts, Interrupt, Placement, Queue, Thread, UnreadFile, UnreadReason,
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
