//! The tables that dptrace exports for SQL: their columns, and their rows as Parquet files.
//!
//! Each table and each of its columns is defined once, in [`rows`]; `docs/export.md` is generated
//! from that ([`documented`]). A [`TableWriter`] takes rows and writes them as one file;
//! [`partition`] returns the folder of a file. The crate opens no file and knows no trace.
//!
//! All engines read them the same way: integers have 64 bits and a sign, times are nanoseconds
//! since 1970 in UTC, text is UTF-8. Spark reads neither nanosecond timestamps nor unsigned 64-bit
//! numbers.
#![forbid(unsafe_code)]

mod document;
pub mod parquet;
mod partition;
mod row;
pub mod rows;
mod writer;

pub use document::documented;
pub use partition::{escaped, hour_of, partition};
pub use row::{Column, Row, Table};
pub use writer::TableWriter;

/// Version of all schemas. A new optional column keeps the version; any change that makes an old
/// query wrong needs a new one.
pub const VERSION: u32 = 1;

/// All tables.
pub const TABLES: [&Table; 6] = [
    &rows::Request::TABLE,
    &rows::RequestStage::TABLE,
    &rows::StageHistogram::TABLE,
    &rows::ThreadBudget::TABLE,
    &rows::KernelInterval::TABLE,
    &rows::TraceRecord::TABLE,
];
