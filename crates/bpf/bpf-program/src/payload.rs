//! Layout of an event in the ring buffer.
//!
//! A head of 24 bytes, then the fields in order: a number takes 8 bytes; a text takes 8 bytes for
//! its length and room for its longest form. The verifier must know an event's size when the
//! program reserves it, so every event would need room for the longest texts. Most texts are short,
//! and the ring holds several times as many events if these take little. So an event with texts
//! also has a small form, and uses the other only if the small one would cut a text.

use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::offset;

/// Head of each event.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Head {
    /// Time, in nanoseconds of `CLOCK_MONOTONIC`.
    time: u64,
    /// Process and thread: `bpf_get_current_pid_tgid`.
    pid_tgid: u64,
    /// Number of the event in the session, with [`SMALL`].
    id: u32,
    /// Bit set of the fields that could not be read.
    faults: u32,
}

/// Offset of [`Head::time`].
pub(crate) const TIME: i16 = offset!(Head, time);
/// Offset of [`Head::pid_tgid`].
pub(crate) const PID_TGID: i16 = offset!(Head, pid_tgid);
/// Offset of [`Head::id`].
pub(crate) const ID: i16 = offset!(Head, id);
/// Offset of [`Head::faults`].
pub(crate) const FAULTS: i16 = offset!(Head, faults);
/// Bit of the id that marks the small form.
pub(crate) const SMALL: u32 = 1 << 31;
/// Longest text of the small form. Most NQNs fit: those with a UUID have 68 bytes.
const MAX_SMALL_TEXT_BYTES: u32 = 127;
/// Offset of the first field.
const HEAD_BYTES: u32 = size_of::<Head>() as u32;
/// Limit on the size of an event: `RINGBUF_MAX_RECORD_SZ` is far higher, but a store's offset has
/// 15 bits.
const MAX_BYTES: u32 = 32_000;

/// Kind of a field.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FieldKind {
    /// Number of 64 bits.
    Number,
    /// Bytes of a C string, without its end.
    Text {
        /// Longest length in bytes; a longer text is cut, and marked as cut.
        capacity: u32,
    },
}

/// Locations of the fields of an event.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    whole: Form,
    small: Option<Form>,
}

/// Locations of the fields in one of an event's forms.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Form {
    fields: Vec<(FieldKind, u32)>,
    pub(crate) size: u32,
}

impl Layout {
    /// Lays out fields in this order: at most 32, and no more than fit; the rest is left out of the
    /// layout.
    pub fn new(kinds: &[FieldKind]) -> Self {
        let whole = Form::new(kinds.iter().copied());
        let fields = whole.fields.iter().map(|&(kind, _)| kind);
        let small = Form::new(fields.map(|kind| match kind {
            FieldKind::Text { capacity } => FieldKind::Text {
                capacity: capacity.min(MAX_SMALL_TEXT_BYTES),
            },
            FieldKind::Number => FieldKind::Number,
        }));
        let small = Some(small).filter(|small| small.size < whole.size);
        Self { whole, small }
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.whole.fields.len()
    }

    /// Returns whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.whole.fields.is_empty()
    }

    /// Returns the size of an event with the longest texts, in bytes.
    pub fn size(&self) -> u32 {
        self.whole.size
    }

    pub(crate) fn whole(&self) -> &Form {
        &self.whole
    }

    pub(crate) fn small(&self) -> Option<&Form> {
        self.small.as_ref()
    }
}

impl Form {
    fn new(kinds: impl Iterator<Item = FieldKind>) -> Self {
        let mut form = Self {
            fields: Vec::new(),
            size: HEAD_BYTES,
        };
        for kind in kinds.take(u32::BITS as usize) {
            let bytes = match kind {
                FieldKind::Number => 8,
                FieldKind::Text { capacity } => 8 + room(capacity),
            };
            if form.size + bytes > MAX_BYTES {
                break;
            }
            form.fields.push((kind, form.size));
            form.size += bytes;
        }
        form
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = (FieldKind, i16)> {
        // `new` keeps all offsets under MAX_BYTES.
        self.fields
            .iter()
            .map(|&(kind, offset)| (kind, offset as i16))
    }
}

/// Returns the bytes that a text takes behind its length: its capacity and 1 for the end, in whole
/// words.
fn room(capacity: u32) -> u32 {
    (capacity + 1).next_multiple_of(8)
}

/// Event as it lies in the ring.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    head: Head,
    /// Whole event, including the head.
    bytes: &'a [u8],
}

/// Value of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value<'a> {
    /// Number, extended to 64 bits as its type requires.
    Number(u64),
    /// Text.
    Text {
        /// Bytes, up to the capacity.
        bytes: &'a [u8],
        /// True if the text may continue behind them.
        cut: bool,
    },
    /// Field that could not be read, since its memory was not there.
    Unreadable,
}

