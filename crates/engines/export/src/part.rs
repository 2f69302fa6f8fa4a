//! File of a table.

use std::fs;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tables::{Row, Table, TableWriter};
use text::printable::path as printable;
use whole_file::{Access, WholeFile};

/// File that is not complete yet. Dropped in this state, it leaves nothing.
pub struct PartialFile {
    writer: TableWriter<BufWriter<WholeFile>>,
    path: PathBuf,
}

impl PartialFile {
    /// Begins the file `name` of a table in a folder, which is made if it is missing.
    pub fn create(
        dir: &Path,
        name: &str,
        table: &'static Table,
        access: Access,
    ) -> anyhow::Result<Self> {
        fs::create_dir_all(dir)
            .with_context(|| format!("creating the folder {}", printable(dir)))?;
        let path = dir.join(format!("{name}.parquet"));
        let file = BufWriter::with_capacity(1 << 16, WholeFile::create(&path, access)?);
        let writer = TableWriter::new(file, table).with_context(|| failed(&path))?;
        Ok(Self { writer, path })
    }

    /// Limits row groups to this number of rows.
    #[must_use]
    pub fn with_group_rows(self, most: usize) -> Self {
        Self {
            writer: self.writer.with_group_rows(most),
            ..self
        }
    }

    /// Adds a row.
    pub fn row(&mut self, row: &impl Row) -> anyhow::Result<()> {
        self.writer.row(row).with_context(|| failed(&self.path))
    }

    /// Writes the file's end; returns the file, which has no name yet, and its length.
    pub fn finish(self) -> anyhow::Result<(WholeFile, u64)> {
        let finished = self.writer.finish().and_then(|(out, _)| {
            let file = out
                .into_inner()
                .map_err(std::io::IntoInnerError::into_error)?;
            let length = file.file().metadata()?.len();
            Ok((file, length))
        });
        finished.with_context(|| failed(&self.path))
    }
}

fn failed(path: &Path) -> String {
    format!("writing {}", printable(path))
}
