//! Functions: those of scripts that read memory or look names up, and those that walk lists.

use bt_lang::Span;
use bt_lang::ast::{Expr, ExprKind};
use text::patterns::did_you_mean;
use typeinfo::{IntClass, TypeKind};

use super::error::{EvalError, Fault};
use super::value::Value;
use super::{CompiledExpr, Evaluator};
use crate::memory::Cause;

/// Limit on the bytes that `str()` reads of a pointer if no length is given, as in scripts.
const DEFAULT_TEXT: u64 = 1024;
/// Limit on the bytes that `str()` and `buf()` read.
const MAX_BYTES: u64 = 1 << 20;
/// Bytes per read of a text: texts are short. It never crosses a page, since the next one may not
/// be mapped.
const CHUNK: u64 = 256;

/// Functions with their usage, for messages.
const FUNCTIONS: [(&str, &str); 7] = [
    ("str", "str(POINTER) or str(POINTER, LENGTH)"),
    ("buf", "buf(POINTER, LENGTH) or buf(ARRAY)"),
    ("uaddr", "uaddr(\"NAME\") or uaddr(\"FILE:NAME\")"),
    (
        "list",
        "list(HEAD, LINK) or list(HEAD, typeof(struct x), LINK)",
    ),
    ("len", "len(LIST), len(ARRAY) or len(TEXT)"),
    (
        "container_of",
        "container_of(POINTER, typeof(struct x), MEMBER)",
    ),
    ("print", "print(VALUE), as a statement"),
];

