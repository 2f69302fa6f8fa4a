//! Parts of a compiled expression that depend on values: each is computed at run time.

use bt_lang::Span;
use bt_lang::ast::{BinaryOp, Expr, Name, UnaryOp};
use typeinfo::TypeRef;

use super::Evaluator;
use super::code::Machine;
use super::compile::{CompiledExpr, Compiler, Node};
use super::error::{EvalError, Fault};
use super::value::{Operand, Place, Value};

/// Limit on the nesting of tuples: a loop can put one into the next for ever.
const MAX_TUPLES: usize = 32;
/// Limit on all the parts of a tuple.
const MAX_PARTS: usize = 1 << 20;

/// An operation at run time.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Dynamic {
    Value(Value),
    Variable(String),
    Fail(EvalError),
    /// An expression that names the type of something whose type only the value shows.
    Late(Expr),
    Member(CompiledExpr, Name),
    Deref(CompiledExpr),
    AddressOf(CompiledExpr),
    Element(CompiledExpr, CompiledExpr),
    Unary(UnaryOp, CompiledExpr),
    Binary(BinaryOp, CompiledExpr, CompiledExpr, Span),
    Cast(TypeRef, CompiledExpr, Span),
    If {
        cond: CompiledExpr,
        then: Option<CompiledExpr>,
        otherwise: CompiledExpr,
    },
    Tuple(Vec<CompiledExpr>),
    Part(CompiledExpr, usize),
    Str(CompiledExpr, Option<CompiledExpr>),
    Buf(CompiledExpr, Option<CompiledExpr>),
    Len(CompiledExpr),
    List {
        head: CompiledExpr,
        element: Option<TypeRef>,
        link: String,
        link_span: Span,
    },
    /// The struct that has the target of a pointer as a member, this number of bytes behind its
    /// beginning.
    ContainerOf(CompiledExpr, TypeRef, u64),
}

impl Evaluator<'_> {
    /// Runs a compiled expression; a place that it leads to is not read yet.
    pub(crate) fn run(&self, compiled: &CompiledExpr) -> Result<Operand, EvalError> {
        let machine = Machine {
            memory: self.memory,
            vars: &[],
        };
        match &compiled.node {
            Node::Place { at, ty, bits } => Ok(Operand::Place(Place {
                address: at.address(machine)?,
                ty: *ty,
                bits: *bits,
            })),
            Node::Number { code, ty } => Ok(Operand::Value(Value::Int {
                value: code.number(machine)?,
                ty: *ty,
            })),
            Node::Text(code) => Ok(Operand::Value(Value::Text(code.text(machine)?))),
            Node::Dynamic(dynamic) => self.run_dynamic(dynamic, compiled.span),
        }
    }

    /// Computes the value of a compiled expression.
    pub(crate) fn value_of(&self, compiled: &CompiledExpr) -> Result<Value, EvalError> {
        let operand = self.run(compiled)?;
        self.value(operand, compiled.span)
    }

    fn run_dynamic(&self, dynamic: &Dynamic, span: Span) -> Result<Operand, EvalError> {
        match dynamic {
            Dynamic::Value(value) => Ok(value.clone().into()),
            Dynamic::Fail(error) => Err(error.clone()),
            Dynamic::Late(expr) => {
                let compiled = Compiler {
                    evaluator: self,
                    scope: None,
                    late: true,
                }
                .compile(expr)?;
                self.run(&compiled)
            }
            Dynamic::Member(base, name) => {
                let record = self.record(self.run(base)?, base.span)?;
                self.member_of(record, name).map(Operand::Place)
            }
            Dynamic::Deref(operand) => self.deref(&self.value_of(operand)?, operand.span),
            Dynamic::AddressOf(operand) => self
                .address_of(&self.run(operand)?, operand.span)
                .map(Operand::Value),
            Dynamic::Element(base, index) => self.element(
                &self.value_of(base)?,
                base.span,
                &self.value_of(index)?,
                index.span,
            ),
            Dynamic::If {
                cond,
                then,
                otherwise,
            } => {
                let value = self.value_of(cond)?;
                match (self.is_true(&value, cond.span)?, then) {
                    (true, Some(then)) => self.run(then),
                    (true, None) => Ok(value.into()),
                    (false, _) => self.run(otherwise),
                }
            }
            Dynamic::Part(base, index) => match self.value_of(base)? {
                Value::Tuple(mut parts) if *index < parts.len() => {
                    Ok(parts.swap_remove(*index).into())
                }
                _ => Err(EvalError::other(
                    span,
                    format!("this has no element {index}"),
                )),
            },
            other => self.compute(other, span).map(Operand::from),
        }
    }

    /// Computes an operation that gives a value, never a place of its own.
    fn compute(&self, dynamic: &Dynamic, span: Span) -> Result<Value, EvalError> {
        match dynamic {
            Dynamic::Variable(name) => self.variable(name).ok_or_else(|| {
                let hint = format!("give it a value first: ${name} = ...");
                EvalError::new(
                    span,
                    Fault::NoName {
                        kind: "variable",
                        name: format!("${name}"),
                    },
                )
                .with_hint(hint)
            }),
            Dynamic::Unary(op, operand) => {
                self.unary(*op, &self.value_of(operand)?, operand.span, span)
            }
            Dynamic::Binary(op, left, right, span) => self.binary(*op, left, right, *span),
            Dynamic::Cast(ty, operand, span) => self.convert(self.value_of(operand)?, *ty, *span),
            Dynamic::Tuple(parts) => {
                let parts: Result<_, _> = parts.iter().map(|part| self.value_of(part)).collect();
                let tuple = Value::Tuple(parts?);
                if tuple
                    .weight(MAX_TUPLES)
                    .is_none_or(|weight| weight > MAX_PARTS)
                {
                    return Err(EvalError::other(span, "this tuple has too many parts"));
                }
                Ok(tuple)
            }
            Dynamic::Str(from, length) => {
                let value = self.value_of(from)?;
                self.str(&value, self.length(length.as_ref())?, from.span)
            }
            Dynamic::Buf(from, length) => {
                let value = self.value_of(from)?;
                self.buf(&value, self.length(length.as_ref())?, from.span)
            }
            Dynamic::Len(of) => self.len(&self.value_of(of)?, of.span),
            Dynamic::List {
                head,
                element,
                link,
                link_span,
            } => {
                let walk =
                    self.walk(&self.value_of(head)?, *element, link, head.span, *link_span)?;
                let places: Result<Vec<Value>, EvalError> = walk
                    .map(|place| place.map(|place| self.pointer(place)))
                    .collect();
                places.map(Value::Tuple)
            }
            Dynamic::ContainerOf(from, ty, offset) => {
                let inner = self.value_of(from)?.address();
                let inner =
                    inner.ok_or_else(|| EvalError::other(from.span, "expected a pointer"))?;
                Ok(self.pointer(Place::new(inner.wrapping_sub(*offset), *ty)))
            }
            _ => Ok(Value::Nothing),
        }
    }
}
