//! Expressions and types.

use super::Dump;
use crate::ast::{Expr, ExprKind, If, IntLit, IntSuffix, Type, TypeKind, TypeOrExpr};
use crate::lexer::text;

impl Dump {
    pub(super) fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Error => self.push("(error)"),
            ExprKind::Int(lit) => self.int(lit),
            ExprKind::Str(bytes) => self.push(&text::quote(bytes)),
            ExprKind::Bool(value) => self.push(if *value { "true" } else { "false" }),
            ExprKind::Ident(name) => self.push(name),
            ExprKind::Var(name) => self.push(&format!("${name}")),
            ExprKind::Positional(number) => self.push(&format!("${number}")),
            ExprKind::ParamCount => self.push("$#"),
            ExprKind::Map(map) => {
                self.push(&format!("@{}", map.name.text));
                if !map.keys.is_empty() {
                    self.push("[");
                    self.spaced(&map.keys);
                    self.push("]");
                }
            }
            ExprKind::Call { func, args } => self.node("call", |out| {
                out.word(&func.text);
                out.all(args);
            }),
            ExprKind::TypeArg(of) => self.node("type-arg", |out| {
                out.part(|out| out.type_or_expr(of));
            }),
            ExprKind::Sizeof(of) => self.node("sizeof", |out| out.part(|out| out.type_or_expr(of))),
            ExprKind::Typeinfo(of) => self.node("typeinfo", |out| {
                out.part(|out| out.type_or_expr(of));
            }),
            ExprKind::Offsetof { of, path } => self.node("offsetof", |out| {
                out.part(|out| out.type_or_expr(of));
                for name in path {
                    out.word(&name.text);
                }
            }),
            ExprKind::Tuple(parts) => self.node("tuple", |out| out.all(parts)),
            ExprKind::Record(fields) => self.node("record", |out| {
                for field in fields {
                    out.word(&format!("{}=", field.name.text));
                    out.expr(&field.value);
                }
            }),
            ExprKind::If(chain) => self.if_chain(chain),
            ExprKind::Block(block) => self.block("block", block),
            _ => self.operator(expr),
        }
    }

    fn operator(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Unary { op, operand } => {
                let word = if op.is_postfix() {
                    format!("post{}", op.text())
                } else {
                    op.text().to_owned()
                };
                self.node(&word, |out| out.part(|out| out.expr(operand)));
            }
            ExprKind::Binary {
                op, left, right, ..
            } => self.node(op.text(), |out| {
                out.part(|out| out.expr(left));
                out.part(|out| out.expr(right));
            }),
            ExprKind::Ternary {
                cond,
                then,
                otherwise,
            } => self.node(if then.is_some() { "?" } else { "?:" }, |out| {
                out.part(|out| out.expr(cond));
                if let Some(then) = then {
                    out.part(|out| out.expr(then));
                }
                out.part(|out| out.expr(otherwise));
            }),
            ExprKind::Cast { ty, operand } => self.node("cast", |out| {
                out.part(|out| out.ty(ty));
                out.part(|out| out.expr(operand));
            }),
            ExprKind::Comptime(operand) => {
                self.node("comptime", |out| out.part(|out| out.expr(operand)));
            }
            ExprKind::Field { base, name, arrow } => {
                self.node(if *arrow { "->" } else { "." }, |out| {
                    out.part(|out| out.expr(base));
                    out.word(&name.text);
                });
            }
            ExprKind::TupleField { base, index } => self.node(".", |out| {
                out.part(|out| out.expr(base));
                out.word(&index.to_string());
            }),
            ExprKind::Index { base, index } => self.node("index", |out| {
                out.part(|out| out.expr(base));
                out.part(|out| out.expr(index));
            }),
            // All others are printed by the caller.
            _ => {}
        }
    }

    fn int(&mut self, lit: &IntLit) {
        let suffix = match lit.suffix {
            IntSuffix::None => "",
            IntSuffix::U => "u",
            IntSuffix::Ul => "ul",
            IntSuffix::Ull => "ull",
            IntSuffix::L => "l",
            IntSuffix::Ll => "ll",
            IntSuffix::Time => "ns",
        };
        self.push(&format!("{}{suffix}", lit.value));
    }

    fn if_chain(&mut self, chain: &If) {
        self.node("if", |out| {
            for (cond, block) in &chain.arms {
                out.part(|out| out.expr(cond));
                out.part(|out| out.block("then", block));
            }
            if let Some(block) = &chain.otherwise {
                out.part(|out| out.block("else", block));
            }
        });
    }

    fn spaced(&mut self, list: &[Expr]) {
        for (at, expr) in list.iter().enumerate() {
            if at > 0 {
                self.push(" ");
            }
            self.expr(expr);
        }
    }

    pub(super) fn all(&mut self, list: &[Expr]) {
        for expr in list {
            self.part(|out| out.expr(expr));
        }
    }

    fn type_or_expr(&mut self, of: &TypeOrExpr) {
        match of {
            TypeOrExpr::Type(ty) => self.node("type", |out| out.part(|out| out.ty(ty))),
            TypeOrExpr::Expr(expr) => self.expr(expr),
        }
    }

    pub(super) fn ty(&mut self, ty: &Type) {
        match &ty.kind {
            TypeKind::Error => self.push("(error)"),
            TypeKind::Name(name) if name.contains(' ') => self.push(&format!("\"{name}\"")),
            TypeKind::Name(name) => self.push(name),
            TypeKind::Tagged(kind, name) => self.leaf(kind.text(), &name.text),
            TypeKind::Inline(record) => self.record(record),
            TypeKind::InlineEnum(definition) => self.enumeration(definition),
            TypeKind::Pointer(inner) => self.node("ptr", |out| out.part(|out| out.ty(inner))),
            TypeKind::Array(inner, length) => self.node("array", |out| {
                out.part(|out| out.ty(inner));
                if let Some(length) = length {
                    out.part(|out| out.expr(length));
                }
            }),
            TypeKind::Function => self.push("(function)"),
            TypeKind::Typeof(of) => self.node("typeof", |out| out.part(|out| out.type_or_expr(of))),
        }
    }
}
