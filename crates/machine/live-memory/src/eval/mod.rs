//! Expressions of the script language over a memory: no probe, no kernel, only types and bytes.
//!
//! The syntax is that of scripts, and so are the rules: `.` and `->` mean the same and follow a pointer, numbers are computed in
//! 64 bits, `str()` reads text. Beyond scripts, a bare name is a variable of the program, and `list()` walks its lists.
//!
//! An expression is compiled first: names and members are looked up once ([`compile`]). Parts with
//! known types then run without any types ([`code`]); parts that depend on values are looked up at
//! run time ([`dynamic`]). Expressions of object specs are wholly of the first kind
//! ([`Expression`]).

mod access;
mod calls;
mod code;
mod compile;
mod dynamic;
mod error;
mod globals;
mod load;
mod ops;
mod spec;
mod types;
mod value;

use std::cell::{Ref, RefCell};
use std::collections::HashMap;

use bt_lang::Span;
use bt_lang::ast::Expr;
use typeinfo::{TypeKind, TypeRef, TypeStore};

pub(crate) use compile::CompiledExpr;
use compile::Compiler;
pub use error::{EvalError, Fault};
pub use globals::{Global, Globals, NoGlobals};
pub use spec::{Expression, Scalar, Scope};
pub(crate) use types::{Types, name_kind, tag};
pub(crate) use value::Operand;
pub use value::{Place, Value};

use crate::memory::Memory;

/// Default limit on the elements of a list that are followed.
pub const MAX_ELEMENTS: usize = 100_000;

/// Evaluator of expressions: a memory, types, and names.
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
        f.debug_struct("Evaluator")
            .field("types", &*self.types.store())
            .finish_non_exhaustive()
    }
}

impl<'a> Evaluator<'a> {
    /// Creates an evaluator. The memory itself limits what it may cost ([`crate::LimitedMemory`]).
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

    /// Sets the limit on the elements of each list that are followed.
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

    /// Returns a variable's value.
    pub(crate) fn variable(&self, name: &str) -> Option<Value> {
        self.variables.borrow().get(name).cloned()
    }

    /// Returns the types that expressions can name.
    pub fn types(&self) -> Ref<'_, TypeStore<'a>> {
        self.types.store()
    }

    /// Returns a pointer to a place, as a value: the variable of a loop over a list is one.
    pub fn pointer(&self, place: Place) -> Value {
        let ty = self
            .types
            .pointer_to(place.ty)
            .unwrap_or(self.types.void_pointer);
        Value::Int {
            value: place.address.into(),
            ty,
        }
    }

    /// Returns the omissions since the last call: lists that go on beyond the limit.
    pub fn take_remarks(&self) -> Vec<String> {
        self.remarks.take()
    }

    pub(crate) fn remark(&self, text: String) {
        let mut remarks = self.remarks.borrow_mut();
        if remarks.len() < 100 && !remarks.contains(&text) {
            remarks.push(text);
        }
    }

    /// Computes the value of an expression.
    pub fn eval(&self, expr: &Expr) -> Result<Value, EvalError> {
        let operand = self.operand(expr)?;
        self.value(operand, expr.span)
    }

    /// Returns the place that an expression leads to: a variable, a member, an element, the target
    /// of a pointer. A pointer to a struct leads to the struct.
    pub fn place(&self, expr: &Expr) -> Result<Place, EvalError> {
        let operand = self.operand(expr)?;
        if let Operand::Place(place) = operand
            && !matches!(self.kind(place.ty, expr.span)?, TypeKind::Pointer { .. })
        {
            return Ok(place);
        }
        self.record(operand, expr.span)
    }

    /// Compiles an expression, to be run as often as needed.
    pub(crate) fn compiled(&self, expr: &Expr) -> Result<CompiledExpr, EvalError> {
        Compiler {
            evaluator: self,
            scope: None,
            late: false,
        }
        .compile(expr)
    }

    /// Returns the place or the value that an expression leads to; a place is not read yet.
    fn operand(&self, expr: &Expr) -> Result<Operand, EvalError> {
        self.run(&self.compiled(expr)?)
    }

    /// Looks up a variable of the program, an enumerator, or NULL.
    fn name(&self, name: &str, span: Span) -> Result<Operand, EvalError> {
        if let Some(place) = self.global(name, span)? {
            return Ok(Operand::Place(place));
        }
        let found = self
            .types
            .store()
            .find_enumerator(name)
            .map_err(|error| EvalError::new(span, error))?;
        if let Some((ty, value)) = found {
            let signed = load::is_signed(self.kind(ty, span)?);
            let value = if signed {
                value.into()
            } else {
                i128::from(value.cast_unsigned())
            };
            return Ok(Operand::Value(Value::Int { value, ty }));
        }
        if name == "NULL" {
            return Ok(Operand::Value(Value::Int {
                value: 0,
                ty: self.types.void_pointer,
            }));
        }
        Err(self.no_name(name, span))
    }

    fn no_name(&self, name: &str, span: Span) -> EvalError {
        let near = self.globals.nearest(name);
        let error = EvalError::new(
            span,
            Fault::NoName {
                kind: "variable or enumerator",
                name: name.to_owned(),
            },
        );
        let error = match text::patterns::did_you_mean(&near) {
            Some(hint) => error.with_hint(hint),
            None => error,
        };
        self.globals
            .no_types()
            .into_iter()
            .fold(error, EvalError::with_hint)
    }

    /// Returns the one variable of this name; `None` if there is none, an error if there are
    /// several.
    pub(crate) fn global(&self, name: &str, span: Span) -> Result<Option<Place>, EvalError> {
        let mut found = self.globals.find(&self.types.store(), name);
        let Some(first) = found.pop() else {
            return Ok(None);
        };
        if found.is_empty() {
            return Ok(Some(Place::new(
                first.address,
                first.ty.unwrap_or(TypeRef::VOID),
            )));
        }
        let example = first.source.clone();
        found.push(first);
        let sources: Vec<&str> = found.iter().map(|global| global.source.as_str()).collect();
        let sources = sources.join(", ");
        let bare = name.rsplit(':').next().unwrap_or(name);
        let fault = Fault::Ambiguous {
            name: name.to_owned(),
            count: found.len(),
            sources,
        };
        Err(EvalError::new(span, fault).with_hint(format!(
            "choose one by its file: *uaddr(\"{example}:{bare}\")"
        )))
    }

    pub(crate) fn written(&self, ty: &bt_lang::ast::Type) -> Result<TypeRef, EvalError> {
        let length = |expr: &Expr| {
            let count = self
                .eval(expr)?
                .number()
                .and_then(|number| u64::try_from(number).ok());
            count.ok_or_else(|| EvalError::other(expr.span, "expected the number of elements"))
        };
        self.types.written(ty, &length)
    }

    pub(crate) fn kind(&self, ty: TypeRef, span: Span) -> Result<TypeKind, EvalError> {
        self.types
            .kind(ty)
            .map_err(|error| EvalError::new(span, error))
    }

    pub(crate) fn display(&self, ty: TypeRef) -> String {
        self.types.display(ty)
    }
}
