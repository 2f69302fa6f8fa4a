//! The document: finding it in what surrounds it, its tables, and the walk through its entries.

use std::ops::ControlFlow;

use super::entry::{EntryReader, NoRecord, OwnerColumn};
use super::lexer::{Broken, Lexer, contents};
use crate::Error;
use crate::header::TpointTable;
use crate::problems::{Problem, Problems};
use crate::record::Record;
use crate::text::printable;
use crate::tpoint::{ArgKind, ArgSpec, Tpoint};
use crate::units::{FileOffset, TickRate};

/// A trace in a JSON document.
#[derive(Debug)]
pub struct JsonTrace {
    text: Vec<u8>,
    /// The document's place: plain text may stand before and behind it.
    start: usize,
    tick_rate: TickRate,
    tpoints: TpointTable,
    owners: Option<Vec<(String, String)>>,
    /// Behind the bracket that opens `entries`.
    entries: Option<usize>,
    problems: Problems,
}

impl JsonTrace {
    /// Whether the bytes are text rather than a raw trace file, which begins with an 8-byte number.
    pub fn is_text(start: &[u8]) -> bool {
        let start = &start[..start.len().min(512)];
        // The first bytes may end in the middle of a character.
        let is_utf8 = std::str::from_utf8(start).map_or_else(|e| e.error_len().is_none(), |_| true);
        let is_printed = |&b: &u8| b >= 0x20 || matches!(b, b'\t' | b'\n' | b'\r');
        !start.is_empty() && is_utf8 && start.iter().all(is_printed)
    }

    /// Finds the document in `text` and reads its tables; its entries are read by [`Self::for_each`].
    pub fn parse(text: Vec<u8>) -> Result<Self, Error> {
        let start = find_document(&text)?;
        let mut trace = Self {
            text: Vec::new(),
            start,
            tick_rate: TickRate::ticks_as_micros(),
            tpoints: TpointTable::new(0, &[]),
            owners: None,
            entries: None,
            problems: Problems::default(),
        };
        let mut rate = None;
        if let Err(broken) = trace.tables(&text, &mut rate) {
            let at = FileOffset(broken.at as u64);
            if trace.entries.is_none() {
                return Err(Error::BrokenDocument { at, expected: broken.expected });
            }
            trace.problems.add(Problem::DocumentCut, None, at);
        }
        match rate.and_then(TickRate::new) {
            Some(rate) => trace.tick_rate = rate,
            None => trace.problems.add(Problem::NoTickRate, None, FileOffset(start as u64)),
        }
        trace.text = text;
        Ok(trace)
    }

    /// Reads all keys of the document. Entries that stand behind the tables that they need are not walked for this.
    fn tables(&mut self, text: &[u8], rate: &mut Option<u64>) -> Result<(), Broken> {
        let mut lexer = Lexer::new(text, self.start);
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
                    if lexer.skip().is_err() {
                        // Whoever walks through the entries comes to the cut and tells it.
                        return Ok(());
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

    fn definitions(&mut self, lexer: &mut Lexer<'_>) -> Result<(), Broken> {
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
                self.problems.add(Problem::BrokenDefinition, None, FileOffset(start as u64));
                lexer.skip()?;
            }
            if !lexer.more(b']')? {
                return Ok(());
            }
        }
    }

    /// Ticks a second.
    pub fn tick_rate(&self) -> TickRate {
        self.tick_rate
    }

    /// The tracepoints.
    pub fn tpoints(&self) -> &TpointTable {
        &self.tpoints
    }

    /// The table of owners, id and description, if the document has one.
    pub fn owners(&self) -> Option<&[(String, String)]> {
        self.owners.as_deref()
    }

    /// What of its tables could not be read.
    pub fn problems(&self) -> &Problems {
        &self.problems
    }

    /// Whether entries may carry annotations: the text has such a key.
    pub fn is_annotated(&self) -> bool {
        let entries = self.entries.map_or(&[][..], |start| &self.text[start..]);
        memchr::memmem::find(entries, b"\"annotations\"").is_some()
    }

