//! What an expression is worth.

use typeinfo::{Field, TypeRef};

/// The value of an expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A number, a truth value, an enumerator or a pointer: which of them, its type says.
    Int {
        /// The number; that of a pointer is an address.
        value: i128,
        /// Its type, typedefs included.
        ty: TypeRef,
    },
    /// A floating-point number.
    Float {
        /// The number.
        value: f64,
        /// Its type.
        ty: TypeRef,
    },
    /// What has no single value: a struct, a union, an array, a function.
    Place(Place),
    /// Text: what `str()` read, or a string of the expression. It ends where the NUL was.
    Text(Vec<u8>),
    /// What `buf()` read.
    Bytes(Vec<u8>),
    /// `(a, b)`, and the elements of `list()`.
    Tuple(Vec<Value>),
    /// What `print()` and other calls for their effect give.
    Nothing,
}

impl Value {
    /// How many values it is made of; none if tuples are nested deeper than this in it.
    pub(crate) fn weight(&self, depth: usize) -> Option<usize> {
        let Self::Tuple(parts) = self else { return Some(1) };
        let deeper = depth.checked_sub(1)?;
        parts.iter().try_fold(1_usize, |sum, part| sum.checked_add(part.weight(deeper)?))
    }

    /// The place, of a value that is one.
    pub fn place(&self) -> Option<Place> {
        if let Self::Place(place) = self { Some(*place) } else { None }
    }

    /// The number, of a value that is one.
    pub fn number(&self) -> Option<i128> {
        if let Self::Int { value, .. } = self { Some(*value) } else { None }
    }

    /// The number as an address or an unsigned number of 64 bits: of a negative one its two's complement.
    pub fn address(&self) -> Option<u64> {
        self.number().map(|value| value as u64)
    }

    /// The bytes of a text or a buffer.
    pub fn bytes(&self) -> Option<&[u8]> {
        if let Self::Text(bytes) | Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }
}

/// Something of the process that has an address and a type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// Where it begins. A bit-field begins at a bit of this byte.
    pub address: u64,
    /// Its type; of a bit-field the type before the colon. `void` if nothing is known of it.
    pub ty: TypeRef,
    /// Of a bit-field: its first bit, counted from the address, and its number of bits.
    pub bits: Option<(u32, u32)>,
}

impl Place {
    /// A place that is no bit-field.
    pub fn new(address: u64, ty: TypeRef) -> Self {
        Self { address, ty, bits: None }
    }

    /// A member or an element of the place.
    pub(crate) fn field(self, field: Field) -> Self {
        let address = self.address.wrapping_add(field.byte_offset());
        let bits = field.bit_size.map(|size| ((field.bit_offset % 8) as u32, size));
        Self { address, ty: field.ty, bits }
    }
}

/// What an expression leads to before it is read: places are read late, so that their addresses can be taken.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Operand {
    Place(Place),
    Value(Value),
}

impl From<Value> for Operand {
    fn from(value: Value) -> Self {
        match value {
            Value::Place(place) => Self::Place(place),
            other => Self::Value(other),
        }
    }
}
