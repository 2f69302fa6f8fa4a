//! Writes Parquet files: flat columns of whole numbers, truth values and text, any of which may have values that are missing.
//!
//! Rows are collected in [`Columns`], and written as one row group each; [`Writer`] writes groups until the footer ends the file. What
//! is needed of the format is small: no nested columns, one page for each column of a group, statistics for each column of a
//! group, so that engines skip groups. Numbers are a dictionary if few differ, else their differences are packed; text is a
//! dictionary, or plain if most of it differs.
//!
//! Sources: the Apache Parquet format, version 2.11 (`README.md`, `Encodings.md`, `src/main/thrift/parquet.thrift` of
//! apache/parquet-format), and Thrift's compact protocol (`doc/specs/thrift-compact-protocol.md` of apache/thrift).
#![expect(clippy::cast_possible_wrap, reason = "the format's numbers have signs, and groups have at most some MiB")]

mod columns;
mod encode;
mod pages;
mod text;
mod thrift;
mod writer;

pub use columns::{Columns, Field, Kind};
pub use writer::Writer;
