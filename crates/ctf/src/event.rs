//! A stream: the events of one thread.

use std::fmt;

use crate::layout::{Field, Integer, Kind, Layout, Scalar};
use crate::metadata::{EventKind, Metadata};

/// The number with which each packet begins (CTF 1.8.3, section 5.1).
const MAGIC: u64 = 0xc1fc_1fc1;

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'b> {
    /// With the base in which its description wants it: 2, 8, 10 or 16.
    Unsigned(u64, u32),
    /// The same of a signed one.
    Signed(i64, u32),
    /// A float or a double.
    Float(f64),
    /// Characters, without the byte 0 that ends them.
    Text(&'b [u8]),
    /// The values of an array.
    List(Vec<Value<'b>>),
}

impl Value<'_> {
    /// As a number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Unsigned(value, _) => Some(*value as f64),
            Self::Signed(value, _) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            Self::Text(_) | Self::List(_) => None,
        }
    }
}

/// Bytes that are laid out, with the order of their numbers.
#[derive(Clone, Copy, Debug)]
struct Laid<'b> {
    layout: &'b Layout,
    /// All of the layout.
    bytes: &'b [u8],
    is_big_endian: bool,
}

/// What stands at the begin of a stream: the CPU on which its thread began, and the thread's name.
#[derive(Clone, Copy, Debug)]
pub struct Head<'b>(Laid<'b>);

/// An event.
#[derive(Clone, Copy, Debug)]
pub struct Event<'b> {
    /// Its time in nanoseconds since 1970 (UTC).
    pub nanos: i64,
    /// Its kind.
    pub kind: &'b EventKind,
    fields: Laid<'b>,
}

/// Why a file is no stream of this trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// It has fewer bytes than the head of a stream.
    Short,
    /// It does not begin with the number with which all begin.
    Magic(u64),
    /// It belongs to another trace than its description.
    OtherTrace,
}

/// Why a stream was not read to its end, and at which byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The last event is not all there.
    Cut(usize),
    /// An event of a kind that is not described.
    UnknownKind(usize, u64),
}

/// A stream that is read event by event.
#[derive(Clone, Debug)]
pub struct Stream<'b> {
    metadata: &'b Metadata,
    bytes: &'b [u8],
    head: Head<'b>,
    at: usize,
    /// The clock at the last event.
    ticks: u64,
    problem: Option<Problem>,
}

impl<'b> Stream<'b> {
    /// A stream of the trace that `metadata` describes.
    pub fn new(metadata: &'b Metadata, bytes: &'b [u8]) -> Result<Self, StreamError> {
        let laid = |layout: &'b Layout, at: usize| {
            let bytes = bytes.get(at..at.checked_add(layout.size)?)?;
            Some(Laid { layout, bytes, is_big_endian: metadata.is_big_endian })
        };
        let begin = laid(&metadata.packet_header, 0).ok_or(StreamError::Short)?;
        let magic = begin.integer("magic").unwrap_or_default();
        if magic != MAGIC {
            return Err(StreamError::Magic(magic));
        }
        let uuid = begin.layout.fields.iter().find(|field| field.name == "uuid").map(|field| begin.of(field));
        if let (Some(uuid), Some(expected)) = (uuid.and_then(|field| field.get(..16)), metadata.uuid)
            && uuid != expected
        {
            return Err(StreamError::OtherTrace);
        }
        let context = metadata.packet_context.next(begin.bytes.len());
        let head = Head(laid(&metadata.packet_context, context).ok_or(StreamError::Short)?);
        Ok(Self { metadata, bytes, head, at: context + head.0.bytes.len(), ticks: 0, problem: None })
    }

    /// What stands at its begin.
    pub fn head(&self) -> Head<'b> {
        self.head
    }

    /// Why it was not read to its end, if so; known once there is no event left.
    pub fn problem(&self) -> Option<Problem> {
        self.problem
    }

    /// The event at the place where reading is, which goes behind it. Nothing changes where it is not all there.
    fn read(&mut self) -> Result<Event<'b>, Problem> {
        let at = self.metadata.event_header.next(self.at);
        let cut = Problem::Cut(at);
        let laid = |layout: &'b Layout, at: usize| {
            let bytes = self.bytes.get(at..at.checked_add(layout.size)?)?;
            Some(Laid { layout, bytes, is_big_endian: self.metadata.is_big_endian })
        };
        let head = laid(&self.metadata.event_header, at).ok_or(cut)?;
        let id = head.integer("id").unwrap_or_default();
        let kind = self.metadata.kinds.get(&id).ok_or(Problem::UnknownKind(at, id))?;
        let begin = kind.fields.next(at + head.bytes.len());
        let fields = laid(&kind.fields, begin).ok_or(cut)?;
        if let Some((at, clock)) = head.layout.clock() {
            self.ticks = following(self.ticks, head.unsigned(at, clock), clock.bytes);
        }
        self.at = begin + fields.bytes.len();
        Ok(Event { nanos: self.metadata.clock.nanos(self.ticks), kind, fields })
    }
}

