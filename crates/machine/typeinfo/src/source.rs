//! The queries that every source of types answers.

use crate::error::TypeError;
use crate::model::{Enumerator, Member, NameKind, Param, SourceId, Type, TypeRef, Variable};

/// Callback for each name of a source; it returns false to stop.
pub(crate) type Visit<'v, 's> = &'v mut dyn FnMut(&'s str, TypeRef) -> bool;

/// A reader of types. It answers from the bytes at once and keeps no copy.
pub(crate) trait Source: Send + Sync {
    /// Returns a type.
    fn get(&self, ty: TypeRef) -> Result<Type<'_>, TypeError>;
    /// Returns the members of a struct or union; empty for any other type.
    fn members(&self, ty: TypeRef) -> Result<Vec<Member<'_>>, TypeError>;
    /// Returns the names of an enumeration; empty for any other type.
    fn enumerators(&self, ty: TypeRef) -> Result<Vec<Enumerator<'_>>, TypeError>;
    /// Returns the parameters of a function or of its type; empty for any other type.
    fn params(&self, ty: TypeRef) -> Result<Vec<Param<'_>>, TypeError>;
    /// Finds the first definition with this name.
    fn find(&self, kind: NameKind, name: &str) -> Result<Option<TypeRef>, TypeError>;
    /// Visits every named definition of this kind.
    fn visit<'s>(&'s self, kind: NameKind, visit: Visit<'_, 's>) -> Result<(), TypeError>;
    /// Finds an enumerator by its name; returns the enumeration and the value.
    fn find_enumerator(&self, name: &str) -> Result<Option<(TypeRef, i64)>, TypeError>;
    /// Returns the variables of this name that are defined outside of functions.
    fn variables(&self, _name: &str) -> Result<Vec<Variable<'_>>, TypeError> {
        Ok(Vec::new())
    }
    /// Announces names of later queries: a source that is searched for names finds all of them in
    /// one pass.
    fn prepare(&self, _names: &[&str]) {}
    /// Returns the id of a type in the kernel's or a module's BTF.
    fn btf_id(&self, _ty: TypeRef) -> Option<(SourceId, u32)> {
        None
    }
}
