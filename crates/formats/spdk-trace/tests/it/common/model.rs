//! An independent model of the expected output: turns testkit's records into the lines of
//! `line::line`.
//!
//! It follows SPDK's own printer (numbering, ages, relations, owners), is slow and simple, and
//! shares nothing with the reader.

use std::collections::HashMap;
use std::fmt::Write;

use testkit::{Arg, Survivor, Tpoint, TraceFile};

/// State of the model: the objects created so far.
pub(crate) struct Model<'a> {
    file: &'a TraceFile,
    tpoints: HashMap<u16, Tpoint>,
    created: HashMap<(u8, u64), (u64, u64)>,
    counters: HashMap<u8, u64>,
}

impl<'a> Model<'a> {
    pub(crate) fn new(file: &'a TraceFile, tpoints: impl Iterator<Item = Tpoint>) -> Self {
        let tpoints = tpoints.map(|tpoint| (tpoint.id, tpoint)).collect();
        Self {
            file,
            tpoints,
            created: HashMap::new(),
            counters: HashMap::new(),
        }
    }

    /// Returns the lines of these records, which are ordered by lcore and then as written.
    pub(crate) fn lines(mut self, mut records: Vec<Survivor>) -> Vec<String> {
        records.sort_by_key(|record| (record.tsc, record.lcore));
        records.iter().map(|record| self.line(record)).collect()
    }

    fn line(&mut self, record: &Survivor) -> String {
        let tpoint = self.tpoints[&record.tpoint_id].clone();
        let mut line = format!("{} {} {}", record.lcore, record.tsc, record.tpoint);
        if let Some(letter) = self.letter(self.file.layout.header.owner_types, tpoint.owner_type) {
            push(&mut line, &format!("{letter}{:02}", record.owner));
        }
        if let Some(owner) = self.owner(record) {
            push(&mut line, &format!("<{owner}>"));
        }
        if record.size != 0 {
            push(&mut line, &format!("size {}", record.size));
        }
        push(&mut line, &self.object(&tpoint, record));
        push(&mut line, &self.related(&tpoint, record));
        for (spec, arg) in tpoint.args.iter().zip(&record.args) {
            push(&mut line, &format!("{}={}", spec.name, value(arg)));
        }
        line
    }

    fn letter(&self, table: usize, kind: u8) -> Option<char> {
        let letter = self.file.bytes[table + 2 * usize::from(kind) + 1];
        (letter != 0).then_some(char::from(letter))
    }

    fn owner(&self, record: &Survivor) -> Option<String> {
        if record.owner == 0 || usize::from(record.owner) >= self.file.layout.num_owners {
            return None;
        }
        let at = self.file.layout.owner(record.owner);
        let since = self.file.u64(at);
        let text = self.file.bytes[at + 9..][..self.file.layout.owner_description_size]
            .split(|b| *b == 0)
            .next()?;
        (since != 0 && since < record.tsc).then(|| String::from_utf8_lossy(text).into_owned())
    }

    fn name(&self, kind: u8, number: u64) -> String {
        format!(
            "{}{number}",
            self.letter(self.file.layout.header.objects, kind)
                .unwrap_or('?')
        )
    }

    fn object(&mut self, tpoint: &Tpoint, record: &Survivor) -> String {
        let (kind, id) = (tpoint.object_type, record.object);
        if kind == 0 {
            return if id == 0 {
                String::new()
            } else {
                format!("{id:#x}")
            };
        }
        if tpoint.new_object {
            let counter = self.counters.entry(kind).or_default();
            self.created.insert((kind, id), (*counter, record.tsc));
            *counter += 1;
        }
        match self.created.get(&(kind, id)) {
            Some((number, since)) => format!(
                "{}({id:#x})+{}",
                self.name(kind, *number),
                record.tsc - since
            ),
            None => format!("n/a({id:#x})"),
        }
    }

    fn related(&self, tpoint: &Tpoint, record: &Survivor) -> String {
        for relation in &tpoint.relations {
            if let Some(Arg::Int(id) | Arg::Ptr(id)) =
                record.args.get(usize::from(relation.arg_index))
                && let Some((number, _)) = self.created.get(&(relation.object_type, *id))
            {
                return format!("({})", self.name(relation.object_type, *number));
            }
        }
        String::new()
    }
}

fn value(arg: &Arg) -> String {
    match arg {
        Arg::Int(number) => number.to_string(),
        Arg::Ptr(pointer) => format!("{pointer:#x}"),
        Arg::Str(text) => format!("'{}'", String::from_utf8_lossy(text)),
    }
}

fn push(line: &mut String, part: &str) {
    if !part.is_empty() {
        let _ = write!(line, " {part}");
    }
}
