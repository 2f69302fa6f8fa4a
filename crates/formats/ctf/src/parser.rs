//! The grammar of a description (TSDL, CTF 1.8.3, appendix C), as far as DPDK uses it:
//!
//! ```text
//! description = { "typealias" type ":=" name ";" | block ";" }
//! block       = ("trace" | "env" | "clock" | "stream" | "event") "{" { name "=" value ";" | name ":=" struct ";" } "}"
//! struct      = "struct" "{" { type name [ "[" number "]" ] ";" } "}" [ "align" "(" number ")" ]
//! type        = name | ("integer" | "floating_point") "{" { name "=" value ";" } "}"
//! value       = name | number | text
//! ```

use std::collections::HashMap;

use crate::layout::{Integer, Layout, Scalar};
use crate::metadata::{EventKind, Metadata, MetadataError};
use crate::token::{LocatedToken, Token, tokens};

/// Parser of a sequence of tokens.
pub(crate) struct Parser {
    tokens: std::vec::IntoIter<LocatedToken>,
    /// Line of the last token read.
    line: usize,
    types: HashMap<String, Scalar>,
}

/// Entries of a block.
#[derive(Default)]
struct Block {
    values: HashMap<String, Token>,
    structs: HashMap<String, Layout>,
}

type Result<T> = std::result::Result<T, MetadataError>;

impl Parser {
    pub(crate) fn new(text: &str) -> Result<Self> {
        Ok(Self {
            tokens: tokens(text)?.into_iter(),
            line: 1,
            types: HashMap::new(),
        })
    }

    /// Parses the whole description.
    pub(crate) fn metadata(mut self) -> Result<Metadata> {
        let mut metadata = Metadata::default();
        while let Some((token, line)) = self.tokens.next() {
            self.line = line;
            match token {
                Token::Name(name) if name == "typealias" => self.alias()?,
                Token::Name(name) => {
                    let block = self.block()?;
                    self.sign(';')?;
                    self.take(&mut metadata, &name, block)?;
                }
                other => {
                    return self.error(format!("{} where a block should begin", shown(&other)));
                }
            }
        }
        Ok(metadata)
    }

    /// Stores the entries of a block in the metadata.
    fn take(&self, metadata: &mut Metadata, name: &str, mut block: Block) -> Result<()> {
        match name {
            "trace" => {
                metadata.is_big_endian = matches!(block.name("byte_order"), Some("be" | "network"));
                metadata.uuid = block.text("uuid").and_then(uuid);
                metadata.packet_header = block.structs.remove("packet.header").unwrap_or_default();
            }
            "env" => metadata.env = block.env(),
            "clock" => {
                metadata.clock.rate = block.number("freq").unwrap_or(1_000_000_000);
                metadata.clock.offset_seconds = block.signed("offset_s");
                metadata.clock.offset_ticks = block.signed("offset");
            }
            "stream" => {
                metadata.packet_context =
                    block.structs.remove("packet.context").unwrap_or_default();
                metadata.event_header = block.structs.remove("event.header").unwrap_or_default();
                if block.structs.contains_key("event.context") {
                    return self.error("events with a context, which DPDK does not write");
                }
            }
            "event" => {
                let Some(id) = block.number("id") else {
                    return self.error("an event without an id");
                };
                let name = block.text("name").unwrap_or_default().to_owned();
                let fields = block.structs.remove("fields").unwrap_or_default();
                if metadata
                    .kinds
                    .insert(id, EventKind { name, fields })
                    .is_some()
                {
                    return self.error(format!("a second event with the id {id}"));
                }
            }
            other => return self.error(format!("a block {other:?}, which DPDK does not write")),
        }
        Ok(())
    }

