//! Finds the document in the surrounding text, reads its tables, and iterates over its entries.

mod definitions;

use std::ops::ControlFlow;

use text::printable;

use super::entry::OwnerColumn;
use super::lexer::{Lexer, SyntaxError};
use super::walk::Walk;
use crate::Error;
use crate::header::TpointTable;
use crate::json::document::definitions::{definition, owners};
use crate::problems::{Problem, Problems};
use crate::record::{Record, RecordSink};
use crate::source::ReadAt;
use crate::units::{FileOffset, TickRate};

/// Bytes per read.
const READ_BYTES: usize = 1 << 20;
/// Limit on the length of an entry; else an unclosed one would be read up to the document's end.
const MAX_ENTRY_BYTES: usize = 8 << 20;
/// A trace in a JSON document.
///
/// Its tables are in memory; its entries are read a window at a time. Only if entries precede
/// tables that they need is the whole document in memory.
pub struct JsonTrace {
    /// Start of the document with its tables. Plain text may precede the document and follow it.
    head: Vec<u8>,
    /// Source of the bytes after the head.
    rest: Option<Box<dyn ReadAt>>,
    /// Bytes per read.
    window: usize,
    tick_rate: TickRate,
    tpoints: TpointTable,
    owners: Option<Vec<(String, String)>>,
    /// Offset after the opening bracket of `entries`.
    entries: Option<usize>,
    problems: Problems,
}

impl std::fmt::Debug for JsonTrace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            head,
            rest,
            tick_rate,
            owners,
            entries,
            problems,
            ..
        } = self;
        let mut shown = f.debug_struct("JsonTrace");
        shown
            .field("head", &head.len())
            .field("rest", &rest.is_some())
            .field("tick_rate", tick_rate);
        shown
            .field("owners", owners)
            .field("entries", entries)
            .field("problems", problems)
            .finish_non_exhaustive()
    }
}

impl JsonTrace {
    /// Returns whether the bytes are text rather than a raw trace file, which begins with an 8-byte
    /// number.
    pub fn is_text(start: &[u8]) -> bool {
        let start = &start[..start.len().min(512)];
        // The first bytes may end within a character.
        let is_utf8 = std::str::from_utf8(start).map_or_else(|e| e.error_len().is_none(), |_| true);
        let is_printed = |&b: &u8| b >= 0x20 || matches!(b, b'\t' | b'\n' | b'\r');
        !start.is_empty() && is_utf8 && start.iter().all(is_printed)
    }

    /// Finds the document in `text` and reads its tables. [`Self::for_each`] reads its entries.
    pub fn parse(text: Vec<u8>) -> Result<Self, Error> {
        let mut trace = Self::empty();
        trace.read_head(&text, true)?;
        trace.head = text;
        Ok(trace)
    }

    /// Opens a document like [`Self::parse`], with no more of it in memory than needed. Reads the
    /// source front to back and never asks for its length. Each [`Self::for_each`] reads again from
    /// the entries on.
    pub fn open(source: Box<dyn ReadAt>) -> Result<Self, Error> {
        Self::open_by(source, READ_BYTES)
    }

