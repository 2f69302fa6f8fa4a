//! Operators, elements and casts. As in scripts, numbers are computed in 64 bits, signed if one of
//! both is; pointers move by the size of their target.

use bt_lang::Span;
use bt_lang::ast::{self, BinaryOp, Expr, UnaryOp};
use typeinfo::{IntClass, TypeKind, TypeRef};

use super::{CompiledExpr, Compiler, Node};
use crate::eval::code::{Binary, Code, Element, check_index, is_comparison, is_result_signed};
use crate::eval::dynamic::Dynamic;
use crate::eval::error::EvalError;
use crate::eval::load::{extend, is_signed};

/// Address of the elements, their type, and their number if that is known.
pub(super) type Elements = (Code, TypeRef, Option<u64>);

impl Compiler<'_, '_> {
    pub(super) fn index(
        &self,
        base: CompiledExpr,
        index: CompiledExpr,
        span: Span,
    ) -> Result<Node, EvalError> {
        let (index, base_span) = (self.value(index)?, base.span);
        let (at, element, count) = match self.elements(base)? {
            Ok(known) if matches!(index.node, Node::Number { .. }) => known,
            Ok((at, element, count)) => {
                let node = self.array(at, element, count, base_span)?;
                return Ok(Node::dynamic(Dynamic::Element(
                    CompiledExpr {
                        node,
                        span: base_span,
                    },
                    index,
                )));
            }
            Err(base) => return Ok(Node::dynamic(Dynamic::Element(base, index))),
        };
        let size = self
            .evaluator
            .types
            .size(element)
            .map_err(|error| EvalError::new(span, error))?;
        let at = match index.node {
            Node::Number {
                code: Code::Int(number),
                ..
            } => {
                check_index(number, count, index.span)?;
                at.plus((number as u64).wrapping_mul(size))
            }
            Node::Number { code, .. } => Code::Element(Box::new(Element {
                base: at,
                index: code,
                size,
                count,
                span: index.span,
            })),
            // An index that is not a number was left to the run.
            _ => at,
        };
        Ok(Node::Place {
            at,
            ty: element,
            bits: None,
        })
    }

    /// Returns the elements of an array or behind a pointer. Returns the operand if it is neither,
    /// or if its type is known only once it has a value.
    pub(super) fn elements(
        &self,
        base: CompiledExpr,
    ) -> Result<Result<Elements, CompiledExpr>, EvalError> {
        let span = base.span;
        if let Node::Place { ty, .. } = &base.node
            && let TypeKind::Array { element, count } = self.evaluator.kind(*ty, span)?
            && let Node::Place { at, .. } = base.node
        {
            return Ok(Ok((at, element, count)));
        }
        let base = self.value(base)?;
        Ok(match base.node {
            Node::Number { code, ty } => match self.target(ty, span)? {
                Some(target) => Ok((code, target, None)),
                None => Err(CompiledExpr {
                    node: Node::Number { code, ty },
                    span,
                }),
            },
            node => Err(CompiledExpr { node, span }),
        })
    }

    /// Returns the array, or the pointer, that has these elements.
    fn array(
        &self,
        at: Code,
        element: TypeRef,
        count: Option<u64>,
        span: Span,
    ) -> Result<Node, EvalError> {
        if count.is_none() {
            return self.pointer(at, element, span);
        }
        let ty = self.evaluator.types.array_of(element, count);
        Ok(Node::Place {
            at,
            ty: ty.map_err(|error| EvalError::new(span, error))?,
            bits: None,
        })
    }

    pub(super) fn unary(
        &self,
        op: UnaryOp,
        operand: CompiledExpr,
        span: Span,
    ) -> Result<Node, EvalError> {
        match op {
            UnaryOp::Deref => return self.deref(operand),
            UnaryOp::AddrOf => {
                return match operand.node {
                    Node::Place { at, ty, bits: None } => self.pointer(at, ty, span),
                    Node::Place { .. } => {
                        Err(EvalError::other(operand.span, "a bit-field has no address"))
                    }
                    Node::Dynamic(_) => Ok(Node::dynamic(Dynamic::AddressOf(operand))),
                    _ => Err(EvalError::other(
                        operand.span,
                        "this is a value, which has no address",
                    )),
                };
            }
            _ => {}
        }
        let CompiledExpr {
            node,
            span: operand_span,
        } = self.value(operand)?;
        let types = &self.evaluator.types;
        Ok(match (op, node) {
            (UnaryOp::Not, Node::Number { code, .. } | Node::Text(code)) => Node::Number {
                code: Code::Unary(op, false, Box::new(code)),
                ty: types.bool,
            },
            (UnaryOp::Neg | UnaryOp::BitNot, Node::Number { code, ty }) => {
                let signed =
                    op == UnaryOp::Neg || is_signed(self.evaluator.kind(ty, operand_span)?);
                let ty = if signed { types.i64 } else { types.u64 };
                Node::Number {
                    code: Code::Unary(op, signed, Box::new(code)),
                    ty,
                }
            }
            (_, node) => Node::dynamic(Dynamic::Unary(
                op,
                CompiledExpr {
                    node,
                    span: operand_span,
                },
            )),
        })
    }

    fn deref(&self, operand: CompiledExpr) -> Result<Node, EvalError> {
        let span = operand.span;
        match self.elements(operand)? {
            Ok((at, ty, _)) => Ok(Node::Place { at, ty, bits: None }),
            // Functions and objects without a type are decided at run time.
            Err(operand) if matches!(operand.node, Node::Place { .. } | Node::Dynamic(_)) => {
                Ok(Node::dynamic(Dynamic::Deref(operand)))
            }
            Err(operand) => Err(EvalError::other(
                span,
                format!("{} is not a pointer", self.describe(&operand.node)),
            )
            .with_hint("a number can be cast to one: *(struct x *)ADDRESS")),
        }
    }

