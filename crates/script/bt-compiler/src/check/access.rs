//! Fields, elements, and pointers' targets.

use bt_lang::Span;
use bt_lang::ast::{self, Name, ProbeKind};
use text::patterns::did_you_mean;
use typeinfo::{Field, TypeKind, TypeRef};

use super::Check;
use crate::check::parts::part_of;
use crate::hir::{Expr, ExprKind};
use crate::ty::{Space, Ty, U64};

impl Check<'_, '_> {
    /// Checks `*pointer`.
    pub(super) fn deref(&mut self, operand: &ast::Expr, span: Span) -> Expr {
        // `*&@map` is the map's value, although nothing else can be done with the address.
        if let ast::ExprKind::Unary {
            op: ast::UnaryOp::AddrOf,
            operand,
        } = &operand.kind
            && let ast::ExprKind::Map(map) = &operand.kind
        {
            return self.map_read(map, span);
        }
        let pointer = self.expr(operand);
        match pointer.ty {
            Ty::Ptr { to, space } => self.read(pointer, to, space, span),
            Ty::Unknown => pointer,
            Ty::Ref(ref to) => {
                let to = (**to).clone();
                self.read_as(pointer, to, Space::Kernel, span)
            }
            // bpftrace reads 8 bytes through a number.
            Ty::Int { .. } => {
                let space = self.space_of(&pointer);
                Expr::new(
                    U64,
                    ExprKind::Load {
                        addr: Box::new(pointer),
                        space,
                        bits: None,
                    },
                    span,
                )
            }
            ref ty => {
                let name = self.type_name(ty);
                self.wrong(
                    span,
                    format!("can't dereference a value of type '{name}': it is not a pointer"),
                )
            }
        }
    }

    /// Checks `&$variable`, the address of its value, and `&@map`, the address of the map itself,
    /// which scripts can't follow.
    pub(super) fn address_of(&mut self, operand: &ast::Expr, span: Span) -> Expr {
        if let ast::ExprKind::Map(map) = &operand.kind {
            let id = self.map_id(&map.name.text, map.name.span);
            self.require_map(id, operand.span);
            return Expr::new(
                Ty::Ptr {
                    to: TypeRef::VOID,
                    space: Space::Kernel,
                },
                ExprKind::MapAddr(id),
                span,
            );
        }
        let value = self.expr(operand);
        let kind = match value.kind {
            ExprKind::Error => return value,
            ExprKind::Var(var) => ExprKind::VarAddr(var),
            _ => {
                return self.wrong(
                    span,
                    "the & operator can only be used with variables and maps",
                );
            }
        };
        let ty = match self.type_in_c(&value.ty) {
            Some(to) => Ty::Ptr {
                to,
                space: Space::Kernel,
            },
            None => Ty::Ref(Box::new(value.ty)),
        };
        Expr::new(ty, kind, span)
    }

    /// Returns the memory that a number used as an address belongs to.
    pub(super) fn space_of(&self, address: &Expr) -> Space {
        match address.ty {
            Ty::Ptr { space, .. } => space,
            Ty::Ref(_) => Space::Kernel,
            _ => self.context.space,
        }
    }

    /// Reads the value at an address: a number at once, anything else when it is used.
    pub(super) fn read(&mut self, addr: Expr, ty: TypeRef, space: Space, span: Span) -> Expr {
        let ty = self.ty_in(ty, space);
        self.read_as(addr, ty, space, span)
    }

    pub(super) fn read_as(&mut self, addr: Expr, ty: Ty, space: Space, span: Span) -> Expr {
        let addr = Box::new(addr);
        match &ty {
            Ty::Unknown => self.wrong(span, "a value of this type can't be read"),
            Ty::Void => self.wrong_hint(
                span,
                "can't dereference a pointer to void",
                "cast it to a pointer to a type that has a size: (uint64 *)$p",
            ),
            ty if ty.is_scalar() => Expr::new(
                ty.clone(),
                ExprKind::Load {
                    addr,
                    space,
                    bits: None,
                },
                span,
            ),
            _ => Expr::new(ty, ExprKind::MemRef { addr, space }, span),
        }
    }

