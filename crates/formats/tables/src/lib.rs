//! The tables that dptrace exports for SQL: which there are, what each column means, and their rows as files of Parquet.
//!
//! Each table and each of its columns is defined once, in [`rows`]: `docs/export.md` is made of that ([`documented`]). A
//! [`TableWriter`] takes rows and writes them as one file; [`partition`] names the folder of a file. The crate opens no file and
//! knows no trace.
//!
//! All engines read them the same way: whole numbers are of 64 bits with a sign, times are nanoseconds since 1970 in UTC, text is
//! UTF-8. Spark reads no timestamps of nanoseconds, and no unsigned numbers of 64 bits.
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

/// The version of all schemas. A new column, with a value that may be missing, is no new version; anything that makes an old query
/// wrong is.
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
