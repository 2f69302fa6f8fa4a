//! Sources of work for devices: interrupts, packets, workqueues.

use host::settings::Interrupt;
use kernel_text::cpus::CpuSet;
use text::printable;

use crate::settings::boot::{isolation, shown};
use crate::settings::finding::{Finding, Key, Level, Subject};
use crate::settings::{Context, command_line};

/// First release in which the file of an interrupt that can't be moved is not writable (commit
/// "genirq/proc: Correctly set file permissions for affinity control files").
const SHOWS_MANAGED: (u32, u32) = (6, 12);
/// Timers of each CPU on aarch64, which have numbers like devices
/// (drivers/clocksource/arm_arch_timer.c, arch/arm64/kvm/arch_timer.c).
const TIMERS: [&str; 3] = ["arch_timer", "kvm guest vtimer", "kvm guest ptimer"];
/// Limit on the devices named.
const MAX_NAMED: usize = 4;

/// Checks the interrupts delivered to these CPUs (Documentation/core-api/irq/irq-affinity.rst). A
/// driver may let the kernel spread its interrupts (managed ones). Writing their affinity fails
/// with EIO, since 6.12 with EPERM (`write_irq_affinity` in kernel/irq/proc.c).
pub(crate) fn interrupts(context: &Context<'_>) -> Vec<Finding> {
    let (facts, cpus) = (context.facts, context.cpus);
    let [before, after] = match &facts.counts {
        [Ok(before), Ok(after)] => [before, after],
        [Err(unread), _] | [_, Err(unread)] => {
            return vec![Finding::unread(Key::IrqAffinity, cpus, unread)];
        }
    };
    let came = |interrupt: &Interrupt| -> u64 {
        cpus.iter()
            .map(|cpu| after.since(before, &interrupt.number.to_string(), cpu))
            .sum()
    };
    let is_device = |it: &&Interrupt| !TIMERS.contains(&it.name.as_str());
    let here = facts
        .interrupts
        .iter()
        .filter(is_device)
        .filter(|it| !it.effective.and(cpus).is_empty());
    let (movable, fixed): (Vec<&Interrupt>, Vec<&Interrupt>) =
        here.partition(|it| it.has_writable_file);
    let (busy, silent): (Vec<&Interrupt>, Vec<&Interrupt>) =
        movable.into_iter().partition(|it| came(it) > 0);
    let mut findings: Vec<Finding> = busy
        .iter()
        .map(|it| busy_one(context, it, came(it)))
        .collect();
    if !silent.is_empty() {
        findings.push(silent_ones(context, &silent));
    }
    if !fixed.is_empty() {
        findings.push(fixed_ones(
            context,
            &fixed,
            fixed.iter().map(|it| came(it)).sum(),
        ));
    }
    if findings.is_empty() {
        let reason = "no interrupt of a device is delivered to these CPUs";
        findings.push(Finding::new(Key::IrqAffinity, Level::Green, cpus, reason));
    }
    findings
}

fn busy_one(context: &Context<'_>, interrupt: &Interrupt, came: u64) -> Finding {
    let Interrupt {
        number,
        affinity,
        effective,
        ..
    } = interrupt;
    let here = effective.and(context.cpus);
    let times = screen::times(came);
    let name = printable::text(interrupt.name.as_bytes());
    let reason = format!(
        "interrupt {number} ({name}) came to CPU {here} {times} {}",
        window(context)
    );
    let file = format!("/proc/irq/{number}/smp_affinity_list");
    let change = with_remark(
        context,
        context.line(|others| format!("echo {others} > {file}")),
    );
    Finding::new(Key::IrqAffinity, Level::Red, &here, reason)
        .from(file, format!("{affinity} (in effect: {effective})"))
        .change(change)
        .about(Subject::Interrupts(vec![*number]))
}

/// Reports the interrupts that can be moved, and did not occur.
fn silent_ones(context: &Context<'_>, silent: &[&Interrupt]) -> Finding {
    let here = all_effective(silent).and(context.cpus);
    let reason = format!(
        "interrupts that go to CPU {here}, though none came while the machine was watched: {}",
        named(silent)
    );
    let numbers: Vec<u32> = silent.iter().map(|it| it.number).collect();
    let words = numbers
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" ");
    let change = context.line(|others| {
        format!("for irq in {words}; do echo {others} > /proc/irq/$irq/smp_affinity_list; done")
    });
    Finding::new(Key::IrqAffinity, Level::Yellow, &here, reason)
        .from("/proc/irq/*/smp_affinity_list", all_effective(silent))
        .change(with_remark(context, change))
        .about(Subject::Interrupts(numbers))
}

