//! The CPUs themselves: shared cores, frequency, idle states, the clock.

use std::collections::BTreeMap;

use kernel_text::cpus::CpuSet;
use text::printable;

use crate::settings::Context;
use crate::settings::finding::{Finding, Key, Level};
use crate::settings::pollers::{share, shown_share};
use host::settings::Facts;

/// Share of a window, in percent, from which a thread keeps a core busy.
const MIN_BUSY_PERCENT: u64 = 5;
/// Microseconds to wake up, above which an idle state is deep.
const DEEP: i64 = 10;
/// Limit on the threads named.
const MAX_NAMED: usize = 4;

/// Checks CPU 0, on which a machine boots: work that requests no other CPU at boot stays there,
/// timekeeping and interrupts most of all (`nohz_full=` in
/// Documentation/admin-guide/kernel-parameters.txt, Documentation/core-api/irq/irq-affinity.rst).
pub(crate) fn first_cpu(context: &Context<'_>) -> Vec<Finding> {
    if !context.cpus.has(0) {
        return vec![Finding::new(
            Key::FirstCpu,
            Level::Green,
            context.cpus,
            "CPU 0 is not one of them",
        )];
    }
    let cpus: CpuSet = [0].into_iter().collect();
    let reason = "CPU 0 boots the machine: interrupts, timekeeping and work that names no CPU \
                  begin there, and wait if a thread polls";
    let change = context.line(|others| {
        format!(
            "# give the program another mask (SPDK -m, DPDK -l, OVS pmd-cpu-mask), of CPU {others}"
        )
    });
    vec![
        Finding::new(Key::FirstCpu, Level::Yellow, &cpus, reason)
            .from("the program's mask", context.cpus)
            .change(change),
    ]
}

/// Names the busy threads that are on a CPU, with their shares.
fn busy_threads(facts: &Facts, cpu: u32) -> Vec<String> {
    let busy = facts.threads.iter().filter_map(|thread| {
        share(facts, thread).filter(|share| *share >= MIN_BUSY_PERCENT)?;
        let name = printable::text(&thread.name);
        let part = shown_share(thread.ran?, facts.window);
        (thread.cpu == cpu).then(|| format!("{name} [{}] {part}", thread.tid))
    });
    busy.take(MAX_NAMED).collect()
}

/// Checks CPUs that share a core (`thread_siblings_list`;
/// Documentation/admin-guide/cputopology.rst): threads on both share its units.
pub(crate) fn siblings(context: &Context<'_>) -> Vec<Finding> {
    let (facts, cpus) = (context.facts, context.cpus);
    let mut findings = Vec::new();
    for cpu in cpus.iter() {
        let Some(core) = facts.cores.get(&cpu) else {
            continue;
        };
        let own: CpuSet = [cpu].into_iter().collect();
        for sibling in core.siblings.without(&own).iter() {
            // A pair of polled CPUs is reported once.
            if cpus.has(sibling) && sibling < cpu {
                continue;
            }
            let who = busy_threads(facts, sibling);
            let setting = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
            let finding = if who.is_empty() {
                Finding::new(
                    Key::Siblings,
                    Level::Green,
                    &own,
                    format!("CPU {cpu} shares its core with CPU {sibling}, which is idle"),
                )
            } else {
                let level = if cpus.has(sibling) {
                    Level::Yellow
                } else {
                    Level::Red
                };
                let reason = format!(
                    "CPU {cpu} shares its core with CPU {sibling}, which ran {}",
                    who.join(", ")
                );
                let change = vec![format!(
                    "echo 0 > /sys/devices/system/cpu/cpu{sibling}/online"
                )];
                Finding::new(Key::Siblings, level, &own, reason).change(change)
            };
            findings.push(finding.from(setting, &core.siblings));
        }
    }
    if findings.is_empty() {
        findings.push(Finding::new(
            Key::Siblings,
            Level::Green,
            cpus,
            "no core is shared with another CPU",
        ));
    }
    findings
}

/// Judges a frequency governor; `is_own` if the driver chooses the frequency itself.
fn governor_finding(governor: &str, is_own: bool, set: &CpuSet) -> Finding {
    let (level, reason) = match governor {
        "performance" => (
            Level::Green,
            "the frequency is as high as it can be".to_owned(),
        ),
        "powersave" if !is_own => (
            Level::Red,
            format!("CPU {set} runs at its lowest frequency"),
        ),
        _ => (
            Level::Yellow,
            format!(
                "the frequency of CPU {set} follows its load, and starts low after each idle \
                     period"
            ),
        ),
    };
    let change: Vec<String> = if level == Level::Green {
        Vec::new()
    } else {
        set.iter()
            .map(|cpu| {
                format!(
                    "echo performance > /sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"
                )
            })
            .collect()
    };
    let setting = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
    Finding::new(Key::Frequency, level, set, reason)
        .from(setting, printable::text(governor.as_bytes()))
        .change(change)
}

