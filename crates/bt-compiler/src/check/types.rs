//! Types as written and types of C, as the compiler's.

use bt_lang::Span;
use bt_lang::ast::{self, ExprKind, RecordKind, TypeKind as AstKind, TypeOrExpr};
use typeinfo::{Btf, IntClass, NameKind, SourceId, Tag, TypeKind, TypeRef};

use super::Check;
use super::{MAX_DIAGNOSTICS, Shared};
use crate::ty::{Space, Ty};

/// A definition within a body counts as so many expressions.
const INLINE: usize = 100;
/// The largest array that is kept in one piece.
const MAX_ARRAY: u64 = 1 << 20;

impl Shared<'_> {
    /// Has the kernel's types read, if they were not yet.
    pub(crate) fn load_kernel_types(&mut self) {
        if self.kernel_asked {
            return;
        }
        self.kernel_asked = true;
        if let Some(btf) = self.facts.kernel_btf().and_then(|bytes| Btf::parse(bytes).ok()) {
            self.kernel_types = self.types.add_btf(btf).ok();
            self.asked.clear();
        }
    }

    /// A type by its tag or name: the script's own, then those of the target and the kernel.
    pub(crate) fn find_type(&mut self, kind: NameKind, name: &str) -> Option<TypeRef> {
        let found = self.known_type(kind, name);
        if found.is_some() || self.kernel_asked {
            return found;
        }
        self.load_kernel_types();
        self.known_type(kind, name)
    }

    /// A type of those that are read so far.
    fn known_type(&mut self, kind: NameKind, name: &str) -> Option<TypeRef> {
        let key = (kind, name.to_owned());
        if let Some(known) = self.asked.types.get(&key) {
            return *known;
        }
        let found = self.types.find(kind, name).ok().flatten();
        self.asked.types.insert(key, found);
        found
    }

    /// A name of an enumeration, of those that are read so far.
    pub(crate) fn find_enumerator(&mut self, name: &str) -> Option<(TypeRef, i64)> {
        if let Some(known) = self.asked.enumerators.get(name) {
            return *known;
        }
        // Each name that is nowhere is a mistake, and no more are told.
        if self.asked.enumerators.values().filter(|found| found.is_none()).count() >= MAX_DIAGNOSTICS {
            return None;
        }
        let found = self.types.find_enumerator(name).ok().flatten();
        self.asked.enumerators.insert(name.to_owned(), found);
        found
    }

    /// The compiler's type for one of C; pointers in it point to `space`.
    pub(crate) fn ty_in(&self, ty: TypeRef, space: Space) -> Ty {
        let Ok(stripped) = self.types.strip(ty) else {
            return Ty::Unknown;
        };
        let Ok(found) = self.types.get(stripped) else {
            return Ty::Unknown;
        };
        match found.kind {
            TypeKind::Void => Ty::Void,
            TypeKind::Int { class: IntClass::Bool, .. } => Ty::Bool,
            TypeKind::Int { size: size @ (1 | 2 | 4 | 8), signed, .. } => Ty::Int { size: size as u8, signed },
            TypeKind::Float { size: size @ (4 | 8) } => Ty::Float(size as u8),
            TypeKind::Int { size, .. } | TypeKind::Float { size } => {
                Ty::Array { elem: Box::new(Ty::Int { size: 1, signed: false }), count: size }
            }
            TypeKind::Enum { size: size @ (1 | 2 | 4 | 8), signed } => {
                Ty::Enum { ty: stripped, size: size as u8, signed }
            }
            TypeKind::Enum { .. } | TypeKind::Forward { .. } => Ty::Unknown,
            TypeKind::Pointer { target, .. } => {
                let space = if self.is_user(target) { Space::User } else { space };
                Ty::Ptr { to: target, space }
            }
            TypeKind::Func { .. } => Ty::Ptr { to: TypeRef::VOID, space },
            TypeKind::Struct { size } | TypeKind::Union { size } => {
                Ty::C { ty: stripped, size: u32::try_from(size).unwrap_or(u32::MAX) }
            }
            TypeKind::Array { element, count } => self.array(element, count.unwrap_or(0), space),
            TypeKind::Typedef { .. } | TypeKind::Qualified { .. } => Ty::Unknown,
        }
    }

    fn array(&self, element: TypeRef, count: u64, space: Space) -> Ty {
        let Some(count) = Some(count).filter(|count| *count <= MAX_ARRAY) else {
            return Ty::Unknown;
        };
        if let Ok(TypeKind::Int { class: IntClass::Char, size: 1, .. }) = self.types.kind(element) {
            return Ty::Str(count as u32);
        }
        Ty::Array { elem: Box::new(self.ty_in(element, space)), count: count as u32 }
    }

    /// Whether the kernel's source marks what a pointer points to as the process's (`__user`).
    fn is_user(&self, target: TypeRef) -> bool {
        let found = self.types.get(target);
        matches!(
            found.map(|found| (found.name, found.kind)),
            Ok((Some("user"), TypeKind::Qualified { qualifier: typeinfo::Qualifier::Tag, .. }))
        )
    }
}

