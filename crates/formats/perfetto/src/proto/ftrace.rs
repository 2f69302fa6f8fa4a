//! Messages of the kernel's events.

use prost::Message;

/// Kernel events of one CPU.
#[derive(Clone, PartialEq, Message)]
pub struct FtraceEventBundle {
    /// The CPU.
    #[prost(uint32, optional, tag = "1")]
    pub cpu: Option<u32>,
    /// Events in time order.
    #[prost(message, repeated, tag = "2")]
    pub event: Vec<FtraceEvent>,
    /// True if events before these were lost.
    #[prost(bool, optional, tag = "3")]
    pub lost_events: Option<bool>,
}

/// A kernel event.
#[derive(Clone, PartialEq, Message)]
pub struct FtraceEvent {
    /// Time since boot, in nanoseconds.
    #[prost(uint64, optional, tag = "1")]
    pub timestamp: Option<u64>,
    /// Id of the thread running on the CPU.
    #[prost(uint32, optional, tag = "2")]
    pub pid: Option<u32>,
    /// Event.
    #[prost(
        oneof = "Ftrace",
        tags = "4, 20, 21, 22, 24, 25, 36, 37, 329, 330, 559, 560"
    )]
    pub event: Option<Ftrace>,
}

/// Kernel event, by tracepoint.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Ftrace {
    /// `sched_switch`.
    #[prost(message, tag = "4")]
    SchedSwitch(SchedSwitch),
    /// `sched_waking`.
    #[prost(message, tag = "20")]
    SchedWaking(SchedWaking),
    /// `ipi_entry`.
    #[prost(message, tag = "21")]
    IpiEntry(Ipi),
    /// `ipi_exit`.
    #[prost(message, tag = "22")]
    IpiExit(Ipi),
    /// `softirq_entry`.
    #[prost(message, tag = "24")]
    SoftirqEntry(Softirq),
    /// `softirq_exit`.
    #[prost(message, tag = "25")]
    SoftirqExit(Softirq),
    /// `irq_handler_entry`.
    #[prost(message, tag = "36")]
    IrqEntry(IrqEntry),
    /// `irq_handler_exit`.
    #[prost(message, tag = "37")]
    IrqExit(IrqExit),
    /// `sys_enter`.
    #[prost(message, tag = "329")]
    SysEnter(SysCall),
    /// `sys_exit`.
    #[prost(message, tag = "330")]
    SysExit(SysCall),
    /// `local_timer_entry`.
    #[prost(message, tag = "559")]
    TimerEntry(LocalTimer),
    /// `local_timer_exit`.
    #[prost(message, tag = "560")]
    TimerExit(LocalTimer),
}

/// `sched_switch`.
#[derive(Clone, PartialEq, Message)]
pub struct SchedSwitch {
    /// Name of the thread that leaves the CPU.
    #[prost(string, optional, tag = "1")]
    pub prev_comm: Option<String>,
    /// Id of that thread.
    #[prost(int32, optional, tag = "2")]
    pub prev_pid: Option<i32>,
    /// Priority of that thread.
    #[prost(int32, optional, tag = "3")]
    pub prev_prio: Option<i32>,
    /// State of that thread, in the bits of the tracepoint's format.
    #[prost(int64, optional, tag = "4")]
    pub prev_state: Option<i64>,
    /// Name of the thread that gets the CPU.
    #[prost(string, optional, tag = "5")]
    pub next_comm: Option<String>,
    /// Id of that thread.
    #[prost(int32, optional, tag = "6")]
    pub next_pid: Option<i32>,
    /// Priority of that thread.
    #[prost(int32, optional, tag = "7")]
    pub next_prio: Option<i32>,
}

/// `sched_waking`.
#[derive(Clone, PartialEq, Message)]
pub struct SchedWaking {
    /// Name of the woken thread.
    #[prost(string, optional, tag = "1")]
    pub comm: Option<String>,
    /// Id of that thread.
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
    /// Priority of that thread.
    #[prost(int32, optional, tag = "3")]
    pub prio: Option<i32>,
    /// CPU that the thread will run on.
    #[prost(int32, optional, tag = "5")]
    pub target_cpu: Option<i32>,
}

/// `ipi_entry`, `ipi_exit`.
#[derive(Clone, PartialEq, Message)]
pub struct Ipi {
    /// Reason for which another CPU sent it.
    #[prost(string, optional, tag = "1")]
    pub reason: Option<String>,
}

/// `softirq_entry`, `softirq_exit`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Softirq {
    /// Number of the softirq.
    #[prost(uint32, optional, tag = "1")]
    pub vec: Option<u32>,
}

/// `irq_handler_entry`.
#[derive(Clone, PartialEq, Message)]
pub struct IrqEntry {
    /// Interrupt number.
    #[prost(int32, optional, tag = "1")]
    pub irq: Option<i32>,
    /// Name of the device.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

/// `irq_handler_exit`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct IrqExit {
    /// Interrupt number.
    #[prost(int32, optional, tag = "1")]
    pub irq: Option<i32>,
}

/// `sys_enter`, `sys_exit`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct SysCall {
    /// Number of the system call.
    #[prost(int64, optional, tag = "1")]
    pub id: Option<i64>,
}

/// `local_timer_entry`, `local_timer_exit`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct LocalTimer {
    /// Interrupt vector.
    #[prost(int32, optional, tag = "1")]
    pub vector: Option<i32>,
}
