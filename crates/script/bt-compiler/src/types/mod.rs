//! Types of the script, of the traced files and of the kernel. They are read when first used.

mod definitions;
mod value_type;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use bt_abi::{EnumNames, Layout, ValueType};
use bt_lang::ast::{Expr, RecordKind};
use typeinfo::{Btf, IntClass, NameKind, SourceId, Tag, TypeKind, TypeRef, TypeStore};

use super::diagnostics::MAX_DIAGNOSTICS;
use super::facts::TargetFacts;
use super::ty::{Space, Ty};

pub(crate) use definitions::Definer;

/// Limit on the elements of an array kept in one piece.
pub(crate) const MAX_ARRAY: u64 = 1 << 20;

/// All types, and the constants.
pub(crate) struct Types<'f> {
    facts: &'f dyn TargetFacts,
    pub(crate) store: TypeStore<'f>,
    /// Types of the kernel, once read.
    pub(crate) kernel: Option<SourceId>,
    pub(crate) kernel_asked: bool,
    /// Files whose debug information was requested, each with its source of types, if it has one.
    debug_asked: Vec<(String, Option<SourceId>)>,
    /// True if the script includes a file, so that it has the constants of C's headers.
    pub(crate) includes: bool,
    /// Constants of `#define`.
    pub(crate) defines: HashMap<String, Expr>,
    cache: TypeCache,
    /// Names of enumerations, by type.
    enums: RefCell<HashMap<TypeRef, Arc<EnumNames>>>,
    /// Layouts of structs for the runtime, by type and depth of the description.
    layouts: RefCell<HashMap<(TypeRef, u32), ShownLayout>>,
}

/// Layout, and number of fields that it shows, those of nested structs included.
type ShownLayout = (Arc<Layout>, usize);

/// Results of look-ups by name, misses included. The kernel has many types, and a script can use a
/// name many times.
#[derive(Debug, Default)]
struct TypeCache {
    types: HashMap<(NameKind, String), Option<TypeRef>>,
    enumerators: HashMap<String, Option<(TypeRef, i64)>>,
}

impl TypeCache {
    /// Forgets all results, since new types were added.
    fn clear(&mut self) {
        self.types.clear();
        self.enumerators.clear();
    }
}

impl<'f> Types<'f> {
    /// Creates an empty set of types.
    pub(crate) fn new(facts: &'f dyn TargetFacts, includes: bool) -> Self {
        Self {
            facts,
            store: TypeStore::new(facts.arch()),
            kernel: None,
            kernel_asked: false,
            debug_asked: Vec::new(),
            includes,
            defines: HashMap::new(),
            cache: TypeCache::default(),
            enums: RefCell::default(),
            layouts: RefCell::default(),
        }
    }
}

