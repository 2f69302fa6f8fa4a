//! Records of a trace, as they are queried and written: the fields of a record by name, the
//! conditions of a filter, and the formats of a listing.
//!
//! Each record of a trace goes through this code, so it is a separate crate, which is compiled for
//! speed; the program around it is compiled for size. It opens no file and knows no command line:
//! fields, conditions and format are passed as data, and a [`Format`] appends to a buffer.
#![forbid(unsafe_code)]

mod annotation;
mod digits;
mod field;
mod filter;
mod format;
mod identity;

pub use field::{Context, Field, Property, aliases, known, names, parse_number};
pub use filter::{Condition, Filter, Objects, OwnerFilter, Test};
pub use format::json_text;
pub use format::ndjson::arg_object;
pub use format::{Form, Format, Head, View, writer};
pub use identity::{CONNECTION_LETTER, Identity};
