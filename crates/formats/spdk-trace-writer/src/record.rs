//! Records and their arguments, as declared by a test, and their bytes in a ring.
//!
//! The order is `_spdk_trace_record`'s (`lib/trace/trace.c`, v21.07 to v26.05): the arguments are
//! packed back to back, the first 8 bytes in the record's own slot and the rest in continuation
//! slots of 22 bytes.

use std::borrow::Cow;

use crate::era::{CONTINUATION_DATA, INLINE_ARGS, SLOT_SIZE};
use crate::tpoint::{ArgKind, ArgSpec, Tpoint};

/// Value of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arg {
    /// An integer; one of 4 bytes keeps its low half.
    Int(u64),
    /// A pointer; one of 4 bytes keeps its low half.
    Ptr(u64),
    /// A string's bytes, without its NUL.
    Str(Cow<'static, [u8]>),
}

impl Arg {
    /// Creates an integer from a signed number.
    pub const fn signed(value: i64) -> Self {
        Self::Int(value.cast_unsigned())
    }

    /// Creates a string from static text.
    pub const fn str(text: &'static str) -> Self {
        Self::Str(Cow::Borrowed(text.as_bytes()))
    }

    /// Creates a string from text made at run time, or from any bytes.
    pub fn text(text: impl Into<Vec<u8>>) -> Self {
        Self::Str(Cow::Owned(text.into()))
    }

    /// Returns the value that a record stores: integers cut to their size, strings cut before their
    /// first NUL and to `size - 1` bytes.
    ///
    /// # Panics
    /// If a string is given for a number, or the other way round.
    #[must_use]
    pub fn as_stored(&self, spec: &ArgSpec) -> Self {
        let number = |value: u64| {
            if spec.size == 4 {
                value & 0xffff_ffff
            } else {
                value
            }
        };
        match (spec.kind, self) {
            (ArgKind::Str, Self::Str(text)) => {
                Self::Str(Cow::Owned(stored_text(text, spec).to_vec()))
            }
            (ArgKind::Int, Self::Int(value) | Self::Ptr(value)) => Self::Int(number(*value)),
            (ArgKind::Ptr, Self::Int(value) | Self::Ptr(value)) => Self::Ptr(number(*value)),
            _ => panic!(
                "argument {:?} is declared {:?}, not {self:?}",
                spec.name, spec.kind
            ),
        }
    }
}

/// Returns the part of a string that fits its declared size next to the NUL.
fn stored_text<'a>(text: &'a [u8], spec: &ArgSpec) -> &'a [u8] {
    let until_nul = text.split(|byte| *byte == 0).next().unwrap_or_default();
    &until_nul[..until_nul.len().min(usize::from(spec.size) - 1)]
}

/// One record, as the traced application would make it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Id of its tracepoint.
    pub tpoint: u16,
    /// Time, in ticks.
    pub tsc: u64,
    /// Id of the owner (`poller_id` up to v24.01).
    pub owner: u16,
    /// Size, in the unit of the tracepoint.
    pub size: u32,
    /// Id of the object.
    pub object: u64,
    /// Arguments, one for each that the tracepoint declares.
    pub args: Vec<Arg>,
}

impl Record {
    /// Creates a record of a tracepoint at a time (ticks), without owner, size, object or
    /// arguments.
    ///
    /// # Panics
    /// If `tsc` is 0, which marks a slot that was never written.
    #[must_use]
    pub fn new(tpoint: u16, tsc: u64) -> Self {
        assert!(
            tsc != 0,
            "a record's tsc can't be 0: SPDK takes the clock instead, and 0 marks an empty slot"
        );
        Self {
            tpoint,
            tsc,
            owner: 0,
            size: 0,
            object: 0,
            args: Vec::new(),
        }
    }

    /// Sets the owner (`poller_id` up to v24.01).
    #[must_use]
    pub fn owner(mut self, owner: u16) -> Self {
        self.owner = owner;
        self
    }

    /// Sets the size.
    #[must_use]
    pub fn size(mut self, size: u32) -> Self {
        self.size = size;
        self
    }

    /// Sets the object.
    #[must_use]
    pub fn object(mut self, object: u64) -> Self {
        self.object = object;
        self
    }

    /// Adds an integer argument.
    #[must_use]
    pub fn int(self, value: u64) -> Self {
        self.args([Arg::Int(value)])
    }

    /// Adds a pointer argument.
    #[must_use]
    pub fn ptr(self, value: u64) -> Self {
        self.args([Arg::Ptr(value)])
    }

    /// Adds a string argument.
    #[must_use]
    pub fn str(self, text: &str) -> Self {
        self.args([Arg::text(text)])
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = Arg>) -> Self {
        self.args.extend(args);
        self
    }

    /// Writes the first `limit` slots of the record from slot number `first` on (counted since the
    /// start, and masked here). Fewer than the record needs leave it as a writer that was stopped
    /// half-way would.
    pub(crate) fn write(
        &self,
        ring: &mut [u8],
        first: u64,
        limit: usize,
        tpoint: &Tpoint,
        continuation: u16,
    ) {
        let mut writer = SlotWriter { ring, first, limit };
        writer.put(0, 0, &self.tsc.to_le_bytes());
        writer.put(0, 8, &self.tpoint.to_le_bytes());
        writer.put(0, 10, &self.owner.to_le_bytes());
        writer.put(0, 12, &self.size.to_le_bytes());
        writer.put(0, 16, &self.object.to_le_bytes());
        for slot in 1..tpoint.slots() {
            writer.put(slot, 0, &self.tsc.to_le_bytes());
            writer.put(slot, 8, &continuation.to_le_bytes());
        }
        let mut at = 0;
        for (arg, spec) in self.args.iter().zip(&tpoint.args) {
            match arg {
                Arg::Str(text) => {
                    let text = stored_text(text, spec);
                    writer.put_args(at, text);
                    // SPDK ends the text, and ends the argument: a string that was cut has its NUL
                    // there.
                    writer.put_args(at + text.len(), &[0]);
                    writer.put_args(at + usize::from(spec.size) - 1, &[0]);
                }
                Arg::Int(value) | Arg::Ptr(value) => {
                    writer.put_args(at, &value.to_le_bytes()[..usize::from(spec.size)]);
                }
            }
            at += usize::from(spec.size);
        }
    }
}

/// Writer of the slots of one record.
struct SlotWriter<'a> {
    ring: &'a mut [u8],
    first: u64,
    limit: usize,
}

impl SlotWriter<'_> {
    /// Writes bytes at an offset of the record's slot number `slot`.
    fn put(&mut self, slot: usize, offset: usize, bytes: &[u8]) {
        if slot >= self.limit {
            return;
        }
        let slots = (self.ring.len() / SLOT_SIZE) as u64;
        let index = ((self.first + slot as u64) & (slots - 1)) as usize;
        let at = index * SLOT_SIZE + offset;
        self.ring[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Writes bytes at an offset in the packed arguments, across slots as needed.
    fn put_args(&mut self, mut at: usize, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (slot, offset) = match at.checked_sub(INLINE_ARGS) {
                None => (0, SLOT_SIZE - INLINE_ARGS + at),
                Some(rest) => (
                    1 + rest / CONTINUATION_DATA,
                    SLOT_SIZE - CONTINUATION_DATA + rest % CONTINUATION_DATA,
                ),
            };
            let (now, later) = bytes.split_at(bytes.len().min(SLOT_SIZE - offset));
            self.put(slot, offset, now);
            at += now.len();
            bytes = later;
        }
    }
}
