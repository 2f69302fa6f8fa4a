//! The items at the top level of a script.

use super::{AttachPoint, Block, Expr, Name, RecordKind, Span, Type};

/// A script.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    /// The `#!` line, without its end.
    pub header: Option<Name>,
    /// Items in source order.
    pub items: Vec<Item>,
    /// All comments in source order. No node refers to them; the formatter puts them back by
    /// position.
    pub comments: Vec<Comment>,
    /// Source range of the whole script.
    pub span: Span,
}

/// A comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// Text with its `//` or `/* */`.
    pub text: String,
    /// Source range.
    pub span: Span,
    /// True if only blanks precede the comment on its line.
    pub own_line: bool,
}

/// An item at the top level of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Kind of the item.
    pub kind: ItemKind,
    /// Source range.
    pub span: Span,
}

/// The kinds of item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemKind {
    /// A part that could not be parsed; a diagnostic has been reported.
    Error,
    /// `#include <path>` and `#include "path"`: the path with its brackets or quotes.
    Include(Name),
    /// `#define NAME value`.
    Define(Define),
    /// Any other line of the C preprocessor (`#if`, `#ifndef`, `#else`, `#endif`, `#undef`), as
    /// written, without its `#`. [`crate::conditions::apply`] removes these lines, and the items
    /// whose conditions don't hold.
    Directive(String),
    /// `struct name { }`, `union name { }`.
    Record(CRecord),
    /// `enum name { }`.
    Enum(CEnum),
    /// `typedef type name;`
    Typedef {
        /// The new name.
        name: Name,
        /// The aliased type.
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
    /// Name of the constant.
    pub name: Name,
    /// True if the macro takes parameters: `NAME(x)`. Then there is no value, and the text begins
    /// with `(x)`.
    pub has_params: bool,
    /// The value, if the text is one expression of the language.
    pub value: Option<Expr>,
    /// The text after the name.
    pub text: String,
}

/// A struct or union definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CRecord {
    /// Struct or union.
    pub kind: RecordKind,
    /// Tag of the struct or union, if any.
    pub name: Option<Name>,
    /// Fields. `None` for a mere declaration (`struct name;`).
    pub fields: Option<Vec<CField>>,
    /// True if declared `__attribute__((packed))`.
    pub packed: bool,
    /// Alignment from `__attribute__((aligned(N)))`.
    pub aligned: Option<Box<Expr>>,
    /// Source range.
    pub span: Span,
}

/// A field of a struct or union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CField {
    /// Name of the field. `None` for an anonymous struct or union, whose fields belong to the outer
    /// one, and for an unnamed bit-field.
    pub name: Option<Name>,
    /// Type of the field. A flexible array is an array without a length.
    pub ty: Type,
    /// Width in bits, if this is a bit-field.
    pub bits: Option<Expr>,
    /// Source range.
    pub span: Span,
}

/// An enum definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CEnum {
    /// Tag of the enum, if any.
    pub name: Option<Name>,
    /// Constants in source order.
    pub variants: Vec<CVariant>,
    /// Source range.
    pub span: Span,
}

/// A constant of an enum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CVariant {
    /// Name of the constant.
    pub name: Name,
    /// Explicit value: an expression of numbers and earlier constants. If `None`, one more than the
    /// constant before.
    pub value: Option<Expr>,
}

/// `config = { key = value; key = value }`. Several are accepted; bpftrace allows one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Entries in source order.
    pub entries: Vec<ConfigEntry>,
}

/// `key = value` in a `config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigEntry {
    /// As written: `max_strlen`, `BPFTRACE_MAX_STRLEN`.
    pub key: Name,
    /// Value of the key.
    pub value: ConfigValue,
    /// Source range of the value.
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
    /// Name of the map.
    pub map: Name,
    /// `hash`, `lruhash`, `percpuhash`, `percpulruhash` or `percpuarray`; not checked here.
    pub kind: Name,
    /// Maximum number of entries.
    pub entries: Expr,
}

/// `macro name(params) { body }`. Macros with different parameters may share a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Macro {
    /// Name of the macro.
    pub name: Name,
    /// Parameters. Duplicates are reported.
    pub params: Vec<MacroParam>,
    /// Block that replaces each call.
    pub body: Block,
}

/// A parameter of a macro.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MacroParam {
    /// `$x`: the caller's variable, which the macro may change.
    Var(Name),
    /// `@x`: the caller's map.
    Map(Name),
    /// `x`: any expression, substituted for each use of the name, or a type.
    Expr(Name),
}

/// `fn name($a : type) : type { body }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fn {
    /// Name of the function.
    pub name: Name,
    /// Parameters in order.
    pub params: Vec<FnParam>,
    /// Return type.
    pub returns: Type,
    /// Body of the function.
    pub body: Block,
}

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FnParam {
    /// Name of the variable, without `$`.
    pub var: Name,
    /// Type of the parameter.
    pub ty: Type,
}

/// A probe: `point, point /predicate/ { body }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Attach points, at least one.
    pub points: Vec<AttachPoint>,
    /// Condition under which the body runs.
    pub predicate: Option<Expr>,
    /// Body of the probe.
    pub body: Block,
}
