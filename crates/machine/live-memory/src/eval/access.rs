//! From one place to another: members, elements, targets of pointers.

use bt_lang::Span;
use bt_lang::ast::Name;
use typeinfo::{TypeKind, TypeRef};

use super::Evaluator;
use super::code::check_index;
use super::error::EvalError;
use super::load::{extend, is_signed};
use super::value::{Operand, Place, Value};

impl Evaluator<'_> {
    /// Returns a member of a struct.
    pub(crate) fn member_of(&self, record: Place, name: &Name) -> Result<Place, EvalError> {
        let field = self
            .types
            .member(record.ty, &name.text)
            .map_err(|error| EvalError::new(name.span, error))?;
        Ok(record.field(field))
    }

    /// Returns a member of a place by its name (`a`, or a path `a.b`), for walks without an
    /// expression.
    pub fn field(&self, place: Place, path: &str) -> Result<Place, EvalError> {
        let mut steps = path.split('.');
        steps.try_fold(place, |at, name| {
            self.member_of(at, &Name::new(name, Span::default()))
        })
    }

    /// Returns the struct or union that an operand is or points to.
    pub(crate) fn record(&self, operand: Operand, span: Span) -> Result<Place, EvalError> {
        if let Operand::Place(place) = operand
            && let TypeKind::Struct { .. } | TypeKind::Union { .. } | TypeKind::Forward { .. } =
                self.kind(place.ty, span)?
        {
            return Ok(place);
        }
        let value = self.value(operand, span)?;
        let pointed = self
            .elements(&value, span)
            .ok()
            .map(|(address, ty, _)| Place::new(address, ty));
        pointed.ok_or_else(|| {
            let what = self.describe(&value);
            EvalError::other(
                span,
                format!("{what} has no members: expected a struct, a union or a pointer to one"),
            )
        })
    }

    /// Returns the target of a value, if it is a pointer.
    pub fn pointed(&self, value: &Value, span: Span) -> Result<Option<Place>, EvalError> {
        let Value::Int { value, ty } = value else {
            return Ok(None);
        };
        let TypeKind::Pointer { target, .. } = self.kind(*ty, span)? else {
            return Ok(None);
        };
        Ok(Some(Place::new(*value as u64, target)))
    }

    /// Computes `*operand`.
    pub(crate) fn deref(&self, value: &Value, span: Span) -> Result<Operand, EvalError> {
        if let Some(place) = self.pointed(value, span)? {
            return Ok(Operand::Place(place));
        }
        if let Value::Place(place) = value {
            match self.kind(place.ty, span)? {
                TypeKind::Array { element, .. } => {
                    return Ok(Operand::Place(Place::new(place.address, element)));
                }
                TypeKind::Func { .. } => return Ok(Operand::Place(*place)),
                _ => {}
            }
        }
        let what = self.describe(value);
        Err(EvalError::other(span, format!("{what} is not a pointer"))
            .with_hint("a number can be cast to one: *(struct x *)ADDRESS"))
    }

    /// Computes `&operand`.
    pub(crate) fn address_of(&self, operand: &Operand, span: Span) -> Result<Value, EvalError> {
        match operand {
            Operand::Place(Place { bits: Some(_), .. }) => {
                Err(EvalError::other(span, "a bit-field has no address"))
            }
            Operand::Place(place) => Ok(self.pointer(*place)),
            Operand::Value(_) => Err(EvalError::other(
                span,
                "this is a value, which has no address",
            )),
        }
    }

    /// Computes `base[index]`.
    pub(crate) fn element(
        &self,
        value: &Value,
        span: Span,
        index: &Value,
        index_span: Span,
    ) -> Result<Operand, EvalError> {
        let number = index
            .number()
            .ok_or_else(|| EvalError::other(index_span, "expected a number"))?;
        match value {
            Value::Tuple(parts) => {
                let part = usize::try_from(number)
                    .ok()
                    .and_then(|index| parts.get(index))
                    .cloned();
                part.map(Operand::from).ok_or_else(|| {
                    EvalError::other(
                        index_span,
                        format!("there is no element {number} of {}", parts.len()),
                    )
                })
            }
            Value::Text(bytes) | Value::Bytes(bytes) => {
                let byte = usize::try_from(number)
                    .ok()
                    .and_then(|index| bytes.get(index));
                let byte = byte.map(|byte| Value::Int {
                    value: (*byte).into(),
                    ty: self.types.u64,
                });
                byte.map(Operand::Value).ok_or_else(|| {
                    EvalError::other(
                        index_span,
                        format!("there is no byte {number} of {}", bytes.len()),
                    )
                })
            }
            _ => {
                let (start, element, count) = self.elements(value, span)?;
                check_index(number, count, index_span)?;
                let size = self
                    .types
                    .size(element)
                    .map_err(|error| EvalError::new(span, error))?;
                let address = start.wrapping_add((number as u64).wrapping_mul(size));
                Ok(Operand::Place(Place::new(address, element)))
            }
        }
    }

    /// Returns the address of the elements of an array or behind a pointer, their type, and their
    /// number if that is known.
    pub(crate) fn elements(
        &self,
        value: &Value,
        span: Span,
    ) -> Result<(u64, TypeRef, Option<u64>), EvalError> {
        if let Some(place) = self.pointed(value, span)? {
            return Ok((place.address, place.ty, None));
        }
        if let Value::Place(place) = value
            && let TypeKind::Array { element, count } = self.kind(place.ty, span)?
        {
            return Ok((place.address, element, count));
        }
        let what = self.describe(value);
        Err(EvalError::other(
            span,
            format!("{what} has no elements: expected an array or a pointer"),
        ))
    }

    /// Converts a value to another type.
    pub(crate) fn convert(
        &self,
        value: Value,
        ty: TypeRef,
        span: Span,
    ) -> Result<Value, EvalError> {
        let kind = self.kind(ty, span)?;
        let no = |what: String| {
            let hint = "a struct is reached through a pointer: *(struct x *)ADDRESS";
            Err(EvalError::other(
                span,
                format!("{what} can't be cast to {}", self.display(ty)),
            )
            .with_hint(hint))
        };
        if let TypeKind::Float { .. } = kind {
            return match value {
                Value::Int { value, .. } => Ok(Value::Float {
                    value: value as f64,
                    ty,
                }),
                Value::Float { value, .. } => Ok(Value::Float { value, ty }),
                other => no(self.describe(&other)),
            };
        }
        let bits = match kind {
            TypeKind::Int {
                class: typeinfo::IntClass::Bool,
                ..
            } => {
                return Ok(Value::Int {
                    value: self.is_true(&value, span)?.into(),
                    ty,
                });
            }
            TypeKind::Int { size, .. }
            | TypeKind::Enum { size, .. }
            | TypeKind::Pointer { size, .. } => size * 8,
            _ => return no(self.describe(&value)),
        };
        let number = match &value {
            Value::Int { value, .. } => *value,
            // As in C, the fraction is cut off.
            Value::Float { value, .. } => *value as i128,
            Value::Place(place) if self.decays(*place, span)? => place.address.into(),
            other => return no(self.describe(other)),
        };
        Ok(Value::Int {
            value: extend(number.cast_unsigned(), bits, is_signed(kind)),
            ty,
        })
    }

    /// Returns true if C uses the address of a place for its value: for arrays and functions.
    pub(crate) fn decays(&self, place: Place, span: Span) -> Result<bool, EvalError> {
        Ok(matches!(
            self.kind(place.ty, span)?,
            TypeKind::Array { .. } | TypeKind::Func { .. }
        ))
    }

    /// Describes a value, for messages.
    pub(crate) fn describe(&self, value: &Value) -> String {
        match value {
            Value::Int { ty, .. } | Value::Float { ty, .. } => {
                format!("a value of type {}", self.display(*ty))
            }
            Value::Place(place) => self.display(place.ty),
            Value::Text(_) => "a text".to_owned(),
            Value::Bytes(_) => "a buffer".to_owned(),
            Value::Tuple(_) => "a tuple".to_owned(),
            Value::Nothing => "nothing".to_owned(),
        }
    }
}
