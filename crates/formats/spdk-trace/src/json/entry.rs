//! One entry of the document, parsed in place.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::lexer::{Lexer, StringToken, SyntaxError, contents, unescape};
use crate::header::TpointTable;
use crate::record::{
    ArgData, Args, Object, ObjectName, OwnerLabel, ParsedArg, Poller, Record, RelatedObject,
};
use crate::units::{Lcore, Ticks};

/// Limit on the arguments kept of an entry: as many as a relation can refer to. SPDK has room for
/// 8.
const MAX_ARGS: usize = 256;

/// The fields of an entry; strings are ranges of the text.
#[derive(Default)]
struct Fields {
    lcore: Option<u64>,
    tpoint: Option<u64>,
    tsc: Option<u64>,
    size: u64,
    poller: Option<StringToken>,
    owner: Option<StringToken>,
    related: Option<StringToken>,
    object: Option<ObjectFields>,
    annotations: Option<std::ops::Range<usize>>,
}

#[derive(Default)]
struct ObjectFields {
    id: Option<StringToken>,
    value: u64,
    time: Option<u64>,
}

/// State kept between entries.
#[derive(Default)]
pub(super) struct EntryReader {
    args: Vec<ParsedArg>,
    /// Unescaped strings.
    scratch: Vec<u8>,
    /// Ids of the objects created so far, by name: to find the argument that a relation came from.
    created: HashMap<ObjectName, u64, RandomState>,
}

/// The field of an entry that the owner column shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnerColumn {
    /// `owner`: the document has a table of owners.
    Owner,
    /// `poller`.
    Poller,
}

/// Reason for which an entry is not a record.
pub(super) enum NoRecord {
    /// The text is not JSON from here on.
    Broken(SyntaxError),
    /// The entry is JSON, but of the wrong shape.
    Shape(&'static str),
    /// The tracepoint has no definition.
    UnknownTpoint,
}

impl From<SyntaxError> for NoRecord {
    fn from(broken: SyntaxError) -> Self {
        Self::Broken(broken)
    }
}

impl EntryReader {
    /// Reads the entry at the lexer's position, and moves the lexer past it.
    pub(super) fn read<'a, 't: 'a>(
        &'a mut self,
        lexer: &mut Lexer<'t>,
        tpoints: &'t TpointTable,
        column: OwnerColumn,
    ) -> Result<Record<'a>, NoRecord> {
        self.args.clear();
        self.scratch.clear();
        let fields = self.fields(lexer)?;
        let shape = NoRecord::Shape;
        let lcore = fields
            .lcore
            .and_then(|n| u16::try_from(n).ok())
            .ok_or(shape("it has no lcore"))?;
        let tsc = Ticks(fields.tsc.ok_or(shape("it has no tsc"))?);
        let id = fields
            .tpoint
            .and_then(|n| u16::try_from(n).ok())
            .ok_or(shape("it has no tpoint"))?;
        let size =
            u32::try_from(fields.size).map_err(|_| shape("its size does not fit in 32 bits"))?;
        let tpoint = tpoints.get(id).ok_or(NoRecord::UnknownTpoint)?;
        let text = lexer.text;
        let object = object(text, fields.object.as_ref());
        if let (Object::Known { name, id, .. }, true) = (object, tpoint.new_object) {
            self.created.insert(name, id);
        }
        let related = fields.related.and_then(|token| self.related(text, token));

