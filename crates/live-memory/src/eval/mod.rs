//! Expressions of the script language over a memory: no probe, no kernel, only types and bytes.
//!
//! The syntax is that of scripts, and so are the rules: `.` and `->` mean the same and follow a pointer, numbers are computed in
//! 64 bits, `str()` reads text. Beyond scripts, a bare name is a variable of the program, and `list()` walks its lists.

mod access;
mod calls;
mod error;
mod globals;
mod load;
mod ops;
mod types;
mod value;

use std::cell::{Ref, RefCell};
use std::collections::HashMap;

use bt_lang::Span;
use bt_lang::ast::{Expr, ExprKind, TypeOrExpr, UnaryOp};
use typeinfo::{NameKind, TypeKind, TypeRef, TypeStore};

pub use error::{EvalError, Fault};
pub use globals::{Global, Globals, NoGlobals};
pub(crate) use types::{Types, name_kind, tag};
pub(crate) use value::Operand;
pub use value::{Place, Value};

use crate::memory::Memory;

/// How many elements of a list are followed if nobody says otherwise.
pub const MAX_ELEMENTS: usize = 100_000;

/// How deep tuples are nested at most, and how many parts they have in all: a loop can put one into the next for ever.
const MAX_TUPLES: usize = 32;
const MAX_PARTS: usize = 1 << 20;

/// Evaluates expressions: a memory, types, and names.
pub struct Evaluator<'a> {
    pub(crate) memory: &'a dyn Memory,
    pub(crate) globals: &'a dyn Globals,
    pub(crate) types: Types<'a>,
    variables: RefCell<HashMap<String, Value>>,
    max_elements: usize,
    remarks: RefCell<Vec<String>>,
}

impl std::fmt::Debug for Evaluator<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Evaluator").field("types", &*self.types.store()).finish_non_exhaustive()
    }
}

impl<'a> Evaluator<'a> {
    /// An evaluator. What the memory is allowed to cost is the memory's to say ([`crate::Limited`]).
    pub fn new(memory: &'a dyn Memory, types: TypeStore<'a>, globals: &'a dyn Globals) -> Self {
        Self {
            memory,
            globals,
            types: Types::new(types),
            variables: RefCell::default(),
            max_elements: MAX_ELEMENTS,
            remarks: RefCell::default(),
        }
    }

    /// The same, following at most this many elements of each list.
    #[must_use]
    pub fn with_max_elements(mut self, most: usize) -> Self {
        self.max_elements = most;
        self
    }

    pub(crate) fn max_elements(&self) -> usize {
        self.max_elements
    }

    /// Gives a variable (`$q`, or `q`) a value.
    pub fn bind(&self, name: &str, value: Value) {
        let name = name.strip_prefix('$').unwrap_or(name);
        self.variables.borrow_mut().insert(name.to_owned(), value);
    }

    /// A variable's value.
    pub(crate) fn variable(&self, name: &str) -> Option<Value> {
        self.variables.borrow().get(name).cloned()
    }

    /// The types that expressions can name.
    pub fn types(&self) -> Ref<'_, TypeStore<'a>> {
        self.types.store()
    }

    /// A pointer to a place, as a value: what the variable of a loop over a list is.
    pub fn pointer(&self, place: Place) -> Value {
        let ty = self.types.pointer_to(place.ty).unwrap_or(self.types.void_pointer);
        Value::Int { value: place.address.into(), ty }
    }

    /// What was left out since this was asked for last: lists that go on beyond the limit.
    pub fn take_remarks(&self) -> Vec<String> {
        self.remarks.take()
    }

    pub(crate) fn remark(&self, text: String) {
        let mut remarks = self.remarks.borrow_mut();
        if remarks.len() < 100 && !remarks.contains(&text) {
            remarks.push(text);
        }
    }

    /// The value of an expression.
    pub fn eval(&self, expr: &Expr) -> Result<Value, EvalError> {
        let operand = self.operand(expr)?;
        self.value(operand, expr.span)
    }

