//! Where each field of a structure lies, and what it holds.

/// A field whose place and length are fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// As the description names it.
    pub name: String,
    /// The first byte, from the structure's begin.
    pub(crate) at: usize,
    pub(crate) kind: Kind,
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    One(Scalar),
    /// Characters up to a byte 0 or the end.
    Text {
        bytes: usize,
    },
    /// Values that lie one after the other.
    List {
        item: Scalar,
        count: usize,
    },
}

/// A number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Integer(Integer),
    /// Of 4 bytes or of 8 (IEEE 754).
    Float {
        bytes: usize,
        align: usize,
    },
}

/// A whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Integer {
    /// 1 to 8.
    pub(crate) bytes: usize,
    /// In bytes.
    pub(crate) align: usize,
    pub(crate) is_signed: bool,
    /// Printed with this base: 2, 8, 10 or 16.
    pub(crate) base: u32,
    /// A character, if it is an array's.
    pub(crate) is_text: bool,
    /// Its value is the clock's.
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

/// A structure: its fields in the order of their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    pub(crate) fields: Vec<Field>,
    /// In bytes.
    pub(crate) size: usize,
    /// In bytes; 0 is as good as 1.
    pub(crate) align: usize,
}

/// Bytes of a structure at most: those of DPDK have hundreds.
const MOST: usize = 1 << 20;

impl Layout {
    /// The names of its fields.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.name.as_str())
    }

    /// Adds a field at its end: one value, or as many as an array has. An error is what is wrong with it.
    pub(crate) fn push(&mut self, name: String, item: Scalar, count: Option<u64>) -> Result<(), String> {
        let at = self.size.next_multiple_of(item.align());
        let is_text = matches!(item, Scalar::Integer(Integer { is_text: true, bytes: 1, .. }));
        let count = count.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
        let end = count.unwrap_or(1).checked_mul(item.bytes()).and_then(|bytes| at.checked_add(bytes));
        let Some(end) = end.filter(|end| *end <= MOST) else {
            return Err(format!("with the field {name:?} a structure is longer than {MOST} bytes"));
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

    /// The integer of that name.
    pub(crate) fn integer(&self, name: &str) -> Option<(usize, Integer)> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        match field.kind {
            Kind::One(Scalar::Integer(integer)) => Some((field.at, integer)),
            _ => None,
        }
    }

    /// The integer whose value is the clock's.
    pub(crate) fn clock(&self) -> Option<(usize, Integer)> {
        self.fields.iter().find_map(|field| match field.kind {
            Kind::One(Scalar::Integer(integer)) if integer.is_clock => Some((field.at, integer)),
            _ => None,
        })
    }

    /// Where one begins that comes at or behind a byte.
    pub(crate) fn next(&self, at: usize) -> usize {
        at.checked_next_multiple_of(self.align.max(1)).unwrap_or(usize::MAX)
    }
}