    /// Opens a document with reads of `window` bytes.
    fn open_by(source: Box<dyn ReadAt>, window: usize) -> Result<Self, Error> {
        let mut head = Vec::new();
        loop {
            let is_end = read_on(&*source, &mut head, 0, window)?;
            let mut trace = Self::empty();
            match trace.read_head(&head, is_end) {
                Ok(()) => {
                    return Ok(Self {
                        head,
                        rest: (!is_end).then_some(source),
                        window,
                        ..trace
                    });
                }
                // The text read so far may just be too short.
                Err(_) if !is_end => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn empty() -> Self {
        Self {
            head: Vec::new(),
            rest: None,
            window: READ_BYTES,
            tick_rate: TickRate::ticks_as_micros(),
            tpoints: TpointTable::new(0, &[]),
            owners: None,
            entries: None,
            problems: Problems::default(),
        }
    }

    /// Reads everything before the entries. `is_end` is set if `text` is the whole text.
    fn read_head(&mut self, text: &[u8], is_end: bool) -> Result<(), Error> {
        let start = find_document(text)?;
        let mut rate = None;
        if let Err(broken) = self.tables(text, start, is_end, &mut rate) {
            let at = FileOffset(broken.at as u64);
            if self.entries.is_none() || !is_end {
                return Err(Error::BrokenDocument {
                    at,
                    expected: broken.expected,
                });
            }
            self.problems.add(Problem::DocumentCut, None, at);
        }
        match rate.and_then(TickRate::new) {
            Some(rate) => self.tick_rate = rate,
            None => self
                .problems
                .add(Problem::NoTickRate, None, FileOffset(start as u64)),
        }
        Ok(())
    }

    /// Reads all keys of the document. Entries after the tables they need are not scanned for this.
    fn tables(
        &mut self,
        text: &[u8],
        start: usize,
        is_end: bool,
        rate: &mut Option<u64>,
    ) -> Result<(), SyntaxError> {
        let mut lexer = Lexer::new(text, start);
        lexer.expect(b'{', "a document")?;
        if lexer.take(b'}') {
            return Ok(());
        }
        loop {
            match lexer.key()? {
                b"tsc_rate" => *rate = or_skip(&mut lexer, Lexer::number)?,
                b"tpoints" if lexer.peek() == Some(b'[') => self.definitions(&mut lexer)?,
                b"owners" => self.owners = or_skip(&mut lexer, owners)?,
                b"entries" => {
                    let mut inside = lexer;
                    inside.expect(b'[', "an array of entries")?;
                    self.entries = Some(inside.pos);
                    if rate.is_some() && !self.tpoints.all().is_empty() {
                        return Ok(());
                    }
                    if let Err(cut) = lexer.skip() {
                        // The iteration over the entries will reach the cut and report it.
                        return if is_end { Ok(()) } else { Err(cut) };
                    }
                }
                _ => {
                    lexer.skip()?;
                }
            }
            if !lexer.more(b'}')? {
                return Ok(());
            }
        }
    }

    fn definitions(&mut self, lexer: &mut Lexer<'_>) -> Result<(), SyntaxError> {
        lexer.expect(b'[', "an array of tracepoints")?;
        if lexer.take(b']') {
            return Ok(());
        }
        loop {
            let start = lexer.peek().map_or(lexer.pos, |_| lexer.pos);
            let mut inside = *lexer;
            if let Ok(Some(tpoint)) = definition(&mut inside) {
                self.tpoints.insert(tpoint);
                *lexer = inside;
            } else {
                self.problems
                    .add(Problem::BrokenDefinition, None, FileOffset(start as u64));
                lexer.skip()?;
            }
            if !lexer.more(b']')? {
                return Ok(());
            }
        }
    }

    /// Returns the ticks per second.
    pub fn tick_rate(&self) -> TickRate {
        self.tick_rate
    }

    /// Returns the tracepoints.
    pub fn tpoints(&self) -> &TpointTable {
        &self.tpoints
    }

    /// Returns the ids and descriptions of the owners; `None` if the document has no such table.
    pub fn owners(&self) -> Option<&[(String, String)]> {
        self.owners.as_deref()
    }

    /// Returns the damage found in the tables.
    pub fn problems(&self) -> &Problems {
        &self.problems
    }

    /// Returns whether entries may have annotations: the text contains that key. Reads the whole
    /// text.
    pub fn is_annotated(&self) -> Result<bool, Error> {
        const KEY: &[u8] = b"\"annotations\"";
        let Some(entries) = self.entries else {
            return Ok(false);
        };
        if memchr::memmem::find(&self.head[entries..], KEY).is_some() {
            return Ok(true);
        }
        let Some(source) = &self.rest else {
            return Ok(false);
        };
        let (mut window, mut base) = (Vec::new(), self.head.len().saturating_sub(KEY.len()));
        loop {
            let is_end = read_on(&**source, &mut window, base, self.window)?;
            if memchr::memmem::find(&window, KEY).is_some() {
                return Ok(true);
            }
            if is_end {
                return Ok(false);
            }
            let passed = window.len().saturating_sub(KEY.len());
            base += passed;
            window.drain(..passed);
        }
    }

    /// Calls `each` with every record in document order, until it breaks; returns the damage found.
    pub fn for_each(&self, mut each: impl FnMut(&Record<'_>) -> ControlFlow<()>) -> Problems {
        self.walk(&mut each)
    }

    fn walk(&self, each: &mut RecordSink<'_>) -> Problems {
        let Some(entries) = self.entries else {
            return Problems::default();
        };
        let column = if self.owners.is_some() {
            OwnerColumn::Owner
        } else {
            OwnerColumn::Poller
        };
        let mut walk = Walk::new(&self.tpoints, column);
        let Some(source) = &self.rest else {
            let _ = walk.through(&self.head, entries, 0, true, each);
            return walk.problems;
        };
        let mut next = walk.through(&self.head, entries, 0, false, each);
        let (mut window, mut base) = (Vec::new(), self.head.len());
        if let Some(at) = next {
            base = at;
            window.extend_from_slice(&self.head[at..]);
        }
        while next.is_some() {
            // The document ends where the source can no longer be read.
            let is_end = window.len() > MAX_ENTRY_BYTES
                || read_on(&**source, &mut window, base, self.window).unwrap_or(true);
            next = walk.through(&window, 0, base, is_end, each);
            if let Some(at) = next {
                window.drain(..at);
                base += at;
            }
        }
        walk.problems
    }
}

/// Appends at least `window` bytes from the source, which continues `text` at `base`, and at least
/// doubles `text`. Returns whether the end was reached.
fn read_on(
    source: &dyn ReadAt,
    text: &mut Vec<u8>,
    base: usize,
    window: usize,
) -> Result<bool, Error> {
    let (begin, more) = (text.len(), text.len().max(window));
    let at = FileOffset((base + begin) as u64);
    let failed = |source| Error::Read {
        what: "the JSON document",
        at,
        source,
    };
    text.try_reserve(more)
        .map_err(|_| failed(std::io::ErrorKind::OutOfMemory.into()))?;
    text.resize(begin + more, 0);
    let mut end = begin;
    while end < text.len() {
        match source
            .read_at(&mut text[end..], (base + end) as u64)
            .map_err(failed)?
        {
            0 => break,
            n => end += n,
        }
    }
    let is_end = end < text.len();
    text.truncate(end);
    Ok(is_end)
}

/// Returns the value, or skips it and returns `None` if it is of another kind.
fn or_skip<'a, T>(
    lexer: &mut Lexer<'a>,
    read: impl FnOnce(&mut Lexer<'a>) -> Result<T, SyntaxError>,
) -> Result<Option<T>, SyntaxError> {
    let before = *lexer;
    if let Ok(value) = read(lexer) {
        return Ok(Some(value));
    }
    *lexer = before;
    lexer.skip()?;
    Ok(None)
}

/// Returns the offset of the first `{` that opens an object with a key. Output of the tool may
/// precede it.
fn find_document(text: &[u8]) -> Result<usize, Error> {
    let mut candidates = memchr::memchr_iter(b'{', text);
    let found = candidates.find(|&at| {
        let mut inside = Lexer::new(text, at + 1);
        let head = inside;
        inside.key().is_ok() && head.text.get(at + 1).is_some()
    });
    found.ok_or_else(|| Error::NoDocument {
        saw: describe(text),
    })
}

fn describe(text: &[u8]) -> String {
    let line = text
        .split(|&b| b == b'\n')
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    let line = printable::text(&line[..line.len().min(60)]);
    let mut words = line.split_whitespace();
    let is_listing = words
        .next()
        .is_some_and(|lcore| lcore.parse::<u16>().is_ok())
        && words
            .next()
            .is_some_and(|time| time.contains('.') && time.parse::<f64>().is_ok());
    if is_listing || text.starts_with(b"TSC Rate:") {
        return "this is a text listing; give the raw trace file, or the output of spdk_trace -j"
            .into();
    }
    format!("the text begins with \"{line}\"")
}

#[cfg(test)]
mod tests;
