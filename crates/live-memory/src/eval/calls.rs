//! Functions: those of scripts that read memory or look names up, and those that walk lists.

use bt_lang::Span;
use bt_lang::ast::{Expr, ExprKind, Name};
use typeinfo::{IntClass, TypeKind};

use super::Evaluator;
use super::error::{EvalError, Fault};
use super::value::{Operand, Place, Value};
use crate::memory::Cause;

/// How many bytes `str()` reads of a pointer if it is not given a number, as in scripts.
const DEFAULT_TEXT: u64 = 1024;
/// The most that `str()` and `buf()` read.
const MAX_BYTES: u64 = 1 << 20;
/// What one read of a text takes: texts are short. It never crosses a page, since the next one may not be mapped.
const CHUNK: u64 = 256;

/// The functions, with what they take, for messages.
const FUNCTIONS: [(&str, &str); 7] = [
    ("str", "str(POINTER) or str(POINTER, LENGTH)"),
    ("buf", "buf(POINTER, LENGTH) or buf(ARRAY)"),
    ("uaddr", "uaddr(\"NAME\") or uaddr(\"FILE:NAME\")"),
    ("list", "list(HEAD, LINK) or list(HEAD, typeof(struct x), LINK)"),
    ("len", "len(LIST), len(ARRAY) or len(TEXT)"),
    ("container_of", "container_of(POINTER, typeof(struct x), MEMBER)"),
    ("print", "print(VALUE), as a statement"),
];

