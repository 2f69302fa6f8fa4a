//! A stream: the events of one thread.

use std::fmt;
use std::io::{ErrorKind, Read};

use crate::input::Input;
use crate::layout::{Field, Integer, Kind, Layout, Scalar};
use crate::metadata::{EventKind, Metadata};

/// First number of each packet (CTF 1.8.3, section 5.1).
const MAGIC: u64 = 0xc1fc_1fc1;

/// Value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'b> {
    /// An unsigned integer, and the base for printing it: 2, 8, 10 or 16.
    Unsigned(u64, u32),
    /// A signed integer, and the base for printing it.
    Signed(i64, u32),
    /// A float or a double.
    Float(f64),
    /// Characters, without the terminating NUL.
    Text(&'b [u8]),
    /// Elements of an array.
    List(Vec<Value<'b>>),
}

impl Value<'_> {
    /// Returns the value as a number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Unsigned(value, _) => Some(*value as f64),
            Self::Signed(value, _) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::Text(_) | Self::List(_) => None,
        }
    }
}

/// Bytes with their layout and byte order.
#[derive(Clone, Debug)]
struct StructView<'b, B> {
    layout: &'b Layout,
    /// All bytes of the layout.
    bytes: B,
    is_big_endian: bool,
}

/// The head of a stream: the CPU on which its thread started, and the thread's name.
#[derive(Clone, Debug)]
pub struct Head<'b>(StructView<'b, Box<[u8]>>);

/// An event.
#[derive(Clone, Debug)]
pub struct Event<'b> {
    /// Time in nanoseconds since 1970 (UTC).
    pub nanos: i64,
    /// Kind of event.
    pub kind: &'b EventKind,
    fields: StructView<'b, Box<[u8]>>,
}

/// Reason for which a file is not a stream of this trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// The file is shorter than the head of a stream.
    Short,
    /// The file does not begin with the magic number, but with this one.
    Magic(u64),
    /// The file belongs to a different trace than the description.
    OtherTrace,
}

/// Reason for which a stream could not be read to its end, and the byte offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The last event is incomplete.
    Cut(usize),
    /// An event of an undescribed kind, with its id.
    UnknownKind(usize, u64),
    /// The file can no longer be read.
    Unreadable(usize, ErrorKind),
}

/// A stream that is read event by event: only one event is in memory at a time.
#[derive(Debug)]
pub struct Stream<'b> {
    metadata: &'b Metadata,
    input: Input<'b>,
    head: Head<'b>,
    at: usize,
    /// Clock value of the last event.
    ticks: u64,
    problem: Option<Problem>,
}

impl<'b> Stream<'b> {
    /// Begins to read a stream of the trace described by `metadata`.
    pub fn new(metadata: &'b Metadata, source: impl Read + 'b) -> Result<Self, StreamError> {
        let (mut input, is_big_endian) = (Input::new(source), metadata.is_big_endian);
        let layout = &metadata.packet_header;
        let bytes = input.peek(layout.size).ok_or(StreamError::Short)?;
        let begin = StructView {
            layout,
            bytes,
            is_big_endian,
        };
        let magic = begin.integer("magic").unwrap_or_default();
        if magic != MAGIC {
            return Err(StreamError::Magic(magic));
        }
        let uuid = layout
            .fields
            .iter()
            .find(|field| field.name == "uuid")
            .map(|field| begin.bytes_from(field));
        if let (Some(uuid), Some(expected)) =
            (uuid.and_then(|field| field.get(..16)), metadata.uuid)
            && uuid != expected
        {
            return Err(StreamError::OtherTrace);
        }
        let (context, layout) = (
            metadata.packet_context.next(layout.size),
            &metadata.packet_context,
        );
        let at = context.checked_add(layout.size).ok_or(StreamError::Short)?;
        let bytes = input
            .peek(at)
            .and_then(|bytes| bytes.get(context..))
            .ok_or(StreamError::Short)?;
        let head = Head(StructView {
            layout,
            bytes: bytes.into(),
            is_big_endian,
        });
        input.pass(at);
        Ok(Self {
            metadata,
            input,
            head,
            at,
            ticks: 0,
            problem: None,
        })
    }

    /// Returns the head of the stream.
    pub fn head(&self) -> &Head<'b> {
        &self.head
    }

    /// Returns the reason for which the stream was not read to its end, if any. Known once no event
    /// is left.
    pub fn problem(&self) -> Option<Problem> {
        self.problem
    }

    /// Reads the next event and moves past it. Changes nothing if the event is incomplete.
    fn read(&mut self) -> Result<Event<'b>, Problem> {
        let (metadata, is_big_endian) = (self.metadata, self.metadata.is_big_endian);
        let layout = &metadata.event_header;
        let at = layout.next(self.at);
        let bytes = part(&mut self.input, at - self.at, layout.size).ok_or(Problem::Cut(at));
        let head = StructView {
            layout,
            bytes: bytes?,
            is_big_endian,
        };
        let id = head.integer("id").unwrap_or_default();
        let kind = metadata
            .kinds
            .get(&id)
            .ok_or(Problem::UnknownKind(at, id))?;
        let ticks = layout
            .clock()
            .map(|(at, clock)| following(self.ticks, head.unsigned(at, clock), clock.bytes));
        let begin = kind.fields.next(at + layout.size);
        let bytes =
            part(&mut self.input, begin - self.at, kind.fields.size).ok_or(Problem::Cut(at))?;
        let fields = StructView {
            layout: &kind.fields,
            bytes: bytes.into(),
            is_big_endian,
        };
        let end = begin + kind.fields.size;
        self.input.pass(end - self.at);
        (self.at, self.ticks) = (end, ticks.unwrap_or(self.ticks));
        Ok(Event {
            nanos: metadata.clock.nanos(self.ticks),
            kind,
            fields,
        })
    }
}

