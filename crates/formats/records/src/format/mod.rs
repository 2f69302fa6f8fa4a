//! Output formats, one file each. A new one is a variant of [`Form`] and a line in [`writer`].

mod csv;
mod json;
pub mod json_text;
pub(crate) mod ndjson;
mod spdk;
mod terminal;
mod text;

use objects::{Annotator, Lifetime, ObjectSpec, ReferencedObject};
use screen::Screen;
use spdk_trace::{
    ArgSpec, ArgValue, Follower, Lcore, Nanos, Record, TickRate, Ticks, TpointTable, Trace,
};

use crate::annotation::ReadBack;
use crate::digits::{fixed3, fixed3_right};

/// The output forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text, as SPDK's annotation script prints it; on a terminal, lines that fit its width.
    Text,
    /// The columns of `spdk_trace`, with exact times.
    Spdk,
    /// One document with the fields of `spdk_trace -j` and annotations.
    Json,
    /// One JSON object on each line.
    Ndjson,
    /// Comma-separated values, with a header.
    Csv,
}

/// Writer of records in one form.
pub trait Format {
    /// Writes the part before the first record.
    fn begin(&mut self, _out: &mut Vec<u8>, _head: &Head<'_>, _view: &View<'_>) {}

    /// Writes one record.
    fn record(&mut self, out: &mut Vec<u8>, record: &Record<'_>, view: &View<'_>);

    /// Formats one record, to be written later or not at all.
    fn keep(&mut self, line: &mut Vec<u8>, record: &Record<'_>, view: &View<'_>) {
        self.record(line, record, view);
    }

    /// Writes a record formatted by [`Self::keep`].
    fn put(&mut self, out: &mut Vec<u8>, line: &[u8]) {
        out.extend_from_slice(line);
    }

    /// Returns the text between two records.
    fn separator(&self) -> &'static [u8] {
        b""
    }

    /// Writes the part after the last record.
    fn end(&mut self, _out: &mut Vec<u8>) {}
}

/// Data of a trace for the part before the first record.
pub struct Head<'a> {
    pub(crate) tpoints: &'a TpointTable,
    /// Id and description of each owner.
    pub(crate) owners: Vec<(String, &'a str)>,
    pub(crate) has_owners: bool,
    pub(crate) has_thread_names: bool,
    /// Number of slots in each lcore's ring.
    pub(crate) rings: Vec<(Lcore, u64)>,
    /// Kinds of objects that a document may have in its annotations.
    pub(crate) annotated: &'a [ObjectSpec],
}

impl<'a> Head<'a> {
    /// Collects the data of a complete trace.
    pub fn from_trace(
        trace: &'a Trace,
        form: Form,
        specs: &'a [ObjectSpec],
    ) -> Result<Self, spdk_trace::Error> {
        let rings = match trace {
            Trace::Raw(raw) => raw.rings().map(|ring| (ring.lcore, ring.slots)).collect(),
            Trace::Json(_) => Vec::new(),
            Trace::Captured(captured) => captured.rings().collect(),
        };
        let is_annotated = match trace {
            // Only a table must know this beforehand, and it takes a scan of the whole document.
            Trace::Json(json) if form == Form::Csv => json.is_annotated()?,
            _ => false,
        };
        let annotated = if is_annotated { specs } else { &[] };
        Ok(Self {
            annotated,
            tpoints: trace.tpoints(),
            owners: trace.owners(),
            has_owners: trace.has_owners(),
            has_thread_names: trace.has_thread_names(),
            rings,
        })
    }

    /// Collects the data of a trace that is followed.
    pub fn from_follower(follower: &'a Follower) -> Self {
        let owners = follower.owners().all();
        Self {
            tpoints: follower.tpoints(),
            owners: owners
                .map(|(id, owner)| (id.to_string(), owner.description.as_str()))
                .collect(),
            has_owners: follower.era().has_owners(),
            has_thread_names: follower.era().has_thread_names(),
            rings: follower.rings().collect(),
            annotated: &[],
        }
    }
}