impl Evaluator<'_> {
    pub(crate) fn call(&self, func: &Name, args: &[Expr], span: Span) -> Result<Value, EvalError> {
        match (func.text.as_str(), args) {
            ("str", [from]) => self.str(from, None),
            ("str", [from, length]) => self.str(from, Some(self.length(length)?)),
            ("buf", [from]) => self.buf(from, None),
            ("buf", [from, length]) => self.buf(from, Some(self.length(length)?)),
            ("uaddr", [Expr { kind: ExprKind::Str(name), span }]) => self.uaddr(name, *span),
            ("list", [head, link]) => {
                let walk = self.list_of(head, None, &path(link)?, link.span)?;
                self.collected(walk)
            }
            ("list", [head, Expr { kind: ExprKind::TypeArg(of), .. }, link]) => {
                let walk = self.list_of(head, Some(self.type_of(of)?), &path(link)?, link.span)?;
                self.collected(walk)
            }
            ("len", [of]) => self.len(of),
            ("container_of", [from, Expr { kind: ExprKind::TypeArg(of), .. }, member]) => {
                let ty = self.type_of(of)?;
                let field = self.types.store().path(ty, &path(member)?);
                let field = field.map_err(|error| EvalError::new(member.span, error))?;
                let inner = self.eval(from)?.address();
                let inner = inner.ok_or_else(|| EvalError::other(from.span, "expected a pointer"))?;
                Ok(self.pointer(Place::new(inner.wrapping_sub(field.byte_offset()), ty)))
            }
            (name, _) => Err(wrong_call(name, func.span, span)),
        }
    }

    fn collected(&self, walk: crate::lists::ListWalk<'_, '_>) -> Result<Value, EvalError> {
        let places: Result<Vec<Value>, EvalError> = walk.map(|place| place.map(|place| self.pointer(place))).collect();
        places.map(Value::Tuple)
    }

    fn length(&self, expr: &Expr) -> Result<u64, EvalError> {
        let number = self.eval(expr)?.number().and_then(|number| u64::try_from(number).ok());
        match number {
            Some(length) if length <= MAX_BYTES => Ok(length),
            Some(length) => {
                Err(EvalError::other(expr.span, format!("at most {MAX_BYTES} bytes are read at once, not {length}")))
            }
            None => Err(EvalError::other(expr.span, "expected a number of bytes")),
        }
    }

    fn str(&self, from: &Expr, length: Option<u64>) -> Result<Value, EvalError> {
        let value = self.eval(from)?;
        if let Some(text) = self.text(&value, from.span)? {
            let most = length.unwrap_or(MAX_BYTES) as usize;
            return Ok(Value::Text(text[..text.len().min(most)].to_vec()));
        }
        let Some(address) = value.address() else {
            return Err(EvalError::other(from.span, format!("{} is no pointer to a text", self.describe(&value))));
        };
        self.text_at(address, length.unwrap_or(DEFAULT_TEXT), from.span).map(Value::Text)
    }

    /// The text at an address: up to its NUL, or this many bytes.
    pub fn text_at(&self, address: u64, most: u64, span: Span) -> Result<Vec<u8>, EvalError> {
        let mut text = Vec::new();
        let mut longest = CHUNK;
        while (text.len() as u64) < most {
            let at = address.wrapping_add(text.len() as u64);
            let length = (most - text.len() as u64).min(longest - at % longest);
            let mut chunk = vec![0; length as usize];
            let read = self.memory.read(at, &mut chunk);
            // An image of some memory may end within what would be read.
            if read.is_err_and(|source| source.cause == Cause::NotMapped) && length > 1 {
                longest /= 2;
                continue;
            }
            read.map_err(|source| {
                let what = "a text".to_owned();
                let is_null = address == 0 && !source.cause.is_final();
                let fault = if is_null { Fault::Null { what, address } } else { Fault::Unreadable { what, source } };
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

    /// The text that a value is: a text, or an array of characters up to its NUL.
    pub(crate) fn text(&self, value: &Value, span: Span) -> Result<Option<Vec<u8>>, EvalError> {
        match value {
            Value::Text(text) => Ok(Some(text.clone())),
            Value::Place(place) => match self.kind(place.ty, span)? {
                TypeKind::Array { element, count: Some(count) } if self.is_char(element, span)? => {
                    self.text_at(place.address, count.min(MAX_BYTES), span).map(Some)
                }
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    pub(crate) fn is_char(&self, ty: typeinfo::TypeRef, span: Span) -> Result<bool, EvalError> {
        // Only its definition is asked for: what is only declared is no character.
        Ok(matches!(self.kind(ty, span)?, TypeKind::Int { size: 1, class: IntClass::Char, .. }))
    }

    fn buf(&self, from: &Expr, length: Option<u64>) -> Result<Value, EvalError> {
        let value = self.eval(from)?;
        let (address, most) = match &value {
            Value::Place(place) => {
                (place.address, self.types.size(place.ty).map_err(|error| EvalError::new(from.span, error))?)
            }
            other => {
                let address = other.address();
                (address.ok_or_else(|| EvalError::other(from.span, "expected a pointer or an array"))?, u64::MAX)
            }
        };
        let length = match length {
            Some(length) => length.min(most),
            None if most <= MAX_BYTES => most,
            None => return Err(EvalError::other(from.span, "how many bytes? buf(POINTER, LENGTH)")),
        };
        let mut bytes = vec![0; length as usize];
        self.read(address, &mut bytes, typeinfo::TypeRef::VOID, from.span)?;
        Ok(Value::Bytes(bytes))
    }

    /// A pointer to a variable or function.
    fn uaddr(&self, name: &[u8], span: Span) -> Result<Value, EvalError> {
        let name = String::from_utf8_lossy(name);
        if let Some(place) = self.global(&name, span)? {
            return Ok(self.pointer(place));
        }
        let near = self.globals.nearest(name.rsplit(':').next().unwrap_or_default());
        let error = EvalError::new(span, Fault::NoName { kind: "symbol", name: name.into_owned() });
        Err(if near.is_empty() { error } else { error.with_hint(format!("near: {}", near.join(", "))) })
    }

    fn len(&self, of: &Expr) -> Result<Value, EvalError> {
        let value = self.eval(of)?;
        let length = match &value {
            Value::Tuple(parts) => parts.len() as u64,
            Value::Text(bytes) | Value::Bytes(bytes) => bytes.len() as u64,
            other => match self.elements(other, of.span)? {
                (_, _, Some(count)) => count,
                _ => return Err(EvalError::other(of.span, "the length of this is not known")),
            },
        };
        Ok(Value::Int { value: length.into(), ty: self.types.u64 })
    }

    /// Where the list of an expression begins: its head, or the pointer to its first element.
    pub(crate) fn head(&self, expr: &Expr) -> Result<Value, EvalError> {
        match self.operand(expr)? {
            Operand::Place(place) => self.load(place, expr.span),
            Operand::Value(value) => Ok(value),
        }
    }
}

/// A member's name as an argument, `link` or `a.link`, also in quotes.
fn path(expr: &Expr) -> Result<String, EvalError> {
    match &expr.kind {
        ExprKind::Ident(name) => Ok(name.clone()),
        ExprKind::Str(name) => Ok(String::from_utf8_lossy(name).into_owned()),
        ExprKind::Field { base, name, arrow: false } => Ok(format!("{}.{}", path(base)?, name.text)),
        _ => Err(EvalError::other(expr.span, "expected the name of a member")),
    }
}

fn wrong_call(name: &str, func: Span, span: Span) -> EvalError {
    if let Some((_, usage)) = FUNCTIONS.iter().find(|(known, _)| *known == name) {
        return EvalError::other(span, format!("{name} is used as {usage}"));
    }
    let near = bt_lang::nearest(name, FUNCTIONS.iter().map(|row| row.0));
    let error = EvalError::new(func, Fault::NoName { kind: "function", name: format!("{name}()") });
    if near.is_empty() {
        let all: Vec<&str> = FUNCTIONS.iter().map(|row| row.0).collect();
        return error.with_hint(format!("there are {} outside of probes", all.join(", ")));
    }
    error.with_hint(format!("near: {}", near.join(", ")))
}