        let spans =
            [fields.poller, fields.owner].map(|token| token.map(|t| self.unescaped(text, t)));
        let this: &'a Self = self;
        let [poller, owner] = spans.map(|span| span.map(|span| this.text(text, span)).transpose());
        let (poller, owner) = (poller?.map(Poller::Text), owner?);
        Ok(Record {
            lcore: Lcore(lcore),
            thread_name: "",
            tsc,
            tpoint,
            size,
            poller,
            owner,
            owner_since: None,
            label: match (column, owner, poller) {
                (OwnerColumn::Owner, Some(owner), _) => OwnerLabel::Description(owner),
                (OwnerColumn::Poller, _, Some(poller)) => OwnerLabel::Poller(poller),
                _ => OwnerLabel::None,
            },
            object,
            related,
            args: Args {
                specs: &tpoint.args,
                data: ArgData::Parsed {
                    values: &this.args,
                    text,
                    scratch: &this.scratch,
                },
            },
            annotations: fields
                .annotations
                .and_then(|range| std::str::from_utf8(&text[range]).ok()),
            lost_since: None,
        })
    }

    #[inline]
    fn fields(&mut self, lexer: &mut Lexer<'_>) -> Result<Fields, NoRecord> {
        let mut fields = Fields::default();
        lexer.expect(b'{', "an entry")?;
        if lexer.take(b'}') {
            return Ok(fields);
        }
        loop {
            match lexer.key()? {
                b"lcore" => fields.lcore = Some(lexer.number()?),
                b"tpoint" => fields.tpoint = Some(lexer.number()?),
                b"tsc" => fields.tsc = Some(lexer.number()?),
                b"size" => fields.size = lexer.number()?,
                b"poller" => fields.poller = Some(lexer.string()?),
                b"owner" => fields.owner = Some(lexer.string()?),
                b"related" => fields.related = Some(lexer.string()?),
                b"object" => fields.object = Some(object_fields(lexer)?),
                b"args" => self.args(lexer)?,
                b"annotations" => fields.annotations = Some(lexer.skip()?),
                _ => {
                    lexer.skip()?;
                }
            }
            if !lexer.more(b'}')? {
                return Ok(fields);
            }
        }
    }

    fn args(&mut self, lexer: &mut Lexer<'_>) -> Result<(), NoRecord> {
        lexer.expect(b'[', "an array of arguments")?;
        if lexer.take(b']') {
            return Ok(());
        }
        loop {
            let arg = match lexer.peek() {
                Some(b'"') => {
                    let token = lexer.string()?;
                    self.unescaped(lexer.text, token)
                }
                // v21.07 writes null for an overwritten argument; the following ones are lost as
                // well.
                Some(b'n') => {
                    while lexer.peek() != Some(b']') {
                        lexer.skip()?;
                        lexer.take(b',');
                    }
                    lexer.take(b']');
                    return Ok(());
                }
                _ => ParsedArg::Number(lexer.number()?),
            };
            if self.args.len() < MAX_ARGS {
                self.args.push(arg);
            }
            if !lexer.more(b']')? {
                return Ok(());
            }
        }
    }

    /// Returns a string in place, or in the scratch buffer if it has escapes.
    #[inline]
    fn unescaped(&mut self, text: &[u8], token: StringToken) -> ParsedArg {
        if !token.escaped {
            return ParsedArg::Text(token.start, token.end);
        }
        let start = self.scratch.len();
        unescape(&text[token.start..token.end], &mut self.scratch);
        ParsedArg::Unescaped(start, self.scratch.len())
    }

    fn text<'a>(&'a self, text: &'a [u8], span: ParsedArg) -> Result<&'a str, NoRecord> {
        let bytes = match span {
            ParsedArg::Text(start, end) => &text[start..end],
            ParsedArg::Unescaped(start, end) => &self.scratch[start..end],
            ParsedArg::Number(_) => return Err(NoRecord::Shape("its owner is not a string")),
        };
        std::str::from_utf8(bytes).map_err(|_| NoRecord::Shape("its owner is not UTF-8"))
    }

    fn related(&self, text: &[u8], token: StringToken) -> Option<RelatedObject> {
        let name = object_name(text, token)?;
        let id = self.created.get(&name);
        let arg = id.and_then(|id| {
            self.args
                .iter()
                .position(|arg| matches!(arg, ParsedArg::Number(n) if n == id))
        });
        Some(RelatedObject {
            name,
            arg: arg.map(|index| index as u8),
        })
    }
}

fn object_fields(lexer: &mut Lexer<'_>) -> Result<ObjectFields, NoRecord> {
    let mut object = ObjectFields::default();
    lexer.expect(b'{', "an object")?;
    if lexer.take(b'}') {
        return Ok(object);
    }
    loop {
        match lexer.key()? {
            b"id" => object.id = Some(lexer.string()?),
            b"value" => object.value = lexer.number()?,
            b"time" => object.time = Some(lexer.number()?),
            _ => {
                lexer.skip()?;
            }
        }
        if !lexer.more(b'}')? {
            return Ok(object);
        }
    }
}

fn object(text: &[u8], fields: Option<&ObjectFields>) -> Object {
    let Some(fields) = fields else {
        return Object::None;
    };
    match fields.id.and_then(|token| object_name(text, token)) {
        Some(name) => Object::Known {
            name,
            id: fields.value,
            age: fields.time.map(Ticks),
        },
        // For a tracepoint that creates objects of no type, `spdk_trace` writes a NUL as prefix,
        // which ends the text.
        None if fields.id.is_some_and(|token| token.start == token.end) => Object::Nameless {
            id: fields.value,
            age: fields.time.map(Ticks),
        },
        None => Object::ValueOnly(fields.value),
    }
}

fn object_name(text: &[u8], token: StringToken) -> Option<ObjectName> {
    std::str::from_utf8(&contents(text, token))
        .ok()?
        .parse()
        .ok()
}
