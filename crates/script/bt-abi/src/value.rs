//! The types of values as they lie in events, keys and maps. Numbers are in the machine's own byte
//! order. The fields of tuples and records lie at multiples of their [`align`](ValueType::align), 8
//! bytes at most.

use std::sync::Arc;

use crate::bytes::{
    BufferHead, BuildIdFrame, Inet, MacAddress, StackHead, UserStackHead, UserSymbol,
};

/// The type of a value, which determines its bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ValueType {
    /// No value: the key of a map without keys, whose bytes are a `u64` 0.
    None,
    /// An integer of `size` bytes: 1, 2, 4 or 8.
    Int {
        /// Size in bytes.
        size: u8,
        /// True for two's complement.
        signed: bool,
    },
    /// `u8`: `true` unless 0.
    Bool,
    /// An integer that stands for a name. A value without a name prints as a number.
    Enum {
        /// Size in bytes.
        size: u8,
        /// True if it can be negative.
        signed: bool,
        /// Names of the values.
        names: Arc<EnumNames>,
    },
    /// `u64`: an address, printed as `0x` and hexadecimal digits.
    Pointer,
    /// `size` bytes; the text ends at the first 0, or with the last byte.
    Str {
        /// Size in bytes.
        size: u32,
    },
    /// A [`BufferHead`], then room for `size` bytes, padded to a multiple of 4.
    Buffer {
        /// Room for data, in bytes.
        size: u32,
    },
    /// `count` elements one behind the other.
    Array {
        /// Type of an element.
        element: Box<ValueType>,
        /// Number of elements.
        count: u32,
    },
    /// `(a, b)`, a record `(x=a, y=b)` (whose fields have names), or a C struct.
    Tuple(Arc<Layout>),
    /// A [`StackHead`], then room for `depth` frames.
    KernelStack {
        /// Form in which it is shown.
        mode: StackMode,
        /// Number of frames that there is room for.
        depth: u32,
    },
    /// A [`UserStackHead`], then room for `depth` frames.
    UserStack {
        /// Form in which it is shown.
        mode: StackMode,
        /// Number of frames that there is room for.
        depth: u32,
    },
    /// A floating-point number of IEEE 754; programs can't work with it.
    Float {
        /// Size: 4 or 8 bytes.
        size: u8,
    },
    /// `u64` address: a symbol of the kernel.
    KernelSymbol,
    /// The structure [`UserSymbol`]: a symbol of a process.
    UserSymbol,
    /// The structure [`Inet`]: an address of IPv4 or IPv6.
    Inet,
    /// The 6 bytes of an Ethernet address.
    MacAddress,
    /// `u64` cgroup id: shown as the paths of that cgroup in the hierarchies whose names fit.
    CgroupPath {
        /// Pattern for the hierarchies; empty for all.
        hierarchy: Arc<str>,
    },
    /// `u32` user id: shown as the user's name.
    Username,
    /// `i32` error number: shown as the text of `strerror(3)`.
    ErrorText,
    /// `i32` signal: shown as the text of `strsignal(3)`.
    SignalText,
    /// `u64` nanoseconds of a clock, shown through `strftime(3)`, `%f` meaning microseconds.
    Timestamp {
        /// Clock that counts the time.
        clock: Clock,
        /// Format of the text.
        format: Arc<str>,
    },
}

/// The names of an enumeration.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct EnumNames {
    /// Name of the enumeration, if it has one.
    pub name: String,
    /// Values and names in the order of the definition; values of an unsigned enumeration as their
    /// bits.
    pub values: Vec<(i64, String)>,
}

impl EnumNames {
    /// Returns the first name of a value.
    pub fn get(&self, value: i64) -> Option<&str> {
        self.values
            .iter()
            .find(|(known, _)| *known == value)
            .map(|(_, name)| name.as_str())
    }
}

