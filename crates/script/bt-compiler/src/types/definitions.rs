//! The script's own structs, unions, enums, typedefs and constants.

use bt_lang::Diagnostic;
use bt_lang::ast::{
    self, CEnum, CField, CRecord, ExprKind, RecordKind, Span, TypeKind as AstKind, UnaryOp,
};
use typeinfo::{EnumDef, MemberDef, NameKind, RecordDef, TypeRef};

use super::{Types, tag};
use crate::check::literals;
use crate::diagnostics::Diagnostics;
use crate::{fold, headers};

/// Limit on the expressions that make up a constant, including those named by `#define`.
const MAX_CONSTANT: u32 = 1000;

/// Reader of definitions: it adds types, and reports mistakes.
pub(crate) struct Definer<'c, 'f> {
    pub(crate) types: &'c mut Types<'f>,
    pub(crate) diagnostics: &'c mut Diagnostics,
}

impl Definer<'_, '_> {
    /// Adds a definition to the types; reports mistakes in it.
    pub(crate) fn define_record(&mut self, record: &CRecord) -> Option<TypeRef> {
        let name = record.name.as_ref().map(|name| name.text.clone());
        let Some(fields) = &record.fields else {
            return self.types.store.forward(tag(record.kind), &name?).ok();
        };
        let mut members = Vec::with_capacity(fields.len());
        for field in fields {
            members.push(self.member_def(field)?);
        }
        let align = record
            .aligned
            .as_deref()
            .and_then(|align| self.constant(align));
        let def = RecordDef {
            union: record.kind == RecordKind::Union,
            name,
            members,
            packed: record.packed,
            align,
        };
        self.define(record.span, |types| types.define_record(def))
    }

    fn member_def(&mut self, field: &CField) -> Option<MemberDef> {
        let ty = self.c_def_type(&field.ty)?;
        let bits = match &field.bits {
            Some(bits) => Some(u32::try_from(self.constant(bits)?).ok()?),
            None => None,
        };
        Some(MemberDef {
            name: field.name.as_ref().map(|name| name.text.clone()),
            ty,
            bits,
            align: None,
        })
    }

    pub(crate) fn define_enum(&mut self, def: &CEnum) -> Option<TypeRef> {
        let (mut values, mut next, mut unsigned) = (Vec::new(), 0_i64, false);
        for variant in &def.variants {
            if let Some(value) = &variant.value {
                // Earlier constants of the same enum may be used.
                let known = |name: &str| {
                    values
                        .iter()
                        .find(|(known, _): &&(String, i64)| known == name)
                        .map(|v| v.1)
                };
                next = self.constant_with(value, &known)?.cast_signed();
                unsigned |= next < 0 && !is_negative(value);
            }
            values.push((variant.name.text.clone(), next));
            next = next.wrapping_add(1);
        }
        let name = def.name.as_ref().map(|name| name.text.clone());
        self.define(def.span, |types| {
            types.define_enum(EnumDef {
                name,
                values,
                unsigned,
            })
        })
    }

    pub(crate) fn define_typedef(&mut self, name: &ast::Name, ty: &ast::Type) {
        if let Some(target) = self.c_def_type(ty) {
            self.define(name.span, |types| types.define_typedef(&name.text, target));
        }
    }

