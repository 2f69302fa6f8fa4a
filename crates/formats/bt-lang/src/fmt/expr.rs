//! Expressions and types, without redundant parentheses.

use super::Printer;
use crate::ast::{Expr, ExprKind, Type, TypeKind, TypeOrExpr, UnaryOp};
use crate::lexer::text;
use crate::names;

/// Precedence of prefix operators, above those of [`crate::ast::BinaryOp::precedence`].
const UNARY: u8 = 11;
/// Precedence of postfix operators, fields and indexes.
const POSTFIX: u8 = 12;
/// Precedence of all other expressions.
const PRIMARY: u8 = 13;

/// Returns the precedence of an expression.
fn tightness(expr: &Expr) -> u8 {
    match &expr.kind {
        ExprKind::Ternary { .. } => 0,
        ExprKind::Binary { op, .. } => op.precedence(),
        ExprKind::Unary { op, .. } if op.is_postfix() => POSTFIX,
        ExprKind::Unary { .. } | ExprKind::Cast { .. } | ExprKind::Comptime(_) => UNARY,
        ExprKind::Field { .. } | ExprKind::TupleField { .. } | ExprKind::Index { .. } => POSTFIX,
        _ => PRIMARY,
    }
}

impl Printer<'_> {
    /// Prints any expression.
    pub(super) fn expr(&mut self, expr: &Expr) {
        self.operand(expr, 0);
    }

    /// Prints an expression, in parentheses if its precedence is below `least`.
    pub(super) fn operand(&mut self, expr: &Expr, least: u8) {
        if tightness(expr) < least {
            self.push("(");
            self.bare(expr);
            self.push(")");
        } else {
            self.bare(expr);
        }
    }

    fn bare(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Error => {
                let text = expr.span.text(self.source).to_owned();
                self.push(&text);
            }
            ExprKind::Int(lit) => self.push(&lit.text),
            ExprKind::Str(bytes) => self.push(&text::quote(bytes)),
            ExprKind::Bool(value) => self.push(if *value { "true" } else { "false" }),
            ExprKind::Ident(name) => self.push(name),
            ExprKind::Var(name) => self.push(&format!("${name}")),
            ExprKind::Positional(number) => self.push(&format!("${number}")),
            ExprKind::ParamCount => self.push("$#"),
            ExprKind::Map(map) => {
                self.push(&format!("@{}", map.name.text));
                if !map.keys.is_empty() {
                    self.list("[", &map.keys, "]");
                }
            }
            ExprKind::Call { func, args } => {
                self.push(&func.text);
                self.list("(", args, ")");
            }
            ExprKind::TypeArg(of) => self.type_operator("typeof", of),
            ExprKind::Sizeof(of) => self.type_operator("sizeof", of),
            ExprKind::Typeinfo(of) => self.type_operator("typeinfo", of),
            ExprKind::Offsetof { of, path } => {
                self.push("offsetof(");
                self.type_or_expr(of);
                let path: Vec<&str> = path.iter().map(|name| name.text.as_str()).collect();
                self.push(&format!(", {})", path.join(".")));
            }
            ExprKind::Tuple(parts) => {
                self.list("(", parts, if parts.len() == 1 { ",)" } else { ")" });
            }
            ExprKind::Record(fields) => {
                self.push("(");
                for (at, field) in fields.iter().enumerate() {
                    self.push(&format!(
                        "{}{}=",
                        if at > 0 { ", " } else { "" },
                        field.name.text
                    ));
                    self.expr(&field.value);
                }
                self.push(")");
            }
            ExprKind::If(chain) => self.if_chain(chain, true),
            ExprKind::Block(block) => self.block(block, true),
            _ => self.operator(expr),
        }
    }

    fn operator(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Unary { op, operand } => self.unary(*op, operand),
            ExprKind::Binary {
                op, left, right, ..
            } => {
                self.operand(left, op.precedence());
                self.push(&format!(" {} ", op.text()));
                // A `/` before a block would end a predicate.
                self.grouped_if('{', |printer| printer.operand(right, op.precedence() + 1));
            }
            ExprKind::Ternary {
                cond,
                then,
                otherwise,
            } => {
                self.operand(cond, 1);
                match then {
                    Some(then) => {
                        self.push(" ? ");
                        self.expr(then);
                        self.push(" : ");
                    }
                    None => self.push(" ?: "),
                }
                self.expr(otherwise);
            }
            ExprKind::Cast { ty, operand } => {
                self.push("(");
                self.ty(ty);
                self.push(")");
                // A block here would end the expression.
                self.grouped_if('{', |printer| printer.operand(operand, UNARY));
            }
            ExprKind::Comptime(operand) => {
                self.push("comptime ");
                self.operand(operand, UNARY);
            }
            ExprKind::Field { base, name, arrow } => {
                self.operand(base, POSTFIX);
                self.push(if *arrow { "->" } else { "." });
                self.push(&name.text);
            }
            ExprKind::TupleField { base, index } => {
                self.operand(base, POSTFIX);
                self.push(&format!(".{index}"));
            }
            ExprKind::Index { base, index } => {
                // `@m[1]` would be a map with a key.
                let keyless = matches!(&base.kind, ExprKind::Map(map) if map.keys.is_empty());
                self.operand(base, if keyless { u8::MAX } else { POSTFIX });
                self.push("[");
                self.expr(index);
                self.push("]");
            }
            // All others are printed by the caller.
            _ => {}
        }
    }

    /// Prints in parentheses if the output begins with this character.
    pub(super) fn grouped_if(&mut self, first: char, print: impl FnOnce(&mut Self)) {
        let start = self.out.len();
        print(self);
        if self.out[start..].starts_with(first) {
            self.out.insert(start, '(');
            self.push(")");
        }
    }

    fn unary(&mut self, op: UnaryOp, operand: &Expr) {
        if op.is_postfix() {
            self.operand(operand, POSTFIX);
            self.push(op.text());
            return;
        }
        self.push(op.text());
        let start = self.out.len();
        self.operand(operand, UNARY);
        // Prints `- -x` instead of `--x`.
        let first = &op.text()[..1];
        if first != "*" && self.out[start..].starts_with(first) {
            self.out.insert(start, ' ');
        }
    }

    fn list(&mut self, open: &str, parts: &[Expr], close: &str) {
        self.push(open);
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                self.push(", ");
            }
            self.expr(part);
        }
        self.push(close);
    }

    fn type_operator(&mut self, word: &str, of: &TypeOrExpr) {
        self.push(word);
        self.push("(");
        self.type_or_expr(of);
        self.push(")");
    }

    fn type_or_expr(&mut self, of: &TypeOrExpr) {
        match of {
            TypeOrExpr::Type(ty) => self.ty(ty),
            TypeOrExpr::Expr(expr) if reads_as_type(expr) => {
                self.push("(");
                self.expr(expr);
                self.push(")");
            }
            TypeOrExpr::Expr(expr) => self.expr(expr),
        }
    }

    /// Prints a type as scripts write it.
    pub(super) fn ty(&mut self, ty: &Type) {
        match &ty.kind {
            TypeKind::Error => self.push("error"),
            TypeKind::Name(name) => self.push(name),
            TypeKind::Tagged(kind, name) => self.push(&format!("{} {}", kind.text(), name.text)),
            TypeKind::Pointer(inner) => {
                self.ty(inner);
                let tight = matches!(inner.kind, TypeKind::Pointer(_) | TypeKind::Array(..));
                self.push(if tight { "*" } else { " *" });
            }
            TypeKind::Array(inner, length) => {
                self.ty(inner);
                self.push("[");
                if let Some(length) = length {
                    self.expr(length);
                }
                self.push("]");
            }
            TypeKind::Typeof(of) => self.type_operator("typeof", of),
            TypeKind::Inline(_) | TypeKind::InlineEnum(_) | TypeKind::Function => {
                self.declaration(ty, "");
            }
        }
    }
}

/// Returns whether the parser would take the expression for a type in `sizeof` and so on.
fn reads_as_type(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Ident(name) => names::is_type(name),
        ExprKind::Index { base, .. } => match &base.kind {
            ExprKind::Ident(name) => !names::is_builtin(name),
            _ => reads_as_type(base),
        },
        _ => false,
    }
}
