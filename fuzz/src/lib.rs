//! What the fuzz targets share: sources whose bytes change while they are read, small valid traces of every era to
//! damage, and what must hold of whatever a reader makes of them.
#![forbid(unsafe_code)]

mod bases;
mod changing;
pub mod compiled;
pub mod debug_info;
mod elf;
mod invariants;
mod memory;
pub mod report;
mod script;
pub mod types;

pub use bases::{Base, Place, base, numbers};
pub use changing::{Changing, Version};
pub use elf::with_notes;
pub use invariants::{check_follower, check_raw};
pub use memory::{processor_time, within, within_more};
pub use script::apply;
