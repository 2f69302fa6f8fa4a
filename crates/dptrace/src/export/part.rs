//! A file of a table, written under another name until it is whole.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tables::{Row, Table, TableWriter};

use crate::target::printable;

/// What the names of files end with that are not whole: they begin with a point.
pub(crate) const UNFINISHED: &str = ".unfinished";

/// A file that is not whole yet. It goes if it is dropped so.
pub(crate) struct Part {
    /// Missing once it is whole.
    writer: Option<TableWriter<BufWriter<File>>>,
    unfinished: PathBuf,
    path: PathBuf,
}

impl Part {
    /// Begins the file `name` of a table in a folder, which is made if it is missing.
    pub(crate) fn create(dir: &Path, name: &str, table: &'static Table) -> anyhow::Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("creating the folder {}", printable(dir)))?;
        let (path, unfinished) = (dir.join(format!("{name}.parquet")), dir.join(format!(".{name}{UNFINISHED}")));
        let file = File::create(&unfinished).with_context(|| failed(&unfinished))?;
        let mut part = Self { writer: None, unfinished, path };
        let writer = TableWriter::new(BufWriter::with_capacity(1 << 16, file), table);
        match writer {
            Ok(writer) => part.writer = Some(writer),
            Err(error) => {
                let _ = fs::remove_file(&part.unfinished);
                return Err(error).with_context(|| failed(&part.unfinished));
            }
        }
        Ok(part)
    }

    /// With groups of at most this number of rows.
    pub(crate) fn with_group_rows(mut self, most: usize) -> Self {
        self.writer = self.writer.take().map(|writer| writer.with_group_rows(most));
        self
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, row: &impl Row) -> anyhow::Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.row(row).with_context(|| failed(&self.path))
    }

    /// Ends the file, and gives it its name; its length.
    pub(crate) fn finish(mut self) -> anyhow::Result<u64> {
        let Some(writer) = self.writer.take() else { return Ok(0) };
        let finished = writer.finish().and_then(|(out, _)| {
            let file = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            let length = file.metadata()?.len();
            fs::rename(&self.unfinished, &self.path)?;
            Ok(length)
        });
        if finished.is_err() {
            // Nobody is to find a part of a file.
            let _ = fs::remove_file(&self.unfinished);
        }
        finished.with_context(|| failed(&self.path))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.writer.is_some() {
            let _ = fs::remove_file(&self.unfinished);
        }
    }
}

fn failed(path: &Path) -> String {
    format!("writing {}", printable(path))
}