    /// Checks `base.name` and `base->name`. A pointer is followed.
    pub(super) fn field(&mut self, base: &ast::Expr, name: &Name, span: Span) -> Expr {
        if let ast::ExprKind::Ident(word) = &base.kind
            && (word == "args" || word == "ctx" && self.context.kind == ProbeKind::Iter)
        {
            return self.args_field(name, span);
        }
        let base = self.expr(base);
        match base.ty.clone() {
            Ty::Unknown => base,
            Ty::Record(_) => self.record_field(base, name, span),
            Ty::Ptr { to, space } => {
                let ty = self.types.store.strip(to).unwrap_or(to);
                self.member(base, ty, Some(space), name, span)
            }
            Ty::C { ty, .. } => self.member(base, ty, None, name, span),
            ty => {
                let type_name = self.type_name(&ty);
                self.wrong(
                    span,
                    format!(
                        "can't access field '{}' of a value of type '{type_name}': it is not a \
                         struct, union or record",
                        name.text
                    ),
                )
            }
        }
    }

    fn record_field(&mut self, base: Expr, name: &Name, span: Span) -> Expr {
        let parts = base.ty.parts();
        let found = parts
            .iter()
            .position(|(known, ..)| *known == Some(name.text.as_str()));
        let Some(index) = found else {
            let known: Vec<&str> = parts.iter().filter_map(|part| part.0).collect();
            let hint = format!("its fields are {}", known.join(", "));
            return self.wrong_hint(
                name.span,
                format!("record has no field named '{}'", name.text),
                hint,
            );
        };
        let (offset, ty) = (parts[index].1, parts[index].2.clone());
        part_of(base, index, offset, ty, span)
    }

    /// Accesses a member of a struct. `base` is the struct, or, with `space`, points to it.
    fn member(
        &mut self,
        base: Expr,
        ty: TypeRef,
        space: Option<Space>,
        name: &Name,
        span: Span,
    ) -> Expr {
        let field = match self.types.store.member(ty, &name.text) {
            Ok(field) => field,
            Err(error) => return self.no_member(ty, name, &error),
        };
        match (space, base.kind) {
            (Some(space), kind) => {
                let base = Expr { kind, ..base };
                self.member_at(base, space, field, span)
            }
            (None, ExprKind::MemRef { addr, space }) => self.member_at(*addr, space, field, span),
            (None, kind) => {
                let base = Expr { kind, ..base };
                let ty = self.ty_in(field.ty, self.context.space);
                if ty.is_unknown() {
                    return self.wrong(span, "a value of this type can't be read");
                }
                let (bits, offset) = match field.bit_access() {
                    Some(bits) => (Some(bits), bits.byte_offset),
                    None => (None, field.byte_offset()),
                };
                Expr::new(
                    ty,
                    ExprKind::Subobject {
                        base: Box::new(base),
                        offset: offset as u32,
                        bits,
                    },
                    span,
                )
            }
        }
    }

    fn member_at(&mut self, addr: Expr, space: Space, field: Field, span: Span) -> Expr {
        let ty = self.ty_in(field.ty, space);
        if let Some(bits) = field.bit_access() {
            let addr = Box::new(addr.offset(bits.byte_offset, U64));
            return Expr::new(
                ty,
                ExprKind::Load {
                    addr,
                    space,
                    bits: Some(bits),
                },
                span,
            );
        }
        let addr = addr.offset(field.byte_offset(), U64);
        // A flexible array has no size of its own; its start stands for it.
        if let Ok(TypeKind::Array {
            element,
            count: None | Some(0),
        }) = self.types.store.kind(field.ty)
        {
            return Expr {
                ty: Ty::Ptr { to: element, space },
                span,
                ..addr
            };
        }
        self.read_as(addr, ty, space, span)
    }

    fn no_member(&mut self, ty: TypeRef, name: &Name, error: &typeinfo::TypeError) -> Expr {
        if !self.diagnostics.would_keep(name.span) {
            return Expr::error(name.span);
        }
        let type_name = self.types.store.display(ty);
        let mut known = Vec::new();
        let _ = self.types.store.each_member(ty, &mut |member, _| {
            known.push(member.to_owned());
            known.len() < 500
        });
        if known.is_empty() {
            return self.wrong(name.span, format!("{error}"));
        }
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let hint = known_names(&name.text, &known, "its fields are");
        self.wrong_hint(
            name.span,
            format!("struct '{type_name}' has no field named '{}'", name.text),
            hint,
        )
    }
}

/// Returns a hint for an unknown name: near ones, or else the known ones after `all`, at most 20.
pub(super) fn known_names(name: &str, known: &[&str], all: &str) -> String {
    let near = bt_lang::nearest(name, known.iter().copied());
    did_you_mean(&near).unwrap_or_else(|| {
        let first = known.get(..20).unwrap_or(known);
        format!("{all} {}", first.join(", "))
    })
}
