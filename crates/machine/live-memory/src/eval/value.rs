//! Values of expressions.

use typeinfo::{Field, TypeRef};

/// The value of an expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A number, a truth value, an enumerator or a pointer; the type shows which of them.
    Int {
        /// The number; for a pointer, an address.
        value: i128,
        /// Type, typedefs included.
        ty: TypeRef,
    },
    /// A floating-point number.
    Float {
        /// The number.
        value: f64,
        /// Type.
        ty: TypeRef,
    },
    /// An object without a single value: a struct, a union, an array, a function.
    Place(Place),
    /// Text that `str()` read, or a string of the expression. It ends where the NUL was.
    Text(Vec<u8>),
    /// Bytes that `buf()` read.
    Bytes(Vec<u8>),
    /// A tuple `(a, b)`, or the elements of `list()`.
    Tuple(Vec<Value>),
    /// Result of `print()` and other calls for their effect.
    Nothing,
}

impl Value {
    /// Returns the number of values that it is made of; `None` if tuples in it are nested deeper
    /// than `depth`.
    pub(crate) fn weight(&self, depth: usize) -> Option<usize> {
        let Self::Tuple(parts) = self else {
            return Some(1);
        };
        let deeper = depth.checked_sub(1)?;
        parts
            .iter()
            .try_fold(1_usize, |sum, part| sum.checked_add(part.weight(deeper)?))
    }

    /// Returns the place, if the value is one.
    pub fn place(&self) -> Option<Place> {
        if let Self::Place(place) = self {
            Some(*place)
        } else {
            None
        }
    }

    /// Returns the number, if the value is one.
    pub fn number(&self) -> Option<i128> {
        if let Self::Int { value, .. } = self {
            Some(*value)
        } else {
            None
        }
    }

    /// Returns the number as an address or an unsigned number of 64 bits: the two's complement of a
    /// negative one.
    pub fn address(&self) -> Option<u64> {
        self.number().map(|value| value as u64)
    }

    /// Returns the bytes of a text or a buffer.
    pub fn bytes(&self) -> Option<&[u8]> {
        if let Self::Text(bytes) | Self::Bytes(bytes) = self {
            Some(bytes)
        } else {
            None
        }
    }
}

/// An object of the process that has an address and a type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// Start address. A bit-field begins at a bit of this byte.
    pub address: u64,
    /// Type; for a bit-field, the type before the colon. `void` if unknown.
    pub ty: TypeRef,
    /// First bit, counted from the address, and number of bits, for a bit-field.
    pub bits: Option<(u32, u32)>,
}

impl Place {
    /// Creates a place that is not a bit-field.
    pub fn new(address: u64, ty: TypeRef) -> Self {
        Self {
            address,
            ty,
            bits: None,
        }
    }

    /// Returns a member or an element of the place.
    pub(crate) fn field(self, field: Field) -> Self {
        let address = self.address.wrapping_add(field.byte_offset());
        let bits = field
            .bit_size
            .map(|size| ((field.bit_offset % 8) as u32, size));
        Self {
            address,
            ty: field.ty,
            bits,
        }
    }
}

/// Result of an expression before it is read: places are read late, so that their addresses can be
/// taken.
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