    fn define<T>(
        &mut self,
        span: Span,
        define: impl FnOnce(&mut typeinfo::TypeStore<'_>) -> Result<T, typeinfo::TypeError>,
    ) -> Option<T> {
        self.types.cache.clear();
        match define(&mut self.types.store) {
            Ok(done) => Some(done),
            Err(error) => {
                self.diagnostics
                    .keep(Diagnostic::error(error.to_string(), span));
                None
            }
        }
    }

    /// Finds or defines a type used within a definition.
    fn c_def_type(&mut self, ty: &ast::Type) -> Option<TypeRef> {
        let found = match &ty.kind {
            AstKind::Error => return None,
            AstKind::Name(name) => self.c_def_name(name),
            AstKind::Tagged(kind, name) => {
                let known = self.types.find_type(NameKind::from(tag(*kind)), &name.text);
                known.or_else(|| self.types.store.forward(tag(*kind), &name.text).ok())
            }
            AstKind::Inline(record) => return self.define_record(record),
            AstKind::InlineEnum(def) => return self.define_enum(def),
            AstKind::Pointer(target) => match &target.kind {
                // A pointer's target may be defined later, or nowhere.
                AstKind::Tagged(kind, name) => {
                    let own = self.types.store.forward(tag(*kind), &name.text).ok()?;
                    self.types.store.pointer_to(own).ok()
                }
                AstKind::Function => self.types.store.pointer_to(TypeRef::VOID).ok(),
                _ => {
                    let target = self.c_def_type(target)?;
                    self.types.store.pointer_to(target).ok()
                }
            },
            AstKind::Array(element, count) => {
                let element = self.c_def_type(element)?;
                let count = match count {
                    Some(count) => Some(self.constant(count)?),
                    None => None,
                };
                self.types.store.array_of(element, count).ok()
            }
            AstKind::Function => Some(TypeRef::VOID),
            AstKind::Typeof(_) => None,
        };
        if found.is_none() {
            self.diagnostics.keep(
                Diagnostic::error("cannot resolve unknown type", ty.span).with_hint(
                    "define it before it is used; types of the kernel come from its BTF",
                ),
            );
        }
        found
    }

    fn c_def_name(&mut self, name: &str) -> Option<TypeRef> {
        if let Ok(Some(base)) = self.types.store.base(name) {
            return Some(base);
        }
        self.types.find_type(NameKind::Typedef, name)
    }

    /// Computes a number that a definition uses.
    pub(crate) fn constant(&mut self, expr: &ast::Expr) -> Option<u64> {
        self.constant_with(expr, &|_| None)
    }

    fn constant_with(
        &mut self,
        expr: &ast::Expr,
        known: &dyn Fn(&str) -> Option<i64>,
    ) -> Option<u64> {
        self.constant_within(expr, known, &mut { MAX_CONSTANT })
    }

    /// Computes a number from at most `left` further expressions.
    fn constant_within(
        &mut self,
        expr: &ast::Expr,
        known: &dyn Fn(&str) -> Option<i64>,
        left: &mut u32,
    ) -> Option<u64> {
        let Some(fewer) = left.checked_sub(1) else {
            self.diagnostics.keep(Diagnostic::error(
                "this number is made of too many others, or of itself",
                expr.span,
            ));
            return None;
        };
        *left = fewer;
        let value = match &expr.kind {
            ExprKind::Int(literal) => Some(literal.value),
            ExprKind::Ident(name) => match (known(name), self.types.defines.get(name).cloned()) {
                (Some(value), _) => Some(value.cast_unsigned()),
                (None, Some(define)) => self.constant_within(&define, known, left),
                (None, None) => {
                    let found = self.types.find_enumerator(name).map(|(_, value)| value);
                    let constant = || {
                        headers::find(name)
                            .filter(|_| self.types.includes)
                            .map(|(_, value)| value)
                    };
                    found.or_else(constant).map(i64::cast_unsigned)
                }
            },
            ExprKind::Positional(number) => {
                let index = (*number as usize).checked_sub(1)?;
                self.types
                    .facts
                    .params()
                    .get(index)
                    .and_then(|text| literals::number(text))
            }
            ExprKind::Unary { op, operand } => {
                let value = self.constant_within(operand, known, left)?;
                match op {
                    UnaryOp::Neg => Some(value.wrapping_neg()),
                    UnaryOp::BitNot => Some(!value),
                    UnaryOp::Not => Some(u64::from(value == 0)),
                    _ => None,
                }
            }
            ExprKind::Binary {
                op,
                left: one,
                right: other,
                ..
            } => {
                let one = self.constant_within(one, known, left)?;
                fold::binary(*op, one, self.constant_within(other, known, left)?, true)
            }
            ExprKind::Cast { operand, .. } => self.constant_within(operand, known, left),
            _ => None,
        };
        if value.is_none() {
            self.diagnostics.keep(Diagnostic::error(
                "expected a number that is known at compile time",
                expr.span,
            ));
        }
        value
    }
}

fn is_negative(expr: &ast::Expr) -> bool {
    matches!(
        expr.kind,
        ExprKind::Unary {
            op: UnaryOp::Neg,
            ..
        }
    )
}
