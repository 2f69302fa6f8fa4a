//! Tests of the findings on limits, memory and the hardware.

use std::collections::BTreeMap;

use host::settings::{Group, IdleState, UnreadFile, UnreadReason};

use super::{first, set};
use crate::settings::{Key, Level};

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
}

#[test]
fn clocks_and_idle_states_of_the_hardware() {
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