impl Check<'_, '_> {
    pub(super) fn ty_in(&self, ty: TypeRef, space: Space) -> Ty {
        self.shared.ty_in(ty, space)
    }

    /// A type as written. One of whose values nothing is known, not even a size, is refused.
    pub(super) fn ast_type(&mut self, ty: &ast::Type) -> Ty {
        let before = self.shared.refused;
        let found = self.any_type(ty);
        if self.shared.refused == before { self.complete(found, ty.span) } else { found }
    }

    /// A type of which values can be made; others are refused.
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
            AstKind::Error | AstKind::Function | AstKind::Inline(_) | AstKind::InlineEnum(_) => Ty::Unknown,
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
                    self.wrong(count.span, "an array's length must be a number that is known when compiling");
                    return Ty::Unknown;
                }
            }
            None => 0,
        };
        match &element.kind {
            AstKind::Name(name) if name == "string" => Ty::Str(count),
            AstKind::Name(name) if name == "buffer" => Ty::Buf(count),
            AstKind::Name(name) if name == "inet" => Ty::Inet,
            AstKind::Name(name) if name == "char" => Ty::Str(count),
            _ => Ty::Array { elem: Box::new(self.ast_type(element)), count },
        }
    }

    fn named_type(&mut self, name: &str, span: Span) -> Ty {
        match name {
            "string" => return Ty::Str(0),
            "buffer" => return Ty::Buf(0),
            "inet" => return Ty::Inet,
            "macaddr_t" => return Ty::Mac,
            "username" => return Ty::Username,
            "ksym_t" => return Ty::Ksym,
            "usym_t" => return Ty::Usym,
            "void" => return Ty::Void,
            _ => {}
        }
        if let Some((_, aggregate)) = super::aggregates::TYPES.iter().find(|(known, _)| *known == name) {
            return Ty::Agg(aggregate.clone());
        }
        if let Some(ty) = self.c_name(name) {
            self.ty_in(ty, self.context.space)
        } else {
            self.unknown_type(NameKind::Typedef, name, span);
            Ty::Unknown
        }
    }

    /// A type of C by a name without a tag.
    pub(super) fn c_name(&mut self, name: &str) -> Option<TypeRef> {
        if let Some(found) = self.shared.known_type(NameKind::Typedef, name) {
            return Some(found);
        }
        if let Ok(Some(base)) = self.shared.types.base(name) {
            return Some(base);
        }
        self.find_type(NameKind::Typedef, name)
    }

    fn unknown_type(&mut self, kind: NameKind, name: &str, span: Span) {
        if !self.shared.would_tell(span) {
            return;
        }
        let near = self.shared.types.nearest(kind, name);
        let hint = match near.first() {
            Some(near) => format!("did you mean {near}?"),
            None => "define it in the script; types of the kernel come from its BTF".to_owned(),
        };
        self.wrong_hint(span, format!("cannot resolve unknown type \"{name}\""), hint);
    }

    /// A type as written, as one of C, if it is one.
    pub(super) fn c_type(&mut self, ty: &ast::Type) -> Option<TypeRef> {
        match &ty.kind {
            AstKind::Name(name) if name == "string" => self.shared.types.base("char").ok().flatten(),
            AstKind::Name(name) => {
                let found = self.c_name(name);
                if found.is_none() {
                    self.unknown_type(NameKind::Typedef, name, ty.span);
                }
                found
            }
            AstKind::Tagged(kind, name) => self.tagged(*kind, &name.text, ty.span),
            AstKind::Pointer(target) => {
                // A pointer to a struct that nobody defines is an address like others.
                let target = match &target.kind {
                    AstKind::Tagged(kind, name) => match self.find_type(name_kind(*kind), &name.text) {
                        Some(found) => found,
                        None => self.shared.types.forward(tag(*kind), &name.text).ok()?,
                    },
                    _ => self.c_type(target)?,
                };
                self.shared.types.pointer_to(target).ok()
            }
            AstKind::Array(element, count) => {
                let element = self.c_type(element)?;
                let count = match count {
                    Some(count) => Some(self.expr(count).constant()?),
                    None => None,
                };
                self.shared.types.array_of(element, count).ok()
            }
            AstKind::Function => Some(TypeRef::VOID),
            AstKind::Typeof(what) => {
                let ty = self.type_of(what);
                self.c_of(&ty)
            }
            AstKind::Inline(_) | AstKind::InlineEnum(_) if !self.may_make(INLINE, ty.span) => None,
            AstKind::Inline(record) => self.shared.define_record(record),
            AstKind::InlineEnum(def) => self.shared.define_enum(def),
            AstKind::Error => None,
        }
    }

    /// The type of C that is the compiler's, where there is one.
    pub(super) fn c_of(&mut self, ty: &Ty) -> Option<TypeRef> {
        match ty {
            Ty::Int { size, signed } => {
                let name = format!("{}int{}", if *signed { "" } else { "u" }, u32::from(*size) * 8);
                self.shared.types.base(&name).ok().flatten()
            }
            Ty::Bool => self.shared.types.base("bool").ok().flatten(),
            Ty::Enum { ty, .. } | Ty::C { ty, .. } => Some(*ty),
            Ty::Ptr { to, .. } => self.shared.types.pointer_to(*to).ok(),
            Ty::Void => Some(TypeRef::VOID),
            _ => None,
        }
    }

    /// A type by its tag or name: as [`Shared::find_type`], and then those of the traced file. What the script itself
    /// defines comes first, and the file before the kernel.
    fn find_type(&mut self, kind: NameKind, name: &str) -> Option<TypeRef> {
        if let Some(found) = self.shared.known_type(kind, name) {
            return Some(found);
        }
        if let Some(path) = self.context.path.clone()
            && self.shared.load_debug(&path).is_some()
            && let Some(found) = self.shared.known_type(kind, name)
        {
            return Some(found);
        }
        self.shared.find_type(kind, name)
    }

    fn tagged(&mut self, kind: RecordKind, name: &str, span: Span) -> Option<TypeRef> {
        let found = self.find_type(name_kind(kind), name);
        if found.is_none() && self.shared.would_tell(span) {
            let near = self.shared.types.nearest(name_kind(kind), name);
            let hint = match near.first() {
                Some(near) => format!("did you mean {} {near}?", kind.text()),
                None => "define it in the script; types of the kernel come from its BTF".to_owned(),
            };
            self.wrong_hint(span, format!("cannot resolve unknown type \"{} {name}\"", kind.text()), hint);
        }
        found
    }

    /// The type of what may be a type or an expression.
    pub(super) fn type_of(&mut self, what: &TypeOrExpr) -> Ty {
        match what {
            TypeOrExpr::Type(ty) => self.ast_type(ty),
            TypeOrExpr::Expr(expr) => {
                if let ExprKind::Ident(name) = &expr.kind
                    && let Some(ty) = self.c_name(name)
                {
                    let found = self.ty_in(ty, self.context.space);
                    return self.complete(found, expr.span);
                }
                if let ExprKind::Map(map) = &expr.kind
                    && map.keys.is_empty()
                {
                    // `typeof(@map)` is that of the key where the map has one.
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

    /// As messages and `typeinfo` have it.
    pub(super) fn type_name(&self, ty: &Ty) -> String {
        match ty {
            Ty::Unknown => "none".to_owned(),
            Ty::Void => "void".to_owned(),
            Ty::Int { size, signed } => format!("{}int{}", if *signed { "" } else { "u" }, u32::from(*size) * 8),
            Ty::Bool => "bool".to_owned(),
            Ty::Enum { ty, .. } | Ty::C { ty, .. } => self.shared.types.display(*ty),
            Ty::Ptr { to, .. } => format!("{} *", self.shared.types.display(*to)),
            Ty::Ref(to) => format!("{} *", self.type_name(to)),
            Ty::Str(_) => "string".to_owned(),
            Ty::Buf(_) => "buffer".to_owned(),
            Ty::Array { elem, count } => format!("{}[{count}]", self.type_name(elem)),
            Ty::Tuple(items) => {
                format!("({})", items.iter().map(|item| self.type_name(item)).collect::<Vec<_>>().join(","))
            }
            Ty::Record(fields) => {
                let fields = fields.iter().map(|(name, ty)| format!("{} {name}", self.type_name(ty)));
                format!("record {{ {} }}", fields.collect::<Vec<_>>().join("; "))
            }
            Ty::Stack { user: false, .. } => "kstack".to_owned(),
            Ty::Stack { user: true, .. } => "ustack".to_owned(),
            Ty::Ksym => "ksym_t".to_owned(),
            Ty::Usym => "usym_t".to_owned(),
            Ty::Inet => "inet".to_owned(),
            Ty::Float(size) => if *size == 4 { "float" } else { "double" }.to_owned(),
            Ty::Mac => "mac_address".to_owned(),
            Ty::CgroupPath(_) => "cgroup_path_t".to_owned(),
            Ty::Username => "username".to_owned(),
            Ty::ErrorText => "strerror_t".to_owned(),
            Ty::SignalText => "signal_name".to_owned(),
            Ty::Time { .. } => "timestamp".to_owned(),
            Ty::Agg(agg) => agg.name().to_owned(),
        }
    }
}

fn name_kind(kind: RecordKind) -> NameKind {
    NameKind::from(tag(kind))
}

pub(super) fn tag(kind: RecordKind) -> Tag {
    match kind {
        RecordKind::Struct => Tag::Struct,
        RecordKind::Union => Tag::Union,
        RecordKind::Enum => Tag::Enum,
    }
}

impl Shared<'_> {
    /// A user function's parameters by its debug information.
    pub(crate) fn user_params(&mut self, path: &str, function: &str) -> Option<Vec<(String, TypeRef)>> {
        let source = self.load_debug(path)?;
        let found = self.types.function(source, function).ok().flatten()?;
        Some(found.params.iter().map(|param| (param.name.unwrap_or_default().to_owned(), param.ty)).collect())
    }

    /// Has a file's debug information read, if it was not yet.
    fn load_debug(&mut self, path: &str) -> Option<SourceId> {
        if !self.debug_asked.iter().any(|(known, _)| known == path) {
            let source = self.facts.debug_elf(path).and_then(|elf| {
                let sections = typeinfo::DwarfSections::from_elf(elf).ok()?;
                self.types.add_dwarf(typeinfo::Dwarf::new(sections).ok()?).ok()
            });
            self.asked.clear();
            self.debug_asked.push((path.to_owned(), source));
        }
        self.debug_asked.iter().find(|(known, _)| known == path)?.1
    }
}
