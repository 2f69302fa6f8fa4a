//! A report as one HTML file that needs nothing else, or as one chart (SVG or PNG): plain data in, a file out.
//!
//! [`Report`] is the data, [`page()`] makes the file of it, and [`chart`] the charts. The file has its style and its scripts inside,
//! and a content security policy that permits these and nothing else: it loads nothing and sends nothing. Names in the data are
//! those of strangers: all text is escaped here, whatever the caller has done before. The crate opens no file, and knows neither
//! traces nor captures.
#![forbid(unsafe_code)]

pub mod chart;
mod data;
mod escape;
mod heat;
mod model;
mod page;
mod words;

pub use heat::{Cell, Heat, HeatMap, Seen};
pub use model::{
    Activity, Budget, Cause, Connection, Curve, Figures, Group, Hole, Intruder, Lane, LaneStrip, Lost, Report, Span,
    Spent, StageFigures, Summary, Taken, Verdict, WaterStage, Waterfall,
};
pub use page::page;
