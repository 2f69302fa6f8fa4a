//! The writer: packets are written as they arrive.

mod interner;

use std::collections::BTreeMap;
use std::io::{self, Write};

use prost::Message as _;
use prost::encoding::encode_varint;

use crate::proto::{
    AnnotationValue, Clock, ClockSnapshot, CounterDescriptor, Data, DebugAnnotation, Ftrace,
    FtraceEvent, FtraceEventBundle, InternedData, Process, ProcessDescriptor, ProcessTree,
    SEQ_CLEARED, SEQ_NEEDS_STATE, SystemInfo, Thread, TracePacket, TrackDescriptor, TrackEvent,
    Utsname, clock, event_type, merge, ordering, unit,
};
use crate::writer::interner::Interner;

/// Id of our packet sequence: there is one writer.
const SEQUENCE: u32 = 1;
/// Field 1, length-delimited: `Trace.packet`.
const PACKET: u8 = 1 << 3 | 2;
/// Number of buffered events of a CPU that triggers a write.
const BUNDLE: usize = 512;
/// Number of buffered bytes that triggers a write.
const FLUSH_BYTES: usize = 1 << 16;

/// Id of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Track(u64);

/// Number of an interned event name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name(u64);

/// Number of an interned detail name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(u64);

/// Number of an interned text, for the value of a detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Text(u64);

/// Value of a detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// An unsigned number.
    Count(u64),
    /// A signed number.
    Number(i64),
    /// An interned text, for repeated use.
    Text(Text),
    /// A text used once.
    Once(&'a str),
}

/// Specification of a new track.
#[derive(Clone, Copy, Debug)]
pub struct TrackSpec<'a> {
    /// Name of the track.
    pub name: &'a str,
    /// Parent track.
    pub parent: Option<Track>,
    /// Rank among the children of its parent, lowest first.
    pub rank: i32,
    /// Kind of the track.
    pub kind: TrackKind,
}

/// Kind of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackKind {
    /// A process, the parent of its tracks.
    Process {
        /// Process id.
        pid: u32,
    },
    /// A track of slices, or only a parent of other tracks.
    Slices,
    /// A counter.
    Counter,
}

/// An interval on a track.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    /// The track. Slices of one track nest or follow one another.
    pub track: Track,
    /// Name of the slice.
    pub name: Name,
    /// Begin, in nanoseconds since boot.
    pub begin: u64,
    /// End, not before `begin`.
    pub end: u64,
    /// Details of the slice.
    pub details: &'a [(Key, Value<'a>)],
    /// Ids of flows through the slice: arrows, each to the next slice with the same id.
    pub flows: &'a [u64],
}

/// Writer of a trace.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    buffer: Vec<u8>,
    names: Interner,
    keys: Interner,
    texts: Interner,
    /// Names not sent yet.
    unsent: InternedData,
    tracks: u64,
    /// Buffered kernel events, by CPU.
    bundles: BTreeMap<u32, FtraceEventBundle>,
}

impl<W: Write> Writer<W> {
    /// Begins a trace whose clock counts nanoseconds since boot.
    pub fn new(out: W) -> io::Result<Self> {
        let mut writer = Self {
            out,
            buffer: Vec::with_capacity(2 * FLUSH_BYTES),
            names: Interner::default(),
            keys: Interner::default(),
            texts: Interner::default(),
            unsent: InternedData::default(),
            tracks: 0,
            bundles: BTreeMap::new(),
        };
        let first = TracePacket {
            sequence_flags: Some(SEQ_CLEARED),
            interned_data: Some(InternedData::default()),
            ..TracePacket::default()
        };
        writer.packet(first)?;
        Ok(writer)
    }

    /// Writes two clocks at one moment: nanoseconds since boot, and of the time of day.
    pub fn clocks(&mut self, boot: u64, real: u64) -> io::Result<()> {
        let showed = |id, nanos| Clock {
            clock_id: Some(id),
            timestamp: Some(nanos),
        };
        let snapshot = ClockSnapshot {
            clocks: vec![showed(clock::BOOTTIME, boot), showed(clock::REALTIME, real)],
            primary_trace_clock: Some(clock::BOOTTIME.cast_signed()),
        };
        self.packet(TracePacket {
            timestamp: Some(boot),
            data: Some(Data::ClockSnapshot(snapshot)),
            ..TracePacket::default()
        })
    }

