//! What a script prints: events and maps come in as bytes, and go out as text or JSON of bpftrace's form.
//!
//! This room does no input or output and knows no clock: what it must ask of the machine (a symbol's name, a user's, the
//! time zone) it asks through [`Lookups`]. The types of values are the compiler's
//! ([`bt_abi`]).
//!
//! | module | holds |
//! |---|---|
//! | [`value`] | values, decoded |
//! | [`decode`] | from a type and its bytes to a value |
//! | [`lookups`] | what is asked of the machine |
//! | [`printf`] | formats |
//! | [`histogram`] | `hist` and `lhist` |
//! | [`series`] | `tseries` |
//! | [`table`] | a map's elements, put together and sorted |
//! | [`text`], [`json`] | the two forms of output |
//! | [`output`] | the messages of a session in either form |
#![forbid(unsafe_code)]

pub mod decode;
mod gfp;
pub mod histogram;
pub mod json;
pub mod lookups;
pub mod output;
pub mod printf;
pub mod series;
mod stack;
pub mod table;
pub mod text;
pub mod value;

pub use decode::Decoder;
pub use lookups::{Lookups, SourcePlace, Symbol};
pub use output::{Form, Place, Printer};
pub use table::{Cell, Elements, Kind, Table};
pub use value::Value;
