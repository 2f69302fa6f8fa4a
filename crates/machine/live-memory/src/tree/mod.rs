//! A value with all its contents, for display: members, elements, names of enumerators, targets of
//! pointers.

mod json;
mod text;

use ::text::printable;
use bt_lang::Span;
use typeinfo::{IntClass, TypeKind, TypeRef};

use crate::eval::{EvalError, Evaluator, Place, Value};

/// Limits on the displayed part of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Levels of structs within structs.
    pub depth: usize,
    /// Elements of an array or list.
    pub elements: usize,
    /// Bytes of a text or buffer.
    pub text: usize,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            depth: 4,
            elements: 100,
            text: 256,
        }
    }
}

/// The displayed part of a value.
#[derive(Clone, PartialEq, Debug)]
pub enum Tree {
    /// A number.
    Number(i128),
    /// `true` or `false`.
    Bool(bool),
    /// A character.
    Char(i128),
    /// A value of an enumeration, with its name, or several names if it is made of bits.
    Enum(i128, Option<String>),
    /// A floating-point number.
    Float(f64),
    /// A pointer or a function.
    Pointer {
        /// Address that it points to.
        address: u64,
        /// Type, as C writes it.
        ty: String,
        /// Variable or function there.
        symbol: Option<String>,
        /// Text there, for a pointer to characters.
        text: Option<Vec<u8>>,
    },
    /// A text, and true if there is more of it.
    Text(Vec<u8>, bool),
    /// Bytes, and true if there are more of them.
    Bytes(Vec<u8>, bool),
    /// A struct or union.
    Record {
        /// Type, as C writes it.
        ty: String,
        /// Members in order; anonymous structs and unions have no name.
        members: Vec<(Option<String>, Tree)>,
    },
    /// An array or a list.
    Array {
        /// The first elements.
        elements: Vec<Tree>,
        /// Number of further elements.
        left_out: u64,
    },
    /// Something of this type that is not shown: it is too deep, or has no size.
    Cut(String),
    /// Reason why a value can't be read.
    Fault(String),
}

/// Limit on the bytes that are read of one struct or array at once.
const MAX_READ: u64 = 1 << 20;
/// Limit on the values in one tree.
const MAX_NODES: usize = 100_000;

impl Evaluator<'_> {
    /// Returns the displayed part of a value. An unreadable place is an error; a member that can't
    /// be decoded has the reason in its own place.
    pub fn tree(&self, value: &Value, shape: Shape, span: Span) -> Result<Tree, EvalError> {
        let mut builder = Builder {
            evaluator: self,
            shape,
            nodes: MAX_NODES,
            span,
        };
        builder.value(value, 0)
    }

    /// Formats a value on one line.
    pub(crate) fn one_line(&self, value: &Value, span: Span) -> Result<String, EvalError> {
        let tree = self.tree(
            value,
            Shape {
                depth: 1,
                ..Shape::default()
            },
            span,
        )?;
        Ok(tree.one_line())
    }
}

struct Builder<'e, 'a> {
    evaluator: &'e Evaluator<'a>,
    shape: Shape,
    nodes: usize,
    span: Span,
}

impl Builder<'_, '_> {
    fn value(&mut self, value: &Value, level: usize) -> Result<Tree, EvalError> {
        self.nodes = self.nodes.saturating_sub(1);
        match value {
            Value::Int { value, ty } => self.int(*value, *ty),
            Value::Float { value, .. } => Ok(Tree::Float(*value)),
            Value::Place(place) => self.place(*place, level),
            Value::Text(text) => Ok(self.text(text)),
            Value::Bytes(bytes) => Ok(self.bytes(bytes)),
            Value::Tuple(parts) => {
                let shown: Result<_, _> = parts
                    .iter()
                    .take(self.shape.elements)
                    .map(|part| self.value(part, level + 1))
                    .collect();
                let left_out = parts.len().saturating_sub(self.shape.elements) as u64;
                Ok(Tree::Array {
                    elements: shown?,
                    left_out,
                })
            }
            Value::Nothing => Ok(Tree::Cut("nothing".to_owned())),
        }
    }

