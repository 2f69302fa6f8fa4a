//! Random programs.

use std::fmt::Write;

use super::tree::{Expr, Question, State, Stmt, Text};
use super::value::{IntTy, OPERATORS, Value};

/// Number of variables, maps and parts of a tuple: one for each type of integer.
const KINDS: usize = IntTy::ALL.len();
/// Literals at which behaviour changes.
const NUMBERS: [u64; 18] = [
    0,
    1,
    2,
    3,
    7,
    63,
    64,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    0xffff_ffff,
    0x8000_0000,
    i64::MAX.cast_unsigned(),
    1 << 63,
    u64::MAX,
];
/// Strings that are parts of each other, that have the length of words and a byte more or less, or
/// that exceed the room on the stack.
const TEXTS: [&str; 9] = [
    "",
    "a",
    "ab",
    "b",
    "abababa",
    "abababab",
    "ababababa",
    "x and more than sixteen",
    "more than six",
];

/// Generator of programs.
pub(crate) struct Maker {
    state: u64,
    loops: usize,
    whiles: usize,
}

impl Maker {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            loops: 0,
            whiles: 0,
        }
    }

    /// Returns a random number below `limit` (xorshift64).
    fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % limit
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn number(&mut self) -> u64 {
        if self.below(4) == 0 {
            self.below(1 << 40) as u64
        } else {
            let near = self.pick(&NUMBERS);
            near.wrapping_add(self.below(2) as u64)
        }
    }

    /// Returns the initial values of variables and maps, and the statements that set them.
    pub(crate) fn beginning(&mut self) -> (State, String) {
        let (mut state, mut text) = (State::default(), String::new());
        let mut parts = Vec::new();
        for (index, ty) in IntTy::ALL.into_iter().enumerate() {
            let (map, part, more) = (self.number(), self.number(), self.number() >> 1);
            let (name, of) = (ty.name(), |number: u64| Value::int(i128::from(number), ty));
            state.maps.push(of(map));
            state.parts.push(of(part));
            // The value goes through a map, so that the verifier does not know it: otherwise it
            // would go through each turn of a loop.
            state
                .vars
                .push(Value::int(of(map).number + i128::from(more), ty));
            let _ = writeln!(
                text,
                "@m{index} = ({name}){map}; let $v{index}: {name} = ({name})(@m{index} + {more});"
            );
            let part_text = format!("({name}){part}");
            parts.push(part_text);
        }
        let _ = writeln!(text, "$t = ({});", parts.join(", "));
        for index in 0..3 {
            let value = self.pick(&TEXTS);
            let _ = writeln!(text, "$s{index} = \"{value}\";");
            state.texts.push(value.to_owned());
        }
        (state, text)
    }

    /// Generates statements.
    pub(crate) fn stmts(&mut self, count: usize, deep: usize, in_loop: bool) -> Vec<Stmt> {
        (0..count).map(|_| self.stmt(deep, in_loop)).collect()
    }

    fn body(&mut self, deep: usize, in_loop: bool) -> Vec<Stmt> {
        let count = 1 + self.below(4);
        self.stmts(count, deep - 1, in_loop)
    }

    fn stmt(&mut self, deep: usize, in_loop: bool) -> Stmt {
        match self.below(if deep == 0 { 5 } else { 11 }) {
            0 | 1 => Stmt::Print((0..2 + self.below(3)).map(|_| self.ex(2)).collect()),
            2 | 3 => {
                let var = self.below(KINDS);
                Stmt::Set(var, Expr::Cast(Some(IntTy::ALL[var]), Box::new(self.ex(2))))
            }
            4 => {
                let map = self.below(KINDS);
                Stmt::SetMap(map, Expr::Cast(Some(IntTy::ALL[map]), Box::new(self.ex(2))))
            }
            5 | 6 => {
                let cond = self.ex(2);
                let then = self.body(deep, in_loop);
                Stmt::If(cond, then, self.body(deep, in_loop))
            }
            7 => {
                self.whiles += 1;
                Stmt::While(self.whiles, self.below(5) as u32, self.body(deep, true))
            }
            8 => {
                let depth = self.loops;
                let start = self.below(4) as i128 - 2;
                self.loops += 1;
                let body = self.body(deep, true);
                self.loops -= 1;
                Stmt::For(depth, start, start + self.below(5) as i128 - 1, body)
            }
            9 => Stmt::Unroll(1 + self.below(3) as u32, self.body(deep, true)),
            // A statement after one that leaves is an error, which is reported.
            _ => {
                let leave = match self.below(8) {
                    0 => Stmt::Return,
                    n if in_loop && n < 4 => Stmt::Break,
                    _ if in_loop => Stmt::Continue,
                    _ => Stmt::Print(vec![self.ex(1), self.ex(1)]),
                };
                Stmt::If(self.ex(2), vec![leave], Vec::new())
            }
        }
    }

    fn boxed(&mut self, deep: usize) -> Box<Expr> {
        Box::new(self.ex(deep))
    }

    /// Generates an expression of limited depth.
    pub(crate) fn ex(&mut self, deep: usize) -> Expr {
        if deep == 0 || self.below(5) == 0 {
            return self.leaf();
        }
        let deep = deep - 1;
        match self.below(16) {
            0 | 1 => Expr::Cast(Some(self.pick(&IntTy::ALL)), self.boxed(deep)),
            2 => Expr::Cast(None, self.boxed(deep)),
            3 => Expr::Unary("!", self.boxed(deep)),
            4 | 5 => {
                // A boolean has no sign to invert.
                let inner = Expr::Cast(Some(self.pick(&IntTy::ALL)), self.boxed(deep));
                Expr::Unary(self.pick(&["-", "~"]), Box::new(inner))
            }
            6 => Expr::Logic(self.below(2) == 0, self.boxed(deep), self.boxed(deep)),
            7 => Expr::Choose(self.boxed(deep), Some(self.boxed(deep)), self.boxed(deep)),
            8 => Expr::Choose(self.boxed(deep), None, self.boxed(deep)),
            9 => {
                let var = self.below(KINDS);
                let value = Expr::Cast(Some(IntTy::ALL[var]), self.boxed(deep));
                Expr::Block {
                    var,
                    value: Box::new(value),
                    result: self.boxed(deep),
                }
            }
            10 => self.question(),
            _ => Expr::Binary(self.pick(&OPERATORS), self.boxed(deep), self.boxed(deep)),
        }
    }

    fn leaf(&mut self) -> Expr {
        match self.below(8) {
            0 | 1 => Expr::Literal(self.number()),
            2 | 3 => Expr::Var(self.below(KINDS)),
            4 => Expr::Map(self.below(KINDS)),
            5 => Expr::Part(self.below(KINDS)),
            6 if self.loops > 0 => Expr::Loop(self.below(self.loops)),
            6 => Expr::Cast(
                Some(self.pick(&IntTy::ALL)),
                Box::new(Expr::Literal(self.number())),
            ),
            _ => {
                let by = if self.below(2) == 0 { 1 } else { -1 };
                Expr::Step {
                    var: self.below(KINDS),
                    by,
                    post: self.below(2) == 0,
                }
            }
        }
    }

    fn text(&mut self) -> Text {
        if self.below(3) == 0 {
            Text::Literal(self.pick(&TEXTS).to_owned())
        } else {
            Text::Var(self.below(3))
        }
    }

    fn question(&mut self) -> Expr {
        let (left, right) = (self.text(), self.text());
        match self.below(5) {
            0 => Expr::Texts(Question::Same, left, right),
            1 => Expr::Texts(Question::Differ, left, right),
            2 => Expr::Texts(Question::Begin(1 + self.below(10)), left, right),
            3 => Expr::Texts(Question::Contains, left, right),
            _ => Expr::Length(left),
        }
    }
}
