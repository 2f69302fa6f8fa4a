//! A file: row groups, then the footer with their positions.

use std::io::{self, Write};

use crate::parquet::columns::{Columns, Field, Kind};
use crate::parquet::pages::{self, Chunk, PLAIN, RLE};
use crate::parquet::thrift::{self, BINARY, I32, STRUCT, Struct};

/// First and last bytes of a file.
const MAGIC: &[u8; 4] = b"PAR1";
/// Type numbers of the format (`parquet.thrift`), and that of text.
const BOOLEAN: i32 = 0;
const INT64: i32 = 2;
const BYTE_ARRAY: i32 = 6;
const UTF8: i32 = 0;

/// Writer of a file with these columns.
///
/// Memory is needed for the encoded bytes of one row group, and a little for each group written.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    fields: Vec<Field>,
    sorted_by: Vec<usize>,
    /// Number of bytes written.
    at: u64,
    rows: i64,
    groups: Vec<Group>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Group {
    begin: u64,
    rows: i64,
    chunks: Vec<Chunk>,
}

impl<W: Write> Writer<W> {
    /// Begins a file. `sorted_by` are the columns by which the rows of each group are sorted, in
    /// ascending order; this is recorded for engines.
    pub fn new(mut out: W, fields: &[Field], sorted_by: &[usize]) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        let at = MAGIC.len() as u64;
        let (fields, sorted_by) = (fields.to_vec(), sorted_by.to_vec());
        Ok(Self {
            out,
            fields,
            sorted_by,
            at,
            rows: 0,
            groups: Vec::new(),
            buffer: Vec::new(),
        })
    }

    /// Sorts the collected rows, writes them as a group, and removes them.
    ///
    /// # Errors
    ///
    /// Returns an error of the output, or an error if the columns differ in length.
    pub fn group(&mut self, columns: &mut Columns) -> io::Result<()> {
        let rows = columns.rows();
        if columns.columns.len() != self.fields.len()
            || columns.columns.iter().any(|column| column.len() != rows)
        {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the columns of a group differ in length",
            ));
        }
        if rows == 0 {
            return Ok(());
        }
        columns.sort_by(&self.sorted_by);
        let mut group = Group {
            begin: self.at,
            rows: rows as i64,
            chunks: Vec::new(),
        };
        for column in &columns.columns {
            self.buffer.clear();
            group.chunks.push(pages::write(&mut self.buffer, column));
            self.out.write_all(&self.buffer)?;
            self.at += self.buffer.len() as u64;
        }
        columns.clear();
        self.rows += group.rows;
        self.groups.push(group);
        Ok(())
    }

    /// Returns the number of bytes written.
    pub fn bytes(&self) -> u64 {
        self.at
    }

    /// Ends the file with its footer, which contains `notes` as names and values. Returns the
    /// flushed output.
    pub fn finish(mut self, notes: &[(&str, &str)]) -> io::Result<W> {
        let mut footer = Vec::new();
        self.footer(&mut footer, notes);
        self.out.write_all(&footer)?;
        self.out.write_all(&(footer.len() as u32).to_le_bytes())?;
        self.out.write_all(MAGIC)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn footer(&self, out: &mut Vec<u8>, notes: &[(&str, &str)]) {
        Struct::write(out, |it| {
            it.i32(1, 2);
            let root = std::iter::once(None);
            let schema: Vec<Option<&Field>> = root.chain(self.fields.iter().map(Some)).collect();
            it.list(2, STRUCT, schema.into_iter(), |out, field| {
                schema_element(out, field, self.fields.len());
            });
            it.i64(3, self.rows);
            it.list(4, STRUCT, self.groups.iter(), |out, group| {
                self.row_group(out, group);
            });
            it.list(5, STRUCT, notes.iter(), |out, (name, value)| {
                Struct::write(out, |it| {
                    it.binary(1, name.as_bytes());
                    it.binary(2, value.as_bytes());
                });
            });
            it.binary(
                6,
                concat!("dptrace version ", env!("CARGO_PKG_VERSION")).as_bytes(),
            );
            // States that values of each column are in the order of their type; otherwise engines
            // ignore their bounds.
            it.list(7, STRUCT, self.fields.iter(), |out, _| {
                Struct::write(out, |it| it.structure(1, |_| ()));
            });
        });
    }

    fn row_group(&self, out: &mut Vec<u8>, group: &Group) {
        Struct::write(out, |it| {
            let mut at = group.begin;
            let chunks = self.fields.iter().zip(&group.chunks).map(|(field, chunk)| {
                let begin = at;
                at += chunk.compressed as u64;
                (field, chunk, begin as i64)
            });
            let chunks: Vec<_> = chunks.collect();
            let sum = |of: fn(&Chunk) -> i64| group.chunks.iter().map(of).sum();
            it.list(1, STRUCT, chunks.into_iter(), column_chunk);
            it.i64(2, sum(|chunk| chunk.uncompressed));
            it.i64(3, group.rows);
            if !self.sorted_by.is_empty() {
                it.list(4, STRUCT, self.sorted_by.iter(), |out, column| {
                    Struct::write(out, |it| {
                        it.i32(1, *column as i32);
                        it.bool(2, false);
                        it.bool(3, true);
                    });
                });
            }
            it.i64(5, group.begin as i64);
            it.i64(6, sum(|chunk| chunk.compressed));
        });
    }
}

/// Writes the schema's root, which has the number of columns, or a column.
fn schema_element(out: &mut Vec<u8>, field: Option<&Field>, columns: usize) {
    Struct::write(out, |it| {
        let Some(field) = field else {
            it.binary(4, b"row");
            it.i32(5, columns as i32);
            return;
        };
        it.i32(1, physical(field.kind));
        it.i32(3, i32::from(field.optional));
        it.binary(4, field.name.as_bytes());
        if field.kind == Kind::Text {
            it.i32(6, UTF8);
            // The logical type STRING, equivalent to UTF8.
            it.structure(10, |it| it.structure(1, |_| ()));
        }
    });
}

fn physical(kind: Kind) -> i32 {
    match kind {
        Kind::Int => INT64,
        Kind::Bool => BOOLEAN,
        Kind::Text => BYTE_ARRAY,
    }
}

fn column_chunk(out: &mut Vec<u8>, (field, chunk, begin): (&Field, &Chunk, i64)) {
    Struct::write(out, |it| {
        it.i64(2, begin);
        it.structure(3, |it| {
            it.i32(1, physical(field.kind));
            let mut encodings = vec![chunk.encoding];
            encodings.extend([PLAIN, RLE].into_iter().filter(|it| *it != chunk.encoding));
            it.list(2, I32, encodings.into_iter(), thrift::number);
            it.list(3, BINARY, [field.name].iter(), |out, name| {
                thrift::bytes(out, name.as_bytes());
            });
            it.i32(4, chunk.codec);
            it.i64(5, chunk.rows);
            it.i64(6, chunk.uncompressed);
            it.i64(7, chunk.compressed);
            it.i64(9, begin + chunk.dictionary.unwrap_or_default());
            if chunk.dictionary.is_some() {
                it.i64(11, begin);
            }
            it.structure(12, |it| {
                it.i64(3, chunk.nulls);
                if let Some((least, most)) = &chunk.bounds {
                    it.binary(5, most);
                    it.binary(6, least);
                }
            });
        });
    });
}