/// The kinds of types with fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LayoutKind {
    /// `(1, 2)`
    Tuple,
    /// `(x=1, y=2)`
    Record,
    /// A C struct or union: `{ .x = 1, .y = 2 }`.
    Struct,
}

/// Layout of a type with fields.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    /// Kind of the type.
    pub kind: LayoutKind,
    /// Size in bytes, including padding.
    pub size: u32,
    /// Fields in order. Only those of tuples have no name.
    pub fields: Vec<Field>,
}

/// A field.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Field {
    /// Name; `None` for a field of a tuple.
    pub name: Option<String>,
    /// Offset of its first byte.
    pub offset: u32,
    /// Type of the field.
    pub ty: ValueType,
    /// Right shift of the integer at `offset` in bits, and number of bits to keep, for a bit-field.
    pub bits: Option<(u8, u8)>,
}

/// Form in which a stack is shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum StackMode {
    /// `symbol+offset`, indented by 4 blanks, a frame a line.
    #[default]
    Bpftrace,
    /// `address symbol+offset (module)`, as `perf script` does.
    Perf,
    /// Addresses only.
    Raw,
    /// Build id and offset.
    BuildId,
    /// Functions without offsets on one line, the outermost first, with `;` before each: the input
    /// of flame graph tools. Without the frames of the tracer.
    Folded,
    /// Like [`StackMode::Bpftrace`], without the innermost frames of the tracer and of the
    /// scheduler.
    Short,
}

impl StackMode {
    /// The modes, by the names that scripts use.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("bpftrace", Self::Bpftrace),
        ("perf", Self::Perf),
        ("raw", Self::Raw),
        ("build_id", Self::BuildId),
        ("folded", Self::Folded),
        ("short", Self::Short),
    ];

    /// Returns the bytes of a frame: its address, or a [`BuildIdFrame`].
    pub fn frame_bytes(self) -> u32 {
        if self == Self::BuildId {
            size_of::<BuildIdFrame>() as u32
        } else {
            size_of::<u64>() as u32
        }
    }
}

/// Clock that counts a time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Clock {
    /// `CLOCK_BOOTTIME`: the clock of `nsecs`.
    #[default]
    Boot,
    /// `CLOCK_MONOTONIC`.
    Monotonic,
    /// `CLOCK_TAI`.
    Tai,
}

impl ValueType {
    /// Returns the size of a value in bytes, including padding at its end.
    pub fn size(&self) -> u32 {
        match self {
            Self::None => 0,
            Self::Bool => 1,
            Self::Int { size, .. } | Self::Enum { size, .. } | Self::Float { size } => {
                u32::from(*size)
            }
            Self::Pointer
            | Self::KernelSymbol
            | Self::CgroupPath { .. }
            | Self::Timestamp { .. } => 8,
            Self::Str { size } => *size,
            Self::Buffer { size } => {
                let room = size.checked_next_multiple_of(4).unwrap_or(u32::MAX);
                room.saturating_add(size_of::<BufferHead>() as u32)
            }
            Self::Array { element, count } => element.size().saturating_mul(*count),
            Self::Tuple(layout) => layout.size,
            Self::KernelStack { mode, depth } => stack_bytes::<StackHead>(*mode, *depth),
            Self::UserStack { mode, depth } => stack_bytes::<UserStackHead>(*mode, *depth),
            Self::UserSymbol => size_of::<UserSymbol>() as u32,
            Self::Inet => size_of::<Inet>() as u32,
            Self::MacAddress => size_of::<MacAddress>() as u32,
            Self::Username | Self::ErrorText | Self::SignalText => 4,
        }
    }

    /// Returns the alignment of its offset in a tuple or record, in bytes. The fields of C structs
    /// lie where C puts them.
    pub fn align(&self) -> u32 {
        match self {
            Self::Bool => 1,
            Self::Int { size, .. } | Self::Enum { size, .. } | Self::Float { size } => {
                u32::from(*size)
            }
            Self::Username | Self::ErrorText | Self::SignalText => 4,
            Self::Array { element, .. } => element.align(),
            _ => 8,
        }
    }

