//! Types as written in a body.

use bt_lang::Span;
use bt_lang::ast::{self, RecordKind, TypeKind as AstKind, TypeOrExpr};
use typeinfo::{NameKind, TypeRef};

use super::Check;
use crate::ty::{Space, Ty};
use crate::types::{MAX_ARRAY, tag};
use bt_abi::ValueType;

/// Number of expressions that a definition within a body counts as.
const INLINE: usize = 100;

impl Check<'_, '_> {
    pub(super) fn ty_in(&self, ty: TypeRef, space: Space) -> Ty {
        self.types.ty_in(ty, space)
    }

    /// Checks a type as written. A type whose values have no known size is refused.
    pub(super) fn ast_type(&mut self, ty: &ast::Type) -> Ty {
        let before = self.diagnostics.refused;
        let found = self.any_type(ty);
        if self.diagnostics.refused == before {
            self.complete(found, ty.span)
        } else {
            found
        }
    }

    /// Checks that a type can have values; others are refused.
    fn complete(&mut self, found: Ty, span: Span) -> Ty {
        if found.is_unknown() {
            self.wrong_hint(
                span,
                "this type is incomplete, or too large: values of it have no known size",
                "define it in the script, or use a pointer to it",
            );
        }
        found
    }

    fn any_type(&mut self, ty: &ast::Type) -> Ty {
        match &ty.kind {
            AstKind::Error | AstKind::Function | AstKind::Inline(_) | AstKind::InlineEnum(_) => {
                Ty::Unknown
            }
            AstKind::Name(name) => self.named_type(name, ty.span),
            AstKind::Tagged(..) | AstKind::Pointer(_) => match self.c_type(ty) {
                Some(c) => self.ty_in(c, self.context.space),
                None => Ty::Unknown,
            },
            AstKind::Array(element, count) => self.array_type(element, count.as_deref()),
            AstKind::Typeof(what) => self.type_of(what),
        }
    }

    fn array_type(&mut self, element: &ast::Type, count: Option<&ast::Expr>) -> Ty {
        let count = match count {
            Some(count) => {
                let number = self.expr(count);
                if let Some(number) = number.constant().filter(|number| *number <= MAX_ARRAY) {
                    number as u32
                } else {
                    self.wrong(
                        count.span,
                        "an array's length must be a number that is known at compile time",
                    );
                    return Ty::Unknown;
                }
            }
            None => 0,
        };
        match &element.kind {
            AstKind::Name(name) if name == "string" => Ty::Str(count),
            AstKind::Name(name) if name == "buffer" => Ty::Buf(count),
            AstKind::Name(name) if name == "inet" => Ty::Opaque(ValueType::Inet),
            AstKind::Name(name) if name == "char" => Ty::Str(count),
            _ => Ty::Array {
                elem: Box::new(self.ast_type(element)),
                count,
            },
        }
    }

    fn named_type(&mut self, name: &str, span: Span) -> Ty {
        match name {
            "string" => return Ty::Str(0),
            "buffer" => return Ty::Buf(0),
            "inet" => return Ty::Opaque(ValueType::Inet),
            "macaddr_t" => return Ty::Opaque(ValueType::MacAddress),
            "username" => return Ty::Opaque(ValueType::Username),
            "ksym_t" => return Ty::Opaque(ValueType::KernelSymbol),
            "usym_t" => return Ty::Opaque(ValueType::UserSymbol),
            "void" => return Ty::Void,
            _ => {}
        }
        if let Some((_, aggregate)) = super::aggregates::TYPES
            .iter()
            .find(|(known, _)| *known == name)
        {
            return Ty::Agg(aggregate.clone());
        }
        if let Some(ty) = self.c_name(name) {
            self.ty_in(ty, self.context.space)
        } else {
            self.unknown_type(NameKind::Typedef, name, span);
            Ty::Unknown
        }
    }

    /// Finds a type of C by a name without a tag.
    pub(super) fn c_name(&mut self, name: &str) -> Option<TypeRef> {
        if let Some(found) = self.types.known_type(NameKind::Typedef, name) {
            return Some(found);
        }
        if let Ok(Some(base)) = self.types.store.base(name) {
            return Some(base);
        }
        self.find_type(NameKind::Typedef, name)
    }

    fn unknown_type(&mut self, kind: NameKind, name: &str, span: Span) {
        if !self.diagnostics.would_keep(span) {
            return;
        }
        let near = self.types.store.nearest(kind, name);
        let hint = match near.first() {
            Some(near) => format!("did you mean {near}?"),
            None => "define it in the script; types of the kernel come from its BTF".to_owned(),
        };
        self.wrong_hint(
            span,
            format!("cannot resolve unknown type \"{name}\""),
            hint,
        );
    }

