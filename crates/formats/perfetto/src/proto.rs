//! The messages of a trace, as far as they are written here: names and numbers are those that Perfetto publishes
//! (`protos/perfetto/trace/` in its repository, v58). Field numbers of messages never change there.
//!
//! `tests/schema.py` reads what is written with the schema that the Python package `perfetto` carries.

use prost::{DecodeError, Message};

/// A trace.
#[derive(Clone, PartialEq, Message)]
pub struct Trace {
    /// Its packets.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// Reads a whole trace back: for tests.
///
/// # Errors
///
/// It is none. Fields that are not written here are left out.
pub fn read(trace: &[u8]) -> Result<Vec<TracePacket>, DecodeError> {
    Ok(Trace::decode(trace)?.packet)
}

/// One packet.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    /// Nanoseconds, of the trace's clock.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// Whose interned names it uses: one for each writer.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// [`SEQ_CLEARED`], [`SEQ_NEEDS_STATE`].
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// Names that this packet and later ones use by number.
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    /// What it says.
    #[prost(oneof = "Data", tags = "1, 2, 6, 11, 45, 60")]
    pub data: Option<Data>,
}

/// `SEQ_INCREMENTAL_STATE_CLEARED`: names begin anew.
pub const SEQ_CLEARED: u32 = 1;
/// `SEQ_NEEDS_INCREMENTAL_STATE`: the packet uses names that came before.
pub const SEQ_NEEDS_STATE: u32 = 2;

/// What a packet says.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Data {
    /// What the kernel did on one CPU.
    #[prost(message, tag = "1")]
    FtraceEvents(FtraceEventBundle),
    /// Processes and threads, and their names.
    #[prost(message, tag = "2")]
    ProcessTree(ProcessTree),
    /// What clocks showed at one moment.
    #[prost(message, tag = "6")]
    ClockSnapshot(ClockSnapshot),
    /// An event of a track.
    #[prost(message, tag = "11")]
    TrackEvent(TrackEvent),
    /// The machine.
    #[prost(message, tag = "45")]
    SystemInfo(SystemInfo),
    /// A track.
    #[prost(message, tag = "60")]
    TrackDescriptor(TrackDescriptor),
}

/// An event of a track.
#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    /// Its details.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// One of [`event_type`].
    #[prost(int32, optional, tag = "9")]
    pub r#type: Option<i32>,
    /// Its name, interned.
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    /// The track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// The value of a counter.
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    /// Arrows that begin, go through or end here.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
}

/// `TrackEvent.Type`.
pub mod event_type {
    /// A slice begins.
    pub const SLICE_BEGIN: i32 = 1;
    /// The track's innermost slice ends.
    pub const SLICE_END: i32 = 2;
    /// Something without a length.
    pub const INSTANT: i32 = 3;
    /// A counter's new value.
    pub const COUNTER: i32 = 4;
}

/// A detail of an event.
#[derive(Clone, PartialEq, Message)]
pub struct DebugAnnotation {
    /// Its name, interned.
    #[prost(uint64, optional, tag = "1")]
    pub name_iid: Option<u64>,
    /// Its value.
    #[prost(oneof = "AnnotationValue", tags = "3, 4, 6, 17")]
    pub value: Option<AnnotationValue>,
}

/// The value of a detail.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum AnnotationValue {
    /// A count.
    #[prost(uint64, tag = "3")]
    Uint(u64),
    /// A number.
    #[prost(int64, tag = "4")]
    Int(i64),
    /// A text that is used once.
    #[prost(string, tag = "6")]
    String(String),
    /// A text, interned.
    #[prost(uint64, tag = "17")]
    StringIid(u64),
}

/// Names by number.
#[derive(Clone, PartialEq, Message)]
pub struct InternedData {
    /// Of events.
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<InternedName>,
    /// Of details.
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<InternedName>,
    /// Values of details.
    #[prost(message, repeated, tag = "29")]
    pub debug_annotation_string_values: Vec<InternedName>,
}

/// `EventName`, `DebugAnnotationName`, `InternedString`: of one form.
#[derive(Clone, PartialEq, Message)]
pub struct InternedName {
    /// The number, from 1.
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    /// The name.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

/// A track.
#[derive(Clone, PartialEq, Message)]
pub struct TrackDescriptor {
    /// Its number, of all tracks of the trace.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// What it is called.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// It is the one of this process.
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    /// Under which it stands.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// It is a counter.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
    /// In which order those under it stand: one of [`ordering`].
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    /// Its place among those of its parent.
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
    /// One of [`merge`].
    #[prost(int32, optional, tag = "15")]
    pub sibling_merge_behavior: Option<i32>,
}

/// `TrackDescriptor.ChildTracksOrdering`.
pub mod ordering {
    /// By `sibling_order_rank`.
    pub const EXPLICIT: i32 = 3;
}

/// `TrackDescriptor.SiblingMergeBehavior`.
pub mod merge {
    /// Tracks of one name stay apart.
    pub const NONE: i32 = 2;
}

/// Which process a track is.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessDescriptor {
    /// Its number.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Its name.
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

/// That a track is a counter.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct CounterDescriptor {
    /// One of [`mod@unit`].
    #[prost(int32, optional, tag = "3")]
    pub unit: Option<i32>,
}

/// `CounterDescriptor.Unit`.
pub mod unit {
    /// Things.
    pub const COUNT: i32 = 2;
}

/// What clocks showed at one moment.
#[derive(Clone, PartialEq, Message)]
pub struct ClockSnapshot {
    /// Each clock.
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
    /// The one on which the trace is shown.
    #[prost(int32, optional, tag = "2")]
    pub primary_trace_clock: Option<i32>,
}