    /// Writes the release of the kernel and the machine as `uname -m` prints it, which Perfetto
    /// uses to look up names of system calls.
    pub fn machine(&mut self, release: &str, machine: &str) -> io::Result<()> {
        let utsname = Utsname {
            sysname: Some("Linux".to_owned()),
            release: Some(release.to_owned()),
            machine: Some(machine.to_owned()),
        };
        let info = SystemInfo {
            utsname: Some(utsname),
        };
        self.packet(TracePacket {
            data: Some(Data::SystemInfo(info)),
            ..TracePacket::default()
        })
    }

    /// Writes a process at time `at`, with the ids and names of its threads.
    pub fn process<'a>(
        &mut self,
        at: u64,
        pid: u32,
        command_line: &[String],
        threads: impl IntoIterator<Item = (u32, &'a str)>,
    ) -> io::Result<()> {
        let threads = threads.into_iter().map(|(tid, name)| Thread {
            tid: Some(tid.cast_signed()),
            name: Some(name.to_owned()),
            tgid: Some(pid.cast_signed()),
        });
        let process = Process {
            pid: Some(pid.cast_signed()),
            cmdline: command_line.to_vec(),
        };
        let tree = ProcessTree {
            processes: vec![process],
            threads: threads.collect(),
        };
        self.packet(TracePacket {
            timestamp: Some(at),
            data: Some(Data::ProcessTree(tree)),
            ..TracePacket::default()
        })
    }

    /// Creates a track. Tracks with the same name are not merged.
    pub fn track(&mut self, spec: &TrackSpec<'_>) -> io::Result<Track> {
        self.tracks += 1;
        let mut descriptor = TrackDescriptor {
            uuid: Some(self.tracks),
            name: Some(spec.name.to_owned()),
            parent_uuid: spec.parent.map(|parent| parent.0),
            child_ordering: Some(ordering::EXPLICIT),
            sibling_order_rank: Some(spec.rank),
            sibling_merge_behavior: Some(merge::NONE),
            ..TrackDescriptor::default()
        };
        match spec.kind {
            TrackKind::Process { pid } => {
                let process_name = descriptor.name.take();
                descriptor.process = Some(ProcessDescriptor {
                    pid: Some(pid.cast_signed()),
                    process_name,
                });
            }
            TrackKind::Slices => {}
            TrackKind::Counter => {
                descriptor.counter = Some(CounterDescriptor {
                    unit: Some(unit::COUNT),
                });
            }
        }
        self.packet(TracePacket {
            data: Some(Data::TrackDescriptor(descriptor)),
            ..TracePacket::default()
        })?;
        Ok(Track(self.tracks))
    }

    /// Interns an event name.
    pub fn name(&mut self, name: &str) -> Name {
        Name(self.names.number(name, &mut self.unsent.event_names))
    }

    /// Interns a detail name.
    pub fn key(&mut self, key: &str) -> Key {
        Key(self
            .keys
            .number(key, &mut self.unsent.debug_annotation_names))
    }

    /// Interns a text, which stays in memory for the whole trace: see [`Value::Once`].
    pub fn text(&mut self, text: &str) -> Text {
        Text(
            self.texts
                .number(text, &mut self.unsent.debug_annotation_string_values),
        )
    }

