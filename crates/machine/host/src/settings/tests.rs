//! Tests of reading made trees, and this machine.

use super::*;

/// Writes files below a folder.
pub(super) fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

/// Files of a small machine with one process, by path.
const MACHINE: &[(&str, &str)] = &[
    ("proc/sys/kernel/osrelease", "5.10.0-9-amd64\n"),
    (
        "proc/interrupts",
        "   CPU0 CPU1\n 5: 1 2 IO-APIC 5-edge nic\n",
    ),
    ("proc/irq/5/smp_affinity_list", "0-1\n"),
    ("proc/irq/5/effective_affinity_list", "1\n"),
    ("proc/irq/7/smp_affinity_list", "0-1\n"),
    ("proc/cmdline", "quiet nohz_full=1\n"),
    ("sys/devices/system/cpu/online", "0-1\n"),
    ("sys/devices/system/cpu/isolated", "\n"),
    (
        "sys/devices/system/cpu/cpu1/topology/thread_siblings_list",
        "0-1\n",
    ),
    ("sys/devices/system/cpu/cpu1/node0/x", ""),
    ("sys/devices/system/cpu/cpu1/cpuidle/state2/name", "C6\n"),
    (
        "sys/devices/system/cpu/cpu1/cpuidle/state2/latency",
        "133\n",
    ),
    ("sys/devices/system/cpu/cpu1/cpuidle/state2/disable", "0\n"),
    ("sys/class/net/eth0/queues/rx-0/rps_cpus", "2\n"),
    ("sys/class/net/eth0/queues/rx-1/rps_cpus", "0\n"),
    ("sys/devices/virtual/workqueue/cpumask", "3\n"),
    (
        "sys/kernel/mm/transparent_hugepage/enabled",
        "[always] madvise never\n",
    ),
    (
        "proc/7/task/7/stat",
        "7 (a b) R 1 7 7 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 1 5 1 0 0 0 0 0 0 0 0 0 0\n",
    ),
    (
        "proc/7/task/7/status",
        "Name:\ta b\nCpus_allowed_list:\t1\n",
    ),
    ("proc/7/task/7/schedstat", "900 0 1\n"),
    ("proc/7/status", "THP_enabled:\t1\n"),
    ("proc/7/comm", "a b\n"),
    ("proc/7/cgroup", "2:cpu,cpuacct:/x\n0::/pod/y\n"),
    (
        "proc/self/mounts",
        "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\ncgroup /sys/fs/cpu cgroup rw,cpu,cpuacct 0 0\n",
    ),
    ("sys/fs/cgroup/pod/cpu.max", "50000 100000\n"),
    ("sys/fs/cgroup/pod/cpuset.cpus.effective", "1\n"),
    ("sys/fs/cgroup/pod/cpuset.cpus.partition", "isolated\n"),
    ("sys/fs/cgroup/pod/y/cpu.max", "max 100000\n"),
    ("sys/fs/cpu/x/cpu.cfs_quota_us", "-1\n"),
];

#[test]
fn a_made_machine_is_read() {
    let dir = tree(MACHINE);
    let root = Root::at(dir.path());
    let before = Snapshot::read(&root);
    std::fs::write(dir.path().join("proc/7/task/7/schedstat"), "1900 0 1\n").unwrap();
    let facts = Facts::read(&root, &before, 1000, &[7]);
    let set = |list| CpuSet::from_list(list).unwrap();
    assert_eq!(
        (facts.release, facts.online.clone()),
        (Some((5, 10)), set("0-1"))
    );
    assert_eq!(facts.isolated, Ok(set("")));
    assert_eq!(facts.nohz_full.unwrap_err().why, UnreadReason::Absent);
    let [interrupt] = &facts.interrupts[..] else {
        panic!("{:?}", facts.interrupts)
    };
    assert_eq!(
        (interrupt.name.as_str(), &interrupt.effective),
        ("nic", &set("1"))
    );
    assert_eq!(
        (facts.cores[&1].node, facts.cores[&1].idle[0].latency),
        (Some(0), 133)
    );
    assert_eq!(
        facts.queues.unwrap(),
        [Queue {
            device: "eth0".into(),
            name: "rx-0".into(),
            cpus: set("1")
        }]
    );
    assert_eq!(facts.workqueues, Ok(set("0-1")));
    assert_eq!(facts.huge_pages.as_deref(), Ok("always"));
    let [thread] = &facts.threads[..] else {
        panic!("{:?}", facts.threads)
    };
    assert_eq!(
        (thread.ran, thread.policy, thread.priority, thread.cpu),
        (Some(1000), "SCHED_FIFO", 5, 1)
    );
    let process = &facts.processes[0];
    assert_eq!((process.groups.len(), process.groups[0].quota), (1, 50_000));
    assert_eq!(process.cpuset.as_ref().unwrap().1, set("1"));
    assert!(process.is_isolated);
    assert_eq!(
        (process.huge_pages, process.memory.clone()),
        (Some(true), Ok(BTreeMap::new()))
    );
}

#[test]
fn an_empty_tree_gives_reasons() {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::at(dir.path());
    let facts = Facts::read(&root, &Snapshot::read(&root), 1, &[1]);
    assert_eq!(
        facts.command_line.unwrap_err().to_string(),
        "/proc/cmdline: there is no such file here"
    );
    assert!(facts.threads.is_empty() && facts.interrupts.is_empty() && facts.queues.is_err());
}

#[test]
fn memory_is_added_up_by_node() {
    let maps = "00400000 default file=/x mapped=3 N0=2 N1=1 kernelpagesize_kB=4\n\
                7f00 default file=/anon_hugepage huge dirty=2 N1=2 kernelpagesize_kB=2048\n";
    let dir = tree(&[
        ("proc/3/numa_maps", maps),
        ("proc/3/status", "VmRSS:\t 12 kB\n"),
    ]);
    let placement = Placement::read(&Root::at(dir.path()), 3, 2);
    assert_eq!(placement.memory, Ok(BTreeMap::from([(0, 8), (1, 4100)])));
    std::fs::write(dir.path().join("proc/3/status"), "VmRSS:\t 99999999 kB\n").unwrap();
    assert_eq!(
        Placement::read(&Root::at(dir.path()), 3, 2)
            .memory
            .unwrap_err()
            .why,
        UnreadReason::TooLarge
    );
}

#[test]
fn this_machine_is_read() {
    let root = Root::machine();
    let own = std::process::id();
    let facts = Facts::read(&root, &Snapshot::read(&root), 1, &[own]);
    assert!(!facts.online.is_empty() && facts.release.is_some() && !facts.cores.is_empty());
    assert!(
        facts
            .threads
            .iter()
            .any(|thread| thread.pid == own && !thread.is_kernel)
    );
}
