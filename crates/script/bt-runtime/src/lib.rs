//! Output of a script: events and maps come in as bytes, and go out as text or JSON in bpftrace's
//! format.
//!
//! This crate does no input or output and reads no clock. It asks the machine through [`Lookups`]
//! (names of symbols and users, the time zone). The types of values are the compiler's
//! ([`bt_abi`]).
//!
//! | module | holds |
//! |---|---|
//! | [`value`] | values, decoded |
//! | [`decode`] | decodes a value from its type and its bytes |
//! | [`lookups`] | queries to the machine |
//! | [`printf`] | formats |
//! | [`histogram`] | `hist` and `lhist` |
//! | [`series`] | `tseries` |
//! | [`table`] | a map's elements, merged over CPUs and sorted |
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
pub use lookups::{Frame, Lookups, SourcePlace, Symbol};
pub use output::{Form, Printer, ScriptRange};
pub use table::{Cell, Elements, Kind, Table};
pub use value::Value;
