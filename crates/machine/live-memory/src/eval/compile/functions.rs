//! Functions: those of `inspect`, and those of object specs.

use bt_lang::ast::{Expr, ExprKind, Name, TypeOrExpr};
use typeinfo::TypeRef;

use super::{CompiledExpr, Compiler, Node};
use crate::eval::calls;
use crate::eval::code::Code;
use crate::eval::dynamic::Dynamic;
use crate::eval::error::{EvalError, Fault};

impl Compiler<'_, '_> {
    /// Compiles the text of a value: the value itself, or the text that it points to.
    pub(crate) fn text(&self, compiled: CompiledExpr) -> Result<Code, EvalError> {
        let compiled = self.value(compiled)?;
        let span = compiled.span;
        match compiled.node {
            Node::Text(code) => Ok(code),
            Node::Number { code, ty }
                if let Some(target) = self.target(ty, span)?
                    && self.is_char(target, span)? =>
            {
                Ok(Code::Pointed(Box::new(code)))
            }
            _ => Err(EvalError::other(span, "it is not a text")),
        }
    }

    /// Compiles a call.
    pub(super) fn call(&self, func: &Name, args: &[Expr], expr: &Expr) -> Result<Node, EvalError> {
        if self.scope.is_some() {
            return self.call_of_spec(func, args);
        }
        let dynamic = match (func.text.as_str(), args) {
            (
                "uaddr",
                [
                    Expr {
                        kind: ExprKind::Str(name),
                        span,
                    },
                ],
            ) => {
                return self
                    .evaluator
                    .uaddr(name, *span)
                    .map(|value| Node::constant(&value));
            }
            ("str", [from]) => Dynamic::Str(self.compile(from)?, None),
            ("str", [from, length]) => {
                Dynamic::Str(self.compile(from)?, Some(self.compile(length)?))
            }
            ("buf", [from]) => Dynamic::Buf(self.compile(from)?, None),
            ("buf", [from, length]) => {
                Dynamic::Buf(self.compile(from)?, Some(self.compile(length)?))
            }
            ("list", [head, link]) => self.list(head, None, link)?,
            (
                "list",
                [
                    head,
                    Expr {
                        kind: ExprKind::TypeArg(of),
                        ..
                    },
                    link,
                ],
            ) => {
                let Some(element) = self.type_of(of)? else {
                    return Ok(Node::dynamic(Dynamic::Late(expr.clone())));
                };
                self.list(head, Some(element), link)?
            }
            ("len", [of]) => Dynamic::Len(self.compile(of)?),
            (
                "container_of",
                [
                    from,
                    Expr {
                        kind: ExprKind::TypeArg(of),
                        ..
                    },
                    member,
                ],
            ) => {
                return self.container_of(from, of, member, expr);
            }
            (name, _) => return Err(calls::wrong_call(name, func.span, expr.span)),
        };
        Ok(Node::dynamic(dynamic))
    }

    /// Compiles a list: its head, the type of its elements if one is given, and the path to the
    /// pointer to the next one.
    fn list(
        &self,
        head: &Expr,
        element: Option<TypeRef>,
        link: &Expr,
    ) -> Result<Dynamic, EvalError> {
        Ok(Dynamic::List {
            head: self.compile(head)?,
            element,
            link: calls::path(link)?,
            link_span: link.span,
        })
    }

    fn container_of(
        &self,
        from: &Expr,
        of: &TypeOrExpr,
        member: &Expr,
        expr: &Expr,
    ) -> Result<Node, EvalError> {
        let Some(ty) = self.type_of(of)? else {
            return Ok(Node::dynamic(Dynamic::Late(expr.clone())));
        };
        let from = self.compile(from)?;
        let field = self.evaluator.types.store().path(ty, &calls::path(member)?);
        let offset = field
            .map_err(|error| EvalError::new(member.span, error))?
            .byte_offset();
        let from = self.value(from)?;
        match from.node {
            Node::Number { code, .. } => {
                self.pointer(code.plus(offset.wrapping_neg()), ty, from.span)
            }
            _ => Ok(Node::dynamic(Dynamic::ContainerOf(from, ty, offset))),
        }
    }

    /// Compiles a call of a function of object specs.
    fn call_of_spec(&self, func: &Name, args: &[Expr]) -> Result<Node, EvalError> {
        match (func.text.as_str(), args) {
            (
                "uaddr",
                [
                    Expr {
                        kind: ExprKind::Str(name),
                        span,
                    },
                ],
            ) => {
                let name = String::from_utf8_lossy(name);
                let place = self.evaluator.global(&name, *span)?;
                let missing =
                    || EvalError::other(*span, format!("the program has no symbol {name}"));
                let place = place.ok_or_else(missing)?;
                self.pointer(Code::Int(place.address.into()), place.ty, *span)
            }
            ("str", [text]) => self.text(self.compile(text)?).map(Node::Text),
            (
                "strncmp",
                [
                    one,
                    other,
                    Expr {
                        kind: ExprKind::Int(count),
                        ..
                    },
                ],
            ) => {
                let (one, other) = (
                    self.text(self.compile(one)?)?,
                    self.text(self.compile(other)?)?,
                );
                let count = usize::try_from(count.value).unwrap_or(usize::MAX);
                let code = Code::Differ(Box::new(one), Box::new(other), count);
                Ok(Node::Number {
                    code,
                    ty: self.evaluator.types.i64,
                })
            }
            (name, _) => {
                let message = format!(
                    "the call {name}() is not possible here: only str(), strncmp() and uaddr() are"
                );
                Err(EvalError::new(func.span, Fault::Other(message)))
            }
        }
    }
}
