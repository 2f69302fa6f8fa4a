//! What a check found.

use host::settings::Unread;
use kernel_text::cpus::CpuSet;

/// How much a setting disturbs; the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// It delays the poller, or starves others on its CPU.
    Red,
    /// It may do so.
    Yellow,
    /// It could not be read.
    Unknown,
    /// Nothing is to be changed.
    Green,
}

impl Level {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Red => "red",
            Self::Yellow => "yellow",
            Self::Unknown => "unknown",
            Self::Green => "green",
        }
    }
}

/// Which check it was. The names do not change: programs read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// `isolcpus=`, and isolated partitions.
    Isolated,
    /// Other threads on the same CPU.
    SharedCpu,
    /// Real-time pollers, and what keeps the rest alive.
    RealTime,
    /// The affinity of a device's interrupt.
    IrqAffinity,
    /// The daemon that moves interrupts.
    Irqbalance,
    /// Packets that are handed to other CPUs.
    Rps,
    /// Queues for sending.
    Xps,
    /// The CPUs of unbound workqueues.
    Workqueue,
    /// `nohz_full=`.
    NohzFull,
    /// `rcu_nocbs=`.
    RcuNocbs,
    /// The first CPU.
    FirstCpu,
    /// CPUs that share a core.
    Siblings,
    /// A limit of CPU time.
    CpuQuota,
    /// The CPUs of a control group.
    Cpuset,
    /// The nodes of a process's memory.
    NumaMemory,
    /// Threads of the kernel.
    KernelThreads,
    /// Watchdogs for lockups.
    Watchdog,
    /// Who chooses the frequency.
    Frequency,
    /// States in which a CPU waits.
    IdleStates,
    /// Transparent huge pages.
    HugePages,
    /// Updates of the statistics of memory.
    StatInterval,
    /// Where the kernel's time comes from.
    Clocksource,
}

impl Key {
    /// Its name.
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

/// What of a kind a finding is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Subject {
    /// The machine.
    #[default]
    Machine,
    /// Interrupts, by number.
    Interrupts(Vec<u32>),
    /// A thread.
    Thread(u32),
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which check it was.
    pub key: Key,
    /// How much it disturbs.
    pub level: Level,
    /// The CPUs, of those that were asked for, that it is about.
    pub cpus: CpuSet,
    /// What of its kind it is about.
    pub subject: Subject,
    /// The reason, as a sentence without a full stop.
    pub reason: String,
    /// The file or program that has the setting, and its present value.
    pub setting: Option<(String, String)>,
    /// Lines that change it: those of a shell, run by root, or parameters for the kernel's command line.
    pub change: Vec<String>,
}

impl Finding {
    /// One without a setting.
    pub(crate) fn new(key: Key, level: Level, cpus: &CpuSet, reason: impl Into<String>) -> Self {
        let (subject, reason) = (Subject::Machine, reason.into());
        Self { key, level, cpus: cpus.clone(), subject, reason, setting: None, change: Vec::new() }
    }

    /// One of something that could not be read.
    pub(crate) fn unread(key: Key, cpus: &CpuSet, unread: &Unread) -> Self {
        Self::new(key, Level::Unknown, cpus, unread.to_string())
    }

    /// With the setting that it comes from.
    #[expect(clippy::needless_pass_by_value, reason = "texts, numbers and sets are given as they are at hand")]
    pub(crate) fn from(mut self, setting: impl Into<String>, value: impl ToString) -> Self {
        self.setting = Some((setting.into(), value.to_string()));
        self
    }

    /// With lines that change it.
    pub(crate) fn change(mut self, lines: Vec<String>) -> Self {
        self.change = lines;
        self
    }

    /// With what of its kind it is about.
    pub(crate) fn about(mut self, subject: Subject) -> Self {
        self.subject = subject;
        self
    }
}