    fn block(&mut self) -> Result<Block> {
        self.sign('{')?;
        let mut block = Block::default();
        loop {
            match self.next()? {
                Token::Sign('}') => return Ok(block),
                Token::Name(name) => match self.next()? {
                    Token::Sign('=') => {
                        let value = self.value()?;
                        block.values.insert(name, value);
                    }
                    Token::Sign(':') => {
                        self.name_is("struct")?;
                        let layout = self.structure()?;
                        block.structs.insert(name, layout);
                    }
                    other => return self.error(format!("{} after {name:?}", shown(&other))),
                },
                other => return self.error(format!("{} where a name should be", shown(&other))),
            }
            self.sign(';')?;
        }
    }

    fn structure(&mut self) -> Result<Layout> {
        self.sign('{')?;
        let mut layout = Layout::default();
        loop {
            let first = match self.next()? {
                Token::Sign('}') => break,
                Token::Name(first) => first,
                other => return self.error(format!("{} where a field should be", shown(&other))),
            };
            let item = self.scalar(&first)?;
            let name = self.name()?;
            // This prefix escapes names that are keywords of the grammar, and is not printed (CTF
            // 1.8.3, appendix C.1.2).
            let name = name.strip_prefix('_').map_or(name.clone(), str::to_owned);
            let mut count = None;
            if self.is_next('[') {
                count = Some(self.number()?);
                self.sign(']')?;
            }
            self.sign(';')?;
            layout
                .push(name, item, count)
                .map_err(|what| MetadataError::new(self.line, what))?;
        }
        if matches!(self.tokens.as_slice().first(), Some((Token::Name(name), _)) if name == "align")
        {
            self.name_is("align")?;
            self.sign('(')?;
            let bits = self.number()?;
            layout.align = layout.align.max(self.bytes_of(bits)?);
            self.sign(')')?;
        }
        Ok(layout)
    }

    /// Parses `typealias TYPE := NAME;`.
    fn alias(&mut self) -> Result<()> {
        let first = self.name()?;
        let scalar = self.scalar(&first)?;
        self.sign(':')?;
        let name = self.name()?;
        self.sign(';')?;
        self.types.insert(name, scalar);
        Ok(())
    }

    /// Parses a type that begins with this name.
    fn scalar(&mut self, first: &str) -> Result<Scalar> {
        match first {
            "integer" => {
                let block = self.block()?;
                self.integer(&block)
            }
            "floating_point" => {
                let block = self.block()?;
                match (block.number("exp_dig"), block.number("mant_dig")) {
                    (Some(8), Some(24)) => Ok(Scalar::Float {
                        bytes: 4,
                        align: self.align(&block, 8)?,
                    }),
                    (Some(11), Some(53)) => Ok(Scalar::Float {
                        bytes: 8,
                        align: self.align(&block, 8)?,
                    }),
                    _ => self.error("a floating_point that is neither a float nor a double"),
                }
            }
            name => match self.types.get(name) {
                Some(scalar) => Ok(*scalar),
                None => self.error(format!("the type {name:?}, which is not defined before")),
            },
        }
    }

    fn integer(&self, block: &Block) -> Result<Scalar> {
        let bits = block.number("size").unwrap_or_default();
        if bits == 0 || bits > 64 || !bits.is_multiple_of(8) {
            return self.error(format!(
                "an integer of {bits} bits, which DPDK does not write"
            ));
        }
        let base = match (block.name("base"), block.number("base")) {
            (Some("x" | "hex" | "hexadecimal" | "X" | "p"), _) | (_, Some(16)) => 16,
            (Some("o" | "oct" | "octal"), _) | (_, Some(8)) => 8,
            (Some("b" | "binary"), _) | (_, Some(2)) => 2,
            _ => 10,
        };
        Ok(Scalar::Integer(Integer {
            bytes: bits as usize / 8,
            align: self.align(block, 8)?,
            is_signed: matches!(block.name("signed"), Some("true"))
                || block.number("signed") == Some(1),
            base,
            is_text: matches!(
                block.name("encoding"),
                Some("ASCII" | "UTF8" | "ascii" | "utf8")
            ),
            is_clock: block
                .name("map")
                .is_some_and(|map| map.starts_with("clock.")),
        }))
    }