impl<'a> Payload<'a> {
    /// Reads an event's head; `None` if there are too few bytes.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let (head, _) = Head::read_from_prefix(bytes).ok()?;
        Some(Self { head, bytes })
    }

    /// Returns the time, in nanoseconds of `CLOCK_MONOTONIC`.
    pub fn time(self) -> u64 {
        self.head.time
    }

    /// Returns the process, in the kernel's first PID namespace.
    pub fn process(self) -> u32 {
        (self.head.pid_tgid >> 32) as u32
    }

    /// Returns the thread, in the kernel's first PID namespace.
    pub fn thread(self) -> u32 {
        self.head.pid_tgid as u32
    }

    /// Returns the number of the event in the session.
    pub fn id(self) -> u32 {
        self.head.id & !SMALL
    }

    /// Returns the values of the fields; `None` if the size is not that of an event with this
    /// layout.
    pub fn values(self, layout: &Layout) -> Option<impl Iterator<Item = Value<'a>>> {
        let is_small = self.head.id & SMALL != 0;
        let form = layout
            .small()
            .filter(|_| is_small)
            .unwrap_or(layout.whole());
        if self.bytes.len() != form.size as usize {
            return None;
        }
        Some(
            form.fields()
                .enumerate()
                .map(move |(number, (kind, offset))| {
                    let field = self
                        .bytes
                        .get(offset as usize..)
                        .and_then(|bytes| bytes.split_first_chunk());
                    match (field, kind) {
                        // The form's fields lie within its size, so all have their bytes.
                        (None, _) => Value::Unreadable,
                        _ if self.head.faults >> number & 1 != 0 => Value::Unreadable,
                        (Some((number, _)), FieldKind::Number) => {
                            Value::Number(u64::from_ne_bytes(*number))
                        }
                        (Some((length, bytes)), FieldKind::Text { capacity }) => {
                            text(i64::from_ne_bytes(*length), bytes, capacity as usize)
                        }
                    }
                }),
        )
    }
}

/// Returns a text, from the length that `bpf_probe_read_user_str` returned: it includes the end,
/// which is there even if the text was cut.
fn text(length: i64, bytes: &[u8], capacity: usize) -> Value<'_> {
    let length = usize::try_from(length)
        .ok()
        .and_then(|length| length.checked_sub(1));
    let bytes = length.and_then(|length| bytes.get(..length.min(capacity)));
    bytes.map_or(Value::Unreadable, |bytes| Value::Text {
        bytes,
        cut: bytes.len() >= capacity,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_behind_the_head_in_whole_words() {
        let text = FieldKind::Text { capacity: 1024 };
        let layout = Layout::new(&[FieldKind::Number, text, FieldKind::Number]);
        assert_eq!(
            layout.whole().fields().collect::<Vec<_>>(),
            [
                (FieldKind::Number, 24),
                (text, 32),
                (FieldKind::Number, 32 + 8 + 1032)
            ]
        );
        assert_eq!(layout.size(), 32 + 8 + 1032 + 8);
    }

    #[test]
    fn texts_have_a_small_form() {
        let text = |capacity| FieldKind::Text { capacity };
        let layout = Layout::new(&[text(1024), FieldKind::Number]);
        let small = layout.small().unwrap();
        assert_eq!(
            small.fields().collect::<Vec<_>>(),
            [(text(127), 24), (FieldKind::Number, 24 + 8 + 128)]
        );
        assert_eq!(Layout::new(&[FieldKind::Number, text(100)]).small(), None);
        let mut bytes = vec![0; 16];
        bytes.extend((7 | SMALL).to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(4_u64.to_ne_bytes());
        bytes.extend([b"abc", [0; 125].as_slice()].concat());
        bytes.extend(9_u64.to_ne_bytes());
        let payload = Payload::new(&bytes).unwrap();
        assert_eq!(payload.id(), 7);
        let values: Vec<_> = payload.values(&layout).unwrap().collect();
        assert_eq!(
            values,
            [
                Value::Text {
                    bytes: b"abc",
                    cut: false
                },
                Value::Number(9)
            ]
        );
    }

    #[test]
    fn oversized_fields_are_not_in_the_layout() {
        let layout = Layout::new(&[FieldKind::Text { capacity: 20_000 }; 3]);
        assert_eq!(layout.len(), 1);
        assert_eq!(Layout::new(&[FieldKind::Number; 40]).len(), 32);
    }

    #[test]
    fn values_come_back() {
        let layout = Layout::new(&[
            FieldKind::Number,
            FieldKind::Text { capacity: 7 },
            FieldKind::Number,
        ]);
        let mut bytes = Vec::new();
        for word in [1_000_u64, 7 << 32 | 8, 3 | 0b100 << 32, 42, 6] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(b"hello\0\0\0");
        bytes.extend(9_u64.to_ne_bytes());
        let payload = Payload::new(&bytes).unwrap();
        assert_eq!(
            (
                payload.time(),
                payload.process(),
                payload.thread(),
                payload.id()
            ),
            (1_000, 7, 8, 3)
        );
        let values: Vec<_> = payload.values(&layout).unwrap().collect();
        assert_eq!(
            values,
            [
                Value::Number(42),
                Value::Text {
                    bytes: b"hello",
                    cut: false
                },
                Value::Unreadable
            ]
        );
    }

    #[test]
    fn a_text_that_fills_its_room_is_cut_and_a_failed_one_unreadable() {
        let layout = Layout::new(&[FieldKind::Text { capacity: 7 }]);
        let event = |length: i64| {
            let mut bytes = vec![0; 24];
            bytes.extend(length.to_ne_bytes());
            bytes.extend(b"1234567\0");
            bytes
        };
        let bytes = event(8);
        let value = Payload::new(&bytes)
            .unwrap()
            .values(&layout)
            .unwrap()
            .next();
        assert_eq!(
            value,
            Some(Value::Text {
                bytes: b"1234567",
                cut: true
            })
        );
        for length in [-14, 0, i64::MIN] {
            let bytes = event(length);
            assert_eq!(
                Payload::new(&bytes)
                    .unwrap()
                    .values(&layout)
                    .unwrap()
                    .next(),
                Some(Value::Unreadable),
                "{length}"
            );
        }
        assert!(Payload::new(&[0; 23]).is_none());
        assert!(
            Payload::new(&event(8)[..39])
                .unwrap()
                .values(&layout)
                .is_none(),
            "never a plausible value"
        );
    }
}
