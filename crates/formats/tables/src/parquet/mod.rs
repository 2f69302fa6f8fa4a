//! Writes Parquet files: flat columns of integers, booleans and text, any of which may have missing
//! values.
//!
//! Rows are collected in [`Columns`], and written as one row group each; [`Writer`] writes groups
//! until the footer ends the file. Only a small part of the format is needed: no nested columns,
//! and one page for each column of a group. Statistics for each column of a group let engines skip
//! groups. Numbers are dictionary-encoded if few differ, else as packed differences; text is
//! dictionary-encoded, or plain if most of it differs.
//!
//! Sources: the Apache Parquet format, version 2.11 (`README.md`, `Encodings.md`,
//! `src/main/thrift/parquet.thrift` of apache/parquet-format), and Thrift's compact protocol
//! (`doc/specs/thrift-compact-protocol.md` of apache/thrift).
#![expect(
    clippy::cast_possible_wrap,
    reason = "the format's numbers have signs, and groups have at most some MiB"
)]

mod columns;
mod encode;
mod pages;
mod text;
mod thrift;
mod writer;

pub use columns::{Columns, Field, Kind};
pub use writer::Writer;