impl Types<'_> {
    /// Reads the kernel's types, if they have not been read yet.
    pub(crate) fn load_kernel_types(&mut self) {
        if self.kernel_asked {
            return;
        }
        self.kernel_asked = true;
        if let Some(btf) = self
            .facts
            .kernel_btf()
            .and_then(|bytes| Btf::parse(bytes).ok())
        {
            self.kernel = self.store.add_btf(btf).ok();
            self.cache.clear();
        }
    }

    /// Finds a type by its tag or name: the script's own first, then those of the target and the
    /// kernel.
    pub(crate) fn find_type(&mut self, kind: NameKind, name: &str) -> Option<TypeRef> {
        let found = self.known_type(kind, name);
        if found.is_some() || self.kernel_asked {
            return found;
        }
        self.load_kernel_types();
        self.known_type(kind, name)
    }

    /// Finds a type among those read so far.
    pub(crate) fn known_type(&mut self, kind: NameKind, name: &str) -> Option<TypeRef> {
        let key = (kind, name.to_owned());
        if let Some(known) = self.cache.types.get(&key) {
            return *known;
        }
        let found = self.store.find(kind, name).ok().flatten();
        self.cache.types.insert(key, found);
        found
    }

    /// Finds an enumerator among the types read so far.
    pub(crate) fn find_enumerator(&mut self, name: &str) -> Option<(TypeRef, i64)> {
        if let Some(known) = self.cache.enumerators.get(name) {
            return *known;
        }
        // Each unknown name is a mistake, and the number of mistakes kept is limited to this.
        if self
            .cache
            .enumerators
            .values()
            .filter(|found| found.is_none())
            .count()
            >= MAX_DIAGNOSTICS
        {
            return None;
        }
        let found = self.store.find_enumerator(name).ok().flatten();
        self.cache.enumerators.insert(name.to_owned(), found);
        found
    }

    /// Returns the compiler's type for one of C; its pointers point to `space`.
    pub(crate) fn ty_in(&self, ty: TypeRef, space: Space) -> Ty {
        let Ok(stripped) = self.store.strip(ty) else {
            return Ty::Unknown;
        };
        let Ok(found) = self.store.get(stripped) else {
            return Ty::Unknown;
        };
        match found.kind {
            TypeKind::Void => Ty::Void,
            TypeKind::Int {
                class: IntClass::Bool,
                ..
            } => Ty::Bool,
            TypeKind::Int {
                size: size @ (1 | 2 | 4 | 8),
                signed,
                ..
            } => Ty::Int {
                size: size as u8,
                signed,
            },
            TypeKind::Float {
                size: size @ (4 | 8),
            } => Ty::Opaque(ValueType::Float { size: size as u8 }),
            TypeKind::Int { size, .. } | TypeKind::Float { size } => Ty::Array {
                elem: Box::new(Ty::Int {
                    size: 1,
                    signed: false,
                }),
                count: size,
            },
            TypeKind::Enum {
                size: size @ (1 | 2 | 4 | 8),
                signed,
            } => Ty::Enum {
                ty: stripped,
                size: size as u8,
                signed,
            },
            TypeKind::Enum { .. } | TypeKind::Forward { .. } => Ty::Unknown,
            TypeKind::Pointer { target, .. } => {
                let space = if self.is_user(target) {
                    Space::User
                } else {
                    space
                };
                Ty::Ptr { to: target, space }
            }
            TypeKind::Func { .. } => Ty::Ptr {
                to: TypeRef::VOID,
                space,
            },
            TypeKind::Struct { size } | TypeKind::Union { size } => Ty::C {
                ty: stripped,
                size: u32::try_from(size).unwrap_or(u32::MAX),
            },
            TypeKind::Array { element, count } => self.array(element, count.unwrap_or(0), space),
            TypeKind::Typedef { .. } | TypeKind::Qualified { .. } => Ty::Unknown,
        }
    }

    fn array(&self, element: TypeRef, count: u64, space: Space) -> Ty {
        let Some(count) = Some(count).filter(|count| *count <= MAX_ARRAY) else {
            return Ty::Unknown;
        };
        if let Ok(TypeKind::Int {
            class: IntClass::Char,
            size: 1,
            ..
        }) = self.store.kind(element)
        {
            return Ty::Str(count as u32);
        }
        Ty::Array {
            elem: Box::new(self.ty_in(element, space)),
            count: count as u32,
        }
    }

    /// Returns true if the kernel's source marks a pointer's target as the process's (`__user`).
    fn is_user(&self, target: TypeRef) -> bool {
        let found = self.store.get(target);
        matches!(
            found.map(|found| (found.name, found.kind)),
            Ok((
                Some("user"),
                TypeKind::Qualified {
                    qualifier: typeinfo::Qualifier::Tag,
                    ..
                }
            ))
        )
    }
}

/// Returns the tag that a kind of record is looked up by.
pub(crate) fn tag(kind: RecordKind) -> Tag {
    match kind {
        RecordKind::Struct => Tag::Struct,
        RecordKind::Union => Tag::Union,
        RecordKind::Enum => Tag::Enum,
    }
}

impl Types<'_> {
    /// Returns a user function's parameters from its debug information.
    pub(crate) fn user_params(
        &mut self,
        path: &str,
        function: &str,
    ) -> Option<Vec<(String, TypeRef)>> {
        let source = self.load_debug(path)?;
        let found = self.store.function(source, function).ok().flatten()?;
        Some(
            found
                .params
                .iter()
                .map(|param| (param.name.unwrap_or_default().to_owned(), param.ty))
                .collect(),
        )
    }

    /// Reads a file's debug information, if it has not been read yet.
    pub(crate) fn load_debug(&mut self, path: &str) -> Option<SourceId> {
        if !self.debug_asked.iter().any(|(known, _)| known == path) {
            let source = self.facts.debug_elf(path).and_then(|elf| {
                let sections = typeinfo::DwarfSections::from_elf(elf).ok()?;
                self.store
                    .add_dwarf(typeinfo::Dwarf::new(sections).ok()?)
                    .ok()
            });
            self.cache.clear();
            self.debug_asked.push((path.to_owned(), source));
        }
        self.debug_asked.iter().find(|(known, _)| known == path)?.1
    }
}
