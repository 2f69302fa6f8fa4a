//! A report as one self-contained HTML file, or as one chart (SVG or PNG): plain data in, a file
//! out.
//!
//! [`Report`] is the data, [`page()`] formats the file, and [`chart`] the charts. The file includes
//! its style and scripts, and a content security policy that permits nothing else: it loads nothing
//! and sends nothing. Names in the data are untrusted: all text is escaped here, even if the caller
//! has escaped it. The crate opens no file, and knows neither traces nor captures.
#![forbid(unsafe_code)]

mod beside;
pub mod chart;
mod compared;
mod data;
mod escape;
pub mod flame;
mod heat;
mod model;
mod page;
mod words;

pub use beside::PerfettoFile;
pub use compared::{
    ComparedCause, ComparedKind, ComparedSide, ComparedStage, ComparedTime, ComparedTimes,
    Comparison, Difference, MARKS,
};
pub use heat::{Cell, Heat, HeatMap, NamedRequest};
pub use model::{
    AbsenceSpan, Activity, Budget, Cause, Connection, Curve, Figures, Group, Hole, Intruder, Lane,
    LaneStrip, Report, Span, StageFigures, Summary, TimeBounds, TimeCauses, Verdict, WaterStage,
    Waterfall,
};
pub use page::{comparison_page, page};
