//! The messages of a trace, restricted to the fields used here. Names and numbers are those that
//! Perfetto publishes (`protos/perfetto/trace/` in its repository, v58). Field numbers of messages
//! never change there.
//!
//! `tests/schema.py` reads the output with the schema in the Python package `perfetto`.

mod ftrace;

pub use ftrace::{
    Ftrace, FtraceEvent, FtraceEventBundle, Ipi, IrqEntry, IrqExit, LocalTimer, SchedSwitch,
    SchedWaking, Softirq, SysCall,
};
use prost::{DecodeError, Message};

/// A trace.
#[derive(Clone, PartialEq, Message)]
pub struct Trace {
    /// Packets of the trace.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// Reads a whole trace back, for tests. Fields not declared here are ignored.
///
/// # Errors
///
/// Returns an error if the bytes are not a valid trace.
pub fn read(trace: &[u8]) -> Result<Vec<TracePacket>, DecodeError> {
    Ok(Trace::decode(trace)?.packet)
}

/// One packet.
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    /// Time in nanoseconds, by the trace's clock.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// Namespace of the interned names: one for each writer.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// Combination of [`SEQ_CLEARED`] and [`SEQ_NEEDS_STATE`].
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// Names that this packet and later ones refer to by number.
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    /// Contents of the packet.
    #[prost(oneof = "Data", tags = "1, 2, 6, 11, 45, 60")]
    pub data: Option<Data>,
}

/// `SEQ_INCREMENTAL_STATE_CLEARED`: interned names are reset.
pub const SEQ_CLEARED: u32 = 1;
/// `SEQ_NEEDS_INCREMENTAL_STATE`: the packet uses names sent earlier.
pub const SEQ_NEEDS_STATE: u32 = 2;

/// Contents of a packet.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Data {
    /// Kernel events of one CPU.
    #[prost(message, tag = "1")]
    FtraceEvents(FtraceEventBundle),
    /// Processes and threads, and their names.
    #[prost(message, tag = "2")]
    ProcessTree(ProcessTree),
    /// Readings of several clocks at one moment.
    #[prost(message, tag = "6")]
    ClockSnapshot(ClockSnapshot),
    /// An event on a track.
    #[prost(message, tag = "11")]
    TrackEvent(TrackEvent),
    /// The machine.
    #[prost(message, tag = "45")]
    SystemInfo(SystemInfo),
    /// A track.
    #[prost(message, tag = "60")]
    TrackDescriptor(TrackDescriptor),
}

/// An event on a track.
#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    /// Details of the event.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// Event type: one of [`event_type`].
    #[prost(int32, optional, tag = "9")]
    pub r#type: Option<i32>,
    /// Number of its interned name.
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    /// Id of the track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// Value of a counter.
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    /// Ids of flows (arrows) that begin, go through or end here.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
}

/// `TrackEvent.Type`.
pub mod event_type {
    /// A slice begins.
    pub const SLICE_BEGIN: i32 = 1;
    /// The innermost slice of the track ends.
    pub const SLICE_END: i32 = 2;
    /// An event without a duration.
    pub const INSTANT: i32 = 3;
    /// A counter has a new value.
    pub const COUNTER: i32 = 4;
}

/// A detail of an event.
#[derive(Clone, PartialEq, Message)]
pub struct DebugAnnotation {
    /// Number of its interned name.
    #[prost(uint64, optional, tag = "1")]
    pub name_iid: Option<u64>,
    /// Value of the detail.
    #[prost(oneof = "AnnotationValue", tags = "3, 4, 6, 17")]
    pub value: Option<AnnotationValue>,
}

/// Value of a detail.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum AnnotationValue {
    /// An unsigned number.
    #[prost(uint64, tag = "3")]
    Uint(u64),
    /// A signed number.
    #[prost(int64, tag = "4")]
    Int(i64),
    /// A text used once.
    #[prost(string, tag = "6")]
    String(String),
    /// Number of an interned text.
    #[prost(uint64, tag = "17")]
    StringIid(u64),
}

/// Interned names.
#[derive(Clone, PartialEq, Message)]
pub struct InternedData {
    /// Names of events.
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<InternedName>,
    /// Names of details.
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<InternedName>,
    /// Values of details.
    #[prost(message, repeated, tag = "29")]
    pub debug_annotation_string_values: Vec<InternedName>,
}

/// `EventName`, `DebugAnnotationName` or `InternedString`, which share one form.
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
    /// Id, unique in the trace.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// Name of the track.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// Process, if the track stands for one.
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    /// Id of the parent track.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// Counter, if the track is one.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
    /// Order of its children: one of [`ordering`].
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    /// Rank among the children of its parent.
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
    /// Merging of tracks with the same name: one of [`merge`].
    #[prost(int32, optional, tag = "15")]
    pub sibling_merge_behavior: Option<i32>,
}

/// `TrackDescriptor.ChildTracksOrdering`.
pub mod ordering {
    /// Order by `sibling_order_rank`.
    pub const EXPLICIT: i32 = 3;
}

/// `TrackDescriptor.SiblingMergeBehavior`.
pub mod merge {
    /// Tracks with the same name are not merged.
    pub const NONE: i32 = 2;
}

/// Process of a track.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessDescriptor {
    /// Process id.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Name of the process.
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

/// Properties of a counter track.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct CounterDescriptor {
    /// Unit: one of [`mod@unit`].
    #[prost(int32, optional, tag = "3")]
    pub unit: Option<i32>,
}

/// `CounterDescriptor.Unit`.
pub mod unit {
    /// A count.
    pub const COUNT: i32 = 2;
}

/// Readings of several clocks at one moment.
#[derive(Clone, PartialEq, Message)]
pub struct ClockSnapshot {
    /// Reading of each clock.
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<Clock>,
    /// Clock on which the trace is shown: one of [`clock`].
    #[prost(int32, optional, tag = "2")]
    pub primary_trace_clock: Option<i32>,
}

/// Reading of a clock.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Clock {
    /// Clock id: one of [`clock`].
    #[prost(uint32, optional, tag = "1")]
    pub clock_id: Option<u32>,
    /// Time in nanoseconds.
    #[prost(uint64, optional, tag = "2")]
    pub timestamp: Option<u64>,
}

/// `BuiltinClock`.
pub mod clock {
    /// Time of day.
    pub const REALTIME: u32 = 1;
    /// Time since boot, the default clock of packets.
    pub const BOOTTIME: u32 = 6;
}

/// The machine.
#[derive(Clone, PartialEq, Message)]
pub struct SystemInfo {
    /// Kernel and machine as in `uname(2)`.
    #[prost(message, optional, tag = "1")]
    pub utsname: Option<Utsname>,
}

/// Fields of `uname(2)`. Perfetto uses the machine to look up names of system calls.
#[derive(Clone, PartialEq, Message)]
pub struct Utsname {
    /// `Linux`.
    #[prost(string, optional, tag = "1")]
    pub sysname: Option<String>,
    /// Release of the kernel.
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
    /// Process id.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Command line.
    #[prost(string, repeated, tag = "3")]
    pub cmdline: Vec<String>,
}

/// A thread.
#[derive(Clone, PartialEq, Message)]
pub struct Thread {
    /// Thread id.
    #[prost(int32, optional, tag = "1")]
    pub tid: Option<i32>,
    /// Name of the thread.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// Process id.
    #[prost(int32, optional, tag = "3")]
    pub tgid: Option<i32>,
}
