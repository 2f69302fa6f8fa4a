//! Model and drawing of `dptrace top`: samples of a second each, their history, and the effects of
//! keys.
//!
//! | module | holds |
//! |---|---|
//! | `sample` | a second: connections, stages, threads, CPUs |
//! | `history` | the last minutes, in bounded memory |
//! | `keys` | bytes of a terminal as keys |
//! | `model` | the tab, order, filter and line, and what a key changes |
//! | `picker` | the list of processes from which one is chosen |
//! | `mouse` | what clicks and the wheel change |
//! | `table` | rows and columns as data, and which columns fit a width |
//! | `verdict` | the slowest connection, and who took its thread's time, in words |
//! | `views` | the tables and texts of each tab; those of CPUs are in `cpus` |
//! | `text`, `json` | a second for scripts |
//! | `draw` | all of these on cells of a terminal |
//!
//! It reads no clock and no kernel, opens no file and knows no terminal: samples and bytes of keys
//! are data, and the drawing goes into cells.
#![forbid(unsafe_code)]

mod cpus;
mod draw;
mod history;
mod json;
mod keys;
mod model;
mod mouse;
mod picker;
mod sample;
mod table;
mod text;
mod verdict;
mod views;

pub use draw::{draw, draw_picker};
pub use history::History;
pub use json::json;
pub use keys::{Key, Keys};
pub use model::{Effect, Model, Tab};
pub use picker::{Candidate, Choice, Picker};
pub use sample::{
    Connection, Cpu, CpuTask, CpuUse, Identity, Part, Phase, Poller, Request, Sample, Share, Stage,
    Thread, Traffic,
};
pub use text::text;
