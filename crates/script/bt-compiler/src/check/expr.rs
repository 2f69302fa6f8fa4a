//! Expressions: one arm for each form of the syntax.

use bt_lang::Span;
use bt_lang::ast::{self, BinaryOp, If, IntSuffix, UnaryOp};

use super::{Check, MAX_DEPTH};
use crate::hir::{Expr, ExprKind, Intrinsic, Stmt};
use crate::ty::{MAX_PARTS, Ty, U64};

/// Bytes of a text or name that count as one expression, since each copy of the expression keeps
/// them.
const TEXT: usize = 32;

/// Returns the length in bytes of a literal's text, or of a name.
fn written(expr: &ast::Expr) -> usize {
    match &expr.kind {
        ast::ExprKind::Str(text) => text.len(),
        ast::ExprKind::Ident(name) | ast::ExprKind::Var(name) => name.len(),
        _ => 0,
    }
}

/// Returns the type of a number by its suffix.
fn literal_type(value: u64, suffix: IntSuffix) -> Ty {
    match suffix {
        IntSuffix::None | IntSuffix::Time => smallest(value),
        IntSuffix::U => Ty::Int {
            size: 4,
            signed: false,
        },
        IntSuffix::Ul | IntSuffix::Ull => U64,
        IntSuffix::L | IntSuffix::Ll => Ty::Int {
            size: 8,
            signed: true,
        },
    }
}

impl Check<'_, '_> {
    pub(super) fn expr(&mut self, expr: &ast::Expr) -> Expr {
        self.depth += 1;
        let value = if self.depth > MAX_DEPTH {
            self.wrong(expr.span, "this nests too deep")
        } else if self.charge(1 + written(expr) / TEXT, expr.span) {
            self.expr_within(expr)
        } else {
            Expr::error(expr.span)
        };
        self.depth -= 1;
        value
    }

    fn tuple(&mut self, items: &[ast::Expr], span: Span) -> Expr {
        let items: Vec<Expr> = items.iter().map(|item| self.part(item)).collect();
        self.whole(items, span, |items| {
            Ty::Tuple(items.iter().map(|item| item.ty.clone()).collect())
        })
    }

    fn record(&mut self, fields: &[ast::RecordField], span: Span) -> Expr {
        let items: Vec<Expr> = fields.iter().map(|field| self.part(&field.value)).collect();
        let named =
            |(field, item): (&ast::RecordField, &Expr)| (field.name.text.clone(), item.ty.clone());
        self.whole(items, span, |items| {
            Ty::Record(fields.iter().zip(items).map(named).collect())
        })
    }

    fn expr_within(&mut self, expr: &ast::Expr) -> Expr {
        let span = expr.span;
        match &expr.kind {
            ast::ExprKind::Error => Expr::error(span),
            ast::ExprKind::Int(literal) => Expr::int(
                literal.value,
                literal_type(literal.value, literal.suffix),
                span,
            ),
            ast::ExprKind::Str(bytes) => self.string(bytes.clone(), span),
            ast::ExprKind::Bool(value) => Expr::int(u64::from(*value), Ty::Bool, span),
            ast::ExprKind::Ident(name) => self.ident(name, span),
            ast::ExprKind::Var(name) => self.variable(name, span),
            ast::ExprKind::Positional(number) => self.positional(*number, span),
            ast::ExprKind::ParamCount => {
                let count = self.inputs.facts.params().len() as u64;
                Expr::int(count, smallest(count), span)
            }
            ast::ExprKind::Map(map) => self.map_read(map, span),
            ast::ExprKind::Call { func, args } => self.call(func, args, span),
            ast::ExprKind::TypeArg(_) => self.wrong(span, "a type can't be used as a value"),
            ast::ExprKind::Unary { op, operand } => self.unary(*op, operand, span),
            ast::ExprKind::Binary {
                op: op @ (BinaryOp::LogAnd | BinaryOp::LogOr),
                left,
                right,
                ..
            } => {
                let (left, right) = (self.condition(left), self.condition(right));
                self.logic(*op, left, right, span)
            }
            ast::ExprKind::Binary {
                op, left, right, ..
            } => {
                let (left, right) = (self.expr(left), self.expr(right));
                self.binary(*op, left, right, span)
            }
            ast::ExprKind::Ternary {
                cond,
                then,
                otherwise,
            } => self.ternary(cond, then.as_deref(), otherwise, span),
            ast::ExprKind::If(chain) => self.if_value(chain, span),
            ast::ExprKind::Block(block) => {
                self.within(span, block.span, |check| check.block_value(block, span))
            }
            ast::ExprKind::Cast { ty, operand } => self.cast(ty, operand, span),
            ast::ExprKind::Sizeof(what) => self.size_of(what, span),
            ast::ExprKind::Offsetof { of, path } => self.offset_of(of, path, span),
            ast::ExprKind::Typeinfo(what) => self.typeinfo(what, span),
            ast::ExprKind::Field {
                base,
                name,
                arrow: _,
            } => self.field(base, name, span),
            ast::ExprKind::TupleField { base, index } => self.tuple_field(base, *index, span),
            ast::ExprKind::Index { base, index } => self.index(base, index, span),
            ast::ExprKind::Tuple(items) => self.tuple(items, span),
            ast::ExprKind::Record(fields) => self.record(fields, span),
            ast::ExprKind::Comptime(operand) => self.comptime(operand, span),
        }
    }

