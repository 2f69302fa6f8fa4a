//! Layout of a structure: position and type of each field.

/// A field with a fixed position and length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name in the description.
    pub name: String,
    /// Byte offset in the structure.
    pub(crate) at: usize,
    pub(crate) kind: Kind,
}

/// Type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    One(Scalar),
    /// Characters up to a NUL or the end.
    Text {
        bytes: usize,
    },
    /// Consecutive values.
    List {
        item: Scalar,
        count: usize,
    },
}

/// A number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Integer(Integer),
    /// 4 or 8 bytes (IEEE 754).
    Float {
        bytes: usize,
        align: usize,
    },
}

/// A whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Integer {
    /// Size in bytes, 1 to 8.
    pub(crate) bytes: usize,
    /// Alignment in bytes.
    pub(crate) align: usize,
    pub(crate) is_signed: bool,
    /// Base for printing: 2, 8, 10 or 16.
    pub(crate) base: u32,
    /// True for a character, if in an array.
    pub(crate) is_text: bool,
    /// True if its value is the clock's.
    pub(crate) is_clock: bool,
}

impl Scalar {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Integer(Integer { bytes, .. }) | Self::Float { bytes, .. } => bytes,
        }
    }

    fn align(self) -> usize {
        match self {
            Self::Integer(Integer { align, .. }) | Self::Float { align, .. } => align,
        }
    }
}

/// A structure: its fields in the order of their offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    pub(crate) fields: Vec<Field>,
    /// Size in bytes.
    pub(crate) size: usize,
    /// Alignment in bytes; 0 is the same as 1.
    pub(crate) align: usize,
}

/// Limit on the size of a structure, in bytes; those of DPDK have hundreds.
const MAX_STRUCT_BYTES: usize = 1 << 20;

impl Layout {
    /// Iterates over the names of the fields.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.name.as_str())
    }

    /// Appends a field: one value, or an array of `count`. The error describes the problem.
    pub(crate) fn push(
        &mut self,
        name: String,
        item: Scalar,
        count: Option<u64>,
    ) -> Result<(), String> {
        let at = self.size.next_multiple_of(item.align());
        let is_text = matches!(
            item,
            Scalar::Integer(Integer {
                is_text: true,
                bytes: 1,
                ..
            })
        );
        let count = count.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        let end = count
            .unwrap_or(1)
            .checked_mul(item.bytes())
            .and_then(|bytes| at.checked_add(bytes));
        let Some(end) = end.filter(|end| *end <= MAX_STRUCT_BYTES) else {
            return Err(format!(
                "with the field {name:?} a structure is longer than {MAX_STRUCT_BYTES} bytes"
            ));
        };
        let kind = match count {
            None => Kind::One(item),
            Some(bytes) if is_text => Kind::Text { bytes },
            Some(count) => Kind::List { item, count },
        };
        self.align = self.align.max(item.align());
        self.size = end;
        self.fields.push(Field { name, at, kind });
        Ok(())
    }

    /// Returns offset and type of the integer with this name.
    pub(crate) fn integer(&self, name: &str) -> Option<(usize, Integer)> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        match field.kind {
            Kind::One(Scalar::Integer(integer)) => Some((field.at, integer)),
            _ => None,
        }
    }

    /// Returns offset and type of the integer with the clock's value.
    pub(crate) fn clock(&self) -> Option<(usize, Integer)> {
        self.fields.iter().find_map(|field| match field.kind {
            Kind::One(Scalar::Integer(integer)) if integer.is_clock => Some((field.at, integer)),
            _ => None,
        })
    }

    /// Returns the offset of the next such structure at or after a byte offset.
    pub(crate) fn next(&self, at: usize) -> usize {
        at.checked_next_multiple_of(self.align.max(1))
            .unwrap_or(usize::MAX)
    }
}
