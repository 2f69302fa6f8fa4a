//! Specs compiled for a program: names and members are looked up once, not for each object.

mod steps;

use live_memory::{Cause, Evaluator, Expression, Global, Globals, Memory, MemoryError, Scope};
use objects::{AliveSpec, LocatedText, ObjectSpec};
use typeinfo::{Enumerator, TypeRef, TypeStore};

use crate::alive::Misfit;
pub(crate) use steps::{Loop, LoopKind};

/// Types of a program, and the addresses of its globals.
#[derive(Debug)]
pub struct Program<'p> {
    evaluator: Evaluator<'p>,
}

impl<'p> Program<'p> {
    /// Creates a program with these types and globals.
    pub fn new(types: TypeStore<'p>, globals: &'p dyn Globals) -> Self {
        Self {
            evaluator: Evaluator::new(&EmptyMemory, types, globals),
        }
    }
}

/// Globals with known addresses only, looked up by name.
#[derive(Clone, Copy, Debug)]
pub struct Addresses<F>(pub F);

impl<F: Fn(&str) -> Option<u64>> Globals for Addresses<F> {
    fn find(&self, _types: &TypeStore<'_>, name: &str) -> Vec<Global> {
        let global = |address| Global {
            address,
            ty: None,
            source: String::new(),
        };
        (self.0)(name).map(global).into_iter().collect()
    }
}

/// Memory without content: nothing is read while specs are compiled.
struct EmptyMemory;

impl Memory for EmptyMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        Err(MemoryError::new(address, into.len(), Cause::NotMapped))
    }
}

/// Compiler of the expressions of one way to find objects.
struct Compiler<'c, 'p> {
    evaluator: &'c Evaluator<'p>,
    /// Variables of the loops.
    scope: Scope,
}

/// Compiled spec: finds the objects in a program's memory.
#[derive(Clone, Debug, Default)]
pub struct CompiledSpec {
    pub(crate) loops: Vec<Loop>,
    pub(crate) checks: Vec<(Expression, LocatedText)>,
    pub(crate) values: Vec<Expression>,
    /// Names of the values that the program has; others are in `left_out`.
    names: Vec<String>,
    /// Index of the value that identifies an object.
    pub(crate) key: usize,
    /// Shape of each value.
    shapes: Vec<Shape>,
    left_out: Vec<Misfit>,
}

/// Shape of a value, for printing.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shape {
    Number,
    Pointer,
    /// One of the program's enumerators: values and names.
    Enumerator(Vec<(i64, String)>),
    Text,
}

impl CompiledSpec {
    /// Returns true if this value is a pointer.
    pub fn is_pointer(&self, value: usize) -> bool {
        self.shapes.get(value) == Some(&Shape::Pointer)
    }

    /// Returns true if this value is text.
    pub fn is_text(&self, value: usize) -> bool {
        self.shapes.get(value) == Some(&Shape::Text)
    }

    /// Returns the enumerator that this value is, by its number; `None` if the value has no type of
    /// enumerators, or none of this number.
    pub fn enumerator(&self, value: usize, number: u64) -> Option<&str> {
        let Some(Shape::Enumerator(known)) = self.shapes.get(value) else {
            return None;
        };
        let found = known.iter().find(|(of, _)| *of == number.cast_signed());
        found.map(|(_, name)| name.as_str())
    }

    /// Returns the names of the values, in their order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the index of the value that identifies an object.
    pub fn key(&self) -> usize {
        self.key
    }

    /// Returns the values that this program does not have, with reasons.
    pub fn left_out(&self) -> &[Misfit] {
        &self.left_out
    }
}

/// Compiles the first way to find the spec's objects that fits the program.
///
/// # Errors
/// Returns the reason why each of the ways does not fit; an empty list if the spec has no ways.
pub fn compile(spec: &ObjectSpec, program: &Program<'_>) -> Result<CompiledSpec, Vec<Misfit>> {
    first_that_fits(spec, program, false)
}

impl CompiledSpec {
    /// Compiles a spec for objects at known addresses, without a way to them. The last loop's
    /// variable is the address.
    ///
    /// # Errors
    /// As [`compile`].
    pub fn compile_pointers(spec: &ObjectSpec, program: &Program<'_>) -> Result<Self, Vec<Misfit>> {
        first_that_fits(spec, program, true)
    }
}