    fn block_value(&mut self, block: &ast::Block, span: bt_lang::Span) -> Expr {
        self.scoped(|check| {
            let stmts = check.stmts(&block.stmts);
            match &block.value {
                Some(value) => {
                    let value = check.expr(value);
                    block_of(stmts, value)
                }
                None => Expr::statement(stmts, span),
            }
        })
    }

    /// Builds a tuple or record, unless it has too many parts. Its type is built only after that
    /// check.
    pub(super) fn whole(
        &mut self,
        items: Vec<Expr>,
        span: Span,
        ty: impl FnOnce(&[Expr]) -> Ty,
    ) -> Expr {
        let parts: usize = items.iter().map(|item| item.ty.all_parts()).sum();
        if parts > MAX_PARTS {
            return self.wrong(
                span,
                format!("a tuple or record has at most {MAX_PARTS} parts, not {parts}"),
            );
        }
        Expr::new(ty(&items), ExprKind::Tuple(items), span)
    }

    /// Checks an element of a tuple.
    fn part(&mut self, expr: &ast::Expr) -> Expr {
        let value = self.expr(expr);
        match &value.ty {
            Ty::Agg(_) | Ty::Void => {
                let name = self.type_name(&value.ty);
                self.wrong(
                    expr.span,
                    format!("a value of type '{name}' can't be part of a tuple"),
                )
            }
            _ => value,
        }
    }

    fn ternary(
        &mut self,
        cond: &ast::Expr,
        then: Option<&ast::Expr>,
        otherwise: &ast::Expr,
        span: Span,
    ) -> Expr {
        let before = self.budget.body;
        let value = self.expr(cond);
        let made = self.budget.body - before;
        let Some(then) = then else {
            let otherwise = self.expr(otherwise);
            return self.elvis(value, otherwise, made, span);
        };
        let then = self.expr(then);
        let cond = self.truth(value);
        let otherwise = self.expr(otherwise);
        self.choose(cond, then, otherwise, span)
    }

    /// Checks `a ?: b`. A number is computed once. A value in memory is in the tree twice: for the
    /// truth test, and as the value.
    fn elvis(&mut self, value: Expr, otherwise: Expr, made: usize, span: Span) -> Expr {
        let both_scalar =
            value.ty.is_scalar() && otherwise.ty.is_scalar() && value.constant().is_none();
        if let (true, Some(ty)) = (both_scalar, value.ty.join(&otherwise.ty)) {
            return Expr::new(
                ty,
                ExprKind::Elvis(Box::new(value), Box::new(otherwise)),
                span,
            );
        }
        let then = if self.charge(made, span) {
            value.clone()
        } else {
            Expr::error(span)
        };
        let cond = self.truth(value);
        self.choose(cond, then, otherwise, span)
    }

    pub(super) fn choose(&mut self, cond: Expr, then: Expr, otherwise: Expr, span: Span) -> Expr {
        if then.ty == Ty::Void && otherwise.ty == Ty::Void {
            let stmts = vec![Stmt::If {
                cond,
                then: vec![Stmt::Expr(then)],
                otherwise: vec![Stmt::Expr(otherwise)],
            }];
            return Expr::statement(stmts, span);
        }
        match then.ty.join(&otherwise.ty) {
            Some(_) if cond.constant() == Some(0) => otherwise,
            Some(_) if cond.constant().is_some() => then,
            Some(ty) if !matches!(ty, Ty::Agg(_) | Ty::Void) => {
                let kind = ExprKind::Cond {
                    cond: Box::new(cond),
                    then: Box::new(then),
                    otherwise: Box::new(otherwise),
                };
                Expr::new(ty, kind, span)
            }
            _ => {
                let (a, b) = (self.type_name(&then.ty), self.type_name(&otherwise.ty));
                self.wrong(
                    span,
                    format!("both branches must have the same type, not '{a}' and '{b}'"),
                )
            }
        }
    }