    /// Returns true if programs hold it in a register. They handle all other values in memory.
    pub fn fits_register(&self) -> bool {
        matches!(
            self,
            Self::Int { .. }
                | Self::Bool
                | Self::Enum { .. }
                | Self::Pointer
                | Self::KernelSymbol
                | Self::CgroupPath { .. }
                | Self::Username
                | Self::ErrorText
                | Self::SignalText
                | Self::Timestamp { .. }
        )
    }

    /// Returns true if its sign is extended when it is loaded into a register.
    pub fn is_signed(&self) -> bool {
        match self {
            Self::Int { signed, .. } | Self::Enum { signed, .. } => *signed,
            Self::ErrorText | Self::SignalText => true,
            _ => false,
        }
    }

    /// Returns the name for messages of a type that scripts can only keep and print. The compiler
    /// names all others.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Float { size: 4 } => "float",
            Self::Float { .. } => "double",
            Self::KernelSymbol => "ksym_t",
            Self::UserSymbol => "usym_t",
            Self::Inet => "inet",
            Self::MacAddress => "mac_address",
            Self::CgroupPath { .. } => "cgroup_path_t",
            Self::Username => "username",
            Self::ErrorText => "strerror_t",
            Self::SignalText => "signal_name",
            Self::Timestamp { .. } => "timestamp",
            Self::None => "void",
            Self::Int { .. } | Self::Bool | Self::Enum { .. } => "int",
            Self::Pointer => "pointer",
            Self::Str { .. } => "string",
            Self::Buffer { .. } => "buffer",
            Self::Array { .. } => "array",
            Self::Tuple(_) => "tuple",
            Self::KernelStack { .. } => "kstack",
            Self::UserStack { .. } => "ustack",
        }
    }
}

/// Returns the bytes of a stack with its head.
fn stack_bytes<Head>(mode: StackMode, depth: u32) -> u32 {
    mode.frame_bytes()
        .saturating_mul(depth)
        .saturating_add(size_of::<Head>() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_structures() {
        let (raw, ids) = (StackMode::Raw, StackMode::BuildId);
        let sizes = [
            (ValueType::None, 0),
            (ValueType::Buffer { size: 5 }, 12),
            (ValueType::Buffer { size: u32::MAX }, u32::MAX),
            (
                ValueType::KernelStack {
                    mode: raw,
                    depth: 3,
                },
                32,
            ),
            (
                ValueType::UserStack {
                    mode: raw,
                    depth: 3,
                },
                40,
            ),
            (
                ValueType::UserStack {
                    mode: ids,
                    depth: 3,
                },
                112,
            ),
            (
                ValueType::UserStack {
                    mode: ids,
                    depth: u32::MAX,
                },
                u32::MAX,
            ),
            (ValueType::UserSymbol, 16),
            (ValueType::Inet, 20),
            (ValueType::MacAddress, 6),
            (
                ValueType::Array {
                    element: Box::new(ValueType::Inet),
                    count: 2,
                },
                40,
            ),
        ];
        for (ty, size) in sizes {
            assert_eq!(ty.size(), size, "{ty:?}");
        }
    }

    /// Values in registers have the size of a number.
    #[test]
    fn values_in_registers_are_as_large_as_numbers() {
        let clock = Clock::Boot;
        let types = [
            ValueType::Bool,
            ValueType::Pointer,
            ValueType::KernelSymbol,
            ValueType::Username,
            ValueType::ErrorText,
            ValueType::SignalText,
            ValueType::CgroupPath {
                hierarchy: "".into(),
            },
            ValueType::Timestamp {
                clock,
                format: "".into(),
            },
        ];
        for ty in types {
            assert!(
                ty.fits_register() && [1, 2, 4, 8].contains(&ty.size()) && ty.align() == ty.size(),
                "{ty:?}"
            );
        }
    }
}