    /// Writes a slice.
    pub fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        self.begin(slice)?;
        self.end(slice.track, slice.begin.max(slice.end))
    }

    /// Writes the begin of a slice; others may be nested before its end.
    pub fn begin(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        let event = TrackEvent {
            debug_annotations: slice.details.iter().map(detail).collect(),
            r#type: Some(event_type::SLICE_BEGIN),
            name_iid: Some(slice.name.0),
            track_uuid: Some(slice.track.0),
            counter_value: None,
            flow_ids: slice.flows.to_vec(),
        };
        self.event(slice.begin, event)
    }

    /// Writes the end of the track's innermost slice.
    pub fn end(&mut self, track: Track, at: u64) -> io::Result<()> {
        let event = TrackEvent {
            r#type: Some(event_type::SLICE_END),
            track_uuid: Some(track.0),
            ..TrackEvent::default()
        };
        self.event(at, event)
    }

    /// Writes an event without a duration.
    pub fn instant(
        &mut self,
        track: Track,
        name: Name,
        at: u64,
        details: &[(Key, Value<'_>)],
    ) -> io::Result<()> {
        let event = TrackEvent {
            debug_annotations: details.iter().map(detail).collect(),
            r#type: Some(event_type::INSTANT),
            name_iid: Some(name.0),
            track_uuid: Some(track.0),
            ..TrackEvent::default()
        };
        self.event(at, event)
    }

    /// Writes the value of a counter from this time on.
    pub fn counter(&mut self, track: Track, at: u64, value: i64) -> io::Result<()> {
        let event = TrackEvent {
            r#type: Some(event_type::COUNTER),
            track_uuid: Some(track.0),
            counter_value: Some(value),
            ..TrackEvent::default()
        };
        self.event(at, event)
    }

    /// Adds a kernel event of a CPU, on which thread `tid` was running. Events of one CPU must come
    /// in time order.
    pub fn kernel(&mut self, cpu: u32, at: u64, tid: u32, event: Ftrace) -> io::Result<()> {
        let bundle = self.bundles.entry(cpu).or_default();
        bundle.event.push(FtraceEvent {
            timestamp: Some(at),
            pid: Some(tid),
            event: Some(event),
        });
        if bundle.event.len() < BUNDLE {
            Ok(())
        } else {
            self.flush(cpu)
        }
    }

    /// Records that events of this CPU were lost after those added so far.
    pub fn lost(&mut self, cpu: u32) -> io::Result<()> {
        self.flush(cpu)?;
        self.bundles.entry(cpu).or_default().lost_events = Some(true);
        Ok(())
    }

    /// Writes all buffered data, and returns the output.
    pub fn finish(mut self) -> io::Result<W> {
        let cpus: Vec<u32> = self.bundles.keys().copied().collect();
        for cpu in cpus {
            self.flush(cpu)?;
        }
        self.out.write_all(&self.buffer)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn flush(&mut self, cpu: u32) -> io::Result<()> {
        let held = self
            .bundles
            .get_mut(&cpu)
            .filter(|bundle| !bundle.event.is_empty());
        let Some(bundle) = held else { return Ok(()) };
        let bundle = FtraceEventBundle {
            cpu: Some(cpu),
            ..std::mem::take(bundle)
        };
        self.packet(TracePacket {
            data: Some(Data::FtraceEvents(bundle)),
            ..TracePacket::default()
        })
    }

    fn event(&mut self, at: u64, event: TrackEvent) -> io::Result<()> {
        self.packet(TracePacket {
            timestamp: Some(at),
            sequence_flags: Some(SEQ_NEEDS_STATE),
            data: Some(Data::TrackEvent(event)),
            ..TracePacket::default()
        })
    }

    fn packet(&mut self, mut packet: TracePacket) -> io::Result<()> {
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        if self.unsent != InternedData::default() {
            packet.interned_data = Some(std::mem::take(&mut self.unsent));
        }
        self.buffer.push(PACKET);
        encode_varint(packet.encoded_len() as u64, &mut self.buffer);
        packet.encode_raw(&mut self.buffer);
        if self.buffer.len() >= FLUSH_BYTES {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}

fn detail((key, value): &(Key, Value<'_>)) -> DebugAnnotation {
    let value = match *value {
        Value::Count(count) => AnnotationValue::Uint(count),
        Value::Number(number) => AnnotationValue::Int(number),
        Value::Text(text) => AnnotationValue::StringIid(text.0),
        Value::Once(text) => AnnotationValue::String(text.to_owned()),
    };
    DebugAnnotation {
        name_iid: Some(key.0),
        value: Some(value),
    }
}