/// Adds a remark if the kernel does not show which interrupts can't be moved: then only an attempt
/// shows it.
fn with_remark(context: &Context<'_>, mut change: Vec<String>) -> Vec<String> {
    if context
        .facts
        .release
        .is_none_or(|release| release < SHOWS_MANAGED)
        && !change.is_empty()
    {
        change.push(
            "# an I/O error: the kernel manages it for its driver; only isolcpus=managed_irq keeps \
             it away".into(),
        );
    }
    change
}

fn all_effective(interrupts: &[&Interrupt]) -> CpuSet {
    interrupts
        .iter()
        .fold(CpuSet::default(), |cpus, it| cpus.or(&it.effective))
}

/// Formats interrupts: `36 (virtio1-req.0), 42 (virtio3-tx), 2 more`.
fn named(interrupts: &[&Interrupt]) -> String {
    let name = |it: &&Interrupt| format!("{} ({})", it.number, printable::text(it.name.as_bytes()));
    let mut names: Vec<String> = interrupts.iter().take(MAX_NAMED).map(name).collect();
    if interrupts.len() > MAX_NAMED {
        names.push(format!("{} more", interrupts.len() - MAX_NAMED));
    }
    names.join(", ")
}

/// Reports the interrupts that can't be moved. The interrupt of a device's queue occurs on the CPUs
/// that use that queue, so a CPU that sends nothing to the device gets none.
fn fixed_ones(context: &Context<'_>, fixed: &[&Interrupt], came: u64) -> Finding {
    let here = all_effective(fixed).and(context.cpus);
    let subject = Subject::Interrupts(fixed.iter().map(|it| it.number).collect());
    let names = named(fixed);
    if came == 0 {
        let reason =
            format!("no interrupt that can't be moved came while the machine was watched: {names}");
        return Finding::new(Key::IrqAffinity, Level::Green, &here, reason).about(subject);
    }
    let reason = format!(
        "interrupts that the kernel places and that can't be moved came to CPU {here} {} {}: \
         {names}; a CPU gets them if its threads use that queue of the device",
        screen::times(came),
        window(context)
    );
    let line = context.facts.command_line.as_deref().unwrap_or_default();
    let is_asked_for =
        command_line::value(line, "isolcpus").is_some_and(|value| value.contains("managed_irq"));
    let change = if is_asked_for {
        Vec::new()
    } else {
        context.line(|_| isolation(context.cpus))
    };
    Finding::new(Key::IrqAffinity, Level::Yellow, &here, reason)
        .change(change)
        .about(subject)
}

/// Formats the window: `in 300 ms`.
fn window(context: &Context<'_>) -> String {
    format!("in {} ms", context.facts.window / 1_000_000)
}

/// Checks irqbalance, which moves interrupts again and again. By default it keeps away from CPUs of
/// `isolcpus=` and `nohz_full=` (irqbalance(1), `IRQBALANCE_BANNED_CPULIST`).
pub(crate) fn irqbalance(context: &Context<'_>) -> Vec<Finding> {
    let (facts, cpus) = (context.facts, context.cpus);
    let Some(daemon) = facts
        .threads
        .iter()
        .find(|thread| !thread.is_kernel && thread.name == b"irqbalance")
    else {
        return vec![Finding::new(
            Key::Irqbalance,
            Level::Green,
            cpus,
            "irqbalance is not running",
        )];
    };
    let setting = format!("process {}", daemon.pid);
    let kept = facts
        .isolated
        .clone()
        .unwrap_or_default()
        .or(&facts.nohz_full.clone().unwrap_or_default());
    let missing = cpus.without(&kept);
    if missing.is_empty() {
        let reason = "irqbalance is running, and keeps away from isolated CPUs";
        return vec![
            Finding::new(Key::Irqbalance, Level::Green, cpus, reason).from(setting, "running"),
        ];
    }
    let reason = format!(
        "irqbalance is running: unless configured to avoid it, it may move interrupts to CPU \
         {missing}, even those that you move away"
    );
    let change = vec![format!(
        "echo IRQBALANCE_BANNED_CPULIST={cpus} >> /etc/default/irqbalance && systemctl restart \
         irqbalance  # /etc/sysconfig/irqbalance on Red Hat"
    )];
    vec![
        Finding::new(Key::Irqbalance, Level::Yellow, &missing, reason)
            .from(setting, "running")
            .change(change),
    ]
}