fn first_that_fits(
    spec: &ObjectSpec,
    program: &Program<'_>,
    of_pointers: bool,
) -> Result<CompiledSpec, Vec<Misfit>> {
    let mut misfits = Vec::new();
    for alive in &spec.alive {
        match compile_one(alive, &spec.key, program, of_pointers) {
            Ok(compiled) => return Ok(compiled),
            Err(misfit) => misfits.push(misfit),
        }
    }
    Err(misfits)
}

fn compile_one(
    alive: &AliveSpec,
    key: &str,
    program: &Program<'_>,
    of_pointers: bool,
) -> Result<CompiledSpec, Misfit> {
    let mut compiler = Compiler {
        evaluator: &program.evaluator,
        scope: Scope::default(),
    };
    let mut loops = Vec::new();
    for (at, step) in alive.walk.iter().enumerate() {
        let is_last = at + 1 == alive.walk.len();
        let parsed = if of_pointers && !is_last {
            None
        } else {
            Some(
                compiler
                    .step(&step.text, of_pointers)
                    .map_err(|what| misfit(step, &what))?,
            )
        };
        loops.extend(parsed);
    }
    let condition = |check: &LocatedText| {
        let value = compiler.value(&check.text);
        value
            .map(|value| (value, check.clone()))
            .map_err(|what| misfit(check, &what))
    };
    let checks = alive
        .check
        .iter()
        .map(condition)
        .collect::<Result<Vec<_>, _>>()?;
    let mut this = CompiledSpec {
        loops,
        checks,
        ..CompiledSpec::default()
    };
    for value in &alive.values {
        match compiler.shaped(&value.expression.text, value.arg.string) {
            Ok((expression, shape)) => {
                this.values.push(expression);
                this.shapes.push(shape);
                this.names.push(value.arg.name.clone());
            }
            Err(what) if value.arg.name == key => return Err(misfit(&value.expression, &what)),
            Err(what) => this.left_out.push(misfit(&value.expression, &what)),
        }
    }
    this.key = this
        .names
        .iter()
        .position(|name| name == key)
        .unwrap_or_default();
    Ok(this)
}

impl Compiler<'_, '_> {
    /// Compiles a number, a pointer or a text.
    fn value(&self, text: &str) -> Result<Expression, String> {
        self.evaluator
            .compile(&parsed(text)?, &self.scope)
            .map_err(|error| error.to_string())
    }

    /// Compiles a value, and checks it against the spec: text or not.
    fn shaped(&self, text: &str, is_text: bool) -> Result<(Expression, Shape), String> {
        if is_text {
            let compiled = self.evaluator.compile_text(&parsed(text)?, &self.scope);
            return compiled
                .map(|compiled| (compiled, Shape::Text))
                .map_err(|error| error.to_string());
        }
        let compiled = self.value(text)?;
        if compiled.is_text() {
            return Err("it is a string: write \"name: string = ...\"".to_owned());
        }
        let shape = match compiled.enumeration() {
            _ if compiled.target().is_some() => Shape::Pointer,
            Some(ty) => Shape::Enumerator(self.enumerators(ty)?),
            None => Shape::Number,
        };
        Ok((compiled, shape))
    }

    fn enumerators(&self, ty: TypeRef) -> Result<Vec<(i64, String)>, String> {
        let types = self.evaluator.types();
        let all = types.enumerators(ty).map_err(|error| error.to_string())?;
        let owned = |known: Enumerator<'_>| (known.value, known.name.to_owned());
        Ok(all.into_iter().map(owned).collect())
    }
}

fn parsed(text: &str) -> Result<bt_lang::ast::Expr, String> {
    bt_lang::parse_expression(text).map_err(|diagnostics| {
        let wrong = diagnostics.into_iter().find(bt_lang::Diagnostic::is_error);
        wrong.map_or_else(
            || "expected an expression".to_owned(),
            |wrong| wrong.message,
        )
    })
}

fn misfit(of: &LocatedText, what: &str) -> Misfit {
    Misfit {
        line: of.line,
        what: format!("{}: {what}", of.text),
    }
}