    /// Returns a type's alignment in bytes; one bit is the same as a byte, since no field is
    /// shorter.
    fn align(&self, block: &Block, default: u64) -> Result<usize> {
        match block.number("align").unwrap_or(default) {
            1 => Ok(1),
            bits => self.bytes_of(bits),
        }
    }

    fn bytes_of(&self, bits: u64) -> Result<usize> {
        if !(8..=4096).contains(&bits) || !bits.is_power_of_two() {
            return self.error(format!(
                "an alignment of {bits} bits, which DPDK does not write"
            ));
        }
        Ok(bits as usize / 8)
    }

    fn next(&mut self) -> Result<Token> {
        let Some((token, line)) = self.tokens.next() else {
            return self.error("it ends within a block");
        };
        self.line = line;
        Ok(token)
    }

    fn is_next(&mut self, sign: char) -> bool {
        let is =
            matches!(self.tokens.as_slice().first(), Some((Token::Sign(next), _)) if *next == sign);
        if is {
            self.tokens.next();
        }
        is
    }

    fn sign(&mut self, sign: char) -> Result<()> {
        match self.next()? {
            Token::Sign(found) if found == sign => Ok(()),
            other => self.error(format!("{} in place of {sign:?}", shown(&other))),
        }
    }

    fn name(&mut self) -> Result<String> {
        match self.next()? {
            Token::Name(name) => Ok(name),
            other => self.error(format!("{} in place of a name", shown(&other))),
        }
    }

    fn name_is(&mut self, expected: &str) -> Result<()> {
        let name = self.name()?;
        if name == expected {
            Ok(())
        } else {
            self.error(format!("{name:?} in place of {expected:?}"))
        }
    }

    fn number(&mut self) -> Result<u64> {
        match self.next()? {
            Token::Number(number) => Ok(number),
            other => self.error(format!("{} in place of a number", shown(&other))),
        }
    }

    fn value(&mut self) -> Result<Token> {
        match self.next()? {
            Token::Sign(sign) => self.error(format!("{sign:?} in place of a value")),
            value => Ok(value),
        }
    }

    fn error<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(MetadataError::new(self.line, what))
    }
}

impl Block {
    fn number(&self, name: &str) -> Option<u64> {
        match self.values.get(name) {
            Some(Token::Number(number)) => Some(*number),
            _ => None,
        }
    }

    fn signed(&self, name: &str) -> i64 {
        match self.values.get(name) {
            Some(Token::Number(number)) => i64::try_from(*number).unwrap_or(i64::MAX),
            Some(Token::Negative(below)) => i64::try_from(*below).map_or(i64::MIN, |below| -below),
            _ => 0,
        }
    }

    fn name(&self, name: &str) -> Option<&str> {
        match self.values.get(name) {
            Some(Token::Name(value)) => Some(value),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        match self.values.get(name) {
            Some(Token::Text(value)) => Some(value),
            _ => None,
        }
    }

    /// Returns all entries, by name.
    fn env(self) -> Vec<(String, String)> {
        let value = |token| match token {
            Token::Text(text) | Token::Name(text) => text,
            Token::Number(number) => number.to_string(),
            Token::Negative(below) => format!("-{below}"),
            Token::Sign(sign) => sign.to_string(),
        };
        let mut all: Vec<_> = self
            .values
            .into_iter()
            .map(|(name, token)| (name, value(token)))
            .collect();
        all.sort();
        all
    }
}

/// Parses the text of a UUID.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let value = u128::from_str_radix(&digits, 16).ok()?;
    (digits.len() == 32).then(|| value.to_be_bytes())
}

fn shown(token: &Token) -> String {
    match token {
        Token::Name(name) => format!("{name:?}"),
        Token::Number(number) => number.to_string(),
        Token::Negative(below) => format!("-{below}"),
        Token::Text(text) => format!("the text {text:?}"),
        Token::Sign(':') => "\":=\"".to_owned(),
        Token::Sign(sign) => format!("{sign:?}"),
    }
}
