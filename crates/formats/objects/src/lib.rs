//! The objects behind a trace's pointers and owners: their connections and hosts.
//!
//! A spec ([`ObjectSpec`]) defines a kind of object. A recording of the application's probes
//! ([`Recording`]) contains the lifetime of each object ([`Lifetimes`]). The [`Annotator`] adds
//! both to the records of a trace. The owners in newer traces need no recording:
//! [`OwnerProperties`] parses their descriptions.
#![forbid(unsafe_code)]

mod alive;
mod alive_spec;
mod annotate;
mod frame;
mod join;
mod journal;
pub mod layouts;
mod lifetimes;
mod owner;
mod recording;
mod spec;
mod wanted;
mod witness;

pub use alive::{ALIVE_PREFIX, GONE, READ, WATCHED_ARG};
pub use alive_spec::{AliveSpec, AliveValue, LocatedText, RecordPair};
pub use annotate::{Annotator, ReferencedObject};
pub use frame::{Frame, Header, RECORDING, last_time};
pub use journal::Journal;
pub use lifetimes::{Key, Lifetime, Lifetimes};
pub use owner::OwnerProperties;
pub use recording::{BrokenLine, Event, Recording, Value, write_line};
pub use spec::{
    BUILT_IN, ObjectSpec, ProbeArg, ProbeSpec, PropertySpec, Role, Show, SpecError, TSC, built_in,
    parse_specs,
};
pub use wanted::ProbeRequest;
