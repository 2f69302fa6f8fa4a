//! Values, decoded.

use std::cmp::Ordering;

/// Value of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Value {
    /// Value without a form that can be shown.
    Nothing,
    /// `true` or `false`.
    Bool(bool),
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// Floating-point number as shown.
    Float(String),
    /// String, not necessarily UTF-8.
    Text(Vec<u8>),
    /// Raw bytes.
    Buffer(Vec<u8>),
    /// Array of values.
    Array(Vec<Value>),
    /// A tuple.
    Tuple(Vec<Value>),
    /// A record or a C struct.
    Record(Vec<(String, Value)>),
    /// Number shown as a word: an enumerator, a pointer, the bound of a histogram's bucket. JSON
    /// has the number.
    Symbol {
        /// Word shown.
        text: String,
        /// Number behind the word.
        number: i128,
    },
}

impl Value {
    /// Creates a string.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into().into_bytes())
    }

    /// Returns the value's number, if it is a number.
    pub fn number(&self) -> Option<i128> {
        match self {
            Self::Bool(truth) => Some(i128::from(*truth)),
            Self::Int(number) => Some(i128::from(*number)),
            Self::Uint(number) => Some(i128::from(*number)),
            Self::Symbol { number, .. } => Some(*number),
            _ => None,
        }
    }
}

impl std::fmt::Display for Value {
    /// Formats the value as a script prints it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&crate::text::value(self))
    }
}

impl Ord for Value {
    /// Compares numbers by size, strings by bytes, the rest part by part. Maps are shown in this
    /// order.
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) | (Self::Buffer(a), Self::Buffer(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => float(a).total_cmp(&float(b)),
            (Self::Array(a), Self::Array(b)) | (Self::Tuple(a), Self::Tuple(b)) => a.cmp(b),
            (Self::Record(a), Self::Record(b)) => {
                let values = |fields: &[(String, Value)]| {
                    fields
                        .iter()
                        .map(|(_, value)| value.clone())
                        .collect::<Vec<_>>()
                };
                values(a).cmp(&values(b))
            }
            _ => self.number().cmp(&other.number()),
        }
    }
}

/// Parses the text of a [`Value::Float`].
fn float(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