impl<'b> Iterator for Stream<'b> {
    type Item = Event<'b>;

    fn next(&mut self) -> Option<Event<'b>> {
        if self.problem.is_some() || self.at >= self.bytes.len() {
            return None;
        }
        match self.read() {
            Ok(event) => Some(event),
            Err(problem) => {
                self.problem = Some(problem);
                None
            }
        }
    }
}

/// The clock's value after `last` whose lowest bytes are these: time does not go back, so a smaller value has wrapped (CTF 1.8.3,
/// section 8).
fn following(last: u64, low: u64, bytes: usize) -> u64 {
    if bytes >= 8 {
        return low;
    }
    let span = 1_u64 << (bytes * 8);
    let high = last & !(span - 1);
    let value = high | low;
    if value < last { value.wrapping_add(span) } else { value }
}

impl<'b> Laid<'b> {
    fn of(&self, field: &Field) -> &'b [u8] {
        self.bytes.get(field.at..).unwrap_or_default()
    }

    fn integer(&self, name: &str) -> Option<u64> {
        let (at, integer) = self.layout.integer(name)?;
        Some(self.unsigned(at, integer))
    }

    /// The bytes of an integer as an unsigned one.
    fn unsigned(&self, at: usize, integer: Integer) -> u64 {
        let bytes = self.bytes.get(at..).and_then(|rest| rest.get(..integer.bytes)).unwrap_or_default();
        let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        if self.is_big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) }
    }

    fn scalar(&self, at: usize, scalar: Scalar) -> Value<'b> {
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
                let whole = Integer { bytes, align, is_signed: false, base: 16, is_text: false, is_clock: false };
                let bits = self.unsigned(at, whole);
                Value::Float(if bytes == 4 { f32::from_bits(bits as u32).into() } else { f64::from_bits(bits) })
            }
        }
    }

    fn value(&self, field: &Field) -> Value<'b> {
        match field.kind {
            Kind::One(scalar) => self.scalar(field.at, scalar),
            Kind::Text { bytes } => {
                let text = self.of(field);
                let text = &text[..bytes.min(text.len())];
                Value::Text(text.split(|byte| *byte == 0).next().unwrap_or_default())
            }
            Kind::List { item, count } => {
                Value::List((0..count).map(|nth| self.scalar(field.at + nth * item.bytes(), item)).collect())
            }
        }
    }

    fn values(self) -> impl Iterator<Item = (&'b str, Value<'b>)> {
        self.layout.fields.iter().map(move |field| (field.name.as_str(), self.value(field)))
    }
}

impl<'b> Head<'b> {
    /// All that stands there, by name.
    pub fn values(&self) -> impl Iterator<Item = (&'b str, Value<'b>)> {
        self.0.values()
    }

    /// The CPU: what DPDK calls `cpu_id` is the lcore, for threads that are lcores.
    pub fn cpu(&self) -> Option<u64> {
        self.0.integer("cpu_id")
    }

    /// The thread's name.
    pub fn thread(&self) -> &'b [u8] {
        match self.values().find(|(name, _)| *name == "name") {
            Some((_, Value::Text(text))) => text,
            _ => b"",
        }
    }
}

impl<'b> Event<'b> {
    /// Its fields, by name.
    pub fn values(&self) -> impl Iterator<Item = (&'b str, Value<'b>)> {
        self.fields.values()
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("it is shorter than the head of a stream"),
            Self::Magic(found) => {
                write!(f, "it begins with {found:#x} instead of {MAGIC:#x}: it is no stream of CTF 1.8")
            }
            Self::OtherTrace => f.write_str("it belongs to another trace than the metadata: their UUIDs differ"),
        }
    }
}

impl std::error::Error for StreamError {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut(at) => write!(f, "it is cut off within the event at {at:#x}"),
            Self::UnknownKind(at, id) => {
                write!(f, "the event at {at:#x} has the id {id}, which the metadata does not describe")
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
