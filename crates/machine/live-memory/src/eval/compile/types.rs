//! Types that expressions name.

use crate::eval::code::Code;
use crate::eval::compile::Node;
use crate::eval::dynamic::Dynamic;
use crate::eval::error::EvalError;
use crate::eval::value::{Operand, Value};
use crate::eval::{Compiler, name_kind};
use bt_lang::Span;
use bt_lang::ast::{self, Expr, ExprKind, TypeOrExpr};
use typeinfo::{IntClass, NameKind, TypeKind, TypeRef};

impl Compiler<'_, '_> {
    /// Compiles a query about a type that an expression names or has.
    pub(super) fn type_query(
        &self,
        of: &TypeOrExpr,
        expr: &Expr,
        ask: impl FnOnce(TypeRef) -> Result<u64, typeinfo::TypeError>,
    ) -> Result<Node, EvalError> {
        let Some(ty) = self.type_of(of)? else {
            return Ok(Node::dynamic(Dynamic::Late(expr.clone())));
        };
        let value = ask(ty).map_err(|error| EvalError::new(expr.span, error))?;
        Ok(Node::Number {
            code: Code::Int(value.into()),
            ty: self.evaluator.types.u64,
        })
    }

    /// Returns the type in `sizeof` and the like; `None` if it depends on values.
    pub(crate) fn type_of(&self, of: &TypeOrExpr) -> Result<Option<TypeRef>, EvalError> {
        let expr = match of {
            TypeOrExpr::Type(ty) => return self.written(ty).map(Some),
            TypeOrExpr::Expr(expr) => expr,
        };
        // A bare name is a variable or a type.
        if let ExprKind::Ident(name) = &expr.kind
            && self.evaluator.global(name, expr.span)?.is_none()
        {
            let at = |error| EvalError::new(expr.span, error);
            let types = &self.evaluator.types;
            if let Some(ty) = types.bare(name).map_err(at)? {
                return Ok(Some(ty));
            }
            if let Some(ty) = types.find(NameKind::Struct, name).map_err(at)? {
                return Ok(Some(ty));
            }
        }
        let compiled = self.compile(expr)?;
        match &compiled.node {
            Node::Place { ty, .. } | Node::Number { ty, .. } => Ok(Some(*ty)),
            Node::Dynamic(_) if !self.late => Ok(None),
            _ => match self.evaluator.run(&compiled)? {
                Operand::Place(place) => Ok(Some(place.ty)),
                Operand::Value(Value::Int { ty, .. } | Value::Float { ty, .. }) => Ok(Some(ty)),
                Operand::Value(_) => Err(EvalError::other(expr.span, "this has no type of C")),
            },
        }
    }

    /// Returns a type as it is written. If all types must be known, the error for a missing name
    /// has no near names: for these, all names of a large program would be read.
    pub(crate) fn written(&self, ty: &ast::Type) -> Result<TypeRef, EvalError> {
        if self.scope.is_some() {
            self.check_named(ty)?;
        }
        self.evaluator.written(ty)
    }

    fn check_named(&self, ty: &ast::Type) -> Result<(), EvalError> {
        match &ty.kind {
            ast::TypeKind::Pointer(target) => self.check_named(target),
            ast::TypeKind::Tagged(kind, name) => {
                self.named(name_kind(*kind), &name.text, ty.span).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Returns the type of this name.
    pub(crate) fn named(
        &self,
        kind: NameKind,
        name: &str,
        span: Span,
    ) -> Result<TypeRef, EvalError> {
        let found = self
            .evaluator
            .types
            .find(kind, name)
            .map_err(|error| EvalError::new(span, error))?;
        found.ok_or_else(|| {
            EvalError::other(span, format!("the program has no {} {name}", kind.words()))
        })
    }

    /// Returns the type that a pointer points to; `None` for other types.
    pub(crate) fn target(&self, ty: TypeRef, span: Span) -> Result<Option<TypeRef>, EvalError> {
        match self.evaluator.kind(ty, span)? {
            TypeKind::Pointer { target, .. } => Ok(Some(target)),
            _ => Ok(None),
        }
    }

    /// Returns true if texts are made of this type: for object specs, any integer of one byte.
    pub(super) fn is_char(&self, ty: TypeRef, span: Span) -> Result<bool, EvalError> {
        let kind = self.evaluator.kind(ty, span)?;
        Ok(
            matches!(kind, TypeKind::Int { size: 1, class, .. } if self.scope.is_some() || class == IntClass::Char),
        )
    }

    pub(super) fn is_record(&self, ty: TypeRef, span: Span) -> Result<bool, EvalError> {
        let kind = self.evaluator.kind(ty, span)?;
        Ok(matches!(
            kind,
            TypeKind::Struct { .. } | TypeKind::Union { .. } | TypeKind::Forward { .. }
        ))
    }
}