/// Checks the frequency governors (Documentation/admin-guide/pm/cpufreq.rst). `powersave` is the
/// lowest frequency, except with drivers that choose it themselves
/// (Documentation/admin-guide/pm/intel_pstate.rst, amd-pstate.rst).
pub(crate) fn frequency(context: &Context<'_>) -> Vec<Finding> {
    let (facts, cpus) = (context.facts, context.cpus);
    let mut findings = Vec::new();
    let mut by_governor: BTreeMap<(String, bool), Vec<u32>> = BTreeMap::new();
    for cpu in cpus.iter() {
        let Some(core) = facts.cores.get(&cpu) else {
            continue;
        };
        if let Some(governor) = &core.governor {
            let driver = core.driver.as_deref().unwrap_or_default();
            let is_own = matches!(driver, "intel_pstate" | "amd-pstate-epp" | "amd_pstate_epp");
            by_governor
                .entry((governor.clone(), is_own))
                .or_default()
                .push(cpu);
        }
        if let Some((now, all)) = core.highest.filter(|(now, all)| now < all) {
            let own: CpuSet = [cpu].into_iter().collect();
            let file = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_max_freq");
            let reason = format!(
                "CPU {cpu} is limited to {} MHz of {} MHz",
                now / 1000,
                all / 1000
            );
            let change = vec![format!("echo {all} > {file}")];
            findings.push(
                Finding::new(Key::Frequency, Level::Yellow, &own, reason)
                    .from(file, now)
                    .change(change),
            );
        }
    }
    for ((governor, is_own), list) in by_governor {
        let set: CpuSet = list.into_iter().collect();
        findings.push(governor_finding(&governor, is_own, &set));
    }
    if findings.is_empty() {
        let reason = "nothing changes the frequency of these CPUs here (in a virtual machine, the \
                      host may do so unseen)";
        findings.push(Finding::new(Key::Frequency, Level::Green, cpus, reason));
    }
    findings
}

/// Checks idle states (Documentation/admin-guide/pm/cpuidle.rst). A CPU on which a thread polls all
/// the time enters none.
pub(crate) fn idle_states(context: &Context<'_>) -> Vec<Finding> {
    let (facts, cpus) = (context.facts, context.cpus);
    let deep = |cpu: &u32| {
        let core = facts.cores.get(cpu)?;
        core.idle
            .iter()
            .filter(|state| !state.disabled && state.latency > DEEP)
            .max_by_key(|state| state.latency)
    };
    // Polling threads keep their CPUs from waiting.
    let polled: CpuSet = context
        .pollers
        .iter()
        .filter(|it| it.share.is_some_and(|share| share >= 80))
        .map(|it| it.cpu)
        .collect();
    let waiting: CpuSet = cpus
        .without(&polled)
        .iter()
        .filter(|cpu| deep(cpu).is_some())
        .collect();
    let Some(state) = waiting.iter().next().and_then(|cpu| deep(&cpu)) else {
        let reason = "these CPUs do not wait in deep idle states";
        return vec![Finding::new(Key::IdleStates, Level::Green, cpus, reason)];
    };
    let name = printable::text(state.name.as_bytes());
    let reason = format!(
        "CPU {waiting} is not always polling, and takes up to {} us to wake up from idle state \
         {name}",
        state.latency
    );
    let mut change = Vec::new();
    for cpu in waiting.iter() {
        let states = facts
            .cores
            .get(&cpu)
            .map(|core| core.idle.as_slice())
            .unwrap_or_default();
        change.extend(
            states
                .iter()
                .filter(|state| !state.disabled && state.latency > DEEP)
                .map(|state| {
                    format!(
                        "echo 1 > /sys/devices/system/cpu/cpu{cpu}/cpuidle/state{}/disable",
                        state.number
                    )
                }),
        );
    }
    let setting = format!(
        "/sys/devices/system/cpu/cpu*/cpuidle/state{}/disable",
        state.number
    );
    vec![
        Finding::new(Key::IdleStates, Level::Yellow, &waiting, reason)
            .from(setting, 0)
            .change(change),
    ]
}

/// Checks the clock (Documentation/ABI/testing/sysfs-devices-system-clocksource). Each reading
/// costs a system call if the vDSO can't read the source (`vdso_clock_mode` of the sources in
/// arch/x86 and drivers/clocksource).
pub(crate) fn clock(context: &Context<'_>) -> Vec<Finding> {
    const FAST: [&str; 5] = [
        "tsc",
        "kvm-clock",
        "hyperv_clocksource_tsc_page",
        "arch_sys_counter",
        "timebase",
    ];
    const SETTING: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let (clock, cpus) = (&context.facts.clock, context.cpus);
    let current = match &clock.current {
        Ok(current) => current.as_str(),
        Err(unread) => return vec![Finding::unread(Key::Clocksource, cpus, unread)],
    };
    if FAST.contains(&current) {
        let reason = "programs read the time without a system call";
        return vec![
            Finding::new(Key::Clocksource, Level::Green, cpus, reason).from(SETTING, current),
        ];
    }
    let level = if matches!(
        current,
        "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "pit"
    ) {
        Level::Red
    } else {
        Level::Yellow
    };
    let reason = "each time a program reads the time, it makes a system call".to_owned();
    let reason = if level == Level::Red {
        format!("{reason}, and reads a slow device")
    } else {
        reason
    };
    let change = if clock.available.iter().any(|it| it == "tsc") {
        vec![format!("echo tsc > {SETTING}")]
    } else {
        Vec::new()
    };
    let value = printable::text(current.as_bytes()).into_owned();
    vec![
        Finding::new(Key::Clocksource, level, cpus, reason)
            .from(SETTING, value)
            .change(change),
    ]
}
