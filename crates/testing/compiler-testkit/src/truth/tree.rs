//! Expressions and statements as trees: their text and effects.

use std::fmt;

use super::value::{I64, IntTy, U64, Value, binary, unary};

/// State of a program.
#[derive(Clone, Default, Debug)]
pub(crate) struct State {
    /// `$v0`, `$v1`...
    pub(crate) vars: Vec<Value>,
    /// `@m0`, `@m1`...
    pub(crate) maps: Vec<Value>,
    /// `$t.0`, `$t.1`...
    pub(crate) parts: Vec<Value>,
    /// `$s0`, `$s1`...
    pub(crate) texts: Vec<String>,
    /// `$f0`, `$f1`...: variables of loops, by depth.
    pub(crate) loops: Vec<i128>,
    /// Printed lines.
    pub(crate) lines: Vec<String>,
}

/// A string.
#[derive(Clone, Debug)]
pub(crate) enum Text {
    Literal(String),
    Var(usize),
}

impl Text {
    fn value<'s>(&'s self, state: &'s State) -> &'s str {
        match self {
            Self::Literal(text) => text,
            Self::Var(var) => &state.texts[*var],
        }
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(text) => write!(f, "\"{text}\""),
            Self::Var(var) => write!(f, "$s{var}"),
        }
    }
}

/// A comparison of strings.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Question {
    Same,
    Differ,
    /// `strncmp` of N bytes.
    Begin(usize),
    Contains,
}

#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Literal(u64),
    Var(usize),
    Map(usize),
    Part(usize),
    Loop(usize),
    /// A cast to an integer, or to a boolean if `None`.
    Cast(Option<IntTy>, Box<Expr>),
    Unary(&'static str, Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// `&&` or `||`.
    Logic(bool, Box<Expr>, Box<Expr>),
    /// `?:`, with or without a middle part.
    Choose(Box<Expr>, Option<Box<Expr>>, Box<Expr>),
    /// `++` and `--` of a variable.
    Step {
        var: usize,
        by: i128,
        post: bool,
    },
    /// A block that sets a variable, and its value.
    Block {
        var: usize,
        value: Box<Expr>,
        result: Box<Expr>,
    },
    Texts(Question, Text, Text),
    Length(Text),
}

impl Expr {
    /// Returns whether the compiler knows the value.
    fn known(&self) -> bool {
        match self {
            Self::Literal(_)
            | Self::Texts(_, Text::Literal(_), Text::Literal(_))
            | Self::Length(Text::Literal(_)) => true,
            Self::Cast(_, inner) | Self::Unary(_, inner) => inner.known(),
            Self::Binary("/" | "%", left, right) => {
                left.known() && right.known() && right.value(&mut State::default()).is_true()
            }
            Self::Binary(_, left, right) | Self::Logic(_, left, right) => {
                left.known() && right.known()
            }
            Self::Choose(cond, then, otherwise) => {
                let chosen = if cond.known() && cond.value(&mut State::default()).is_true() {
                    then.as_ref().unwrap_or(cond)
                } else {
                    otherwise
                };
                cond.known() && chosen.known()
            }
            _ => false,
        }
    }