    /// The place that an expression leads to: a variable, a member, an element, what a pointer points to. The value of a
    /// pointer to a struct leads to the struct.
    pub fn place(&self, expr: &Expr) -> Result<Place, EvalError> {
        let operand = self.operand(expr)?;
        if let Operand::Place(place) = operand
            && !matches!(self.kind(place.ty, expr.span)?, TypeKind::Pointer { .. })
        {
            return Ok(place);
        }
        self.record(operand, expr.span)
    }

    /// What an expression leads to, before it is read.
    pub(crate) fn operand(&self, expr: &Expr) -> Result<Operand, EvalError> {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Int(literal) => Ok(Operand::Value(self.literal(literal.value))),
            ExprKind::Str(text) => Ok(Operand::Value(Value::Text(text.clone()))),
            ExprKind::Bool(value) => Ok(Operand::Value(self.truth(*value))),
            ExprKind::Ident(name) => self.name(name, span),
            ExprKind::Var(name) => self.variable(name).map(Operand::from).ok_or_else(|| {
                let hint = format!("give it a value first: ${name} = ...");
                EvalError::new(span, Fault::NoName { kind: "variable", name: format!("${name}") }).with_hint(hint)
            }),
            ExprKind::Call { func, args } => self.call(func, args, span).map(Operand::from),
            ExprKind::Unary { op: UnaryOp::Deref, operand } => self.deref(operand, span),
            ExprKind::Unary { op: UnaryOp::AddrOf, operand } => self.address_of(operand).map(Operand::Value),
            ExprKind::Unary { op, operand } => self.unary(*op, operand, span).map(Operand::Value),
            ExprKind::Binary { op, left, right, .. } => self.binary(*op, left, right, span).map(Operand::Value),
            ExprKind::Ternary { cond, then, otherwise } => {
                let value = self.eval(cond)?;
                match (self.is_true(&value, cond.span)?, then) {
                    (true, Some(then)) => self.operand(then),
                    (true, None) => Ok(value.into()),
                    (false, _) => self.operand(otherwise),
                }
            }
            ExprKind::Cast { ty, operand } => self.cast(ty, operand, span).map(Operand::from),
            ExprKind::Sizeof(of) => {
                let ty = self.type_of(of)?;
                let size = self.types.size(ty).map_err(|error| EvalError::new(span, error))?;
                Ok(Operand::Value(Value::Int { value: size.into(), ty: self.types.u64 }))
            }
            ExprKind::Offsetof { of, path } => {
                let ty = self.type_of(of)?;
                let path: Vec<&str> = path.iter().map(|name| name.text.as_str()).collect();
                let field = self.types.store().path(ty, &path.join("."));
                let offset = field.map_err(|error| EvalError::new(span, error))?.byte_offset();
                Ok(Operand::Value(Value::Int { value: offset.into(), ty: self.types.u64 }))
            }
            ExprKind::Field { base, name, .. } => self.member(base, name).map(Operand::Place),
            ExprKind::Index { base, index } => self.element(base, index, span),
            ExprKind::Tuple(parts) => {
                let parts: Result<_, _> = parts.iter().map(|part| self.eval(part)).collect();
                let tuple = Value::Tuple(parts?);
                if tuple.weight(MAX_TUPLES).is_none_or(|weight| weight > MAX_PARTS) {
                    return Err(EvalError::other(span, "this tuple has too many parts"));
                }
                Ok(Operand::Value(tuple))
            }
            ExprKind::TupleField { base, index } => match self.eval(base)? {
                Value::Tuple(mut parts) if (*index as usize) < parts.len() => {
                    Ok(parts.swap_remove(*index as usize).into())
                }
                _ => Err(EvalError::other(span, format!("this has no element {index}"))),
            },
            ExprKind::Comptime(inner) => self.operand(inner),
            _ => Err(EvalError::other(span, "this is only for scripts of `dptrace run`")),
        }
    }

    /// A variable of the program, an enumerator, or NULL.
    fn name(&self, name: &str, span: Span) -> Result<Operand, EvalError> {
        if let Some(place) = self.global(name, span)? {
            return Ok(Operand::Place(place));
        }
        let found = self.types.store().find_enumerator(name).map_err(|error| EvalError::new(span, error))?;
        if let Some((ty, value)) = found {
            let signed = load::is_signed(self.kind(ty, span)?);
            let value = if signed { value.into() } else { i128::from(value.cast_unsigned()) };
            return Ok(Operand::Value(Value::Int { value, ty }));
        }
        if name == "NULL" {
            return Ok(Operand::Value(Value::Int { value: 0, ty: self.types.void_pointer }));
        }
        Err(self.no_name(name, span))
    }

    fn no_name(&self, name: &str, span: Span) -> EvalError {
        let near = self.globals.nearest(name);
        let error = EvalError::new(span, Fault::NoName { kind: "variable or enumerator", name: name.to_owned() });
        let error = if near.is_empty() { error } else { error.with_hint(format!("near: {}", near.join(", "))) };
        self.globals.no_types().into_iter().fold(error, EvalError::with_hint)
    }

    /// The one variable of this name, if there is one.
    pub(crate) fn global(&self, name: &str, span: Span) -> Result<Option<Place>, EvalError> {
        let mut found = self.globals.find(&self.types.store(), name);
        let Some(first) = found.pop() else { return Ok(None) };
        if found.is_empty() {
            return Ok(Some(Place::new(first.address, first.ty.unwrap_or(TypeRef::VOID))));
        }
        let example = first.source.clone();
        found.push(first);
        let sources: Vec<&str> = found.iter().map(|global| global.source.as_str()).collect();
        let sources = sources.join(", ");
        let bare = name.rsplit(':').next().unwrap_or(name);
        let fault = Fault::Ambiguous { name: name.to_owned(), count: found.len(), sources };
        Err(EvalError::new(span, fault).with_hint(format!("choose one by its file: *uaddr(\"{example}:{bare}\")")))
    }

    /// The type that `sizeof` and the like are asked about.
    pub(crate) fn type_of(&self, of: &TypeOrExpr) -> Result<TypeRef, EvalError> {
        match of {
            TypeOrExpr::Type(ty) => self.written(ty),
            TypeOrExpr::Expr(expr) => {
                // A bare name is a variable or a type.
                if let ExprKind::Ident(name) = &expr.kind
                    && self.global(name, expr.span)?.is_none()
                {
                    let at = |error| EvalError::new(expr.span, error);
                    if let Some(ty) = self.types.bare(name).map_err(at)? {
                        return Ok(ty);
                    }
                    if let Some(ty) = self.types.find(NameKind::Struct, name).map_err(at)? {
                        return Ok(ty);
                    }
                }
                match self.operand(expr)? {
                    Operand::Place(place) => Ok(place.ty),
                    Operand::Value(Value::Int { ty, .. } | Value::Float { ty, .. }) => Ok(ty),
                    Operand::Value(_) => Err(EvalError::other(expr.span, "this has no type of C")),
                }
            }
        }
    }

    pub(crate) fn written(&self, ty: &bt_lang::ast::Type) -> Result<TypeRef, EvalError> {
        let length = |expr: &Expr| {
            let count = self.eval(expr)?.number().and_then(|number| u64::try_from(number).ok());
            count.ok_or_else(|| EvalError::other(expr.span, "expected the number of elements"))
        };
        self.types.written(ty, &length)
    }

    pub(crate) fn kind(&self, ty: TypeRef, span: Span) -> Result<TypeKind, EvalError> {
        self.types.kind(ty).map_err(|error| EvalError::new(span, error))
    }

    pub(crate) fn display(&self, ty: TypeRef) -> String {
        self.types.display(ty)
    }
}