    /// Checks a type as written, as a type of C; `None` if it is none.
    pub(super) fn c_type(&mut self, ty: &ast::Type) -> Option<TypeRef> {
        match &ty.kind {
            AstKind::Name(name) if name == "string" => self.types.store.base("char").ok().flatten(),
            AstKind::Name(name) => {
                let found = self.c_name(name);
                if found.is_none() {
                    self.unknown_type(NameKind::Typedef, name, ty.span);
                }
                found
            }
            AstKind::Tagged(kind, name) => self.tagged(*kind, &name.text, ty.span),
            AstKind::Pointer(target) => {
                // A pointer to an undefined struct is still an address.
                let target = match &target.kind {
                    AstKind::Tagged(kind, name) => {
                        match self.find_type(name_kind(*kind), &name.text) {
                            Some(found) => found,
                            None => self.types.store.forward(tag(*kind), &name.text).ok()?,
                        }
                    }
                    _ => self.c_type(target)?,
                };
                self.types.store.pointer_to(target).ok()
            }
            AstKind::Array(element, count) => {
                let element = self.c_type(element)?;
                let count = match count {
                    Some(count) => Some(self.expr(count).constant()?),
                    None => None,
                };
                self.types.store.array_of(element, count).ok()
            }
            AstKind::Function => Some(TypeRef::VOID),
            AstKind::Typeof(what) => {
                let ty = self.type_of(what);
                self.type_in_c(&ty)
            }
            AstKind::Inline(_) | AstKind::InlineEnum(_) if !self.charge(INLINE, ty.span) => None,
            AstKind::Inline(record) => self.definer().define_record(record),
            AstKind::InlineEnum(def) => self.definer().define_enum(def),
            AstKind::Error => None,
        }
    }

    /// Returns the type of C for one of the compiler's, if there is one.
    pub(super) fn type_in_c(&mut self, ty: &Ty) -> Option<TypeRef> {
        match ty {
            Ty::Int { size, signed } => {
                let name = format!(
                    "{}int{}",
                    if *signed { "" } else { "u" },
                    u32::from(*size) * 8
                );
                self.types.store.base(&name).ok().flatten()
            }
            Ty::Bool => self.types.store.base("bool").ok().flatten(),
            Ty::Enum { ty, .. } | Ty::C { ty, .. } => Some(*ty),
            Ty::Ptr { to, .. } => self.types.store.pointer_to(*to).ok(),
            Ty::Void => Some(TypeRef::VOID),
            _ => None,
        }
    }

    /// Finds a type by its tag or name, as [`Types::find_type`](crate::types::Types::find_type)
    /// does, but also in the traced file. The script's own definitions come first, then the file,
    /// then the kernel.
    fn find_type(&mut self, kind: NameKind, name: &str) -> Option<TypeRef> {
        if let Some(found) = self.types.known_type(kind, name) {
            return Some(found);
        }
        if let Some(path) = self.context.path.clone()
            && self.types.load_debug(&path).is_some()
            && let Some(found) = self.types.known_type(kind, name)
        {
            return Some(found);
        }
        self.types.find_type(kind, name)
    }

    fn tagged(&mut self, kind: RecordKind, name: &str, span: Span) -> Option<TypeRef> {
        let found = self.find_type(name_kind(kind), name);
        if found.is_none() && self.diagnostics.would_keep(span) {
            let near = self.types.store.nearest(name_kind(kind), name);
            let hint = match near.first() {
                Some(near) => format!("did you mean {} {near}?", kind.text()),
                None => "define it in the script; types of the kernel come from its BTF".to_owned(),
            };
            self.wrong_hint(
                span,
                format!("cannot resolve unknown type \"{} {name}\"", kind.text()),
                hint,
            );
        }
        found
    }

    /// Returns the type of a type or an expression.
    pub(super) fn type_of(&mut self, what: &TypeOrExpr) -> Ty {
        match what {
            TypeOrExpr::Type(ty) => self.ast_type(ty),
            TypeOrExpr::Expr(expr) => {
                if let ast::ExprKind::Ident(name) = &expr.kind
                    && let Some(ty) = self.c_name(name)
                {
                    let found = self.ty_in(ty, self.context.space);
                    return self.complete(found, expr.span);
                }
                if let ast::ExprKind::Map(map) = &expr.kind
                    && map.keys.is_empty()
                {
                    // `typeof(@map)` is the key's type if the map has keys.
                    let id = self.map_id(&map.name.text, map.name.span);
                    match self.map(id).key.clone() {
                        Some(Ty::Void) | None => {}
                        Some(key) => return key,
                    }
                }
                self.expr(expr).ty
            }
        }
    }

    /// Returns the type's name in messages and in `typeinfo`.
    pub(super) fn type_name(&self, ty: &Ty) -> String {
        match ty {
            Ty::Unknown => "none".to_owned(),
            Ty::Void => "void".to_owned(),
            Ty::Int { size, signed } => format!(
                "{}int{}",
                if *signed { "" } else { "u" },
                u32::from(*size) * 8
            ),
            Ty::Bool => "bool".to_owned(),
            Ty::Enum { ty, .. } | Ty::C { ty, .. } => self.types.store.display(*ty),
            Ty::Ptr { to, .. } => format!("{} *", self.types.store.display(*to)),
            Ty::Ref(to) => format!("{} *", self.type_name(to)),
            Ty::Str(_) => "string".to_owned(),
            Ty::Buf(_) => "buffer".to_owned(),
            Ty::Array { elem, count } => format!("{}[{count}]", self.type_name(elem)),
            Ty::Tuple(items) => {
                format!(
                    "({})",
                    items
                        .iter()
                        .map(|item| self.type_name(item))
                        .collect::<Vec<_>>()
                        .join(",")
                )
            }
            Ty::Record(fields) => {
                let fields = fields
                    .iter()
                    .map(|(name, ty)| format!("{} {name}", self.type_name(ty)));
                format!("record {{ {} }}", fields.collect::<Vec<_>>().join("; "))
            }
            Ty::Stack { user: false, .. } => "kstack".to_owned(),
            Ty::Stack { user: true, .. } => "ustack".to_owned(),
            Ty::Opaque(value) => value.name().to_owned(),
            Ty::Agg(agg) => agg.name().to_owned(),
        }
    }
}

fn name_kind(kind: RecordKind) -> NameKind {
    NameKind::from(tag(kind))
}
