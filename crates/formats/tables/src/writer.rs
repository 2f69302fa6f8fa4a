//! A file of one table.

use std::io::{self, Write};

use crate::parquet::{Columns, Writer};

use crate::VERSION;
use crate::row::{Row, Table};

/// Limit on the rows of a group: DuckDB's own group size, which one of its threads reads at a time.
const GROUP_ROWS: usize = 122_880;
/// Limit on the texts of a group, in bytes; beyond it a group ends early.
const GROUP_TEXT: usize = 16 << 20;

/// Writer of a file with rows of one table.
///
/// Memory is needed for one group: 9 bytes for each value of up to 122,880 rows, and up to 16 MiB
/// of text.
#[derive(Debug)]
pub struct TableWriter<W> {
    table: &'static Table,
    writer: Writer<W>,
    columns: Columns,
    rows: u64,
    group_rows: usize,
}

impl<W: Write> TableWriter<W> {
    /// Begins a file of this table.
    pub fn new(out: W, table: &'static Table) -> io::Result<Self> {
        let fields = table.fields();
        let writer = Writer::new(out, &fields, &table.sort_keys())?;
        Ok(Self {
            table,
            writer,
            columns: Columns::new(&fields),
            rows: 0,
            group_rows: GROUP_ROWS,
        })
    }

    /// Limits the rows of a group to fewer than engines prefer, for programs with little memory.
    #[must_use]
    pub fn with_group_rows(self, most: usize) -> Self {
        Self {
            group_rows: most.clamp(1, GROUP_ROWS),
            ..self
        }
    }

    /// Adds a row of this table. In the file, rows are sorted within their group.
    #[inline]
    pub fn row<R: Row>(&mut self, row: &R) -> io::Result<()> {
        debug_assert_eq!(self.table.name, R::TABLE.name);
        row.put(&mut self.columns);
        self.rows += 1;
        if self.columns.rows() >= self.group_rows || self.columns.text_bytes() > GROUP_TEXT {
            self.writer.group(&mut self.columns)?;
        }
        Ok(())
    }

    /// Returns the number of rows added.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Ends the file. Returns the flushed output, and the number of bytes before the footer.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        self.writer.group(&mut self.columns)?;
        let bytes = self.writer.bytes();
        let version = VERSION.to_string();
        let out = self.writer.finish(&[
            ("dptrace.table", self.table.name),
            ("dptrace.schema", &version),
        ])?;
        Ok((out, bytes))
    }
}