/// Returns `count` of the next bytes, after skipping the first `begin`.
fn part<'i>(input: &'i mut Input<'_>, begin: usize, count: usize) -> Option<&'i [u8]> {
    input.peek(begin.checked_add(count)?)?.get(begin..)
}

impl<'b> Iterator for Stream<'b> {
    type Item = Event<'b>;

    fn next(&mut self) -> Option<Event<'b>> {
        if self.problem.is_some() {
            return None;
        }
        let event = if self.input.peek(1).is_some() {
            Some(self.read())
        } else {
            None
        };
        // A read error is not a cut.
        let failed = self
            .input
            .failed()
            .map(|kind| Problem::Unreadable(self.at, kind));
        match event {
            Some(Ok(event)) => return Some(event),
            Some(Err(problem)) => self.problem = failed.or(Some(problem)),
            None => self.problem = failed,
        }
        None
    }
}

/// Returns the clock value after `last` with these lowest bytes. Time does not go back, so a
/// smaller value has wrapped (CTF 1.8.3, section 8).
fn following(last: u64, low: u64, bytes: usize) -> u64 {
    if bytes >= 8 {
        return low;
    }
    let span = 1_u64 << (bytes * 8);
    let high = last & !(span - 1);
    let value = high | low;
    if value < last {
        value.wrapping_add(span)
    } else {
        value
    }
}

impl<B: AsRef<[u8]>> StructView<'_, B> {
    fn bytes_from(&self, field: &Field) -> &[u8] {
        self.bytes.as_ref().get(field.at..).unwrap_or_default()
    }

    fn integer(&self, name: &str) -> Option<u64> {
        let (at, integer) = self.layout.integer(name)?;
        Some(self.unsigned(at, integer))
    }

    /// Returns the bytes of an integer as an unsigned number.
    fn unsigned(&self, at: usize, integer: Integer) -> u64 {
        let bytes = self
            .bytes
            .as_ref()
            .get(at..)
            .and_then(|rest| rest.get(..integer.bytes))
            .unwrap_or_default();
        let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        if self.is_big_endian {
            bytes.iter().fold(0, add)
        } else {
            bytes.iter().rev().fold(0, add)
        }
    }

    fn scalar(&self, at: usize, scalar: Scalar) -> Value<'_> {
        match scalar {
            Scalar::Integer(integer) => {
                let value = self.unsigned(at, integer);
                let unused = 64 - 8 * integer.bytes as u32;
                if integer.is_signed {
                    Value::Signed((value << unused).cast_signed() >> unused, integer.base)
                } else {
                    Value::Unsigned(value, integer.base)
                }
            }
            Scalar::Float { bytes, align } => {
                let whole = Integer {
                    bytes,
                    align,
                    is_signed: false,
                    base: 16,
                    is_text: false,
                    is_clock: false,
                };
                let bits = self.unsigned(at, whole);
                Value::Float(if bytes == 4 {
                    f32::from_bits(bits as u32).into()
                } else {
                    f64::from_bits(bits)
                })
            }
        }
    }

    fn value(&self, field: &Field) -> Value<'_> {
        match field.kind {
            Kind::One(scalar) => self.scalar(field.at, scalar),
            Kind::Text { bytes } => {
                let text = self.bytes_from(field);
                let text = &text[..bytes.min(text.len())];
                Value::Text(text.split(|byte| *byte == 0).next().unwrap_or_default())
            }
            Kind::List { item, count } => Value::List(
                (0..count)
                    .map(|nth| self.scalar(field.at + nth * item.bytes(), item))
                    .collect(),
            ),
        }
    }

    fn values(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        self.layout
            .fields
            .iter()
            .map(|field| (field.name.as_str(), self.value(field)))
    }
}

impl Head<'_> {
    /// Iterates over all fields, by name.
    pub fn values(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        self.0.values()
    }

    /// Returns the CPU. DPDK's `cpu_id` is the lcore, for threads that are lcores.
    pub fn cpu(&self) -> Option<u64> {
        self.0.integer("cpu_id")
    }

    /// Returns the thread's name; empty if there is none.
    pub fn thread(&self) -> &[u8] {
        match self.values().find(|(name, _)| *name == "name") {
            Some((_, Value::Text(text))) => text,
            _ => b"",
        }
    }
}

impl Event<'_> {
    /// Iterates over the fields, by name.
    pub fn values(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        self.fields.values()
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("it is shorter than the head of a stream"),
            Self::Magic(found) => {
                write!(
                    f,
                    "it begins with {found:#x} instead of {MAGIC:#x}: it is not a CTF 1.8 stream"
                )
            }
            Self::OtherTrace => {
                f.write_str("it belongs to another trace than the metadata: their UUIDs differ")
            }
        }
    }
}

impl std::error::Error for StreamError {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut(at) => write!(f, "it is cut off within the event at {at:#x}"),
            Self::Unreadable(at, kind) => write!(f, "it can't be read after {at:#x}: {kind}"),
            Self::UnknownKind(at, id) => {
                write!(
                    f,
                    "the event at {at:#x} has the id {id}, which the metadata does not describe"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::following;

    #[test]
    fn a_clock_of_few_bits_wraps() {
        assert_eq!(following(0, 5, 6), 5);
        assert_eq!(following(0xffff_ffff_fff0, 3, 6), 0x1_0000_0000_0003);
        assert_eq!(following(0x2_0000_0000_0010, 0x10, 6), 0x2_0000_0000_0010);
        assert_eq!(following(9, 3, 8), 3);
    }
}
