//! Types: those that an expression names, and a cache of what is known about them.

use std::cell::{Ref, RefCell};
use std::collections::HashMap;

use bt_lang::Span;
use bt_lang::ast::{self, RecordKind, TypeKind as AstKind};
use typeinfo::{Field, NameKind, TypeError, TypeKind, TypeRef, TypeStore};

use super::error::EvalError;

/// Types with a cache: debug information is decoded anew for each query.
pub(crate) struct Types<'t> {
    store: RefCell<TypeStore<'t>>,
    kinds: RefCell<HashMap<TypeRef, TypeKind>>,
    fields: RefCell<HashMap<TypeRef, HashMap<String, Field>>>,
    sizes: RefCell<HashMap<TypeRef, u64>>,
    named: RefCell<HashMap<(NameKind, String), Option<TypeRef>>>,
    pub(crate) i64: TypeRef,
    pub(crate) u64: TypeRef,
    pub(crate) bool: TypeRef,
    pub(crate) void_pointer: TypeRef,
}

impl<'t> Types<'t> {
    pub(crate) fn new(mut store: TypeStore<'t>) -> Self {
        // A store without room for four types has none for anything: then everything is void.
        let mut base = |name| store.base(name).ok().flatten().unwrap_or(TypeRef::VOID);
        let (i64, u64, bool) = (base("int64"), base("uint64"), base("bool"));
        let void_pointer = store.pointer_to(TypeRef::VOID).unwrap_or(TypeRef::VOID);
        Self {
            store: RefCell::new(store),
            kinds: RefCell::default(),
            fields: RefCell::default(),
            sizes: RefCell::default(),
            named: RefCell::default(),
            i64,
            u64,
            bool,
            void_pointer,
        }
    }

    pub(crate) fn store(&self) -> Ref<'_, TypeStore<'t>> {
        self.store.borrow()
    }

    /// Returns an array of `count` elements.
    pub(crate) fn array_of(
        &self,
        element: TypeRef,
        count: Option<u64>,
    ) -> Result<TypeRef, TypeError> {
        self.store.borrow_mut().array_of(element, count)
    }

    /// Returns the kind behind typedefs and qualifiers.
    pub(crate) fn kind(&self, ty: TypeRef) -> Result<TypeKind, TypeError> {
        if let Some(kind) = self.kinds.borrow().get(&ty) {
            return Ok(*kind);
        }
        let kind = self.store.borrow().kind(ty)?;
        self.kinds.borrow_mut().insert(ty, kind);
        Ok(kind)
    }

    pub(crate) fn size(&self, ty: TypeRef) -> Result<u64, TypeError> {
        if let Some(size) = self.sizes.borrow().get(&ty) {
            return Ok(*size);
        }
        let size = self.store.borrow().size_of(ty)?;
        self.sizes.borrow_mut().insert(ty, size);
        Ok(size)
    }

    pub(crate) fn member(&self, ty: TypeRef, name: &str) -> Result<Field, TypeError> {
        if let Some(field) = self
            .fields
            .borrow()
            .get(&ty)
            .and_then(|fields| fields.get(name))
        {
            return Ok(*field);
        }
        let field = self.store.borrow().member(ty, name)?;
        self.fields
            .borrow_mut()
            .entry(ty)
            .or_default()
            .insert(name.to_owned(), field);
        Ok(field)
    }

    pub(crate) fn has_member(&self, ty: TypeRef, name: &str) -> bool {
        self.store
            .borrow()
            .find_member(ty, name)
            .is_ok_and(|found| found.is_some())
    }

    pub(crate) fn pointer_to(&self, ty: TypeRef) -> Result<TypeRef, TypeError> {
        self.store.borrow_mut().pointer_to(ty)
    }

    pub(crate) fn display(&self, ty: TypeRef) -> String {
        self.store.borrow().display(ty)
    }

    pub(crate) fn find(&self, kind: NameKind, name: &str) -> Result<Option<TypeRef>, TypeError> {
        let key = (kind, name.to_owned());
        if let Some(known) = self.named.borrow().get(&key) {
            return Ok(*known);
        }
        let found = self.store.borrow().find(kind, name)?;
        self.named.borrow_mut().insert(key, found);
        Ok(found)
    }

    /// Returns a type by its bare name: one of C's own or a typedef.
    pub(crate) fn bare(&self, name: &str) -> Result<Option<TypeRef>, TypeError> {
        if let Some(base) = self.store.borrow_mut().base(name)? {
            return Ok(Some(base));
        }
        self.find(NameKind::Typedef, name)
    }

    /// Returns the type that an expression writes. `length` gives the number in the brackets of an
    /// array.
    pub(crate) fn written(
        &self,
        ty: &ast::Type,
        length: &dyn Fn(&ast::Expr) -> Result<u64, EvalError>,
    ) -> Result<TypeRef, EvalError> {
        let at = |error: TypeError| EvalError::new(ty.span, error);
        match &ty.kind {
            AstKind::Name(name) => self.bare_or_near(name, ty.span),
            AstKind::Tagged(kind, name) => {
                let kind = name_kind(*kind);
                match self.find(kind, &name.text).map_err(at)? {
                    Some(found) => Ok(found),
                    None => self.store.borrow().require(kind, &name.text).map_err(at),
                }
            }
            AstKind::Pointer(target) => {
                let target = self.written(target, length)?;
                self.pointer_to(target).map_err(at)
            }
            AstKind::Array(element, count) => {
                let element = self.written(element, length)?;
                let count = count.as_deref().map(length).transpose()?;
                self.array_of(element, count).map_err(at)
            }
            _ => Err(EvalError::other(
                ty.span,
                "expected the name of a type, such as `struct x` or `uint32_t`",
            )),
        }
    }

    fn bare_or_near(&self, name: &str, span: Span) -> Result<TypeRef, EvalError> {
        let at = |error: TypeError| EvalError::new(span, error);
        if let Some(found) = self.bare(name).map_err(at)? {
            return Ok(found);
        }
        // C++ names classes without the word before them, and C programmers forget it.
        for kind in [NameKind::Struct, NameKind::Union, NameKind::Enum] {
            if let Some(found) = self.find(kind, name).map_err(at)? {
                return Ok(found);
            }
        }
        self.store
            .borrow()
            .require(NameKind::Typedef, name)
            .map_err(at)
    }
}

pub(crate) fn name_kind(kind: RecordKind) -> NameKind {
    tag(kind).into()
}

pub(crate) fn tag(kind: RecordKind) -> typeinfo::Tag {
    match kind {
        RecordKind::Struct => typeinfo::Tag::Struct,
        RecordKind::Union => typeinfo::Tag::Union,
        RecordKind::Enum => typeinfo::Tag::Enum,
    }
}
