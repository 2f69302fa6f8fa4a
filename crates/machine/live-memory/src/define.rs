//! Types from definitions in C, for programs without debug information.

use std::collections::HashMap;

use bt_lang::ast::{
    BinaryOp, CEnum, CField, CRecord, Expr, ExprKind, ItemKind, RecordKind, Type, TypeKind, UnaryOp,
};
use bt_lang::{Diagnostic, Span};
use typeinfo::{EnumDef, MemberDef, NameKind, RecordDef, TypeError, TypeRef, TypeStore};

use crate::eval::{name_kind, tag};

/// Defines the structs, unions, enums, typedefs and `#define` numbers of a text, in the syntax of
/// scripts. They hide those of other sources. Types that are only pointed to need not be defined.
pub fn define_types(types: &mut TypeStore<'_>, text: &str) -> Result<(), Vec<Diagnostic>> {
    let parsed = bt_lang::parse(text);
    if !parsed.is_ok() {
        return Err(parsed.diagnostics);
    }
    let mut definer = Definer {
        types,
        constants: HashMap::new(),
    };
    for item in &parsed.program.items {
        let done = match &item.kind {
            ItemKind::Record(record) => definer.record(record).map(|_| ()),
            ItemKind::Enum(def) => definer.enumeration(def).map(|_| ()),
            ItemKind::Typedef { name, ty } => definer
                .ty(ty)
                .and_then(|ty| {
                    definer
                        .types
                        .define_typedef(&name.text, ty)
                        .map_err(at(name.span))
                })
                .map(|_| ()),
            ItemKind::Define(define) => match &define.value {
                Some(value) => definer.number(value).map(|number| {
                    definer.constants.insert(define.name.text.clone(), number);
                }),
                None => Ok(()),
            },
            _ => Err(Diagnostic::error(
                "expected the definition of a type",
                item.span,
            )),
        };
        done.map_err(|diagnostic| vec![diagnostic])?;
    }
    Ok(())
}

struct Definer<'s, 't> {
    types: &'s mut TypeStore<'t>,
    constants: HashMap<String, i128>,
}

fn at(span: Span) -> impl Fn(TypeError) -> Diagnostic {
    move |error| Diagnostic::error(error.to_string(), span)
}

impl Definer<'_, '_> {
    fn record(&mut self, record: &CRecord) -> Result<TypeRef, Diagnostic> {
        let name = record.name.as_ref().map(|name| name.text.clone());
        let Some(fields) = &record.fields else {
            return self
                .types
                .forward(tag(record.kind), &name.unwrap_or_default())
                .map_err(at(record.span));
        };
        let members: Result<_, _> = fields.iter().map(|field| self.member(field)).collect();
        let align = record
            .aligned
            .as_deref()
            .map(|align| self.natural(align))
            .transpose()?;
        let union = record.kind == RecordKind::Union;
        let def = RecordDef {
            union,
            name,
            members: members?,
            packed: record.packed,
            align,
        };
        self.types.define_record(def).map_err(at(record.span))
    }

    fn member(&mut self, field: &CField) -> Result<MemberDef, Diagnostic> {
        let ty = self.ty(&field.ty)?;
        let bits = match &field.bits {
            Some(bits) => Some(u32::try_from(self.natural(bits)?).unwrap_or(u32::MAX)),
            None => None,
        };
        Ok(MemberDef {
            name: field.name.as_ref().map(|name| name.text.clone()),
            ty,
            bits,
            align: None,
        })
    }

    fn enumeration(&mut self, def: &CEnum) -> Result<TypeRef, Diagnostic> {
        let (mut values, mut next) = (Vec::new(), 0_i128);
        for variant in &def.variants {
            if let Some(value) = &variant.value {
                next = self.number(value)?;
            }
            self.constants.insert(variant.name.text.clone(), next);
            values.push((variant.name.text.clone(), next as i64));
            next = next.wrapping_add(1);
        }
        let unsigned = next > i128::from(i64::MAX);
        let name = def.name.as_ref().map(|name| name.text.clone());
        self.types
            .define_enum(EnumDef {
                name,
                values,
                unsigned,
            })
            .map_err(at(def.span))
    }

