//! Events: what the runtime does for each.
//!
//! An event in the ring is an [`EventHead`], and then the action's fields, at the offsets that [`Action::fields`] gives, from the event's first byte.
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
    /// What to do: an index into [`Script::actions`](super::Script::actions).
    pub action: u32,
    /// The CPU.
    pub cpu: u32,
}

impl EventHead {
    /// The head of an event.
    ///
    /// # Errors
    /// [`WrongSize`] if there are fewer bytes than a head has.
    pub fn of(event: &[u8]) -> Result<Self, WrongSize> {
        let (head, _) = Self::read_from_prefix(event).map_err(|_| WrongSize::event(event.len(), size_of::<Self>()))?;
        Ok(head)
    }
}

/// Far above what an event can have, far below what a sum of two of them could not hold.
const TOO_LARGE: u32 = 1 << 28;

/// What to do for an event.
#[derive(Clone, PartialEq, Debug)]
pub struct Action {
    /// What.
    pub kind: ActionKind,
    /// The values that the event carries, offsets counted from the event's first byte.
    pub fields: Vec<Field>,
    /// The event's bytes.
    pub size: u32,
    /// Where in the script it stands, for messages.
    pub span: Span,
    /// The calls of macros that it came from, from the innermost.
    pub callers: Vec<Span>,
}

/// The kinds of action. "Fields" are those of the [`Action`], in the order said here.
#[derive(Clone, PartialEq, Debug)]
pub enum ActionKind {
    /// `printf` and its like: the fields in the order in which the format names them.
    Printf {
        /// The format.
        format: Vec<FormatPiece>,
        /// Which function it was.
        to: PrintTo,
    },
    /// `print(value)`: one field, printed as a map's value is, with a newline.
    PrintValue,
    /// `print(@map, top, div)`: two fields, `u64` each; 0 means none.
    PrintMap {
        /// An index into [`Script::maps`](super::Script::maps).
        map: usize,
    },
    /// `print(@map[key])`: the key, then the value where the map holds scalars. With no second field the value is to be
    /// read from the map.
    PrintElement {
        /// An index into [`Script::maps`](super::Script::maps).
        map: usize,
    },
    /// `clear(@map)`: removes all keys.
    Clear {
        /// An index into [`Script::maps`](super::Script::maps).
        map: usize,
    },
    /// `zero(@map)`: sets all values to 0, and keeps the keys.
    Zero {
        /// An index into [`Script::maps`](super::Script::maps).
        map: usize,
    },
    /// `exit(code)`: no event behind this one is shown, END runs, maps print. One field: `i64` status.
    Exit,
    /// `time(format)`: prints the time of day through `strftime(3)`. No fields.
    Time {
        /// The format.
        format: String,
    },
    /// `join(argv, delimiter)`: an array of strings, of which empty ones are not printed, then a newline.
    Join {
        /// The text between two of them.
        delimiter: String,
    },
    /// `cat(format, ...)`: prints the file of that name.
    Cat {
        /// The format of its name.
        format: Vec<FormatPiece>,
    },
    /// `system(format, ...)`: runs the command with `sh -c`. Only with `--unsafe`, which the compiler checks.
    System {
        /// The format of the command.
        format: Vec<FormatPiece>,
    },
}

/// Where formatted text goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrintTo {
    /// `printf`: standard output.
    Output,
    /// `errorf`: standard error, with `ERROR: `, and the script's place.
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

/// `%` and what follows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FormatSpec {
    /// `-`: to the left.
    pub left: bool,
    /// `0`: filled with zeros.
    pub zero: bool,
    /// `+`
    pub plus: bool,
    /// ` `
    pub space: bool,
    /// `#`
    pub alternate: bool,
    /// The least width. `*` (from a field of its own before the value) is `Width::Field`.
    pub width: Option<FormatSize>,
    /// `.N`
    pub precision: Option<FormatSize>,
    /// How many bytes of an integer count, from `hh`, `h`, `l`, `ll`, `j`, `z`; none if not said.
    pub length: Option<u8>,
    /// The letter: one of `d i u x X o c p s r g`; `g` (with an `r` behind it) is flags of the kernel's page allocator; `r` is a buffer with its bytes escaped (`rx`: in hexadecimal, `rh`: too,
    /// without `\x` and with blanks between).
    pub conversion: char,
    /// What follows an `r`: `x` or `h`.
    pub suffix: Option<char>,
}

/// A width or precision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FormatSize {
    /// As written.
    Fixed(u32),
    /// `*`: a field of its own, before the value's.
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
            fields.push(Field { name: None, offset, ty: ty.clone(), bits: None });
            // What is larger than an event can be is refused, and how much larger is no matter.
            size = (offset + ty.size().min(TOO_LARGE)).min(TOO_LARGE);
        }
        Self { kind, fields, size: size.next_multiple_of(8), span, callers: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use core::mem::offset_of;

    use super::*;

    #[test]
    fn a_head_is_the_beginning_of_an_event() {
        assert_eq!(
            [offset_of!(EventHead, time), offset_of!(EventHead, action), offset_of!(EventHead, cpu)],
            [0, 8, 12]
        );
        let event: [u8; 24] = zerocopy::transmute!([5_u64, 7, 9]);
        assert_eq!(EventHead::of(&event), Ok(EventHead { time: 5, action: 7, cpu: 0 }));
        assert_eq!(EventHead::of(&event[..15]), Err(WrongSize::event(15, 16)));
    }

    #[test]
    fn fields_begin_behind_the_head_at_words() {
        let types = [ValueType::Bool, ValueType::Str { size: 9 }, ValueType::Bool];
        let action = Action::new(ActionKind::PrintValue, &types, Span::default());
        assert_eq!(action.fields.iter().map(|field| field.offset).collect::<Vec<_>>(), [16, 24, 40]);
        assert_eq!(action.size, 48);
    }
}