/// Checks packets that another CPU received (Documentation/networking/scaling.rst, RPS). Since
/// Linux 5.9, isolated CPUs are removed from a mask that is written (commit "net: Restrict receive
/// packets queuing to housekeeping CPUs").
pub(crate) fn rps(context: &Context<'_>) -> Vec<Finding> {
    let cpus = context.cpus;
    let queues = match &context.facts.queues {
        Ok(queues) => queues,
        Err(unread) => return vec![Finding::unread(Key::Rps, cpus, unread)],
    };
    let here = queues
        .iter()
        .filter(|queue| queue.name.starts_with("rx-") && !queue.cpus.and(cpus).is_empty());
    let mut findings: Vec<Finding> = here
        .map(|queue| {
            let device = printable::text(queue.device.as_bytes()).into_owned();
            let file = format!("/sys/class/net/{device}/queues/{}/rps_cpus", queue.name);
            let here = queue.cpus.and(cpus);
            let reason = format!(
                "packets of {device} are handed to CPU {here}, in soft interrupts \
                 announced by an interrupt from another CPU"
            );
            let change = vec![format!("echo {} > {file}", queue.cpus.without(cpus).mask())];
            let value = format!("{} (CPU {})", queue.cpus.mask(), queue.cpus);
            Finding::new(Key::Rps, Level::Red, &here, reason)
                .from(file, value)
                .change(change)
        })
        .collect();
    if findings.is_empty() {
        let reason = "no device of this network namespace hands packets to these CPUs";
        findings.push(Finding::new(Key::Rps, Level::Green, cpus, reason));
    }
    findings
}

/// Checks queues for sending (Documentation/networking/scaling.rst, XPS). They serve packets that
/// these CPUs send themselves.
pub(crate) fn xps(context: &Context<'_>) -> Vec<Finding> {
    let Ok(queues) = &context.facts.queues else {
        return Vec::new();
    };
    let cpus = context.cpus;
    let here = queues
        .iter()
        .filter(|queue| queue.name.starts_with("tx-") && !queue.cpus.and(cpus).is_empty())
        .count();
    let reason = match here {
        0 => "no transmit queue is assigned to these CPUs".to_owned(),
        here => format!(
            "{here} transmit queues are assigned to these CPUs: they matter only if threads there \
             send packets through the kernel"
        ),
    };
    vec![Finding::new(Key::Xps, Level::Green, cpus, reason)]
}

/// Checks unbound workqueues (Documentation/core-api/workqueue.rst). Work of the others is always
/// done on the CPU that queued it.
pub(crate) fn workqueues(context: &Context<'_>) -> Vec<Finding> {
    const FOLDER: &str = "/sys/devices/virtual/workqueue";
    let (facts, cpus) = (context.facts, context.cpus);
    let all = match &facts.workqueues {
        Ok(all) => all,
        Err(unread) => return vec![Finding::unread(Key::Workqueue, cpus, unread)],
    };
    let file = format!("{FOLDER}/cpumask");
    let here = all.and(cpus);
    if here.is_empty() {
        let reason = "no work of unbound workqueues runs there; work that a CPU queues for itself \
                      can't be moved";
        return vec![
            Finding::new(Key::Workqueue, Level::Green, cpus, reason).from(file, shown(all)),
        ];
    }
    let starves = context
        .pollers
        .iter()
        .any(|poller| poller.is_real_time() && here.has(poller.cpu));
    let level = if starves { Level::Red } else { Level::Yellow };
    let reason = format!(
        "work of unbound workqueues may run on CPU {here}{}; work that a CPU queues for itself \
         can't be moved",
        if starves {
            ", and a real-time poller makes it wait"
        } else {
            ""
        }
    );
    // A workqueue's own mask counts only within the common one, so one line is enough.
    let change = context.line(|_| format!("echo {} > {file}", rest(all, context).mask()));
    vec![
        Finding::new(Key::Workqueue, level, &here, reason)
            .from(file, shown(all))
            .change(change),
    ]
}

/// Returns the CPUs of a mask that may stay in it.
fn rest(all: &CpuSet, context: &Context<'_>) -> CpuSet {
    let rest = all.without(context.cpus);
    if rest.is_empty() {
        context.others.clone()
    } else {
        rest
    }
}