    fn ty(&mut self, ty: &Type) -> Result<TypeRef, Diagnostic> {
        let place = at(ty.span);
        match &ty.kind {
            TypeKind::Name(name) => {
                if let Some(base) = self.types.base(name).map_err(&place)? {
                    return Ok(base);
                }
                self.types.require(NameKind::Typedef, name).map_err(place)
            }
            TypeKind::Tagged(kind, name) => match self
                .types
                .find(name_kind(*kind), &name.text)
                .map_err(&place)?
            {
                Some(found) => Ok(found),
                None => self.types.forward(tag(*kind), &name.text).map_err(place),
            },
            TypeKind::Inline(record) => self.record(record),
            TypeKind::InlineEnum(def) => self.enumeration(def),
            TypeKind::Pointer(target) => {
                let target = match &target.kind {
                    TypeKind::Tagged(kind, name) => self
                        .types
                        .forward(tag(*kind), &name.text)
                        .map_err(at(target.span))?,
                    TypeKind::Function => TypeRef::VOID,
                    _ => self.ty(target)?,
                };
                self.types.pointer_to(target).map_err(place)
            }
            TypeKind::Array(element, count) => {
                let element = self.ty(element)?;
                let count = count
                    .as_deref()
                    .map(|count| self.natural(count))
                    .transpose()?;
                self.types.array_of(element, count).map_err(place)
            }
            TypeKind::Function => Ok(TypeRef::VOID),
            TypeKind::Error | TypeKind::Typeof(_) => {
                Err(Diagnostic::error("expected a type", ty.span))
            }
        }
    }

    fn natural(&self, expr: &Expr) -> Result<u64, Diagnostic> {
        let number = u64::try_from(self.number(expr)?);
        number.map_err(|_| Diagnostic::error("expected a number that is not negative", expr.span))
    }

    /// Computes a constant. The parser bounds the depth of an expression, and each name has its
    /// value already.
    fn number(&self, expr: &Expr) -> Result<i128, Diagnostic> {
        let value = match &expr.kind {
            ExprKind::Int(literal) => Some(literal.value.into()),
            ExprKind::Ident(name) => {
                let known = self.constants.get(name).copied();
                known.or_else(|| {
                    self.types
                        .find_enumerator(name)
                        .ok()
                        .flatten()
                        .map(|(_, value)| value.into())
                })
            }
            ExprKind::Unary {
                op: UnaryOp::Neg,
                operand,
            } => Some(self.number(operand)?.wrapping_neg()),
            ExprKind::Unary {
                op: UnaryOp::BitNot,
                operand,
            } => Some(!self.number(operand)?),
            ExprKind::Binary {
                op, left, right, ..
            } => constant(*op, self.number(left)?, self.number(right)?),
            _ => None,
        };
        value.ok_or_else(|| Diagnostic::error("expected a number that is known here", expr.span))
    }
}

fn constant(op: BinaryOp, one: i128, other: i128) -> Option<i128> {
    let shift = u32::try_from(other).ok();
    match op {
        BinaryOp::Add => one.checked_add(other),
        BinaryOp::Sub => one.checked_sub(other),
        BinaryOp::Mul => one.checked_mul(other),
        BinaryOp::Div => one.checked_div(other),
        BinaryOp::Mod => one.checked_rem(other),
        BinaryOp::BitAnd => Some(one & other),
        BinaryOp::BitOr => Some(one | other),
        BinaryOp::BitXor => Some(one ^ other),
        BinaryOp::Shl => one.checked_shl(shift?),
        BinaryOp::Shr => one.checked_shr(shift?),
        _ => None,
    }
}
