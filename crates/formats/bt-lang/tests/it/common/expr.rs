//! Expressions and types.

use bt_lang::ast::{
    Base, BinaryOp, Expr, ExprKind, If, IntLit, IntSuffix, MapRef, RecordField, RecordKind, Span,
    Type, TypeKind, TypeOrExpr, UnaryOp,
};

use super::Chance;

const NUMBERS: [(&str, u64, Base, IntSuffix); 8] = [
    ("0", 0, Base::Decimal, IntSuffix::None),
    ("1e3", 1000, Base::Decimal, IntSuffix::None),
    ("0x1f", 31, Base::Hex, IntSuffix::None),
    ("017", 15, Base::Octal, IntSuffix::None),
    ("5us", 5000, Base::Decimal, IntSuffix::Time),
    ("7ull", 7, Base::Decimal, IntSuffix::Ull),
    ("1_000u", 1000, Base::Decimal, IntSuffix::U),
    ("0b11", 3, Base::Binary, IntSuffix::None),
];

const PREFIX: [UnaryOp; 4] = [UnaryOp::Neg, UnaryOp::Not, UnaryOp::BitNot, UnaryOp::Deref];
const STEPS: [UnaryOp; 4] = [
    UnaryOp::PreInc,
    UnaryOp::PreDec,
    UnaryOp::PostInc,
    UnaryOp::PostDec,
];

fn expr(kind: ExprKind) -> Expr {
    Expr::new(kind, Span::default())
}

impl Chance {
    pub(super) fn expr(&mut self, depth: u32) -> Expr {
        if depth == 0 || self.below(4) == 0 {
            return self.leaf();
        }
        let depth = depth - 1;
        let kind = match self.below(19) {
            choice @ 0..=6 => self.operation(choice, depth),
            choice @ 7..=12 => self.access_or_list(choice, depth),
            13 => ExprKind::If(self.chain(depth, true)),
            14 => ExprKind::Block(self.block(depth, true)),
            15 => ExprKind::Sizeof(Box::new(self.type_operand(depth))),
            16 => ExprKind::Offsetof {
                of: Box::new(self.type_operand(depth)),
                path: vec![self.name(), self.name()],
            },
            17 => ExprKind::Typeinfo(Box::new(self.type_operand(depth))),
            _ => ExprKind::Comptime(self.boxed(depth)),
        };
        expr(kind)
    }

    /// Generates an expression with an operator, one of seven kinds.
    fn operation(&mut self, choice: usize, depth: u32) -> ExprKind {
        match choice {
            0 | 1 => {
                let op = self.pick(&BinaryOp::TABLE).0;
                let (left, right) = (self.boxed(depth), self.boxed(depth));
                ExprKind::Binary {
                    op,
                    op_span: Span::default(),
                    left,
                    right,
                }
            }
            2 => ExprKind::Unary {
                op: self.pick(&PREFIX),
                operand: self.boxed(depth),
            },
            3 => ExprKind::Unary {
                op: self.pick(&STEPS),
                operand: Box::new(self.place(depth)),
            },
            4 => ExprKind::Unary {
                op: UnaryOp::AddrOf,
                operand: Box::new(self.place(0)),
            },
            5 => {
                let then = self.maybe(|chance| chance.boxed(depth));
                ExprKind::Ternary {
                    cond: self.boxed(depth),
                    then,
                    otherwise: self.boxed(depth),
                }
            }
            _ => ExprKind::Cast {
                ty: Box::new(self.ty(depth.min(3))),
                operand: self.boxed(depth),
            },
        }
    }

