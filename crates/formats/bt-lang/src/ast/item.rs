//! The items at the top level of a script.

use super::{AttachPoint, Block, Expr, Name, RecordKind, Span, Type};

/// A script.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    /// The `#!` line, without its end.
    pub header: Option<Name>,
    /// What it holds, in order.
    pub items: Vec<Item>,
    /// Every comment, in order. No node refers to them; the formatter puts them back by their places.
    pub comments: Vec<Comment>,
    /// All of it.
    pub span: Span,
}

/// A comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// With its `//` or `/* */`.
    pub text: String,
    /// Where.
    pub span: Span,
    /// Whether nothing but blanks stands before it on its line.
    pub own_line: bool,
}

/// Something at the top level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What it is.
    pub kind: ItemKind,
    /// Where it is.
    pub span: Span,
}

/// The kinds of item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemKind {
    /// What could not be read. There is a diagnostic.
    Error,
    /// `#include <path>` and `#include "path"`: the path with its brackets or quotes.
    Include(Name),
    /// `#define NAME value`.
    Define(Define),
    /// Any other line of the C preprocessor (`#if`, `#ifndef`, `#else`, `#endif`, `#undef`): without its `#`, as it is
    /// written. [`crate::conditions::apply`] takes these lines out, with the items between those that don't hold.
    Directive(String),
    /// `struct name { }`, `union name { }`.
    Record(CRecord),
    /// `enum name { }`.
    Enum(CEnum),
    /// `typedef type name;`
    Typedef {
        /// The new name.
        name: Name,
        /// What it stands for.
        ty: Type,
    },
    /// `config = { }`.
    Config(Config),
    /// `let @map = hash(N);`
    MapDecl(MapDecl),
    /// `macro name(...) { }`.
    Macro(Macro),
    /// `import "path";`
    Import(Name),
    /// `fn name($a : type) : type { }`.
    Fn(Fn),
    /// Attach points with a body.
    Probe(Probe),
}

/// `#define NAME value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Define {
    /// The constant.
    pub name: Name,
    /// Whether it takes parameters: `NAME(x)`. There is no value then, and the text begins with `(x)`.
    pub has_params: bool,
    /// The value, where the text is one expression of the language.
    pub value: Option<Expr>,
    /// The text after the name.
    pub text: String,
}

/// A struct or union definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CRecord {
    /// Struct or union.
    pub kind: RecordKind,
    /// Its name.
    pub name: Option<Name>,
    /// Its fields. `None`: it is only declared (`struct name;`).
    pub fields: Option<Vec<CField>>,
    /// Whether `__attribute__((packed))` was given.
    pub packed: bool,
    /// What `__attribute__((aligned(N)))` asks for.
    pub aligned: Option<Box<Expr>>,
    /// Where.
    pub span: Span,
}

/// A field of a struct or union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CField {
    /// Its name. `None`: an anonymous struct or union, whose fields belong to the outer one, or an unnamed bit-field.
    pub name: Option<Name>,
    /// Its type. A flexible array is an array without a length.
    pub ty: Type,
    /// Its width in bits, if it is a bit-field.
    pub bits: Option<Expr>,
    /// Where.
    pub span: Span,
}

/// An enum definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CEnum {
    /// Its name.
    pub name: Option<Name>,
    /// Its constants.
    pub variants: Vec<CVariant>,
    /// Where.
    pub span: Span,
}

/// A constant of an enum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CVariant {
    /// Its name.
    pub name: Name,
    /// Its value, if given: an expression of numbers and earlier constants. Otherwise one more than the one before.
    pub value: Option<Expr>,
}

/// `config = { key = value; key = value }`. There may be several; bpftrace allows one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Its lines.
    pub entries: Vec<ConfigEntry>,
}

/// `key = value` in a `config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigEntry {
    /// As written: `max_strlen`, `BPFTRACE_MAX_STRLEN`.
    pub key: Name,
    /// What it is set to.
    pub value: ConfigValue,
    /// Where the value stands.
    pub value_span: Span,
}

/// A value of a `config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigValue {
    /// A number.
    Int(u64),
    /// `true` or `false`.
    Bool(bool),
    /// A word: `perf`.
    Word(String),
    /// `"text"`.
    Str(Vec<u8>),
}

/// `let @map = kind(entries);`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapDecl {
    /// The map.
    pub map: Name,
    /// `hash`, `lruhash`, `percpuhash`, `percpulruhash`, `percpuarray`: not checked here.
    pub kind: Name,
    /// How many entries.
    pub entries: Expr,
}

/// `macro name(params) { body }`. Several may have one name, with different parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Macro {
    /// Its name.
    pub name: Name,
    /// Its parameters, all different (a diagnostic says so if not).
    pub params: Vec<MacroParam>,
    /// What it stands for.
    pub body: Block,
}

/// A parameter of a macro.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MacroParam {
    /// `$x`: the caller's variable, which the macro may change.
    Var(Name),
    /// `@x`: the caller's map.
    Map(Name),
    /// `x`: any expression, put in wherever the name stands, or a type.
    Expr(Name),
}

/// `fn name($a : type) : type { body }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fn {
    /// Its name.
    pub name: Name,
    /// Its parameters.
    pub params: Vec<FnParam>,
    /// What it returns.
    pub returns: Type,
    /// What it does.
    pub body: Block,
}

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FnParam {
    /// Its variable.
    pub var: Name,
    /// Its type.
    pub ty: Type,
}

/// A probe: `point, point /predicate/ { body }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Where it is attached, at least one point.
    pub points: Vec<AttachPoint>,
    /// When it runs.
    pub predicate: Option<Expr>,
    /// What it does.
    pub body: Block,
}