/// Creates the writer of a form for an output.
pub fn writer(form: Form, head: &Head<'_>, screen: Screen) -> Box<dyn Format> {
    match form {
        Form::Text if screen.is_terminal() => Box::new(terminal::Terminal::new(head, screen)),
        Form::Text => Box::new(text::Text::new(head)),
        Form::Spdk => Box::new(spdk::Spdk::new(head)),
        Form::Json => Box::new(json::Json),
        Form::Ndjson => Box::new(ndjson::Ndjson::default()),
        Form::Csv => Box::new(csv::Csv::default()),
    }
}

/// Settings for showing a record: the times it is relative to, and the known objects.
pub struct View<'a> {
    /// Ticks of the trace per second.
    pub rate: TickRate,
    /// Time of the first record, from which all times are counted.
    pub base: Ticks,
    /// Time of the record shown before.
    pub previous: Option<Ticks>,
    /// Show the raw ticks, too.
    pub show_tsc: bool,
    /// Show the time since the record shown before, too.
    pub show_delta: bool,
    /// Annotator for objects, if there is a recording.
    pub annotator: Option<&'a Annotator>,
}

impl<'a> View<'a> {
    /// Appends the time since the first record in microseconds, right-aligned in `WIDTH` columns.
    #[inline]
    pub(crate) fn time<const WIDTH: usize>(&self, out: &mut Vec<u8>, tsc: Ticks) {
        match tsc.0.checked_sub(self.base.0) {
            Some(since) => fixed3_right::<WIDTH>(out, self.rate.nanos(Ticks(since)).0),
            None => self.time_before_base(out, tsc, WIDTH),
        }
    }

    /// Appends the time since the first record, in nanoseconds.
    pub(crate) fn time_nanos(&self, out: &mut Vec<u8>, tsc: Ticks) {
        let since = tsc.0.checked_sub(self.base.0).unwrap_or_else(|| {
            // Only in a document that is not in time order.
            out.push(b'-');
            self.base.0 - tsc.0
        });
        crate::digits::number(out, self.rate.nanos(Ticks(since)).0);
    }

    /// Appends a negative time, which only occurs in a document that is not in time order.
    #[cold]
    fn time_before_base(&self, out: &mut Vec<u8>, tsc: Ticks, width: usize) {
        let mut text = vec![b'-'];
        fixed3(&mut text, self.rate.nanos(Ticks(self.base.0 - tsc.0)).0);
        crate::digits::blanks(out, width.saturating_sub(text.len()));
        out.extend_from_slice(&text);
    }

    /// Returns the time since the record shown before.
    pub(crate) fn delta(&self, tsc: Ticks) -> Nanos {
        let since = tsc.0.saturating_sub(self.previous.unwrap_or(tsc).0);
        self.rate.nanos(Ticks(since))
    }

    /// Returns whether any of the record's arguments may be printed as an object.
    #[inline]
    pub(crate) fn is_annotated(&self, record: &Record<'_>) -> bool {
        record.annotations.is_some()
            || self
                .annotator
                .is_some_and(|a| a.refers(record.tpoint.id) || a.by_owner(record).is_some())
    }

    /// Returns the object that an argument points to.
    #[inline]
    pub(crate) fn object(
        &self,
        record: &Record<'_>,
        index: usize,
        value: ArgValue<'_>,
    ) -> Option<ReferencedObject<'a>> {
        self.annotator?
            .object(record.tpoint.id, index, value, record.tsc)
    }

    /// Returns the object that is the record's owner, if no argument points to an object.
    #[inline]
    pub(crate) fn owner_object(&self, record: &Record<'_>) -> Option<&'a Lifetime> {
        self.annotator
            .filter(|a| !a.refers(record.tpoint.id))?
            .by_owner(record)
    }

    /// Appends the annotation of an argument, if it has one. Returns whether it has one.
    #[inline]
    fn push_annotation(
        &self,
        out: &mut Vec<u8>,
        record: &Record<'_>,
        index: usize,
        spec: &ArgSpec,
        value: ArgValue<'_>,
    ) -> bool {
        if let Some(found) = self.object(record, index, value) {
            if !found.same_name {
                out.extend_from_slice(spec.name.as_bytes());
                out.extend_from_slice(b": ");
            }
            out.extend_from_slice(found.object.text.as_bytes());
            return true;
        }
        let Some(read) = record
            .annotations
            .and_then(|json| ReadBack::parse(json).find(&spec.name))
        else {
            return false;
        };
        out.extend_from_slice(read.text(&spec.name).as_bytes());
        true
    }
}