    /// Gives every record to `each`, in the order of the document, until it breaks off; returns what could not be read.
    pub fn for_each(&self, mut each: impl FnMut(&Record<'_>) -> ControlFlow<()>) -> Problems {
        let mut problems = Problems::default();
        let Some(entries) = self.entries else { return problems };
        let column = if self.owners.is_some() { OwnerColumn::Owner } else { OwnerColumn::Poller };
        let mut lexer = Lexer::new(&self.text, entries);
        let mut reader = EntryReader::default();
        if lexer.take(b']') {
            return problems;
        }
        loop {
            let start = lexer.peek().map_or(lexer.pos, |_| lexer.pos);
            match reader.read(&mut lexer, &self.tpoints, column) {
                Ok(record) => {
                    if each(&record).is_break() {
                        return problems;
                    }
                }
                Err(why) => {
                    lexer.pos = start;
                    if let Err(cut) = lexer.skip() {
                        problems.add(Problem::DocumentCut, None, FileOffset(cut.at as u64));
                        return problems;
                    }
                    tell(&why, start, &mut problems);
                }
            }
            match lexer.more(b']') {
                Ok(true) => {}
                Ok(false) => return problems,
                Err(cut) => {
                    problems.add(Problem::DocumentCut, None, FileOffset(cut.at as u64));
                    return problems;
                }
            }
        }
    }
}

/// The value, or `None` and a step over it if it is of another kind.
fn or_skip<'a, T>(
    lexer: &mut Lexer<'a>,
    read: impl FnOnce(&mut Lexer<'a>) -> Result<T, Broken>,
) -> Result<Option<T>, Broken> {
    let before = *lexer;
    if let Ok(value) = read(lexer) {
        return Ok(Some(value));
    }
    *lexer = before;
    lexer.skip()?;
    Ok(None)
}

fn tell(why: &NoRecord, start: usize, problems: &mut Problems) {
    let at = FileOffset(start as u64);
    match why {
        NoRecord::Shape(what) => problems.add(Problem::BrokenEntry(what), None, at),
        NoRecord::UnknownTpoint => problems.add(Problem::UnknownTpoint, None, at),
        NoRecord::Broken(broken) => problems.add(Problem::BrokenEntry(broken.expected), None, at),
    }
}

/// The first `{` that opens an object with a key: what stands before it is the tool's own talk.
fn find_document(text: &[u8]) -> Result<usize, Error> {
    let mut candidates = memchr::memchr_iter(b'{', text);
    let found = candidates.find(|&at| {
        let mut inside = Lexer::new(text, at + 1);
        let head = inside;
        inside.key().is_ok() && head.text.get(at + 1).is_some()
    });
    found.ok_or_else(|| Error::NoDocument { saw: describe(text) })
}

fn describe(text: &[u8]) -> String {
    let line = text.split(|&b| b == b'\n').find(|line| !line.is_empty()).unwrap_or_default();
    let line = printable(&line[..line.len().min(60)]);
    let mut words = line.split_whitespace();
    let is_listing = words.next().is_some_and(|lcore| lcore.parse::<u16>().is_ok())
        && words.next().is_some_and(|time| time.contains('.') && time.parse::<f64>().is_ok());
    if is_listing || text.starts_with(b"TSC Rate:") {
        return "this is a text listing; give the raw trace file, or the output of spdk_trace -j".into();
    }
    format!("the text begins with \"{line}\"")
}

/// One tracepoint's definition, `None` if something needed is missing or out of range.
fn definition(lexer: &mut Lexer<'_>) -> Result<Option<Tpoint>, Broken> {
    let (mut name, mut id, mut new_object, mut args) = (None, None, false, Some(Vec::new()));
    lexer.expect(b'{', "a tracepoint")?;
    loop {
        match lexer.key()? {
            b"name" => name = Some(text(lexer)?),
            b"id" => id = u16::try_from(lexer.number()?).ok(),
            b"new_object" => new_object = lexer.boolean()?,
            b"args" => args = arg_specs(lexer)?,
            _ => {
                lexer.skip()?;
            }
        }
        if !lexer.more(b'}')? {
            break;
        }
    }
    let (Some(name), Some(id), Some(args)) = (name, id, args) else { return Ok(None) };
    Ok(Some(Tpoint {
        id,
        name,
        owner_type: 0,
        owner_prefix: None,
        object_type: 0,
        object_prefix: None,
        new_object,
        args,
        relations: Vec::new(),
    }))
}

fn arg_specs(lexer: &mut Lexer<'_>) -> Result<Option<Vec<ArgSpec>>, Broken> {
    let mut specs = Some(Vec::new());
    lexer.expect(b'[', "an array of arguments")?;
    if lexer.take(b']') {
        return Ok(specs);
    }
    loop {
        let (mut name, mut kind, mut size) = (None, None, Some(8));
        lexer.expect(b'{', "an argument")?;
        loop {
            match lexer.key()? {
                b"name" => name = Some(text(lexer)?),
                b"type" => kind = ArgKind::from_number(lexer.number()?),
                b"size" => size = u8::try_from(lexer.number()?).ok(),
                _ => {
                    lexer.skip()?;
                }
            }
            if !lexer.more(b'}')? {
                break;
            }
        }
        specs = match (specs, name, kind, size) {
            (Some(mut specs), Some(name), Some(kind), Some(size)) => {
                specs.push(ArgSpec { name, kind, size });
                Some(specs)
            }
            _ => None,
        };
        if !lexer.more(b']')? {
            return Ok(specs);
        }
    }
}

fn owners(lexer: &mut Lexer<'_>) -> Result<Vec<(String, String)>, Broken> {
    let mut owners = Vec::new();
    lexer.expect(b'{', "a table of owners")?;
    if lexer.take(b'}') {
        return Ok(owners);
    }
    loop {
        let id = printable(lexer.key()?).into_owned();
        owners.push((id, text(lexer)?));
        if !lexer.more(b'}')? {
            return Ok(owners);
        }
    }
}

fn text(lexer: &mut Lexer<'_>) -> Result<String, Broken> {
    let token = lexer.string()?;
    Ok(printable(&contents(lexer.text, token)).into_owned())
}