    pub(super) fn binary(
        &self,
        op: BinaryOp,
        left: CompiledExpr,
        right: CompiledExpr,
        span: Span,
    ) -> Result<Node, EvalError> {
        let (left, right) = (self.value(left)?, self.value(right)?);
        let ty = self.evaluator.types.bool;
        match (left.node, right.node) {
            (
                Node::Number { code: one, .. } | Node::Text(one),
                Node::Number { code: other, .. } | Node::Text(other),
            ) if matches!(op, BinaryOp::LogAnd | BinaryOp::LogOr) => {
                let (one, other) = (Box::new(one), Box::new(other));
                let code = if op == BinaryOp::LogAnd {
                    Code::And(one, other)
                } else {
                    Code::Or(one, other)
                };
                Ok(Node::Number { code, ty })
            }
            (Node::Text(one), Node::Text(other)) if matches!(op, BinaryOp::Eq | BinaryOp::Ne) => {
                let same = Code::Same(Box::new(one), Box::new(other));
                let code = if op == BinaryOp::Eq {
                    same
                } else {
                    Code::Unary(UnaryOp::Not, false, Box::new(same))
                };
                Ok(Node::Number { code, ty })
            }
            (
                Node::Number { code: one, ty },
                Node::Number {
                    code: other,
                    ty: other_ty,
                },
            ) => self.numbers(op, (one, ty, left.span), (other, other_ty, right.span)),
            (one, other) => {
                let (left, right) = (
                    CompiledExpr {
                        node: one,
                        span: left.span,
                    },
                    CompiledExpr {
                        node: other,
                        span: right.span,
                    },
                );
                Ok(Node::dynamic(Dynamic::Binary(op, left, right, span)))
            }
        }
    }

    /// Compiles an operation on two numbers. Pointers move by the size of their target.
    fn numbers(
        &self,
        op: BinaryOp,
        (one, ty, span): (Code, TypeRef, Span),
        (other, other_ty, other_span): (Code, TypeRef, Span),
    ) -> Result<Node, EvalError> {
        let types = &self.evaluator.types;
        let binary = |op, signed, one, other| {
            Code::Binary(Box::new(Binary {
                op,
                signed,
                one,
                other,
                span: other_span,
            }))
        };
        let times = |code, size: i128| binary(BinaryOp::Mul, true, code, Code::Int(size));
        let step = |target| self.evaluator.step_size(target, other_span);
        match (
            op,
            self.target(ty, span)?,
            self.target(other_ty, other_span)?,
        ) {
            (BinaryOp::Add | BinaryOp::Sub, Some(target), None) => Ok(Node::Number {
                code: binary(op, false, one, times(other, step(target)?)),
                ty,
            }),
            (BinaryOp::Add, None, Some(target)) => Ok(Node::Number {
                code: binary(op, false, other, times(one, step(target)?)),
                ty: other_ty,
            }),
            (BinaryOp::Sub, Some(target), Some(_)) => {
                let distance = binary(op, true, one, other);
                let code = binary(BinaryOp::Div, true, distance, Code::Int(step(target)?));
                Ok(Node::Number {
                    code,
                    ty: types.i64,
                })
            }
            _ if is_comparison(op) => Ok(Node::Number {
                code: binary(op, false, one, other),
                ty: types.bool,
            }),
            _ => {
                let is_signed =
                    |ty, span| Ok::<_, EvalError>(is_signed(self.evaluator.kind(ty, span)?));
                let signed =
                    is_result_signed(op, is_signed(ty, span)?, is_signed(other_ty, other_span)?);
                let ty = if signed { types.i64 } else { types.u64 };
                Ok(Node::Number {
                    code: binary(op, signed, one, other),
                    ty,
                })
            }
        }
    }

    /// Compiles `(type)operand`.
    pub(super) fn cast(
        &self,
        ty: &ast::Type,
        operand: &Expr,
        span: Span,
    ) -> Result<Node, EvalError> {
        let target = self.written(ty).map_err(|error| match &ty.kind {
            ast::TypeKind::Name(name)
                if self
                    .evaluator
                    .global(name, ty.span)
                    .is_ok_and(|found| found.is_some()) =>
            {
                error.with_hint(format!(
                    "{name} is a variable: without parentheses around it, this is no cast"
                ))
            }
            _ => error,
        })?;
        let value = self.value(self.compile(operand)?)?;
        let kind = self.evaluator.kind(target, span)?;
        let bits = match kind {
            TypeKind::Int {
                class: IntClass::Bool,
                ..
            } => None,
            TypeKind::Int { size, .. }
            | TypeKind::Enum { size, .. }
            | TypeKind::Pointer { size, .. } => Some(size * 8),
            _ => None,
        };
        Ok(match (value.node, bits) {
            (
                Node::Number {
                    code: Code::Int(number),
                    ..
                },
                Some(bits),
            ) => {
                let number = extend(number.cast_unsigned(), bits, is_signed(kind));
                Node::Number {
                    code: Code::Int(number),
                    ty: target,
                }
            }
            (Node::Number { code, .. }, Some(bits)) => Node::Number {
                code: Code::Wrap(Box::new(code), bits, is_signed(kind)),
                ty: target,
            },
            (node, _) => Node::dynamic(Dynamic::Cast(
                target,
                CompiledExpr {
                    node,
                    span: value.span,
                },
                span,
            )),
        })
    }
}
