//! ELF files from bytes: headers and address maps, build-ids and debug links, symbols, unwind tables, and the places in code
//! where a breakpoint can be set.
//!
//! This crate opens no file: bytes come in, data goes out, and broken bytes give an error, never a
//! panic. Memory is bounded by the size of the input, and every list that an input could make long
//! has a limit. It knows no probes and no processes.
#![forbid(unsafe_code)]

mod address;
pub mod code;
mod error;
pub mod frame_index;
mod image;
pub mod instructions;
pub mod symbols;

pub use address::{ElfVaddr, FileOffset, ProcAddr};
pub use code::{Code, CodeBytes, CodePlace, PlaceFault, ProbePoint};
pub use error::ElfError;
pub use image::notes;
pub use image::{
    AddressMap, BuildId, DebugLink, Dynamic, ElfImage, ElfKind, HEADER_BYTES, Segment,
    SupplementLink, count_range, merged, table_ranges,
};