    /// Checks an `if` with a value, which has a block in each branch.
    fn if_value(&mut self, chain: &If, span: Span) -> Expr {
        let has_value = chain.arms.iter().any(|(_, block)| block.value.is_some());
        if !has_value {
            let stmts = self.if_stmt(chain);
            return Expr::statement(stmts, span);
        }
        let mut arms = Vec::new();
        let mut last = None;
        for (cond, block) in &chain.arms {
            let comptime = matches!(cond.kind, ast::ExprKind::Comptime(_));
            let cond = self.condition(cond);
            let as_block = |block: &ast::Block| {
                ast::Expr::new(ast::ExprKind::Block(block.clone()), block.span)
            };
            match cond.constant().filter(|_| comptime) {
                Some(0) => {}
                Some(_) => {
                    last = Some(self.expr(&as_block(block)));
                    break;
                }
                None => {
                    let value = self.expr(&as_block(block));
                    arms.push((cond, value));
                }
            }
        }
        if let (None, Some(block)) = (&last, &chain.otherwise) {
            last = Some(self.expr(&ast::Expr::new(
                ast::ExprKind::Block(block.clone()),
                block.span,
            )));
        }
        let Some(last) = last else {
            return self.wrong(span, "an if with a value needs an else");
        };
        arms.into_iter()
            .rev()
            .fold(last, |otherwise, (cond, then)| {
                self.choose(cond, then, otherwise, span)
            })
    }

    fn unary(&mut self, op: UnaryOp, operand: &ast::Expr, span: Span) -> Expr {
        match op {
            UnaryOp::PreInc => self.step(operand, 1, false, span),
            UnaryOp::PreDec => self.step(operand, -1, false, span),
            UnaryOp::PostInc => self.step(operand, 1, true, span),
            UnaryOp::PostDec => self.step(operand, -1, true, span),
            UnaryOp::Deref => self.deref(operand, span),
            UnaryOp::AddrOf => self.address_of(operand, span),
            UnaryOp::Not => {
                let value = self.condition(operand);
                match value.constant() {
                    Some(number) => Expr::int(u64::from(number == 0), Ty::Bool, span),
                    None => Expr::new(Ty::Bool, ExprKind::Not(Box::new(value)), span),
                }
            }
            UnaryOp::Neg | UnaryOp::BitNot => {
                let value = self.expr(operand);
                self.negate(op, value, span)
            }
        }
    }
}

/// Builds a block of statements with a value; without statements, returns the value itself.
fn block_of(stmts: Vec<Stmt>, value: Expr) -> Expr {
    if stmts.is_empty() {
        return value;
    }
    let (ty, span) = (value.ty.clone(), value.span);
    Expr::new(
        ty,
        ExprKind::Block {
            stmts,
            value: Box::new(value),
        },
        span,
    )
}

impl Expr {
    /// Gives a text in C's memory room for a NUL. An array of characters may be full, and a text
    /// without NUL in its room counts as cut.
    pub(super) fn ended(self) -> Self {
        match (&self.kind, &self.ty) {
            (ExprKind::MemRef { .. }, Ty::Str(size)) => {
                let (ty, span) = (Ty::Str(size.saturating_add(1)), self.span);
                Self::new(ty, ExprKind::Intrinsic(Intrinsic::CutStr, vec![self]), span)
            }
            _ => self,
        }
    }

    /// Builds an expression from statements without a value.
    pub(super) fn statement(stmts: Vec<Stmt>, span: Span) -> Self {
        let value = Box::new(Self::int(0, Ty::Void, span));
        Self::new(Ty::Void, ExprKind::Block { stmts, value }, span)
    }
}

/// Returns the smallest type that holds a number.
pub(super) fn smallest(value: u64) -> Ty {
    let size = match value {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    };
    Ty::Int {
        size,
        signed: false,
    }
}
