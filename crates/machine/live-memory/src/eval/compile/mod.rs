//! Compiles expressions once: names and members are looked up, and parts with known types become
//! [`Code`]. Parts that depend on values (variables without a type, floating-point numbers, tuples,
//! lists) become [`Dynamic`].

mod functions;
mod operators;
mod types;

use bt_lang::Span;
use bt_lang::ast::{Expr, ExprKind, Name};
use typeinfo::{Field, TypeKind, TypeRef};

use super::code::{Code, Load};
use super::dynamic::Dynamic;
use super::error::EvalError;
use super::load::is_signed;
use super::value::{Operand, Place, Value};
use super::{Evaluator, Scope};

/// A compiled expression.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct CompiledExpr {
    pub(crate) node: Node,
    pub(crate) span: Span,
}

/// Compiled form of an expression.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Node {
    /// An object in memory.
    Place {
        at: Code,
        ty: TypeRef,
        /// First bit behind the address, and number of bits, for a bit-field.
        bits: Option<(u32, u32)>,
    },
    /// A number, a truth value, an enumerator or a pointer.
    Number {
        code: Code,
        ty: TypeRef,
    },
    Text(Code),
    /// An expression that depends on values.
    Dynamic(Box<Dynamic>),
}

impl Node {
    /// Makes a node of a known value.
    fn constant(value: &Value) -> Self {
        match value {
            Value::Int { value, ty } => Self::Number {
                code: Code::Int(*value),
                ty: *ty,
            },
            Value::Text(text) => Self::Text(Code::Text(text.clone())),
            other => Self::dynamic(Dynamic::Value(other.clone())),
        }
    }

    fn dynamic(dynamic: Dynamic) -> Self {
        Self::Dynamic(Box::new(dynamic))
    }
}

/// Compiler of expressions.
#[derive(Clone, Copy)]
pub(crate) struct Compiler<'c, 'a> {
    pub(crate) evaluator: &'c Evaluator<'a>,
    /// Variables, if all types must be known.
    pub(crate) scope: Option<&'c Scope>,
    /// True if an expression whose type is wanted may be run for that.
    pub(crate) late: bool,
}

impl Compiler<'_, '_> {
    pub(crate) fn compile(&self, expr: &Expr) -> Result<CompiledExpr, EvalError> {
        Ok(CompiledExpr {
            node: self.node(expr)?,
            span: expr.span,
        })
    }

    /// Compiles the choice between two arms. An error in one of them counts only if that arm is
    /// reached.
    fn choice(
        &self,
        cond: &Expr,
        then: Option<&Expr>,
        otherwise: &Expr,
    ) -> Result<Node, EvalError> {
        let arm = |expr: &Expr| {
            let failed = |error| CompiledExpr {
                node: Node::dynamic(Dynamic::Fail(error)),
                span: expr.span,
            };
            self.compile(expr).unwrap_or_else(failed)
        };
        let then = then.map(arm);
        Ok(Node::dynamic(Dynamic::If {
            cond: self.compile(cond)?,
            then,
            otherwise: arm(otherwise),
        }))
    }

