//! Findings of the checks.

use host::settings::UnreadFile;
use kernel_text::cpus::CpuSet;

/// Severity of a finding; the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Setting that delays the poller, or starves others on its CPU.
    Red,
    /// Setting that may do so.
    Yellow,
    /// Setting that could not be read.
    Unknown,
    /// Setting that needs no change.
    Green,
}

impl Level {
    /// Returns the level's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Red => "red",
            Self::Yellow => "yellow",
            Self::Unknown => "unknown",
            Self::Green => "green",
        }
    }
}

/// Check that made a finding. The names do not change: programs read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Load balancing: `isolcpus=`, and isolated partitions.
    Isolated,
    /// Other threads on the same CPU.
    SharedCpu,
    /// Real-time pollers, and the time left for other threads.
    RealTime,
    /// Affinity of a device's interrupt.
    IrqAffinity,
    /// Daemon that moves interrupts.
    Irqbalance,
    /// Packets handed to other CPUs.
    Rps,
    /// Queues for sending.
    Xps,
    /// CPUs of unbound workqueues.
    Workqueue,
    /// Tick: `nohz_full=`.
    NohzFull,
    /// Callbacks of RCU: `rcu_nocbs=`.
    RcuNocbs,
    /// First CPU.
    FirstCpu,
    /// CPUs that share a core.
    Siblings,
    /// Limit of CPU time.
    CpuQuota,
    /// CPUs of a control group.
    Cpuset,
    /// Nodes of a process's memory.
    NumaMemory,
    /// Threads of the kernel.
    KernelThreads,
    /// Watchdogs for lockups.
    Watchdog,
    /// Frequency governor and its limits.
    Frequency,
    /// Idle states of a CPU.
    IdleStates,
    /// Transparent huge pages.
    HugePages,
    /// Updates of the memory statistics.
    StatInterval,
    /// Clock source of the kernel.
    Clocksource,
}

impl Key {
    /// Returns the check's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Isolated => "isolcpus",
            Self::SharedCpu => "shared-cpu",
            Self::RealTime => "real-time",
            Self::IrqAffinity => "irq-affinity",
            Self::Irqbalance => "irqbalance",
            Self::Rps => "rps",
            Self::Xps => "xps",
            Self::Workqueue => "workqueue",
            Self::NohzFull => "nohz-full",
            Self::RcuNocbs => "rcu-nocbs",
            Self::FirstCpu => "cpu-0",
            Self::Siblings => "siblings",
            Self::CpuQuota => "cpu-quota",
            Self::Cpuset => "cpuset",
            Self::NumaMemory => "numa-memory",
            Self::KernelThreads => "kernel-threads",
            Self::Watchdog => "watchdog",
            Self::Frequency => "frequency",
            Self::IdleStates => "idle-states",
            Self::HugePages => "huge-pages",
            Self::StatInterval => "stat-interval",
            Self::Clocksource => "clocksource",
        }
    }
}

/// Subject of a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Subject {
    /// Machine.
    #[default]
    Machine,
    /// Interrupts, by number.
    Interrupts(Vec<u32>),
    /// Thread, by its id.
    Thread(u32),
}

/// Finding of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Check that made it.
    pub key: Key,
    /// Severity.
    pub level: Level,
    /// CPUs concerned, among those checked.
    pub cpus: CpuSet,
    /// Subject.
    pub subject: Subject,
    /// Reason, as a sentence without a full stop.
    pub reason: String,
    /// File or program that has the setting, and its present value.
    pub setting: Option<(String, String)>,
    /// Lines that change the setting: those of a shell, run by root, or parameters for the kernel's
    /// command line.
    pub change: Vec<String>,
}

impl Finding {
    /// Creates a finding without a setting.
    pub(crate) fn new(key: Key, level: Level, cpus: &CpuSet, reason: impl Into<String>) -> Self {
        let (subject, reason) = (Subject::Machine, reason.into());
        Self {
            key,
            level,
            cpus: cpus.clone(),
            subject,
            reason,
            setting: None,
            change: Vec::new(),
        }
    }

    /// Creates a finding about something that could not be read.
    pub(crate) fn unread(key: Key, cpus: &CpuSet, unread: &UnreadFile) -> Self {
        Self::new(key, Level::Unknown, cpus, unread.to_string())
    }

    /// Adds the setting that it comes from.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "texts, numbers and sets are given as they are at hand"
    )]
    pub(crate) fn from(mut self, setting: impl Into<String>, value: impl ToString) -> Self {
        self.setting = Some((setting.into(), value.to_string()));
        self
    }

    /// Adds the lines that change it.
    pub(crate) fn change(mut self, lines: Vec<String>) -> Self {
        self.change = lines;
        self
    }

    /// Sets the subject.
    pub(crate) fn about(mut self, subject: Subject) -> Self {
        self.subject = subject;
        self
    }
}
