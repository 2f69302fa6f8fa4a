//! Events, and the runtime's action for each.
//!
//! An event in the ring is an [`EventHead`], and then the action's fields, at the offsets of
//! [`Action::fields`], from the event's first byte.
//!
//! An event can be longer than its fields need: [`Action::size`] is rounded up to 8.

use bpf_program::wire::WrongSize;
use bt_lang::Span;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::value::{Field, ValueType};

/// The beginning of an event in the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct EventHead {
    /// Nanoseconds of `CLOCK_MONOTONIC`, taken in the kernel. Lines are printed in this order.
    pub time: u64,
    /// Index of the action in [`Script::actions`](super::Script::actions).
    pub action: u32,
    /// CPU number.
    pub cpu: u32,
}

impl EventHead {
    /// Reads the head of an event.
    ///
    /// # Errors
    /// Returns [`WrongSize`] if there are fewer bytes than a head has.
    pub fn parse(event: &[u8]) -> Result<Self, WrongSize> {
        let (head, _) = Self::read_from_prefix(event)
            .map_err(|_| WrongSize::event(event.len(), size_of::<Self>()))?;
        Ok(head)
    }
}

/// Size beyond any event, and small enough that a sum of two does not overflow.
const TOO_LARGE: u32 = 1 << 28;

/// Action for an event.
#[derive(Clone, PartialEq, Debug)]
pub struct Action {
    /// Kind of the action.
    pub kind: ActionKind,
    /// Values that the event carries, with offsets counted from the event's first byte.
    pub fields: Vec<Field>,
    /// Length of the event in bytes.
    pub size: u32,
    /// Place in the script, for messages.
    pub span: Span,
    /// Calls of macros that it came from, from the innermost.
    pub callers: Vec<Span>,
}

/// Kinds of action. "Fields" are those of the [`Action`], in the order given here.
#[derive(Clone, PartialEq, Debug)]
pub enum ActionKind {
    /// `printf` and its like: the fields in the order in which the format names them.
    Printf {
        /// The format.
        format: Vec<FormatPiece>,
        /// Function that was called.
        to: PrintTo,
    },
    /// `print(value)`: one field, printed as a map's value is, with a newline.
    PrintValue,
    /// `print(@map, top, div)`: two fields, `u64` each; 0 means none.
    PrintMap {
        /// Index in [`Script::maps`](super::Script::maps).
        map: usize,
    },
    /// `print(@map[key])`: the key, then the value if the map holds scalars. Without a second field
    /// the value is to be read from the map.
    PrintElement {
        /// Index in [`Script::maps`](super::Script::maps).
        map: usize,
    },
    /// `clear(@map)`: removes all keys.
    Clear {
        /// Index in [`Script::maps`](super::Script::maps).
        map: usize,
    },
    /// `zero(@map)`: sets all values to 0, and keeps the keys.
    Zero {
        /// Index in [`Script::maps`](super::Script::maps).
        map: usize,
    },
    /// `exit(code)`: no later event is shown, END runs, maps print. One field: `i64` status.
    Exit,
    /// `time(format)`: prints the time of day through `strftime(3)`. No fields.
    Time {
        /// The format.
        format: String,
    },
    /// `join(argv, delimiter)`: prints an array of strings without the empty ones, then a newline.
    Join {
        /// The text between two of them.
        delimiter: String,
    },
    /// `cat(format, ...)`: prints the file of that name.
    Cat {
        /// Format of the file's name.
        format: Vec<FormatPiece>,
    },
    /// `system(format, ...)`: runs the command with `sh -c`. Only with `--unsafe`, which the compiler checks.
    System {
        /// Format of the command.
        format: Vec<FormatPiece>,
    },
}

/// Destination of formatted text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PrintTo {
    /// `printf`: standard output.
    Output,
    /// `errorf`: standard error, with `ERROR: ` and the place in the script.
    Error,
    /// `warnf`: standard error, with `WARNING: `.
    Warning,
}

/// A piece of a format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FormatPiece {
    /// Literal text, in which `%%` is already `%`.
    Text(Vec<u8>),
    /// The next field.
    Value(FormatSpec),
}

/// A directive: `%` and the characters behind it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FormatSpec {
    /// `-`: aligned to the left.
    pub left: bool,
    /// `0`: filled with zeros.
    pub zero: bool,
    /// `+`
    pub plus: bool,
    /// ` `
    pub space: bool,
    /// `#`
    pub alternate: bool,
    /// Least width. `*` (from a field of its own before the value) is `Width::Field`.
    pub width: Option<FormatSize>,
    /// `.N`
    pub precision: Option<FormatSize>,
    /// Number of bytes of an integer that count, from `hh`, `h`, `l`, `ll`, `j`, `z`, if given.
    pub length: Option<u8>,
    /// The letter: one of `d i u x X o c p s r g`. `g` (with an `r` behind it) is flags of the
    /// kernel's page allocator. `r` is a buffer with its bytes escaped (`rx`: in hexadecimal; `rh`:
    /// likewise, without `\x` and with blanks between).
    pub conversion: char,
    /// Letter after an `r`: `x` or `h`.
    pub suffix: Option<char>,
}

/// A width or precision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FormatSize {
    /// Number in the format itself.
    Fixed(u32),
    /// `*`: a field of its own, before that of the value.
    Field,
}

impl Action {
    /// Lays out fields behind the head, in this order.
    pub fn new(kind: ActionKind, types: &[ValueType], span: Span) -> Self {
        let mut size = size_of::<EventHead>() as u32;
        let mut fields = Vec::with_capacity(types.len());
        for ty in types {
            // Programs zero and copy in words of 8 bytes, so each field begins at one.
            let offset = size.next_multiple_of(8);
            fields.push(Field {
                name: None,
                offset,
                ty: ty.clone(),
                bits: None,
            });
            // A value larger than any event is refused, so its exact size does not matter.
            size = (offset + ty.size().min(TOO_LARGE)).min(TOO_LARGE);
        }
        Self {
            kind,
            fields,
            size: size.next_multiple_of(8),
            span,
            callers: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use super::*;

    #[test]
    fn a_head_is_the_beginning_of_an_event() {
        assert_eq!(
            [
                offset_of!(EventHead, time),
                offset_of!(EventHead, action),
                offset_of!(EventHead, cpu)
            ],
            [0, 8, 12]
        );
        let event: [u8; 24] = zerocopy::transmute!([5_u64, 7, 9]);
        assert_eq!(
            EventHead::parse(&event),
            Ok(EventHead {
                time: 5,
                action: 7,
                cpu: 0
            })
        );
        assert_eq!(
            EventHead::parse(&event[..15]),
            Err(WrongSize::event(15, 16))
        );
    }

    #[test]
    fn fields_begin_behind_the_head_at_words() {
        let types = [ValueType::Bool, ValueType::Str { size: 9 }, ValueType::Bool];
        let action = Action::new(ActionKind::PrintValue, &types, Span::default());
        assert_eq!(
            action
                .fields
                .iter()
                .map(|field| field.offset)
                .collect::<Vec<_>>(),
            [16, 24, 40]
        );
        assert_eq!(action.size, 48);
    }
}
