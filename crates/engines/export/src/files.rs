//! Files of one table, one per hour, which appear together with those of all tables.

use std::collections::HashMap;
use std::path::PathBuf;

use tables::{Row, Table, escaped, hour_of, partition};
use whole_file::{Access, Batch};

use super::part::PartialFile;

/// Limit on the hours whose files are open at one time: rows come almost in time order.
const MAX_OPEN_HOURS: usize = 3;

/// Destination of an export.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    pub(crate) dir: PathBuf,
    pub(crate) host: String,
    pub(crate) capture: String,
    pub(crate) access: Access,
}

/// Writes the rows of one table.
pub(crate) struct Files {
    place: Destination,
    table: &'static Table,
    /// Hours whose files are open, the last used one at the end.
    open: Vec<(i64, PartialFile)>,
    /// Number of files of each hour.
    parts: HashMap<i64, u32>,
    /// Files that are complete.
    done: Batch,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl Files {
    pub(crate) fn new(place: Destination, table: &'static Table) -> Self {
        Self {
            place,
            table,
            open: Vec::new(),
            parts: HashMap::new(),
            done: Batch::default(),
            rows: 0,
            bytes: 0,
        }
    }

    /// Adds a row at a time in nanoseconds since 1970, UTC.
    pub(crate) fn row(&mut self, at: i64, row: &impl Row) -> anyhow::Result<()> {
        let hour = hour_of(at);
        if self.open.last().is_none_or(|(of, _)| *of != hour) {
            self.bring(hour)?;
        }
        self.rows += 1;
        self.open
            .last_mut()
            .map_or(Ok(()), |(_, part)| part.row(row))
    }

    /// Moves the file of an hour to the end of the open ones.
    fn bring(&mut self, hour: i64) -> anyhow::Result<()> {
        if let Some(place) = self.open.iter().position(|(of, _)| *of == hour) {
            let part = self.open.remove(place);
            self.open.push(part);
            return Ok(());
        }
        if self.open.len() >= MAX_OPEN_HOURS {
            let (_, part) = self.open.remove(0);
            self.end(part)?;
        }
        let number = self.parts.entry(hour).or_default();
        *number += 1;
        // The same trace yields the same names: a repeated export replaces its own files and no
        // others.
        let name = format!("{}-{number:03}", escaped(&self.place.capture));
        let dir = self
            .place
            .dir
            .join(partition(self.table.name, hour, &self.place.host));
        self.open.push((
            hour,
            PartialFile::create(&dir, &name, self.table, self.place.access)?,
        ));
        Ok(())
    }

    /// Ends a file.
    fn end(&mut self, part: PartialFile) -> anyhow::Result<()> {
        let (file, bytes) = part.finish()?;
        self.bytes += bytes;
        Ok(self.done.add(file)?)
    }

    /// Ends all files, which go to `batch`; returns the number of rows and bytes.
    pub(crate) fn finish(mut self, batch: &mut Batch) -> anyhow::Result<(u64, u64)> {
        for (_, part) in std::mem::take(&mut self.open) {
            self.end(part)?;
        }
        batch.append(self.done)?;
        Ok((self.rows, self.bytes))
    }
}
