//! Settings of the kernel's command line: isolation, the tick, RCU's callbacks.

use host::settings::UnreadReason;
use kernel_text::cpus::CpuSet;

use crate::settings::finding::{Finding, Key, Level};
use crate::settings::{Context, command_line};

/// Checks load balancing (`isolcpus=`; cgroup v2's isolated partitions since Linux 6.1:
/// `cpuset.cpus.partition` in Documentation/admin-guide/cgroup-v2.rst). `managed_irq` is known
/// since 5.6, `domain` since 4.15.
pub(crate) fn isolated(context: &Context<'_>) -> Vec<Finding> {
    const SETTING: &str = "/sys/devices/system/cpu/isolated";
    let (facts, cpus) = (context.facts, context.cpus);
    let value = match &facts.isolated {
        Ok(isolated) => shown(isolated),
        Err(unread) => return vec![Finding::unread(Key::Isolated, cpus, unread)],
    };
    let missing = cpus.without(&context.isolated());
    if missing.is_empty() {
        let reason = "the scheduler moves no thread to these CPUs by itself";
        return vec![Finding::new(Key::Isolated, Level::Green, cpus, reason).from(SETTING, value)];
    }
    if context.others.is_empty() {
        let reason = "there is no other CPU: everything else on this machine runs here, too";
        return vec![Finding::new(Key::Isolated, Level::Red, cpus, reason).from(SETTING, value)];
    }
    let reason = format!("the scheduler may put any thread on CPU {missing}");
    let change = vec![isolation(&cpus.or(&boot(context, "isolcpus")))];
    vec![
        Finding::new(Key::Isolated, Level::Red, &missing, reason)
            .from(SETTING, value)
            .change(change),
    ]
}

/// Checks the tick (Documentation/timers/no_hz.rst). It stops only while one thread is runnable on
/// the CPU.
pub(crate) fn nohz_full(context: &Context<'_>) -> Vec<Finding> {
    const SETTING: &str = "/sys/devices/system/cpu/nohz_full";
    let cpus = context.cpus;
    let full = match &context.facts.nohz_full {
        Ok(full) => full,
        // The file exists if the kernel was built with CONFIG_NO_HZ_FULL (drivers/base/cpu.c).
        Err(unread) if unread.why == UnreadReason::Absent => {
            let reason = "the tick interrupts these CPUs, and this kernel can't stop it: it was \
                          built without CONFIG_NO_HZ_FULL";
            return vec![
                Finding::new(Key::NohzFull, Level::Yellow, cpus, reason)
                    .from(SETTING, "no such file"),
            ];
        }
        Err(unread) => return vec![Finding::unread(Key::NohzFull, cpus, unread)],
    };
    let missing = cpus.without(full);
    if missing.is_empty() {
        let reason = "the tick stops while only one thread is runnable on a CPU";
        return vec![
            Finding::new(Key::NohzFull, Level::Green, cpus, reason).from(SETTING, shown(full)),
        ];
    }
    let reason = format!(
        "the tick interrupts CPU {missing} 100 to 1000 times a second, as the kernel was built \
         (CONFIG_HZ)"
    );
    let change = vec![format!("kernel command line: nohz_full={}", cpus.or(full))];
    vec![
        Finding::new(Key::NohzFull, Level::Yellow, &missing, reason)
            .from(SETTING, shown(full))
            .change(change),
    ]
}

/// Checks RCU's callbacks (`rcu_nocbs=` in Documentation/admin-guide/kernel-parameters.txt, which
/// includes CPUs of `nohz_full=`). A kernel may be built to offload all CPUs
/// (`CONFIG_RCU_NOCB_CPU_DEFAULT_ALL`, since 5.18), so the kernel's threads are examined, too.
pub(crate) fn rcu_nocbs(context: &Context<'_>) -> Vec<Finding> {
    const SETTING: &str = "/proc/cmdline";
    let (facts, cpus) = (context.facts, context.cpus);
    let line = match &facts.command_line {
        Ok(line) => line,
        Err(unread) => return vec![Finding::unread(Key::RcuNocbs, cpus, unread)],
    };
    let named = boot(context, "rcu_nocbs").or(&facts.nohz_full.clone().unwrap_or_default());
    let value = command_line::value(line, "rcu_nocbs")
        .map_or_else(|| "no rcu_nocbs".to_owned(), |it| format!("rcu_nocbs={it}"));
    let missing = cpus.without(&named);
    if missing.is_empty() {
        let reason = "kernel threads that can run elsewhere (rcuo) run the RCU callbacks of these \
                      CPUs";
        return vec![Finding::new(Key::RcuNocbs, Level::Green, cpus, reason).from(SETTING, value)];
    }
    let has_thread = |cpu: u32| {
        let callers = [format!("rcuop/{cpu}"), format!("rcuos/{cpu}")];
        facts.threads.iter().any(|thread| {
            thread.is_kernel && callers.iter().any(|name| name.as_bytes() == thread.name)
        })
    };
    // With a list on the command line, there are threads for CPUs that are not in it, since Linux
    // 5.17.
    if named.is_empty()
        && command_line::value(line, "rcu_nocbs").is_none()
        && missing.iter().all(has_thread)
    {
        let reason = "this kernel has threads (rcuo) for RCU's callbacks of these CPUs";
        return vec![Finding::new(Key::RcuNocbs, Level::Green, cpus, reason).from(SETTING, value)];
    }
    let reason = format!(
        "RCU callbacks of CPU {missing} run there, in a soft interrupt; while a thread starves \
         that CPU, they wait"
    );
    let change = vec![format!(
        "kernel command line: rcu_nocbs={} (has an effect if the kernel has CONFIG_RCU_NOCB_CPU)",
        cpus.or(&named)
    )];
    vec![
        Finding::new(Key::RcuNocbs, Level::Yellow, &missing, reason)
            .from(SETTING, value)
            .change(change),
    ]
}

/// Returns the CPUs of a parameter of the command line.
fn boot(context: &Context<'_>, name: &str) -> CpuSet {
    let line = context.facts.command_line.as_deref().unwrap_or_default();
    let value = command_line::value(line, name).unwrap_or_default();
    // Flags precede the list of `isolcpus=`.
    let words = value
        .split(',')
        .filter(|word| !["domain", "nohz", "managed_irq"].contains(word));
    let list = words.collect::<Vec<_>>().join(",");
    command_line::list(&list, &context.facts.online).unwrap_or_default()
}

/// Returns the parameter that isolates CPUs.
pub(crate) fn isolation(cpus: &CpuSet) -> String {
    format!("kernel command line: isolcpus=managed_irq,domain,{cpus}")
}

/// Formats a set; `none` if it is empty.
pub(crate) fn shown(cpus: &CpuSet) -> String {
    if cpus.is_empty() {
        "none".to_owned()
    } else {
        cpus.to_string()
    }
}
