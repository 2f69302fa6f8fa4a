//! Specs compiled for a program: names and members are looked up once, and not for each object.

mod expression;
mod steps;

use std::collections::HashMap;

use objects::{AliveSpec, Located, ObjectSpec};
use typeinfo::TypeStore;

use crate::Misfit;
use crate::code::Code;
use expression::{Compiler, Typed};
pub(crate) use steps::{Loop, LoopKind};

/// What is known of a program.
pub struct Program<'p> {
    /// Its types.
    pub types: &'p TypeStore<'p>,
    /// The addresses of its globals by their names.
    pub globals: &'p dyn Fn(&str) -> Option<u64>,
}

/// How the objects of a spec are found in a program's memory.
#[derive(Clone, Debug, Default)]
pub struct Compiled {
    pub(crate) loops: Vec<Loop>,
    pub(crate) checks: Vec<(Code, Located)>,
    pub(crate) values: Vec<Code>,
    /// Which of the spec's values these are: one whose members the program does not have is left out.
    names: Vec<String>,
    /// Which of the values identifies an object.
    pub(crate) key: usize,
    /// What each of the values is.
    shapes: Vec<Shape>,
    left_out: Vec<Misfit>,
}

/// What a value is, for those who print it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Number,
    Pointer,
    Text,
}

impl Compiled {
    /// Whether that value is a pointer.
    pub fn is_pointer(&self, value: usize) -> bool {
        self.shapes.get(value) == Some(&Shape::Pointer)
    }

    /// Whether that value is a text.
    pub fn is_text(&self, value: usize) -> bool {
        self.shapes.get(value) == Some(&Shape::Text)
    }

    /// The names of the values, in their order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Which of the values identifies an object.
    pub fn key(&self) -> usize {
        self.key
    }

    /// Values that this program does not have, and why.
    pub fn left_out(&self) -> &[Misfit] {
        &self.left_out
    }
}

/// Compiles the first way to find the spec's objects that fits the program.
///
/// # Errors
/// Why each of the ways does not fit. None at all if the spec has no such part.
pub fn compile(spec: &ObjectSpec, program: &Program<'_>) -> Result<Compiled, Vec<Misfit>> {
    first_that_fits(spec, program, false)
}

impl Compiled {
    /// The same for objects whose addresses are known, without a way to them: the last loop's variable is the address.
    ///
    /// # Errors
    /// As [`compile`].
    pub fn of_pointers(spec: &ObjectSpec, program: &Program<'_>) -> Result<Self, Vec<Misfit>> {
        first_that_fits(spec, program, true)
    }
}

fn first_that_fits(spec: &ObjectSpec, program: &Program<'_>, of_pointers: bool) -> Result<Compiled, Vec<Misfit>> {
    let mut misfits = Vec::new();
    for alive in &spec.alive {
        match compile_one(alive, &spec.key, program, of_pointers) {
            Ok(compiled) => return Ok(compiled),
            Err(misfit) => misfits.push(misfit),
        }
    }
    Err(misfits)
}

fn compile_one(alive: &AliveSpec, key: &str, program: &Program<'_>, of_pointers: bool) -> Result<Compiled, Misfit> {
    let mut compiler = Compiler { program, vars: Vec::new(), records: HashMap::new() };
    let mut loops = Vec::new();
    for (at, step) in alive.walk.iter().enumerate() {
        let is_last = at + 1 == alive.walk.len();
        let parsed = if of_pointers && !is_last {
            None
        } else {
            Some(compiler.step(&step.text, of_pointers).map_err(|what| misfit(step, &what))?)
        };
        loops.extend(parsed);
    }
    let condition = |check: &Located| {
        let typed = compiler.expression(&check.text).and_then(|typed| compiler.value(typed));
        typed.map(|typed| (typed.into_code(), check.clone())).map_err(|what| misfit(check, &what))
    };
    let checks = alive.check.iter().map(condition).collect::<Result<Vec<_>, _>>()?;
    let mut this = Compiled { loops, checks, ..Compiled::default() };
    for value in &alive.values {
        let typed = compiler.expression(&value.expression.text).and_then(|typed| compiler.value(typed));
        match typed.and_then(|typed| compiler.shaped(typed, value.arg.string)) {
            Ok((code, shape)) => {
                this.values.push(code);
                this.shapes.push(shape);
                this.names.push(value.arg.name.clone());
            }
            Err(what) if value.arg.name == key => return Err(misfit(&value.expression, &what)),
            Err(what) => this.left_out.push(misfit(&value.expression, &what)),
        }
    }
    this.key = this.names.iter().position(|name| name == key).unwrap_or_default();
    Ok(this)
}

impl Compiler<'_> {
    /// The value as what the spec says that it is.
    fn shaped(&self, typed: Typed, is_text: bool) -> Result<(Code, Shape), String> {
        match typed {
            typed if is_text => Ok((self.text(typed)?, Shape::Text)),
            Typed::Text(_) => Err("it is a text: write \"name: string = ...\"".to_owned()),
            Typed::Number { code, pointee: Some(_) } => Ok((code, Shape::Pointer)),
            other => Ok((other.into_code(), Shape::Number)),
        }
    }
}

fn misfit(of: &Located, what: &str) -> Misfit {
    Misfit { line: of.line, what: format!("{}: {what}", of.text) }
}
