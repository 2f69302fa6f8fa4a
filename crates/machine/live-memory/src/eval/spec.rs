//! Expressions whose types are all known when they are compiled, so that they run over memory many
//! times without types: those of object specs.

use std::fmt;

use bt_lang::Span;
use bt_lang::ast::Expr;
use typeinfo::{NameKind, TypeKind, TypeRef};

use super::Evaluator;
use super::code::{Code, Machine};
use super::compile::{CompiledExpr, Compiler, Node};
use super::error::EvalError;
use crate::memory::Memory;

/// Variables of expressions, which are pointers.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Names, and the types that they point to.
    pub(crate) vars: Vec<(String, TypeRef)>,
}

impl Scope {
    /// Adds a variable, without its `$`, and the type that it points to. Its number is the number
    /// of variables before it.
    pub fn add(&mut self, name: &str, target: TypeRef) {
        self.vars.push((name.to_owned(), target));
    }
}

/// A number or a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scalar {
    /// A number or a pointer; a negative one as its two's complement.
    Int(u64),
    /// A text, without the NUL that ends it.
    Text(Vec<u8>),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => number.fmt(f),
            Self::Text(bytes) => f.write_str(&String::from_utf8_lossy(bytes)),
        }
    }
}

/// An expression that needs no types any more.
#[derive(Clone, Debug)]
pub struct Expression {
    code: Code,
    target: Option<TypeRef>,
    enumeration: Option<TypeRef>,
}

impl Expression {
    /// Returns true if it is a text.
    pub fn is_text(&self) -> bool {
        self.code.is_text()
    }

    /// Returns the type that it points to, if it is a pointer.
    pub fn target(&self) -> Option<TypeRef> {
        self.target
    }

    /// Returns its type, if it is an enumeration.
    pub fn enumeration(&self) -> Option<TypeRef> {
        self.enumeration
    }

    /// Makes an expression without a type.
    fn untyped(code: Code) -> Self {
        Self {
            code,
            target: None,
            enumeration: None,
        }
    }

    /// Computes the number, or the length of the text: 0 is false.
    pub fn number(&self, vars: &[u64], memory: &dyn Memory) -> Result<u64, EvalError> {
        self.code.address(Machine { memory, vars })
    }

    /// Computes the value, with these values of the variables.
    pub fn value(&self, vars: &[u64], memory: &dyn Memory) -> Result<Scalar, EvalError> {
        let machine = Machine { memory, vars };
        if self.is_text() {
            self.code.text(machine).map(Scalar::Text)
        } else {
            self.code.address(machine).map(Scalar::Int)
        }
    }
}

impl<'a> Evaluator<'a> {
    fn strict<'c>(&'c self, scope: &'c Scope) -> Compiler<'c, 'a> {
        Compiler {
            evaluator: self,
            scope: Some(scope),
            late: false,
        }
    }

    fn finished(&self, scope: &Scope, compiled: CompiledExpr) -> Result<Expression, EvalError> {
        let span = compiled.span;
        match compiled.node {
            Node::Number { code, ty } => {
                let is_enum = matches!(self.kind(ty, span)?, TypeKind::Enum { .. });
                Ok(Expression {
                    code,
                    target: self.strict(scope).target(ty, span)?,
                    enumeration: is_enum.then_some(ty),
                })
            }
            Node::Text(code) => Ok(Expression::untyped(code)),
            Node::Place { ty, .. } => Err(EvalError::other(
                span,
                format!("{} is neither a number nor a text", self.display(ty)),
            )),
            Node::Dynamic(_) => Err(EvalError::other(
                span,
                "this kind of expression is not possible here",
            )),
        }
    }

    /// Compiles an expression to a number, a pointer or a text; an array of other things is a
    /// pointer to the first.
    pub fn compile(&self, expr: &Expr, scope: &Scope) -> Result<Expression, EvalError> {
        let strict = self.strict(scope);
        self.finished(scope, strict.value(strict.compile(expr)?)?)
    }

    /// Compiles an expression to a text: its value, or the text that it points to.
    pub fn compile_text(&self, expr: &Expr, scope: &Scope) -> Result<Expression, EvalError> {
        let strict = self.strict(scope);
        Ok(Expression::untyped(strict.text(strict.compile(expr)?)?))
    }

    /// Compiles an expression to an address: of a place, or a number.
    pub fn compile_address(&self, expr: &Expr, scope: &Scope) -> Result<Expression, EvalError> {
        match self.strict(scope).compile(expr)? {
            CompiledExpr {
                node: Node::Place { at, .. },
                ..
            } => Ok(Expression::untyped(at)),
            other => self.finished(scope, other),
        }
    }

    /// Returns the type of this name; the error for a missing one has no near names.
    pub fn named_type(&self, kind: NameKind, name: &str) -> Result<TypeRef, EvalError> {
        self.strict(&Scope::default())
            .named(kind, name, Span::default())
    }

    /// Returns the type that a pointer points to.
    pub fn target_of(&self, pointer: TypeRef) -> Option<TypeRef> {
        self.strict(&Scope::default())
            .target(pointer, Span::default())
            .ok()
            .flatten()
    }

    /// Returns the size of a type in bytes.
    pub fn size_of(&self, ty: TypeRef) -> Result<u64, EvalError> {
        self.types
            .size(ty)
            .map_err(|error| EvalError::new(Span::default(), error))
    }

    /// Returns the byte offset of a member in a struct: `a`, or a path `a.b`.
    pub fn offset_of(&self, of: TypeRef, path: &str) -> Result<u64, EvalError> {
        let field = self.types.store().path(of, path);
        field
            .map(|field| field.byte_offset())
            .map_err(|error| EvalError::new(Span::default(), error))
    }
}