impl Evaluator<'_> {
    /// Computes a number of bytes; `None` if it is not given.
    pub(crate) fn length(&self, length: Option<&CompiledExpr>) -> Result<Option<u64>, EvalError> {
        let Some(length) = length else {
            return Ok(None);
        };
        match self
            .value_of(length)?
            .number()
            .and_then(|number| u64::try_from(number).ok())
        {
            Some(number) if number <= MAX_BYTES => Ok(Some(number)),
            Some(number) => Err(EvalError::other(
                length.span,
                format!("at most {MAX_BYTES} bytes are read at once, not {number}"),
            )),
            None => Err(EvalError::other(length.span, "expected a number of bytes")),
        }
    }

    pub(crate) fn str(
        &self,
        value: &Value,
        length: Option<u64>,
        span: Span,
    ) -> Result<Value, EvalError> {
        if let Some(text) = self.text(value, span)? {
            let most = length.unwrap_or(MAX_BYTES) as usize;
            return Ok(Value::Text(text[..text.len().min(most)].to_vec()));
        }
        let Some(address) = value.address() else {
            return Err(EvalError::other(
                span,
                format!("{} is not a pointer to a text", self.describe(value)),
            ));
        };
        self.text_at(address, length.unwrap_or(DEFAULT_TEXT), span)
            .map(Value::Text)
    }

    /// Reads the text at an address: up to its NUL, or `most` bytes.
    pub fn text_at(&self, address: u64, most: u64, span: Span) -> Result<Vec<u8>, EvalError> {
        let mut text = Vec::new();
        let mut longest = CHUNK;
        while (text.len() as u64) < most {
            let at = address.wrapping_add(text.len() as u64);
            let length = (most - text.len() as u64).min(longest - at % longest);
            let mut chunk = vec![0; length as usize];
            let read = self.memory.read(at, &mut chunk);
            // An image of some memory may end within the range.
            if read.is_err_and(|source| source.cause == Cause::NotMapped) && length > 1 {
                longest /= 2;
                continue;
            }
            read.map_err(|source| {
                let what = "a text".to_owned();
                let is_null = address == 0 && !source.cause.is_final();
                let fault = if is_null {
                    Fault::Null { what, address }
                } else {
                    Fault::Unreadable { what, source }
                };
                EvalError::new(span, fault)
            })?;
            let end = chunk.iter().position(|byte| *byte == 0);
            text.extend_from_slice(&chunk[..end.unwrap_or(chunk.len())]);
            if end.is_some() {
                break;
            }
        }
        Ok(text)
    }

    /// Returns the text of a value: a text, or an array of characters up to its NUL. `None` for
    /// other values.
    pub(crate) fn text(&self, value: &Value, span: Span) -> Result<Option<Vec<u8>>, EvalError> {
        match value {
            Value::Text(text) => Ok(Some(text.clone())),
            Value::Place(place) => match self.kind(place.ty, span)? {
                TypeKind::Array {
                    element,
                    count: Some(count),
                } if self.is_char(element, span)? => self
                    .text_at(place.address, count.min(MAX_BYTES), span)
                    .map(Some),
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    pub(crate) fn is_char(&self, ty: typeinfo::TypeRef, span: Span) -> Result<bool, EvalError> {
        // Only the definition counts: a type that is only declared is not a character.
        Ok(matches!(
            self.kind(ty, span)?,
            TypeKind::Int {
                size: 1,
                class: IntClass::Char,
                ..
            }
        ))
    }

    pub(crate) fn buf(
        &self,
        value: &Value,
        length: Option<u64>,
        span: Span,
    ) -> Result<Value, EvalError> {
        let (address, most) = match value {
            Value::Place(place) => (
                place.address,
                self.types
                    .size(place.ty)
                    .map_err(|error| EvalError::new(span, error))?,
            ),
            other => {
                let address = other.address();
                (
                    address
                        .ok_or_else(|| EvalError::other(span, "expected a pointer or an array"))?,
                    u64::MAX,
                )
            }
        };
        let length = match length {
            Some(length) => length.min(most),
            None if most <= MAX_BYTES => most,
            None => {
                return Err(EvalError::other(
                    span,
                    "how many bytes? buf(POINTER, LENGTH)",
                ));
            }
        };
        let mut bytes = vec![0; length as usize];
        self.read(address, &mut bytes, typeinfo::TypeRef::VOID, span)?;
        Ok(Value::Bytes(bytes))
    }

    /// Returns a pointer to a variable or function.
    pub(crate) fn uaddr(&self, name: &[u8], span: Span) -> Result<Value, EvalError> {
        let name = String::from_utf8_lossy(name);
        if let Some(place) = self.global(&name, span)? {
            return Ok(self.pointer(place));
        }
        let near = self
            .globals
            .nearest(name.rsplit(':').next().unwrap_or_default());
        let error = EvalError::new(
            span,
            Fault::NoName {
                kind: "symbol",
                name: name.into_owned(),
            },
        );
        Err(match did_you_mean(&near) {
            Some(hint) => error.with_hint(hint),
            None => error,
        })
    }

    pub(crate) fn len(&self, value: &Value, span: Span) -> Result<Value, EvalError> {
        let length = match value {
            Value::Tuple(parts) => parts.len() as u64,
            Value::Text(bytes) | Value::Bytes(bytes) => bytes.len() as u64,
            other => match self.elements(other, span)? {
                (_, _, Some(count)) => count,
                _ => return Err(EvalError::other(span, "the length of this is not known")),
            },
        };
        Ok(Value::Int {
            value: length.into(),
            ty: self.types.u64,
        })
    }
}

/// Parses a member's name as an argument, `link` or `a.link`, also in quotes.
pub(crate) fn path(expr: &Expr) -> Result<String, EvalError> {
    match &expr.kind {
        ExprKind::Ident(name) => Ok(name.clone()),
        ExprKind::Str(name) => Ok(String::from_utf8_lossy(name).into_owned()),
        ExprKind::Field {
            base,
            name,
            arrow: false,
        } => Ok(format!("{}.{}", path(base)?, name.text)),
        _ => Err(EvalError::other(expr.span, "expected the name of a member")),
    }
}

pub(crate) fn wrong_call(name: &str, func: Span, span: Span) -> EvalError {
    if let Some((_, usage)) = FUNCTIONS.iter().find(|(known, _)| *known == name) {
        return EvalError::other(span, format!("{name} is used as {usage}"));
    }
    let near = bt_lang::nearest(name, FUNCTIONS.iter().map(|row| row.0));
    let error = EvalError::new(
        func,
        Fault::NoName {
            kind: "function",
            name: format!("{name}()"),
        },
    );
    error.with_hint(did_you_mean(&near).unwrap_or_else(|| {
        let all: Vec<&str> = FUNCTIONS.iter().map(|row| row.0).collect();
        format!("there are {} outside of probes", all.join(", "))
    }))
}