    fn text(&self, text: &[u8]) -> Tree {
        Tree::Text(
            text[..text.len().min(self.shape.text)].to_vec(),
            text.len() > self.shape.text,
        )
    }

    fn bytes(&self, bytes: &[u8]) -> Tree {
        Tree::Bytes(
            bytes[..bytes.len().min(self.shape.text)].to_vec(),
            bytes.len() > self.shape.text,
        )
    }

    fn int(&self, value: i128, ty: TypeRef) -> Result<Tree, EvalError> {
        Ok(match self.evaluator.kind(ty, self.span)? {
            TypeKind::Int {
                class: IntClass::Bool,
                ..
            } if (0..=1).contains(&value) => Tree::Bool(value == 1),
            TypeKind::Int {
                class: IntClass::Char,
                ..
            } => Tree::Char(value),
            TypeKind::Enum { .. } => Tree::Enum(value, self.enumerator(ty, value)),
            TypeKind::Pointer { target, .. } => self.pointer(value as u64, ty, target),
            _ => Tree::Number(value),
        })
    }

    /// Returns the name of an enumerator, or the names of the bits that a value is made of.
    fn enumerator(&self, ty: TypeRef, value: i128) -> Option<String> {
        let types = self.evaluator.types();
        if let Some(name) = types.enum_name(ty, value as i64).ok()? {
            return Some(name.to_owned());
        }
        let all = types.enumerators(ty).ok()?;
        let is_bit = |value: i64| value > 0 && value.count_ones() == 1;
        let mut left = value;
        let mut names = Vec::new();
        for known in all
            .iter()
            .filter(|known| is_bit(known.value) && value & i128::from(known.value) != 0)
        {
            if left & i128::from(known.value) != 0 {
                left &= !i128::from(known.value);
                names.push(known.name);
            }
        }
        (left == 0 && !names.is_empty()).then(|| names.join(" | "))
    }

    fn pointer(&self, address: u64, ty: TypeRef, target: TypeRef) -> Tree {
        let symbol = (address != 0)
            .then(|| self.evaluator.globals.symbol(address))
            .flatten();
        let symbol = symbol.map(|(name, behind)| {
            if behind == 0 {
                name
            } else {
                format!("{name}+{behind:#x}")
            }
        });
        let is_text = address != 0 && self.evaluator.is_char(target, self.span).unwrap_or(false);
        let text = is_text
            .then(|| {
                self.evaluator
                    .text_at(address, self.shape.text as u64, self.span)
                    .ok()
            })
            .flatten();
        Tree::Pointer {
            address,
            ty: self.evaluator.display(ty),
            symbol,
            text,
        }
    }

    fn place(&mut self, place: Place, level: usize) -> Result<Tree, EvalError> {
        let kind = self.evaluator.kind(place.ty, self.span)?;
        if let TypeKind::Func { .. } = kind {
            let pointer = self
                .evaluator
                .types
                .pointer_to(place.ty)
                .unwrap_or(place.ty);
            return Ok(self.pointer(place.address, pointer, TypeRef::VOID));
        }
        let size = self
            .evaluator
            .types
            .size(place.ty)
            .map_err(|error| EvalError::new(self.span, error))?;
        let mut bytes = vec![0; size.min(MAX_READ) as usize];
        self.evaluator
            .read(place.address, &mut bytes, place.ty, self.span)?;
        self.decoded(place, &bytes, level)
    }

    /// Decodes the bytes of a place.
    fn decoded(&mut self, place: Place, bytes: &[u8], level: usize) -> Result<Tree, EvalError> {
        self.nodes = self.nodes.saturating_sub(1);
        if self.nodes == 0 {
            return Ok(Tree::Cut(self.evaluator.display(place.ty)));
        }
        match self.evaluator.kind(place.ty, self.span)? {
            TypeKind::Struct { .. } | TypeKind::Union { .. } if level > self.shape.depth => {
                Ok(Tree::Cut(self.evaluator.display(place.ty)))
            }
            TypeKind::Struct { .. } | TypeKind::Union { .. } => self.record(place, bytes, level),
            TypeKind::Array { element, count } => self.array(place, element, count, bytes, level),
            TypeKind::Void | TypeKind::Func { .. } | TypeKind::Forward { .. } => {
                Ok(Tree::Cut(self.evaluator.display(place.ty)))
            }
            _ => match self.evaluator.decode(place, bytes, self.span)? {
                Value::Int { value, ty } => self.int(value, ty),
                Value::Float { value, .. } => Ok(Tree::Float(value)),
                _ => Ok(Tree::Cut(self.evaluator.display(place.ty))),
            },
        }
    }

