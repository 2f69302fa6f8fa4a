//! Operators. As in scripts, numbers are computed in 64 bits, signed if one of both is; pointers
//! move by the size of their target.

use std::cmp::Ordering;

use bt_lang::Span;
use bt_lang::ast::{BinaryOp, UnaryOp};
use typeinfo::{TypeKind, TypeRef};

use super::error::EvalError;
use super::load::{extend, is_signed};
use super::value::Value;
use super::{CompiledExpr, Evaluator, code};

/// An operand as a number.
struct Number {
    value: i128,
    signed: bool,
    /// Type of the target, for a pointer or an array.
    target: Option<TypeRef>,
    ty: TypeRef,
}

impl Evaluator<'_> {
    pub(crate) fn truth(&self, value: bool) -> Value {
        Value::Int {
            value: value.into(),
            ty: self.types.bool,
        }
    }

    /// Returns a literal number.
    pub(crate) fn literal(&self, value: u64) -> Value {
        let ty = if i64::try_from(value).is_ok() {
            self.types.i64
        } else {
            self.types.u64
        };
        Value::Int {
            value: value.into(),
            ty,
        }
    }

    /// Returns true if a value counts as true.
    pub fn is_true(&self, value: &Value, span: Span) -> Result<bool, EvalError> {
        match value {
            Value::Float { value, .. } => Ok(*value != 0.0),
            Value::Text(bytes) | Value::Bytes(bytes) => Ok(!bytes.is_empty()),
            other => Ok(self.numeric(other, span)?.value != 0),
        }
    }

    fn numeric(&self, value: &Value, span: Span) -> Result<Number, EvalError> {
        match value {
            Value::Int { value, ty } => {
                let kind = self.kind(*ty, span)?;
                let target = if let TypeKind::Pointer { target, .. } = kind {
                    Some(target)
                } else {
                    None
                };
                Ok(Number {
                    value: *value,
                    signed: is_signed(kind),
                    target,
                    ty: *ty,
                })
            }
            Value::Place(place) if self.decays(*place, span)? => {
                let target = match self.kind(place.ty, span)? {
                    TypeKind::Array { element, .. } => element,
                    _ => TypeRef::VOID,
                };
                let ty = self
                    .types
                    .pointer_to(target)
                    .map_err(|error| EvalError::new(span, error))?;
                Ok(Number {
                    value: place.address.into(),
                    signed: false,
                    target: Some(target),
                    ty,
                })
            }
            other => Err(EvalError::other(
                span,
                format!(
                    "expected a number or a pointer, found {}",
                    self.describe(other)
                ),
            )),
        }
    }

    pub(crate) fn unary(
        &self,
        op: UnaryOp,
        value: &Value,
        operand_span: Span,
        span: Span,
    ) -> Result<Value, EvalError> {
        if let (UnaryOp::Neg, Value::Float { value, ty }) = (op, value) {
            return Ok(Value::Float {
                value: -value,
                ty: *ty,
            });
        }
        match op {
            UnaryOp::Not => Ok(self.truth(!self.is_true(value, operand_span)?)),
            UnaryOp::Neg | UnaryOp::BitNot => {
                let number = self.numeric(value, operand_span)?;
                let signed = op == UnaryOp::Neg || number.signed;
                Ok(self.wrapped(code::unary(op, signed, number.value), signed))
            }
            _ => Err(EvalError::other(
                span,
                "a process is never changed: ++ and -- are only for variables in statements",
            )),
        }
    }

    /// Returns a signed number, such as that of a loop.
    pub(crate) fn signed(&self, value: i128) -> Value {
        self.wrapped(value, true)
    }

    /// Returns a result in 64 bits.
    fn wrapped(&self, value: i128, signed: bool) -> Value {
        let ty = if signed {
            self.types.i64
        } else {
            self.types.u64
        };
        Value::Int {
            value: extend(value.cast_unsigned(), 64, signed),
            ty,
        }
    }

    pub(crate) fn binary(
        &self,
        op: BinaryOp,
        left: &CompiledExpr,
        right: &CompiledExpr,
        span: Span,
    ) -> Result<Value, EvalError> {
        let first = self.value_of(left)?;
        if matches!(op, BinaryOp::LogAnd | BinaryOp::LogOr) {
            let decided = self.is_true(&first, left.span)?;
            if decided == (op == BinaryOp::LogOr) {
                return Ok(self.truth(decided));
            }
            let second = self.value_of(right)?;
            return Ok(self.truth(self.is_true(&second, right.span)?));
        }
        let second = self.value_of(right)?;
        if let Some(result) = self.compare_text(op, &first, &second, span)? {
            return Ok(self.truth(result));
        }
        if let Some(result) = self.floating(op, &first, &second, span)? {
            return Ok(result);
        }
        let (one, other) = (
            self.numeric(&first, left.span)?,
            self.numeric(&second, right.span)?,
        );
        self.apply(op, &one, &other, right.span)
    }

    /// Combines two values for an assignment such as `+=`.
    pub(crate) fn combine(
        &self,
        op: BinaryOp,
        first: &Value,
        second: &Value,
        span: Span,
    ) -> Result<Value, EvalError> {
        let (one, other) = (self.numeric(first, span)?, self.numeric(second, span)?);
        self.apply(op, &one, &other, span)
    }

    fn apply(
        &self,
        op: BinaryOp,
        one: &Number,
        other: &Number,
        span: Span,
    ) -> Result<Value, EvalError> {
        if let Some(result) = self.pointers(op, one, other, span)? {
            return Ok(result);
        }
        let signed = code::is_result_signed(op, one.signed, other.signed);
        let result = code::apply(op, signed, one.value, other.value, span)?;
        Ok(if code::is_comparison(op) {
            self.truth(result != 0)
        } else {
            self.wrapped(result, signed)
        })
    }

    /// Returns the bytes that a pointer to this type moves with each step. As in GCC, a step over
    /// void or a function is a byte.
    pub(crate) fn step_size(&self, target: TypeRef, span: Span) -> Result<i128, EvalError> {
        if matches!(
            self.kind(target, span)?,
            TypeKind::Void | TypeKind::Func { .. }
        ) {
            return Ok(1);
        }
        self.types
            .size(target)
            .map(|size| i128::from(size.max(1)))
            .map_err(|error| EvalError::new(span, error))
    }

    /// Computes `pointer + number`, `pointer - number` or `pointer - pointer`; `None` for other
    /// operands.
    fn pointers(
        &self,
        op: BinaryOp,
        one: &Number,
        other: &Number,
        span: Span,
    ) -> Result<Option<Value>, EvalError> {
        let size = |target| self.step_size(target, span);
        let moved = |by: i128, from: &Number| Value::Int {
            value: extend(from.value.wrapping_add(by).cast_unsigned(), 64, false),
            ty: from.ty,
        };
        match (op, one.target, other.target) {
            (BinaryOp::Add, Some(target), None) => {
                Ok(Some(moved(other.value.wrapping_mul(size(target)?), one)))
            }
            (BinaryOp::Add, None, Some(target)) => {
                Ok(Some(moved(one.value.wrapping_mul(size(target)?), other)))
            }
            (BinaryOp::Sub, Some(target), None) => Ok(Some(moved(
                other.value.wrapping_mul(size(target)?).wrapping_neg(),
                one,
            ))),
            (BinaryOp::Sub, Some(target), Some(_)) => {
                let distance = one
                    .value
                    .wrapping_sub(other.value)
                    .wrapping_div(size(target)?);
                Ok(Some(self.wrapped(distance, true)))
            }
            _ => Ok(None),
        }
    }

    /// Compares texts by `==` or `!=`: of `str()`, strings, and arrays of characters up to their
    /// NUL. `None` if none is a text.
    fn compare_text(
        &self,
        op: BinaryOp,
        one: &Value,
        other: &Value,
        span: Span,
    ) -> Result<Option<bool>, EvalError> {
        if !matches!(one, Value::Text(_)) && !matches!(other, Value::Text(_)) {
            return Ok(None);
        }
        let texts = (self.text(one, span)?, self.text(other, span)?);
        match (op, texts) {
            (BinaryOp::Eq, (Some(one), Some(other))) => Ok(Some(one == other)),
            (BinaryOp::Ne, (Some(one), Some(other))) => Ok(Some(one != other)),
            (_, (Some(_), Some(_))) => Err(EvalError::other(
                span,
                "texts can only be compared with == and !=",
            )),
            _ => Err(
                EvalError::other(span, "a text can only be compared with a text")
                    .with_hint("str(POINTER) reads one"),
            ),
        }
    }

    fn floating(
        &self,
        op: BinaryOp,
        one: &Value,
        other: &Value,
        span: Span,
    ) -> Result<Option<Value>, EvalError> {
        let ty = match (one, other) {
            (Value::Float { ty, .. }, _) | (_, Value::Float { ty, .. }) => *ty,
            _ => return Ok(None),
        };
        let number = |value: &Value| match value {
            Value::Float { value, .. } => Some(*value),
            Value::Int { value, .. } => Some(*value as f64),
            _ => None,
        };
        let (Some(a), Some(b)) = (number(one), number(other)) else {
            return Err(EvalError::other(
                span,
                "a floating-point number can only be combined with a number",
            ));
        };
        let result = match op {
            BinaryOp::Add => a + b,
            BinaryOp::Sub => a - b,
            BinaryOp::Mul => a * b,
            BinaryOp::Div => a / b,
            BinaryOp::Lt => return Ok(Some(self.truth(a < b))),
            BinaryOp::Le => return Ok(Some(self.truth(a <= b))),
            BinaryOp::Gt => return Ok(Some(self.truth(a > b))),
            BinaryOp::Ge => return Ok(Some(self.truth(a >= b))),
            BinaryOp::Eq => {
                return Ok(Some(self.truth(a.partial_cmp(&b) == Some(Ordering::Equal))));
            }
            BinaryOp::Ne => {
                return Ok(Some(self.truth(a.partial_cmp(&b) != Some(Ordering::Equal))));
            }
            _ => {
                return Err(EvalError::other(
                    span,
                    "this operator is not for floating-point numbers",
                ));
            }
        };
        Ok(Some(Value::Float { value: result, ty }))
    }
}