    fn node(&self, expr: &Expr) -> Result<Node, EvalError> {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Int(literal) => Ok(Node::constant(&self.evaluator.literal(literal.value))),
            ExprKind::Bool(value) => Ok(Node::constant(&self.evaluator.truth(*value))),
            ExprKind::Str(text) => Ok(Node::Text(Code::Text(text.clone()))),
            ExprKind::Ident(name) => self.name(name, span),
            ExprKind::Var(name) => self.variable(name, span),
            ExprKind::Call { func, args } => self.call(func, args, expr),
            ExprKind::Unary { op, operand } => self.unary(*op, self.compile(operand)?, span),
            ExprKind::Binary {
                op, left, right, ..
            } => self.binary(*op, self.compile(left)?, self.compile(right)?, span),
            ExprKind::Ternary {
                cond,
                then,
                otherwise,
            } => self.choice(cond, then.as_deref(), otherwise),
            ExprKind::Cast { ty, operand } => self.cast(ty, operand, span),
            ExprKind::Sizeof(of) => self.type_query(of, expr, |ty| self.evaluator.types.size(ty)),
            ExprKind::Offsetof { of, path } => {
                let path: Vec<&str> = path.iter().map(|name| name.text.as_str()).collect();
                let types = &self.evaluator.types;
                self.type_query(of, expr, |ty| {
                    types
                        .store()
                        .path(ty, &path.join("."))
                        .map(|field| field.byte_offset())
                })
            }
            ExprKind::Field { base, name, .. } => self.field(self.compile(base)?, name),
            ExprKind::Index { base, index } => {
                self.index(self.compile(base)?, self.compile(index)?, span)
            }
            ExprKind::Tuple(parts) => {
                let parts: Result<_, _> = parts.iter().map(|part| self.compile(part)).collect();
                Ok(Node::dynamic(Dynamic::Tuple(parts?)))
            }
            ExprKind::TupleField { base, index } => Ok(Node::dynamic(Dynamic::Part(
                self.compile(base)?,
                *index as usize,
            ))),
            ExprKind::Comptime(inner) => self.node(inner),
            _ => Err(EvalError::other(
                span,
                "this is only for scripts of `dptrace run`",
            )),
        }
    }

    fn name(&self, name: &str, span: Span) -> Result<Node, EvalError> {
        if self.scope.is_some() {
            let message =
                format!("{name} has no type here: write (struct TYPE *)uaddr(\"{name}\")");
            return Err(EvalError::other(span, message));
        }
        Ok(match self.evaluator.name(name, span)? {
            Operand::Place(Place { address, ty, bits }) => Node::Place {
                at: Code::Int(address.into()),
                ty,
                bits,
            },
            Operand::Value(value) => Node::constant(&value),
        })
    }

    fn variable(&self, name: &str, span: Span) -> Result<Node, EvalError> {
        let Some(scope) = self.scope else {
            return Ok(Node::dynamic(Dynamic::Variable(name.to_owned())));
        };
        let index = scope.vars.iter().position(|(known, _)| known == name);
        let index = index
            .ok_or_else(|| EvalError::other(span, format!("no loop has the variable ${name}")))?;
        self.pointer(Code::Var(index), scope.vars[index].1, span)
    }

    /// Returns a pointer to something of this type.
    pub(crate) fn pointer(
        &self,
        code: Code,
        target: TypeRef,
        span: Span,
    ) -> Result<Node, EvalError> {
        let ty = self
            .evaluator
            .types
            .pointer_to(target)
            .map_err(|error| EvalError::new(span, error))?;
        Ok(Node::Number { code, ty })
    }

    /// Loads an object in memory as a number or a text, if it is one.
    pub(crate) fn value(&self, compiled: CompiledExpr) -> Result<CompiledExpr, EvalError> {
        let span = compiled.span;
        let Node::Place { at, ty, bits } = compiled.node else {
            return Ok(compiled);
        };
        let node = match self.evaluator.kind(ty, span)? {
            kind @ (TypeKind::Int { size, .. }
            | TypeKind::Enum { size, .. }
            | TypeKind::Pointer { size, .. })
                if size <= 8 =>
            {
                match access(ty, bits, size as u8) {
                    Some((offset, size, shift, bits)) => {
                        let at = at.plus(offset);
                        // The names of types are only needed for messages.
                        let what = if self.scope.is_some() {
                            String::new()
                        } else {
                            self.evaluator.display(ty)
                        };
                        let load = Load {
                            at,
                            size,
                            shift,
                            bits,
                            signed: is_signed(kind),
                            what,
                            span,
                        };
                        Node::Number {
                            code: Code::Load(Box::new(load)),
                            ty,
                        }
                    }
                    None => Node::Place { at, ty, bits },
                }
            }
            TypeKind::Array {
                element,
                count: Some(count),
            } if self.scope.is_some() && self.is_char(element, span)? => {
                Node::Text(Code::Chars(Box::new(at), count))
            }
            TypeKind::Array { element, .. } if self.scope.is_some() => {
                self.pointer(at, element, span)?
            }
            _ => Node::Place { at, ty, bits },
        };
        Ok(CompiledExpr { node, span })
    }

    /// Compiles a member of a struct, or of the struct that a pointer points to.
    fn field(&self, base: CompiledExpr, name: &Name) -> Result<Node, EvalError> {
        let span = base.span;
        if matches!(base.node, Node::Dynamic(_)) {
            return Ok(Node::dynamic(Dynamic::Member(base, name.clone())));
        }
        let is_record = match &base.node {
            Node::Place { ty, bits: None, .. } => self.is_record(*ty, span)?,
            _ => false,
        };
        let (at, ty) = match base.node {
            Node::Place { at, ty, .. } if is_record => (at, ty),
            _ => match self.elements(base)? {
                Ok((at, element, _)) => (at, element),
                Err(other) => {
                    let what = self.describe(&other.node);
                    let message = format!(
                        "{what} has no members: expected a struct, a union or a pointer to one"
                    );
                    return Err(EvalError::other(span, message));
                }
            },
        };
        let field = self
            .evaluator
            .types
            .member(ty, &name.text)
            .map_err(|error| EvalError::new(name.span, error))?;
        let bits = field
            .bit_size
            .map(|size| ((field.bit_offset % 8) as u32, size));
        Ok(Node::Place {
            at: at.plus(field.byte_offset()),
            ty: field.ty,
            bits,
        })
    }

    fn describe(&self, node: &Node) -> String {
        match node {
            Node::Number { ty, .. } => format!("a value of type {}", self.evaluator.display(*ty)),
            Node::Place { ty, .. } => self.evaluator.display(*ty),
            Node::Text(_) => "a text".to_owned(),
            Node::Dynamic(_) => "this".to_owned(),
        }
    }
}

/// Returns the load of a number: byte offset from its address, size in bytes, first bit, number of
/// bits. `None` if it can't be loaded.
fn access(ty: TypeRef, bits: Option<(u32, u32)>, size: u8) -> Option<(u64, u8, u32, u32)> {
    let Some((first, bits)) = bits else {
        return Some((0, size, 0, u32::from(size) * 8));
    };
    let access = Field {
        ty,
        bit_offset: first.into(),
        bit_size: Some(bits),
    }
    .bit_access()?;
    let size = u8::try_from(access.load_size)
        .ok()
        .filter(|size| *size <= 8)?;
    Some((access.byte_offset, size, access.shift, access.bits))
}