    /// Returns the value, and applies side effects to the state.
    pub(crate) fn value(&self, state: &mut State) -> Value {
        match self {
            Self::Literal(number) => {
                Value::int(i128::from(*number), IntTy::for_literal(i128::from(*number)))
            }
            Self::Var(var) => state.vars[*var],
            Self::Map(map) => state.maps[*map],
            Self::Part(part) => state.parts[*part],
            Self::Loop(depth) => Value::int(state.loops[*depth], I64),
            Self::Cast(None, inner) => Value::truth(inner.value(state).is_true()),
            Self::Cast(Some(ty), inner) => Value::int(inner.value(state).number, *ty),
            Self::Unary("!", inner) => Value::truth(!inner.value(state).is_true()),
            Self::Unary(op, inner) => {
                // The rule for literals applies to numbers, not to booleans.
                let value = inner.value(state);
                unary(op, value, inner.known() && value.ty.is_some())
            }
            Self::Binary(op, left, right) => {
                let (left, right) = (left.value(state), right.value(state));
                binary(op, left, right)
            }
            Self::Logic(all, left, right) => {
                let left = left.value(state).is_true();
                Value::truth(if left == *all {
                    right.value(state).is_true()
                } else {
                    left
                })
            }
            Self::Choose(cond, then, otherwise) => {
                Self::choose(cond, then.as_deref(), otherwise, state)
            }
            Self::Step { var, by, post } => {
                let before = state.vars[*var];
                let after = Value::int(before.number + by, before.ty.unwrap_or(U64));
                state.vars[*var] = after;
                if *post { before } else { after }
            }
            Self::Block { var, value, result } => {
                set(*var, value, state);
                result.value(state)
            }
            Self::Texts(question, left, right) => {
                let (left, right) = (left.value(state), right.value(state));
                let first = |text: &str, count: usize| text.bytes().take(count).collect::<Vec<_>>();
                match question {
                    Question::Same => Value::truth(left == right),
                    Question::Differ => Value::truth(left != right),
                    Question::Begin(count) => {
                        Value::int(i128::from(first(left, *count) != first(right, *count)), I64)
                    }
                    Question::Contains => Value::truth(left.contains(right)),
                }
            }
            Self::Length(text) => Value::int(text.value(state).len() as i128, U64),
        }
    }

    /// Evaluates a choice. It has one type for both results, unless the compiler knows which one is
    /// chosen.
    fn choose(cond: &Self, then: Option<&Self>, otherwise: &Self, state: &mut State) -> Value {
        let which = cond.value(state);
        let then_value = |state: &mut State| then.map_or(which, |then| then.value(state));
        if cond.known() {
            return if which.is_true() {
                then_value(state)
            } else {
                otherwise.value(state)
            };
        }
        let (chosen, other) = if which.is_true() {
            (then_value(state), otherwise.value(&mut state.clone()))
        } else {
            (otherwise.value(state), then_value(&mut state.clone()))
        };
        match chosen.joined(other) {
            Some(ty) => Value::int(chosen.number, ty),
            None => chosen,
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(number) => write!(f, "{number}"),
            Self::Var(var) => write!(f, "$v{var}"),
            Self::Map(map) => write!(f, "@m{map}"),
            Self::Part(part) => write!(f, "$t.{part}"),
            Self::Loop(depth) => write!(f, "$f{depth}"),
            Self::Cast(None, inner) => write!(f, "((bool)({inner}))"),
            Self::Cast(Some(ty), inner) => write!(f, "(({})({inner}))", ty.name()),
            Self::Unary(op, inner) => write!(f, "({op}({inner}))"),
            Self::Binary(op, left, right) => write!(f, "({left} {op} {right})"),
            Self::Logic(all, left, right) => {
                write!(f, "({left} {} {right})", if *all { "&&" } else { "||" })
            }
            Self::Choose(cond, Some(then), otherwise) => {
                write!(f, "({cond} ? {then} : {otherwise})")
            }
            Self::Choose(cond, None, otherwise) => write!(f, "({cond} ?: {otherwise})"),
            Self::Step { var, by, post } => {
                let sign = if *by > 0 { "++" } else { "--" };
                if *post {
                    write!(f, "($v{var}{sign})")
                } else {
                    write!(f, "({sign}$v{var})")
                }
            }
            Self::Block { var, value, result } => write!(f, "({{ $v{var} = {value}; {result} }})"),
            Self::Texts(Question::Same, left, right) => write!(f, "({left} == {right})"),
            Self::Texts(Question::Differ, left, right) => write!(f, "({left} != {right})"),
            Self::Texts(Question::Begin(count), left, right) => {
                write!(f, "strncmp({left}, {right}, {count})")
            }
            Self::Texts(Question::Contains, left, right) => {
                write!(f, "strcontains({left}, {right})")
            }
            Self::Length(text) => write!(f, "strlen({text})"),
        }
    }
}

