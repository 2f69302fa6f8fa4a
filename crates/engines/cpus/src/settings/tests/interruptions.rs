//! Tests of the findings on isolation, interrupts and the work of the kernel.

use host::settings::{Facts, Queue, Thread};
use kernel_text::interrupts::Counts;

use super::{absent, checked, first, irq, quiet, set, thread};
use crate::settings::{Key, Level};

#[test]
fn missing_boot_options_are_named() {
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