    /// Generates a call, an access, or a list of values, by a number from 7 to 12.
    fn access_or_list(&mut self, choice: usize, depth: u32) -> ExprKind {
        match choice {
            7 => ExprKind::Call {
                func: self.name(),
                args: self.many(3, |chance| chance.argument(depth)),
            },
            8 => ExprKind::Field {
                base: self.boxed(depth),
                name: self.name(),
                arrow: self.coin(),
            },
            9 => ExprKind::TupleField {
                base: self.boxed(depth),
                index: self.below(3) as u32,
            },
            10 => ExprKind::Index {
                base: self.boxed(depth),
                index: self.boxed(depth),
            },
            11 => ExprKind::Tuple(self.many(3, |chance| chance.expr(depth))),
            _ => ExprKind::Record(self.fields(depth)),
        }
    }

    fn leaf(&mut self) -> Expr {
        expr(match self.below(8) {
            0 | 1 => {
                let (text, value, base, suffix) = self.pick(&NUMBERS);
                ExprKind::Int(IntLit {
                    value,
                    base,
                    suffix,
                    text: text.to_owned(),
                })
            }
            2 => ExprKind::Str(
                self.pick(&[&b""[..], b"%d\n", b"\xff\"\\", "é{}/".as_bytes()])
                    .to_vec(),
            ),
            3 => ExprKind::Bool(self.coin()),
            4 => ExprKind::Ident(
                self.pick(&["pid", "uint8", "FOO", "a", "string"])
                    .to_owned(),
            ),
            5 => ExprKind::Positional(self.below(12) as u32 + 1),
            6 => ExprKind::ParamCount,
            _ => return self.place(0),
        })
    }

    /// Generates a variable or a map.
    pub(super) fn place(&mut self, depth: u32) -> Expr {
        if self.coin() {
            return expr(ExprKind::Var(self.name().text));
        }
        let mut name = self.name();
        if self.coin() {
            name.text.clear();
        }
        let keys = if depth == 0 {
            Vec::new()
        } else {
            self.many(3, |chance| chance.expr(depth - 1))
        };
        expr(ExprKind::Map(MapRef { name, keys }))
    }

    fn boxed(&mut self, depth: u32) -> Box<Expr> {
        Box::new(self.expr(depth))
    }

    fn argument(&mut self, depth: u32) -> Expr {
        if self.below(8) == 0 {
            expr(ExprKind::TypeArg(Box::new(self.type_operand(depth))))
        } else {
            self.expr(depth)
        }
    }

    fn type_operand(&mut self, depth: u32) -> TypeOrExpr {
        if self.coin() {
            TypeOrExpr::Type(self.ty(depth.min(3)))
        } else {
            TypeOrExpr::Expr(self.expr(depth))
        }
    }

    fn fields(&mut self, depth: u32) -> Vec<RecordField> {
        let mut names = vec![self.name(), self.name()];
        names.dedup();
        names
            .into_iter()
            .map(|name| RecordField {
                name,
                value: self.expr(depth),
                span: Span::default(),
            })
            .collect()
    }

    pub(super) fn chain(&mut self, depth: u32, valued: bool) -> If {
        let arms = (0..=self.below(2))
            .map(|_| (self.expr(depth), self.block(depth, valued)))
            .collect();
        If {
            arms,
            otherwise: self.maybe(|chance| chance.block(depth, valued)),
        }
    }

    pub(super) fn ty(&mut self, depth: u32) -> Type {
        let kind = match if depth == 0 {
            self.below(3)
        } else {
            self.below(6)
        } {
            0 => TypeKind::Name(
                self.pick(&["uint64", "string", "unsigned long", "void", "int8"])
                    .to_owned(),
            ),
            1 | 2 => TypeKind::Tagged(
                self.pick(&[RecordKind::Struct, RecordKind::Union, RecordKind::Enum]),
                self.name(),
            ),
            3 => TypeKind::Pointer(Box::new(self.ty(depth - 1))),
            4 => TypeKind::Array(
                Box::new(self.ty(depth - 1)),
                self.maybe(|chance| chance.boxed(1)),
            ),
            _ => TypeKind::Typeof(Box::new(self.type_operand(depth - 1))),
        };
        Type::new(kind, Span::default())
    }
}