/// Sets a variable, keeping its type.
fn set(var: usize, value: &Expr, state: &mut State) {
    let number = value.value(state).number;
    state.vars[var].number = state.vars[var].ty.unwrap_or(U64).wrap(number);
}

#[derive(Clone, Debug)]
pub(crate) enum Stmt {
    /// Prints a tuple of values.
    Print(Vec<Expr>),
    /// Sets a variable; the value is cast to its type.
    Set(usize, Expr),
    SetMap(usize, Expr),
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// A loop with the number of its counter, and the number of turns.
    While(usize, u32, Vec<Stmt>),
    For(usize, i128, i128, Vec<Stmt>),
    Unroll(u32, Vec<Stmt>),
    Break,
    Continue,
    Return,
}

/// Flow of control after a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    Next,
    Break,
    Continue,
    Return,
}

pub(crate) fn run(stmts: &[Stmt], state: &mut State) -> Flow {
    for stmt in stmts {
        let flow = stmt.run(state);
        if flow != Flow::Next {
            return flow;
        }
    }
    Flow::Next
}

/// Runs a loop's body once. Returns the flow after the loop, if it ends.
fn turn(body: &[Stmt], state: &mut State) -> Option<Flow> {
    match run(body, state) {
        Flow::Next | Flow::Continue => None,
        Flow::Break => Some(Flow::Next),
        Flow::Return => Some(Flow::Return),
    }
}

impl Stmt {
    fn run(&self, state: &mut State) -> Flow {
        match self {
            Self::Print(values) => {
                let shown: Vec<String> = values
                    .iter()
                    .map(|value| value.value(state).shown())
                    .collect();
                state.lines.push(format!("({})", shown.join(", ")));
            }
            Self::Set(var, value) => set(*var, value, state),
            Self::SetMap(map, value) => {
                let number = value.value(state).number;
                state.maps[*map].number = state.maps[*map].ty.unwrap_or(U64).wrap(number);
            }
            Self::If(cond, then, otherwise) => {
                let chosen = if cond.value(state).is_true() {
                    then
                } else {
                    otherwise
                };
                return run(chosen, state);
            }
            Self::While(_, turns, body) | Self::Unroll(turns, body) => {
                return (0..*turns)
                    .find_map(|_| turn(body, state))
                    .unwrap_or(Flow::Next);
            }
            Self::For(depth, start, end, body) => {
                let end = (*start..*end).find_map(|number| {
                    state.loops.resize(depth + 1, 0);
                    state.loops[*depth] = number;
                    turn(body, state)
                });
                return end.unwrap_or(Flow::Next);
            }
            Self::Break => return Flow::Break,
            Self::Continue => return Flow::Continue,
            Self::Return => return Flow::Return,
        }
        Flow::Next
    }
}

/// Statements in braces.
struct Body<'s>(&'s [Stmt]);

impl fmt::Display for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{ ")?;
        self.0.iter().try_for_each(|stmt| write!(f, "{stmt} "))?;
        write!(f, "}}")
    }
}

impl fmt::Display for Stmt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Print(values) => {
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                write!(f, "print(({}));", values.join(", "))
            }
            Self::Set(var, value) => write!(f, "$v{var} = {value};"),
            Self::SetMap(map, value) => write!(f, "@m{map} = {value};"),
            Self::If(cond, then, otherwise) => {
                write!(f, "if ({cond}) {} else {}", Body(then), Body(otherwise))
            }
            Self::While(number, turns, body) => {
                let body = Body(body).to_string();
                let body = body.trim_start_matches('{');
                write!(
                    f,
                    "let $w{number} = 0; while ($w{number} < {turns}) {{ $w{number}++;{body}"
                )
            }
            Self::For(depth, start, end, body) => {
                write!(f, "for ($f{depth} : {start}..{end}) {}", Body(body))
            }
            Self::Unroll(turns, body) => write!(f, "unroll({turns}) {}", Body(body)),
            Self::Break => write!(f, "break;"),
            Self::Continue => write!(f, "continue;"),
            Self::Return => write!(f, "return;"),
        }
    }
}