    fn record(&mut self, place: Place, bytes: &[u8], level: usize) -> Result<Tree, EvalError> {
        let members: Vec<_> = {
            let types = self.evaluator.types();
            let members = types
                .members(place.ty)
                .map_err(|error| EvalError::new(self.span, error))?;
            let named = members
                .into_iter()
                .map(|member| (member.name.map(str::to_owned), member));
            named
                .map(|(name, it)| (name, it.ty, it.bit_offset, it.bit_size))
                .collect()
        };
        let mut shown = Vec::with_capacity(members.len());
        for (name, ty, bit_offset, bit_size) in members {
            let field = typeinfo::Field {
                ty,
                bit_offset,
                bit_size,
            };
            let tree = self
                .field(place, field, bytes, level)
                .unwrap_or_else(|error| Tree::Fault(error.to_string()));
            shown.push((name, tree));
        }
        Ok(Tree::Record {
            ty: self.evaluator.display(place.ty),
            members: shown,
        })
    }

    fn field(
        &mut self,
        of: Place,
        field: typeinfo::Field,
        bytes: &[u8],
        level: usize,
    ) -> Result<Tree, EvalError> {
        let (mut from, size) = match (field.bit_size, field.bit_access()) {
            (Some(_), Some(access)) => (access.byte_offset, access.load_size.into()),
            (Some(bits), None) => {
                return Err(EvalError::other(
                    self.span,
                    format!("a bit-field of {bits} bits"),
                ));
            }
            (None, _) => {
                let size = self
                    .evaluator
                    .types
                    .size(field.ty)
                    .map_err(|error| EvalError::new(self.span, error))?;
                (field.byte_offset(), size)
            }
        };
        let place = of.field(field);
        let mut place = place;
        if let Some((first, bits)) = place.bits {
            // Counted from the first byte that is loaded, which may be before the bit-field's own.
            place.address = of.address.wrapping_add(from);
            let first = u64::from(first) + (field.byte_offset() - from) * 8;
            place.bits = Some((first as u32, bits));
        }
        from = from.min(bytes.len() as u64);
        let end = from.saturating_add(size);
        match bytes.get(from as usize..end as usize) {
            Some(own) => self.decoded(place, own, level + 1),
            // Beyond the bytes that are read of one struct, and the flexible array at its end.
            None => Ok(Tree::Cut(self.evaluator.display(field.ty))),
        }
    }

    fn array(
        &mut self,
        place: Place,
        element: TypeRef,
        count: Option<u64>,
        bytes: &[u8],
        level: usize,
    ) -> Result<Tree, EvalError> {
        if let TypeKind::Int {
            size: 1,
            class: IntClass::Char,
            signed,
        } = self.evaluator.kind(element, self.span)?
        {
            let end = bytes.iter().position(|byte| *byte == 0);
            let text = &bytes[..end.unwrap_or(bytes.len())];
            // `uint8_t` is a character in debug information, but seldom one for its users.
            let is_text = signed || !text.is_empty() && printable::is_plain(text);
            return Ok(if is_text {
                self.text(text)
            } else {
                self.bytes(bytes)
            });
        }
        let size = self
            .evaluator
            .types
            .size(element)
            .map_err(|error| EvalError::new(self.span, error))?;
        let count = count.unwrap_or(0);
        let shown = count
            .min(self.shape.elements as u64)
            .min((bytes.len() as u64).checked_div(size).unwrap_or(0));
        let mut elements = Vec::new();
        for index in 0..shown {
            let from = index * size;
            let own = &bytes[from as usize..(from + size) as usize];
            elements.push(self.decoded(
                Place::new(place.address.wrapping_add(from), element),
                own,
                level + 1,
            )?);
        }
        Ok(Tree::Array {
            elements,
            left_out: count - shown,
        })
    }
}