/// What a clock showed.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Clock {
    /// Which: one of [`clock`].
    #[prost(uint32, optional, tag = "1")]
    pub clock_id: Option<u32>,
    /// Nanoseconds.
    #[prost(uint64, optional, tag = "2")]
    pub timestamp: Option<u64>,
}

/// `BuiltinClock`.
pub mod clock {
    /// The time of day.
    pub const REALTIME: u32 = 1;
    /// Since the machine started: that of packets that name none.
    pub const BOOTTIME: u32 = 6;
}

/// The machine.
#[derive(Clone, PartialEq, Message)]
pub struct SystemInfo {
    /// As `uname(2)` has it.
    #[prost(message, optional, tag = "1")]
    pub utsname: Option<Utsname>,
}

/// What `uname(2)` has. System calls get their names by the machine.
#[derive(Clone, PartialEq, Message)]
pub struct Utsname {
    /// `Linux`.
    #[prost(string, optional, tag = "1")]
    pub sysname: Option<String>,
    /// The kernel's release.
    #[prost(string, optional, tag = "3")]
    pub release: Option<String>,
    /// `x86_64`, `aarch64`.
    #[prost(string, optional, tag = "4")]
    pub machine: Option<String>,
}

/// Processes and threads.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessTree {
    /// Processes.
    #[prost(message, repeated, tag = "1")]
    pub processes: Vec<Process>,
    /// Threads other than the first of a process.
    #[prost(message, repeated, tag = "2")]
    pub threads: Vec<Thread>,
}

/// A process.
#[derive(Clone, PartialEq, Message)]
pub struct Process {
    /// Its number.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Its command line.
    #[prost(string, repeated, tag = "3")]
    pub cmdline: Vec<String>,
}

/// A thread.
#[derive(Clone, PartialEq, Message)]
pub struct Thread {
    /// Its number.
    #[prost(int32, optional, tag = "1")]
    pub tid: Option<i32>,
    /// Its name.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// Its process.
    #[prost(int32, optional, tag = "3")]
    pub tgid: Option<i32>,
}

/// What the kernel did on one CPU.
#[derive(Clone, PartialEq, Message)]
pub struct FtraceEventBundle {
    /// The CPU.
    #[prost(uint32, optional, tag = "1")]
    pub cpu: Option<u32>,
    /// Its events, in the order of time.
    #[prost(message, repeated, tag = "2")]
    pub event: Vec<FtraceEvent>,
    /// Events before these were lost.
    #[prost(bool, optional, tag = "3")]
    pub lost_events: Option<bool>,
}

/// One event of the kernel.
#[derive(Clone, PartialEq, Message)]
pub struct FtraceEvent {
    /// Nanoseconds since the machine started.
    #[prost(uint64, optional, tag = "1")]
    pub timestamp: Option<u64>,
    /// The thread that had the CPU.
    #[prost(uint32, optional, tag = "2")]
    pub pid: Option<u32>,
    /// What.
    #[prost(oneof = "Ftrace", tags = "4, 20, 21, 22, 24, 25, 36, 37, 329, 330, 559, 560")]
    pub event: Option<Ftrace>,
}

/// What the kernel did.
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
    /// Who leaves.
    #[prost(string, optional, tag = "1")]
    pub prev_comm: Option<String>,
    /// Its number.
    #[prost(int32, optional, tag = "2")]
    pub prev_pid: Option<i32>,
    /// Its priority.
    #[prost(int32, optional, tag = "3")]
    pub prev_prio: Option<i32>,
    /// Why it leaves: the bits of the tracepoint's format.
    #[prost(int64, optional, tag = "4")]
    pub prev_state: Option<i64>,
    /// Who comes.
    #[prost(string, optional, tag = "5")]
    pub next_comm: Option<String>,
    /// Its number.
    #[prost(int32, optional, tag = "6")]
    pub next_pid: Option<i32>,
    /// Its priority.
    #[prost(int32, optional, tag = "7")]
    pub next_prio: Option<i32>,
}

/// `sched_waking`.
#[derive(Clone, PartialEq, Message)]
pub struct SchedWaking {
    /// Who wakes.
    #[prost(string, optional, tag = "1")]
    pub comm: Option<String>,
    /// Its number.
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
    /// Its priority.
    #[prost(int32, optional, tag = "3")]
    pub prio: Option<i32>,
    /// For which CPU it waits.
    #[prost(int32, optional, tag = "5")]
    pub target_cpu: Option<i32>,
}

/// `ipi_entry`, `ipi_exit`.
#[derive(Clone, PartialEq, Message)]
pub struct Ipi {
    /// What another CPU wants.
    #[prost(string, optional, tag = "1")]
    pub reason: Option<String>,
}

/// `softirq_entry`, `softirq_exit`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Softirq {
    /// Which.
    #[prost(uint32, optional, tag = "1")]
    pub vec: Option<u32>,
}

/// `irq_handler_entry`.
#[derive(Clone, PartialEq, Message)]
pub struct IrqEntry {
    /// Its number.
    #[prost(int32, optional, tag = "1")]
    pub irq: Option<i32>,
    /// Its device.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

/// `irq_handler_exit`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct IrqExit {
    /// Its number.
    #[prost(int32, optional, tag = "1")]
    pub irq: Option<i32>,
}

/// `sys_enter`, `sys_exit`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct SysCall {
    /// The call's number.
    #[prost(int64, optional, tag = "1")]
    pub id: Option<i64>,
}

/// `local_timer_entry`, `local_timer_exit`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct LocalTimer {
    /// The interrupt's vector.
    #[prost(int32, optional, tag = "1")]
    pub vector: Option<i32>,
}
