//! Records of a trace as they are asked for and written: the fields of a record by their names, the conditions of a filter, and
//! the formats of a listing.
//!
//! Each record of a trace goes through this code, so it is a crate of its own, which is compiled for speed; the program around it
//! is compiled for size. It opens no file and knows no command line: which fields, which conditions and which format are wanted is
//! data, and a [`Format`] appends to a buffer.
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
pub use identity::Identity;
