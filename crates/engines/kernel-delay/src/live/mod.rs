//! Access to the kernel: this module reads the kernel's types, loads and attaches the programs,
//! opens and closes windows, and reads the maps and the ring.
//!
//! | module | holds |
//! |---|---|
//! | `facts` | facts about this kernel that the programs need, from its BTF |
//! | `functions` | names of the functions that the kernel's workers ran |
//! | `triggers` | the programs of triggers, and where they are attached |
//! | `upcall_counter` | the program that counts Open vSwitch's upcalls |
//! | `attach` | all programs, loaded and attached in their order |
//! | `tracer` | the attached programs, and the sample of a window |
//! | `window` | windows, begun and ended by the clock or by triggers |
//! | `continuous` | repeated readings of one window without end |
//! | `collector` | the events of a window |
//! | `cpu_limits` | CPU limits of the process's control groups |
//! | `steal` | CPU time that a hypervisor took |
//! | `proc_thread` | data from `/proc` about processes and their threads |

mod attach;
mod collector;
mod continuous;
pub mod cpu_limits;
mod facts;
mod functions;
mod losses;
mod proc_thread;
pub mod steal;
mod tracer;
mod triggers;
mod upcall_counter;
mod window;

pub use attach::{AttachOptions, AttachedPrograms, attach};
pub use collector::{Collector, Unwinder};
pub use facts::Facts;
pub use losses::LossCounts;
pub use tracer::Tracer;
pub use triggers::{PlacedTrigger, UserPlaces};
pub use window::WindowState;
