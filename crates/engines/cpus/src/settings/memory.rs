//! Memory management of the kernel on these CPUs.

use text::printable;

use crate::settings::Context;
use crate::settings::finding::{Finding, Key, Level};

/// Seconds between two updates of statistics, from which they count as rare.
const RARE_INTERVAL_SECONDS: i64 = 60;
/// First release in which isolated CPUs are left out of the updates (commit "vmstat: skip periodic
/// vmstat update for isolated CPUs").
const LEAVES_ISOLATED_OUT: (u32, u32) = (6, 5);

/// Checks transparent huge pages (Documentation/admin-guide/mm/transhuge.rst): khugepaged merges
/// pages of all processes that may have some, and flushes the TLBs of the CPUs on which they run.
pub(crate) fn huge_pages(context: &Context<'_>) -> Vec<Finding> {
    const SETTING: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    let (facts, cpus) = (context.facts, context.cpus);
    let value = match &facts.huge_pages {
        Ok(value) => value.as_str(),
        Err(unread) => return vec![Finding::unread(Key::HugePages, cpus, unread)],
    };
    let has_none = !facts.processes.is_empty()
        && facts
            .processes
            .iter()
            .all(|process| process.huge_pages == Some(false));
    let value = printable::text(value.as_bytes());
    if value == "always" && !has_none {
        let reason = "khugepaged merges pages of any process, and interrupts the CPUs on which its \
                      threads run";
        let change = vec![format!("echo madvise > {SETTING}")];
        return vec![
            Finding::new(Key::HugePages, Level::Yellow, cpus, reason)
                .from(SETTING, value)
                .change(change),
        ];
    }
    let reason = if has_none {
        "these processes do not use transparent huge pages"
    } else {
        "khugepaged merges only pages of programs that ask for it"
    };
    vec![Finding::new(Key::HugePages, Level::Green, cpus, reason).from(SETTING, value)]
}

/// Checks updates of the memory statistics (`stat_interval` in
/// Documentation/admin-guide/sysctl/vm.rst): a worker runs on each CPU that has something to add
/// up.
pub(crate) fn statistics(context: &Context<'_>) -> Vec<Finding> {
    const SETTING: &str = "vm.stat_interval";
    let (facts, cpus) = (context.facts, context.cpus);
    let seconds = match facts.stat_interval {
        Ok(seconds) => seconds,
        Err(ref unread) => return vec![Finding::unread(Key::StatInterval, cpus, unread)],
    };
    let kept = context
        .isolated()
        .or(&facts.nohz_full.clone().unwrap_or_default());
    let is_left_out = facts
        .release
        .is_some_and(|release| release >= LEAVES_ISOLATED_OUT)
        && cpus.without(&kept).is_empty();
    if seconds >= RARE_INTERVAL_SECONDS || is_left_out {
        let reason = if is_left_out {
            "the kernel leaves isolated CPUs out"
        } else {
            "memory statistics are seldom added up"
        };
        return vec![
            Finding::new(Key::StatInterval, Level::Green, cpus, reason).from(SETTING, seconds),
        ];
    }
    let reason = format!(
        "a worker adds up memory statistics on each CPU that has some, every {seconds} s; it waits \
         while a real-time thread polls"
    );
    let change = vec![format!("sysctl -w {SETTING}=120")];
    vec![
        Finding::new(Key::StatInterval, Level::Yellow, cpus, reason)
            .from(SETTING, seconds)
            .change(change),
    ]
}
